"""What a reader learns of one person from k-anonymous items of several queries: homogeneity, no guessing.

Somebody knows one query of a person, and that the person is behind one of the printed items. Where all printed items
with that query hold another query, too, the other one is learned with certainty, whoever of the k people it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.storage.engine import Engine


@dataclass(frozen=True)
class Inference:
    """How far a reader of printed histories or sessions gets with one known query."""

    known: int
    """Queries in printed items: what a reader may know of a person."""
    betraying: int
    """Those among them with which another query is learned with certainty."""
    items: int
    """Printed items of at least two queries."""
    homogeneous: int
    """Those among them that hold a betraying query: one is enough to learn another query of everybody behind them."""
    betrayed_by: dict[str, int]
    """How many queries are learned with each betraying one."""


def infer(engine: Engine, printed: pa.Table) -> Inference:
    """What one known query betrays, of a printed table with a column of lists and a column `printed`."""
    rows = rows_of_items(printed)
    with engine.table("whole_rows", rows):
        found = engine.arrow("baselines/homogeneous_queries")
    betraying = found.filter(pc.greater(found["betrayed"], 0))
    several = pc.greater(pc.list_value_length(items_of(printed)), 1)
    homogeneous = rows.filter(pc.is_in(rows["query"], betraying["query"].combine_chunks()))["item_id"]
    return Inference(
        known=found.num_rows,
        betraying=betraying.num_rows,
        items=pc.sum(several).as_py() or 0,
        homogeneous=pc.count_distinct(homogeneous).as_py(),
        betrayed_by=dict(zip(betraying["query"].to_pylist(), betraying["betrayed"].to_pylist(), strict=True)),
    )


def items_of(printed: pa.Table) -> pa.ChunkedArray:
    """The column of lists in a printed table."""
    return next(column for column in printed.columns if pa.types.is_list(column.type))


def rows_of_items(printed: pa.Table) -> pa.Table:
    """One row per printed item and query of it."""
    items = items_of(printed)
    rows = pa.table({"item_id": pc.list_parent_indices(items), "query": pc.list_flatten(items)})
    return rows.group_by(["item_id", "query"], use_threads=False).aggregate([])
