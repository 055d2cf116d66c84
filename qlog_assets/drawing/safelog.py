"""How Safelog draws: counts from the capped log and the pool, noise from `mechanisms/safelog.py`, texts put back.

The door calls `draw`. What one user can change here: at most queries_per_user query counts, clicks_per_user pair
counts and queries_per_user - 1 transition counts, each by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.drawing import DrawnTable, MechanismEntry, ReleasedTable
from qlog_assets.engine import Engine
from qlog_assets.mechanisms import safelog
from qlog_assets.privacy.parameters import SafelogParameters
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.zero_domain import decode_pairs, encode_pairs
from qlog_assets.settings import Policy
from qlog_assets.warehouse import Partition

USERS = "Noisy number of users; exact counts are never published"
QUERIES = ReleasedTable(
    "queries",
    {"query": "A normalised query; it may be a pool query that nobody typed", "users": USERS},
    "released_queries",
)
CLICKS = ReleasedTable(
    "clicks",
    {"query": "A released query", "url": "A url clicked after it", "users": USERS},
    "released_clicks",
)
TRANSITIONS = ReleasedTable(
    "transitions",
    {"query": "A released query", "next_query": "A released query typed next in the same session", "users": USERS},
    "released_transitions",
)


def parameters(policy: Policy) -> SafelogParameters:
    return policy.safelog


def draw(
    engine: Engine, inputs: Mapping[str, Partition], chosen: SafelogParameters, source: RandomSource
) -> dict[str, DrawnTable]:
    """All tables of one release, in one go: clicks and transitions are drawn for the queries just released."""
    capped = inputs["capped_log"]
    for table in ("queries", "clicks", "transitions"):
        engine.view(f"capped_{table}", capped.files(table))
    tables = {"queries": _draw_queries(engine, inputs["pool_augmented"], chosen, source)}
    released = tables["queries"].rows
    ids = pa.table({"query": released["query"], "query_id": pa.array(np.arange(released.num_rows))})
    with engine.table("released_ids", ids):
        if chosen.click_scale is not None:
            if "url_list" in inputs:
                tables["clicks"] = _draw_listed_clicks(engine, inputs["url_list"], tables["queries"], chosen, source)
            elif chosen.click_delta > 0:
                tables["clicks"] = _draw_clicks(engine, tables["queries"], chosen, source)
        if chosen.transition_scale is not None:
            tables["transitions"] = _draw_transitions(engine, tables["queries"], chosen, source)
    return tables


def _draw_queries(
    engine: Engine, augmented: Partition, chosen: SafelogParameters, source: RandomSource
) -> DrawnTable:
    engine.numbered_view("pool_augmented", augmented.files("queries"))
    counts = engine.arrays("query_counts")
    users, in_pool = counts["users"].astype(np.int64), counts["in_pool"].astype(bool)
    typed, untouched = np.flatnonzero(users > 0), np.flatnonzero(users == 0)
    drawn = safelog.draw_queries(source, users[typed], in_pool[typed], len(untouched), chosen)
    file_rows = np.concatenate([typed[drawn.support.indices], untouched[drawn.cells]])
    noisy = np.concatenate([drawn.support.users, drawn.cell_users])
    listed = pa.table({"position": np.arange(len(file_rows)), "file_row": file_rows})
    with engine.table("chosen", listed):
        texts = engine.arrow("chosen_queries")
    rows = pa.table({"query": texts["query"], "users": noisy})
    return sorted_by_count(rows, texts["in_pool"], chosen.threshold + chosen.min_users - 1)


def _draw_clicks(
    engine: Engine, queries: DrawnTable, chosen: SafelogParameters, source: RandomSource
) -> DrawnTable:
    counts = engine.arrow("released_pair_counts")
    drawn = safelog.draw_clicks(source, counts["users"].to_numpy(), chosen)
    kept = counts.take(pa.array(drawn.indices))
    rows = pa.table({"query": queries.rows["query"].take(kept["query_id"]), "url": kept["url"], "users": drawn.users})
    threshold = max(safelog.click_stability_threshold(chosen) or 1, chosen.click_threshold or 1)
    return sorted_by_count(rows, pa.array(np.zeros(rows.num_rows, dtype=bool)), threshold)


def _draw_listed_clicks(
    engine: Engine, url_list: Partition, queries: DrawnTable, chosen: SafelogParameters, source: RandomSource
) -> DrawnTable:
    engine.view("url_list", url_list.files("urls"))
    urls = engine.arrow("listed_urls")["url"]
    counts = engine.arrays("listed_pair_counts")
    width, domain = len(urls), queries.rows.num_rows * len(urls)
    cells = counts["query_id"].astype(np.int64) * width + counts["url_id"].astype(np.int64)
    drawn = safelog.draw_listed_clicks(source, cells, counts["users"].astype(np.int64), domain, chosen)
    all_cells = np.concatenate([cells[drawn.support.indices], drawn.cells])
    query_ids, url_ids = np.divmod(all_cells, max(width, 1))
    rows = pa.table(
        {
            "query": queries.rows["query"].take(pa.array(query_ids)),
            "url": urls.take(pa.array(url_ids)),
            "users": np.concatenate([drawn.support.users, drawn.cell_users]),
        }
    )
    threshold = safelog.effective_listed_threshold(domain, chosen)
    return sorted_by_count(rows, queries.public.take(pa.array(query_ids)), threshold)


def _draw_transitions(
    engine: Engine, queries: DrawnTable, chosen: SafelogParameters, source: RandomSource
) -> DrawnTable:
    released = queries.rows.num_rows
    counts = engine.arrays("released_transition_counts")
    before, after = counts["query_id"].astype(np.int64), counts["next_query_id"].astype(np.int64)
    cells = encode_pairs(before, after, released)
    drawn = safelog.draw_transitions(source, cells, counts["users"].astype(np.int64), released, chosen)
    zero_before, zero_after = decode_pairs(drawn.cells, released)
    before_ids = pa.array(np.concatenate([before[drawn.support.indices], zero_before]))
    after_ids = pa.array(np.concatenate([after[drawn.support.indices], zero_after]))
    texts = queries.rows["query"]
    rows = pa.table(
        {
            "query": texts.take(before_ids),
            "next_query": texts.take(after_ids),
            "users": np.concatenate([drawn.support.users, drawn.cell_users]),
        }
    )
    public = pc.and_(queries.public.take(before_ids), queries.public.take(after_ids))
    return sorted_by_count(rows, public, safelog.effective_transition_threshold(released, chosen))


def sorted_by_count(rows: pa.Table, public: pa.ChunkedArray | pa.Array, threshold: int) -> DrawnTable:
    """Rows by (noisy count descending, texts ascending), so that order tells nothing about who was in the log."""
    keys = [("users", "descending"), *((name, "ascending") for name in rows.column_names if name != "users")]
    order = pc.sort_indices(rows, sort_keys=keys)
    return DrawnTable(rows.take(order), public.take(order), threshold)


ENTRY = MechanismEntry(
    name="safelog",
    version=safelog.MECHANISM_VERSION,
    inputs=("capped_log", "pool_augmented"),
    public_inputs=("pool", "url_list"),
    tables=(QUERIES, CLICKS, TRANSITIONS),
    parameters=parameters,
    draw=draw,
    sources=(
        "qlog_assets/drawing/safelog.py",
        "qlog_assets/mechanisms/safelog.py",
        "qlog_assets/privacy/exact.py",
        "qlog_assets/privacy/histogram.py",
        "qlog_assets/privacy/noise.py",
        "qlog_assets/privacy/randomness.py",
        "qlog_assets/privacy/zero_domain.py",
        "sql/capped_clicks.sql",
        "sql/capped_queries.sql",
        "sql/capped_transitions.sql",
        "sql/chosen_queries.sql",
        "sql/cleaned_clicks.sql",
        "sql/cleaned_queries.sql",
        "sql/listed_pair_counts.sql",
        "sql/listed_urls.sql",
        "sql/pool_augmented.sql",
        "sql/query_counts.sql",
        "sql/released_pair_counts.sql",
        "sql/released_transition_counts.sql",
    ),
)
