"""How Safelog draws by steered selection: queries beside the pool, then clicks and transitions of the released ones.

What one user can change here: the rows of the capped log that are the user's own, at most queries_per_user queries,
clicks_per_user pairs and queries_per_user - 1 transitions; what they move is bounded by weights and shares
(`privacy/steered`). Nothing that the noise decides makes a draw fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.mechanisms.contributions import view_items
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.mechanisms.safelog.guarantee import modern_budget
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.mechanisms.safelog.stages import view_capped
from qlog_assets.mechanisms.safelog.tables import CLICKS, QUERIES, TRANSITIONS
from qlog_assets.mechanisms.steered_tables import KnownRows, draw_steered_table
from qlog_assets.pipeline.stage import Inputs
from qlog_assets.pipeline.steering import Steering
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.report.tables import TableLayout
from qlog_assets.storage.engine import Engine

CONTRIBUTIONS = {
    QUERIES.name: "safelog/contributed_queries",
    CLICKS.name: "safelog/contributed_clicks",
    TRANSITIONS.name: "safelog/contributed_transitions",
}
"""What users contribute to each table; clicks and transitions of released queries alone."""
KNOWN = {CLICKS.name: "safelog/known_clicks", TRANSITIONS.name: "safelog/known_transitions"}
"""The rows of an earlier release that such a table may have."""


def draw_modern(
    engine: Engine,
    inputs: Inputs,
    variant: str,
    chosen: SafelogParameters,
    source: RandomSource,
    steering: Steering | None = None,
) -> Drawn:
    """All tables of one release: clicks and transitions are drawn for the queries just released."""
    view_capped(engine, inputs["capped_log"])
    pool, draw = inputs["pool"].files("queries"), partial(_draw, engine, chosen, source, steering)
    tables = {"queries": draw(QUERIES, listed=pool)}
    urls = _releasable_urls(inputs, chosen)
    with (
        engine.table("released_queries", tables["queries"].rows.select(["query"])),
        engine.table("releasable_urls", pa.table({"url": urls or pa.array([], pa.string())})),
    ):
        engine.view("pool", pool)
        public = [engine.arrow("safelog/released_pool_queries")["query"].combine_chunks()]
        if chosen.click_share is not None:
            tables["clicks"] = draw(CLICKS, any_url=urls is None)
            if urls is not None:
                public.append(tables["clicks"].rows["url"].combine_chunks())
        if chosen.transition_share is not None:
            tables["transitions"] = draw(TRANSITIONS)
    return Drawn(tables, pa.concat_arrays(public))


def _draw(
    engine: Engine,
    chosen: SafelogParameters,
    source: RandomSource,
    steering: Steering | None,
    layout: TableLayout,
    *,
    listed: Sequence[Path] = (),
    **given: Any,
) -> DrawnTable:
    """One table; `given` is what the statements of its contributions and known rows take."""
    engine.statement_table(CONTRIBUTIONS[layout.name], "contributed", **given)
    view_items(engine, "contributed")
    known = None if steering is None else steering.rows(layout.name)
    if known is not None and layout.name in KNOWN:
        with engine.table("earlier_rows", known):
            known = engine.arrow(KNOWN[layout.name], **given)
    part, known_rows = chosen.parts[layout.name], KnownRows.of(known, layout.keys)
    return draw_steered_table(engine, source, layout, modern_budget(chosen), part, known_rows, listed)


def _releasable_urls(inputs: Inputs, chosen: SafelogParameters) -> pa.ChunkedArray | None:
    """The urls of the public list whose clicks alone may be released; None where any may."""
    if chosen.click_support != "public_list":
        return None
    return pq.read_table(inputs["url_list"].files("urls"), columns=["url"])["url"]
