"""How Safelog draws: counts from the capped log and the pool, noise from `mechanisms/safelog.py`, texts put back.

The door calls `draw`. What one user can change here: at most queries_per_user query counts, clicks_per_user pair
counts and queries_per_user - 1 transition counts, each by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable, MechanismEntry
from qlog_assets.mechanisms.safelog.noise import noise as safelog
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.mechanisms.safelog.stages import inspect_capped_log, view_capped
from qlog_assets.mechanisms.safelog.tables import CLICKS, QUERIES, TRANSITIONS
from qlog_assets.policy import Policy
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.zero_domain import decode_pairs, encode_pairs
from qlog_assets.report.tables import in_public_order
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition


def parameters(policy: Policy) -> SafelogParameters:
    """The policy's parameters with what its url list decides: which clicks may appear, and whether any may."""
    chosen = policy.safelog
    if policy.url_list is not None:
        return chosen.with_changes(click_support="public_list")
    if chosen.click_support == "public_list":
        raise ParameterError("click_support: public_list needs the policy's url_list")
    # Without a list and without delta no clicked pair can appear, so nothing may be charged for any.
    return chosen.with_changes(click_scale=None) if chosen.delta == 0 else chosen


def draw(
    engine: Engine, inputs: Mapping[str, Partition], variant: str, chosen: SafelogParameters, source: RandomSource
) -> Drawn:
    """All tables of one release, in one go: clicks and transitions are drawn for the queries just released."""
    view_capped(engine, inputs["capped_log"])
    queries, public = _draw_queries(engine, inputs["pool_augmented"], chosen, source)
    tables, public_texts = {"queries": queries}, [public]
    released = queries.rows["query"].combine_chunks()
    with engine.table("released_ids", pa.table({"query": released, "query_id": np.arange(len(released))})):
        if chosen.click_scale is not None:
            if chosen.click_support == "public_list":
                tables["clicks"] = _draw_listed_clicks(engine, inputs["url_list"], released, chosen, source)
                public_texts.append(tables["clicks"].rows["url"].combine_chunks())
            else:
                tables["clicks"] = _draw_clicks(engine, released, chosen, source)
        if chosen.transition_scale is not None:
            tables["transitions"] = _draw_transitions(engine, released, chosen, source)
    return Drawn(tables, pa.concat_arrays(public_texts))


def _draw_queries(
    engine: Engine, augmented: Partition, chosen: SafelogParameters, source: RandomSource
) -> tuple[DrawnTable, pa.Array]:
    engine.numbered_view("pool_augmented", augmented.files("queries"))
    counts = engine.arrays("query_counts")
    users, in_pool = counts["users"].astype(np.int64), counts["in_pool"].astype(bool)
    typed, untouched = np.flatnonzero(users > 0), np.flatnonzero(users == 0)
    drawn = safelog.draw_queries(source, users[typed], in_pool[typed], len(untouched), chosen)
    file_rows = np.concatenate([typed[drawn.support.indices], untouched[drawn.cells]])
    noisy = np.concatenate([drawn.support.users, drawn.cell_users])
    with engine.table("chosen", pa.table({"position": np.arange(len(file_rows)), "file_row": file_rows})):
        texts = engine.arrow("chosen_queries")
    rows = in_public_order(pa.table({"query": texts["query"], "users": noisy}), QUERIES)
    shift = chosen.min_users - 1
    outside = safelog.out_of_pool_threshold(chosen)
    table = DrawnTable(
        rows,
        threshold=chosen.threshold + shift,
        threshold_outside_pool=None if outside is None else max(chosen.threshold, outside) + shift,
        only_public=outside is None,
    )
    return table, texts.filter(texts["in_pool"])["query"].combine_chunks()


def _draw_clicks(engine: Engine, released: pa.Array, chosen: SafelogParameters, source: RandomSource) -> DrawnTable:
    counts = engine.arrow("released_pair_counts")
    drawn = safelog.draw_clicks(source, counts["users"].to_numpy(), chosen)
    kept = counts.take(pa.array(drawn.indices))
    rows = pa.table(
        {"query": released.take(kept["query_id"].combine_chunks()), "url": kept["url"], "users": drawn.users}
    )
    threshold = max(safelog.click_stability_threshold(chosen) or 1, chosen.click_threshold or 1)
    return DrawnTable(in_public_order(rows, CLICKS), threshold)


def _draw_listed_clicks(
    engine: Engine, url_list: Partition, released: pa.Array, chosen: SafelogParameters, source: RandomSource
) -> DrawnTable:
    engine.view("url_list", url_list.files("urls"))
    urls = engine.arrow("listed_urls")["url"].combine_chunks()
    counts = engine.arrays("listed_pair_counts")
    domain = len(released) * len(urls)
    cells = counts["query_id"].astype(np.int64) * len(urls) + counts["url_id"].astype(np.int64)
    drawn = safelog.draw_listed_clicks(source, cells, counts["users"].astype(np.int64), domain, chosen)
    query_ids, url_ids = np.divmod(np.concatenate([cells[drawn.support.indices], drawn.cells]), len(urls))
    rows = pa.table(
        {
            "query": released.take(pa.array(query_ids)),
            "url": urls.take(pa.array(url_ids)),
            "users": np.concatenate([drawn.support.users, drawn.cell_users]),
        }
    )
    return DrawnTable(in_public_order(rows, CLICKS), safelog.effective_listed_threshold(domain, chosen))


def _draw_transitions(
    engine: Engine, released: pa.Array, chosen: SafelogParameters, source: RandomSource
) -> DrawnTable:
    counts = engine.arrays("released_transition_counts")
    before, after = counts["query_id"].astype(np.int64), counts["next_query_id"].astype(np.int64)
    cells = encode_pairs(before, after, len(released))
    drawn = safelog.draw_transitions(source, cells, counts["users"].astype(np.int64), len(released), chosen)
    zero_before, zero_after = decode_pairs(drawn.cells, len(released))
    rows = pa.table(
        {
            "query": released.take(pa.array(np.concatenate([before[drawn.support.indices], zero_before]))),
            "next_query": released.take(pa.array(np.concatenate([after[drawn.support.indices], zero_after]))),
            "users": np.concatenate([drawn.support.users, drawn.cell_users]),
        }
    )
    threshold = safelog.effective_transition_threshold(len(released), chosen)
    return DrawnTable(in_public_order(rows, TRANSITIONS), threshold)


ENTRY = MechanismEntry(
    name="safelog",
    version=safelog.MECHANISM_VERSION,
    inputs=("capped_log", "pool_augmented"),
    public_inputs=("pool", "url_list"),
    tables=(QUERIES, CLICKS, TRANSITIONS),
    parameters=parameters,
    variant=lambda policy: "sound",
    inspect=inspect_capped_log,
    draw=draw,
    sources=(
        "qlog_assets/drawing/safelog.py",
        "qlog_assets/mechanisms/safelog.py",
        "qlog_assets/privacy/exact.py",
        "qlog_assets/privacy/histogram.py",
        "qlog_assets/privacy/noise.py",
        "qlog_assets/privacy/randomness.py",
        "qlog_assets/privacy/tables.py",
        "qlog_assets/privacy/zero_domain.py",
        "sql/capped_clicks.sql",
        "sql/capped_queries.sql",
        "sql/capped_transitions.sql",
        "sql/chosen_queries.sql",
        "sql/cleaned_clicks.sql",
        "sql/cleaned_log.sql",
        "sql/following_queries.sql",
        "sql/listed_pair_counts.sql",
        "sql/listed_urls.sql",
        "sql/pool_augmented.sql",
        "sql/query_counts.sql",
        "sql/raw_beyond_ascii.sql",
        "sql/released_pair_counts.sql",
        "sql/released_transition_counts.sql",
    ),
)
