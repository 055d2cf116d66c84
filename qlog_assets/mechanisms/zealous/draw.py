"""How ZEALOUS draws: each kind's chosen items counted by SQL, noise from `mechanisms/zealous.py`, texts put back.

The door calls `draw`. What one user can change here: at most items_per_user counts of each kind, each by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable, MechanismEntry
from qlog_assets.mechanisms.safelog.tables import QUERIES
from qlog_assets.mechanisms.zealous.noise import noise as zealous
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.mechanisms.zealous.stages import inspect_zealous_items
from qlog_assets.mechanisms.zealous.tables import ALL_CLICKS, KEYWORDS, PAIRS
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.report.tables import in_public_order
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition

TABLES = {layout.name: layout for layout in (KEYWORDS, QUERIES, PAIRS, ALL_CLICKS)}


def draw(
    engine: Engine, inputs: Mapping[str, Partition], variant: str, chosen: ZealousParameters, source: RandomSource
) -> Drawn:
    """One table a kind. Nothing in them was public before."""
    tables: dict[str, DrawnTable] = {}
    for kind in chosen.kinds:
        count_items(engine, inputs["zealous_items"], kind)
        if zealous.takes_rows(variant, chosen):
            rows = engine.arrays("numbered_contributions")
            drawn = zealous.draw_rows(source, rows["user_id"], rows["item_id"], chosen)
        else:
            drawn = zealous.draw_counts(source, item_counts(engine), variant, chosen)
        named = name_items(engine, drawn.items, drawn.users)
        tables[kind] = DrawnTable(in_public_order(named, TABLES[kind]), drawn.threshold)
    return Drawn(tables, pa.array([], pa.string()))


def count_items(engine: Engine, items: Partition, kind: str) -> None:
    """Make the table `counted_items` of a kind: every item some user chose, numbered."""
    engine.view("contributions", items.files(kind))
    engine.statement_table("counted_items")


def item_counts(engine: Engine) -> np.ndarray:
    """How many users hold each item of `counted_items`, by number."""
    return engine.arrays("item_counts")["held_by"].astype(np.int64)


def name_items(engine: Engine, items: np.ndarray, users: np.ndarray) -> pa.Table:
    """The texts of some items of `counted_items` beside new counts."""
    with engine.table("drawn_items", pa.table({"item_id": items, "users": users})):
        return engine.arrow("named_items")


ENTRY = MechanismEntry(
    name="zealous",
    version=zealous.MECHANISM_VERSION,
    inputs=("zealous_items",),
    public_inputs=(),
    tables=tuple(TABLES.values()),
    parameters=lambda policy: policy.zealous.parameters,
    variant=lambda policy: policy.zealous.variant,
    inspect=inspect_zealous_items,
    draw=draw,
    draw_asset="zealous_selected",
    released_prefix="released_zealous_",
    sources=(
        "qlog_assets/drawing/zealous.py",
        "qlog_assets/mechanisms/counts.py",
        "qlog_assets/mechanisms/zealous.py",
        "qlog_assets/privacy/composition.py",
        "qlog_assets/privacy/exact.py",
        "qlog_assets/privacy/gaussian.py",
        "qlog_assets/privacy/guarantees/zealous.py",
        "qlog_assets/privacy/histogram.py",
        "qlog_assets/privacy/noise.py",
        "qlog_assets/privacy/randomness.py",
        "qlog_assets/privacy/selection.py",
        "qlog_assets/privacy/tables.py",
        "qlog_assets/privacy/weighted.py",
        "qlog_assets/privacy/zero_domain.py",
        "sql/chosen_items.sql",
        "sql/cleaned_clicks.sql",
        "sql/cleaned_log.sql",
        "sql/cleaned_queries.sql",
        "sql/counted_items.sql",
        "sql/events_clicks.sql",
        "sql/events_keywords.sql",
        "sql/events_pairs.sql",
        "sql/events_queries.sql",
        "sql/following_queries.sql",
        "sql/item_counts.sql",
        "sql/named_items.sql",
        "sql/numbered_contributions.sql",
        "sql/raw_beyond_ascii.sql",
    ),
)
