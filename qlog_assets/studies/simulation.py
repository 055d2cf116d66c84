"""Seeded draws for studies, into `private/studies/`: the sound variants without the door, and the papers' own.

Nothing here is publishable: the noise can be computed again from its seed, and `paper` variants keep no promise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.mechanisms.guarantees import guarantee
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.mechanisms.safelog.paper import draw_paper_clicks, draw_paper_queries, draw_paper_transitions
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.months import Month
from qlog_assets.pipeline.chain import Chain
from qlog_assets.pipeline.inspection import view_cleaned
from qlog_assets.pipeline.public_material import build_pool, build_url_list
from qlog_assets.policy import Policy
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.storage.digests import canonical_json
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.private_files import seal
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.warehouse import temporary_directory

Drawer = Callable[[Chain, Month, Partition, Policy, str, SeededRandom], dict[str, pa.Table]]
"""From a month's cleaned log, the policy and a variant to the tables of one seeded draw."""


def drawers() -> dict[str, Drawer]:
    """How each mechanism is simulated."""
    from qlog_assets.studies.zealous import draw_zealous

    return {"safelog": draw_safelog, "zealous": draw_zealous}


def simulate(
    name: str,
    warehouse: Warehouse,
    engine: Engine,
    policy: Policy,
    month: Month,
    variant: str,
    seed: int,
    run_id: str,
) -> dict[str, Any]:
    """Draw a month with seeded noise, beside what releases are made from; returns what was drawn and where it lies."""
    chosen = mechanism(name).parameters(policy)
    promise = guarantee(name, variant, chosen)
    chain = Chain(warehouse, engine, run_id, make_current=False)
    cleaned, _ = chain.clean(month, warehouse.current("raw_log", month))
    tables = drawers()[name](chain, month, cleaned, policy, variant, SeededRandom(seed))
    facts = {
        "mechanism": name,
        "variant": variant,
        "month": str(month),
        "seed": seed,
        "rows": {table: rows.num_rows for table, rows in tables.items()},
        "parameters": chosen.as_public(),
        "charged": False,
        **{key: promise.as_json()[key] for key in ("claimed", "proven", "gaps")},
    }
    return store_study(warehouse, f"{name}-{month}-{variant}-{seed}", run_id, facts, tables)


def draw_safelog(
    chain: Chain, month: Month, cleaned: Partition, policy: Policy, variant: str, source: SeededRandom
) -> dict[str, pa.Table]:
    if variant == "paper":
        return draw_paper(chain, month, cleaned, policy, source)
    capped, _ = chain.cap(month, cleaned, policy.safelog)
    augmented, _ = chain.augment(month, capped, policy)
    inputs = {"capped_log": capped, "pool_augmented": augmented}
    if policy.url_list is not None:
        inputs["url_list"] = build_url_list(chain, policy.url_list)
    safelog = mechanism("safelog")
    drawn = safelog.draw(chain.engine, inputs, variant, safelog.parameters(policy), source)
    return {name: table.rows for name, table in drawn.tables.items()}


def draw_paper(
    chain: Chain, month: Month, cleaned: Partition, policy: Policy, source: SeededRandom
) -> dict[str, pa.Table]:
    """Algorithm 1 to the letter: the frequency filter first, then the caps, event counts, and two noises."""
    engine, chosen = chain.engine, policy.safelog
    view_cleaned(engine, cleaned)
    engine.view("pool", build_pool(chain, month, policy).files("queries"))
    limits = {"min_frequency": chosen.min_frequency, "queries_per_user": chosen.queries_per_user}
    counts = engine.arrow("paper_queries", **limits)
    events = counts["events"].to_numpy()
    typed = np.flatnonzero(events > 0)
    untouched = np.flatnonzero(events == 0)
    real, fake = draw_paper_queries(source, events[typed], len(untouched), chosen)
    rows = np.concatenate([typed[real.indices], untouched[fake.indices]])
    released = counts["query"].take(pa.array(rows)).combine_chunks()
    tables = {"queries": pa.table({"query": released, "events": np.concatenate([real.counts, fake.counts])})}
    ids = pa.table({"query": released, "query_id": np.arange(len(released))})
    with engine.table("released_ids", ids):
        tables["clicks"] = _paper_clicks(engine, released, chosen, source)
        tables["transitions"] = _paper_transitions(engine, released, chosen, source, limits)
    return tables


def _paper_clicks(engine: Engine, released: pa.Array, chosen: SafelogParameters, source: SeededRandom) -> pa.Table:
    pairs = engine.arrow("paper_clicks", clicks_per_user=chosen.clicks_per_user, min_frequency=chosen.min_frequency)
    if chosen.click_scale is None:
        pairs = pairs.slice(0, 0)
    noisy = draw_paper_clicks(source, pairs["events"].to_numpy(), chosen)
    texts = released.take(pairs["query_id"].combine_chunks())
    return pa.table({"query": texts, "url": pairs["url"], "events": noisy})


def _paper_transitions(
    engine: Engine, released: pa.Array, chosen: SafelogParameters, source: SeededRandom, limits: dict[str, int]
) -> pa.Table:
    made = engine.arrays("paper_transitions", **limits)
    drawn = draw_paper_transitions(
        source,
        made["query_id"].astype(np.int64),
        made["next_query_id"].astype(np.int64),
        made["events"].astype(np.int64),
        len(released),
        chosen,
    )
    return pa.table(
        {
            "query": released.take(pa.array(drawn.before)),
            "next_query": released.take(pa.array(drawn.after)),
            "events": drawn.counts,
        }
    )


def store_study(
    warehouse: Warehouse,
    name: str,
    run_id: str,
    facts: dict[str, Any],
    tables: dict[str, pa.Table],
    pictures: Mapping[str, bytes] | None = None,
) -> dict[str, Any]:
    """Write a study's tables, facts and pictures, whole, under private/studies."""
    target = warehouse.studies / f"{name}-{run_id[:8]}"
    facts = {**facts, "path": str(target)}
    with temporary_directory(warehouse.studies) as scratch:
        for table_name, table in tables.items():
            pq.write_table(table, scratch / f"{table_name}.parquet")
        for file_name, content in (pictures or {}).items():
            (scratch / file_name).write_bytes(content)
        (scratch / "study.json").write_text(canonical_json(facts), encoding="utf-8")
        seal(scratch)
        scratch.rename(target)
    return facts


def read_simulation(warehouse: Warehouse, run_id: str) -> dict[str, Any]:
    """The facts of the study that a run made."""
    (path,) = warehouse.studies.glob(f"*-{run_id[:8]}/study.json")
    facts: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return facts
