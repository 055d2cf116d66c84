"""What the k-anonymity baselines print of a month, into `private/studies/`. Nothing here can be published."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from qlog_assets.months import Month
from qlog_assets.pipeline.chain import Chain
from qlog_assets.pipeline.inspection import view_cleaned
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.simulation import store_study
from qlog_assets.studies.zealous import BASELINES, draw_baseline, read_items


def simulate_baselines(warehouse: Warehouse, engine: Engine, month: Month, k: int, run_id: str) -> dict[str, Any]:
    """Queries of a month by every baseline, with the exact counts it prints."""
    chain = Chain(warehouse, engine, run_id, make_current=False)
    cleaned, _ = chain.clean(month, warehouse.current("raw_log", month))
    view_cleaned(engine, cleaned)
    items = read_items(engine, "queries")
    tables = {}
    for name in BASELINES:
        printed = draw_baseline(name, items.event_users, items.event_items, items.texts.num_rows, k)
        texts = items.texts["query"].take(pa.array(printed.indices))
        tables[name] = pa.table({"query": texts, "printed": printed.counts})
    facts = {
        "mechanism": "baselines",
        "month": str(month),
        "k": k,
        "rows": {name: table.num_rows for name, table in tables.items()},
        "charged": False,
        "proven": None,
        "gaps": ["k - 1 fake accounts that type a query reveal with certainty whether one more user typed it"],
    }
    return store_study(warehouse, f"baselines-{month}-{k}", run_id, facts, tables)
