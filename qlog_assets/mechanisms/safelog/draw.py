"""How Safelog draws: counts from the capped log and the pool, noise from `noise.py`, texts put back.

The door calls `draw`. What one user can change here: at most queries_per_user query counts, clicks_per_user pair
counts and queries_per_user - 1 transition counts, each by one.

Nothing that the noise decides makes a draw fail: however many queries are released, their pairs have numbers
(`zero_domain.LARGEST_DOMAIN`), and thresholds rise with the number of pairs (`noise.usable_threshold`). What the
parameters and the size of the pool decide was asked before (`noise.check_draw`); decision 12 lists the rest.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.mechanisms.planned_noise import geometric_noise
from qlog_assets.mechanisms.safelog import noise, paper
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.mechanisms.safelog.stages import view_capped
from qlog_assets.mechanisms.safelog.tables import CLICKS, QUERIES, TRANSITIONS
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.pipeline.stage import Inputs
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.zero_domain import decode_pairs, encode_pairs
from qlog_assets.report.table_noise import TableNoise
from qlog_assets.report.tables import in_public_order
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition


def draw(engine: Engine, inputs: Inputs, variant: str, chosen: SafelogParameters, source: RandomSource) -> Drawn:
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
    rows_of_typed, users_of_typed, untouched_rows = [], [], []
    # Noise is drawn query by query: the counts are given in parts, because all of them need not fit into memory. What
    # nobody typed is in the pool, which does.
    with engine.parts("safelog/query_counts") as parts:
        for counts in parts:
            users, in_pool = counts["users"].astype(np.int64), counts["in_pool"].astype(bool)
            typed, file_rows = np.flatnonzero(users > 0), counts["file_row"]
            support = noise.draw_queries(source, users[typed], in_pool[typed], 0, chosen).support
            rows_of_typed.append(file_rows[typed[support.indices]])
            users_of_typed.append(support.users)
            untouched_rows.append(file_rows[users == 0])
    untouched = np.concatenate(untouched_rows)
    zeros = noise.draw_queries(source, np.empty(0, np.int64), np.empty(0, bool), len(untouched), chosen)
    chosen_rows = np.concatenate([*rows_of_typed, untouched[zeros.cells]])
    noisy = np.concatenate([*users_of_typed, zeros.cell_users])
    with engine.table("chosen", pa.table({"position": np.arange(len(chosen_rows)), "file_row": chosen_rows})):
        texts = engine.arrow("safelog/chosen_queries")
    rows = in_public_order(pa.table({"query": texts["query"], "users": noisy}), QUERIES)
    shift = chosen.min_users - 1
    outside = noise.out_of_pool_threshold(chosen)
    table = DrawnTable(
        rows,
        threshold=chosen.threshold + shift,
        threshold_outside_pool=None if outside is None else max(chosen.threshold, outside) + shift,
        only_public=outside is None,
        noise=known_noise("queries", chosen),
    )
    return table, texts.filter(texts["in_pool"])["query"].combine_chunks()


def _draw_clicks(engine: Engine, released: pa.Array, chosen: SafelogParameters, source: RandomSource) -> DrawnTable:
    counts = engine.arrow("safelog/released_pair_counts")
    drawn = noise.draw_clicks(source, counts["users"].to_numpy(), chosen)
    kept = counts.take(pa.array(drawn.indices))
    rows = pa.table(
        {"query": released.take(kept["query_id"].combine_chunks()), "url": kept["url"], "users": drawn.users}
    )
    threshold = max(noise.click_stability_threshold(chosen) or 1, chosen.click_threshold or 1)
    return DrawnTable(in_public_order(rows, CLICKS), threshold, noise=known_noise("clicks", chosen))


def _draw_listed_clicks(
    engine: Engine, url_list: Partition, released: pa.Array, chosen: SafelogParameters, source: RandomSource
) -> DrawnTable:
    engine.view("url_list", url_list.files("urls"))
    urls = engine.arrow("safelog/listed_urls")["url"].combine_chunks()
    counts = engine.arrays("safelog/listed_pair_counts")
    domain = len(released) * len(urls)
    cells = counts["query_id"].astype(np.int64) * len(urls) + counts["url_id"].astype(np.int64)
    drawn = noise.draw_listed_clicks(source, cells, counts["users"].astype(np.int64), domain, chosen)
    query_ids, url_ids = np.divmod(np.concatenate([cells[drawn.support.indices], drawn.cells]), len(urls))
    rows = pa.table(
        {
            "query": released.take(pa.array(query_ids)),
            "url": urls.take(pa.array(url_ids)),
            "users": np.concatenate([drawn.support.users, drawn.cell_users]),
        }
    )
    threshold = noise.effective_listed_threshold(domain, chosen)
    return DrawnTable(in_public_order(rows, CLICKS), threshold, noise=known_noise("clicks", chosen))


def _draw_transitions(
    engine: Engine, released: pa.Array, chosen: SafelogParameters, source: RandomSource
) -> DrawnTable:
    counts = engine.arrays("safelog/released_transition_counts")
    before, after = counts["query_id"].astype(np.int64), counts["next_query_id"].astype(np.int64)
    cells = encode_pairs(before, after, len(released))
    drawn = noise.draw_transitions(source, cells, counts["users"].astype(np.int64), len(released), chosen)
    zero_before, zero_after = decode_pairs(drawn.cells, len(released))
    rows = pa.table(
        {
            "query": released.take(pa.array(np.concatenate([before[drawn.support.indices], zero_before]))),
            "next_query": released.take(pa.array(np.concatenate([after[drawn.support.indices], zero_after]))),
            "users": np.concatenate([drawn.support.users, drawn.cell_users]),
        }
    )
    threshold = noise.effective_transition_threshold(len(released), chosen)
    return DrawnTable(in_public_order(rows, TRANSITIONS), threshold, noise=known_noise("transitions", chosen))


def known_noise(table: str, chosen: SafelogParameters) -> TableNoise | None:
    """What is publicly known of the noise on a table's counts. None where the parameters let no row into it."""
    if table == "queries":
        among = "queries of the public list" if chosen.selection_delta == 0 else ""
        return geometric_noise(chosen.selection_scale, min_users=chosen.min_users, among=among)
    if table == "clicks":
        listed = chosen.click_support == "public_list"
        among = "listed addresses after released queries" if listed else "clicks after released queries"
        has_rows = listed or chosen.click_delta > 0
        return geometric_noise(chosen.click_scale, among=among) if has_rows and chosen.click_scale is not None else None
    if chosen.transition_scale is None or chosen.transitions_per_user == 0:
        return None
    return geometric_noise(chosen.transition_scale, among="pairs of released queries")


# As the paper prints it: for studies alone --------------------------------------------------------------------------


def draw_paper(engine: Engine, inputs: Inputs, variant: str, chosen: SafelogParameters, source: RandomSource) -> Drawn:
    """Algorithm 1 to the letter: the frequency filter first, then the caps, event counts, and two noises."""
    view_cleaned(engine, inputs["cleaned_log"])
    engine.view("pool", inputs["pool"].files("queries"))
    limits = {"min_frequency": chosen.min_frequency, "queries_per_user": chosen.queries_per_user}
    counts = engine.arrow("safelog/paper_queries", **limits)
    events = counts["events"].to_numpy()
    typed = np.flatnonzero(events > 0)
    untouched = np.flatnonzero(events == 0)
    real, fake = paper.draw_paper_queries(source, events[typed], len(untouched), chosen)
    rows = np.concatenate([typed[real.indices], untouched[fake.indices]])
    released = counts["query"].take(pa.array(rows)).combine_chunks()
    tables = {"queries": pa.table({"query": released, "events": np.concatenate([real.counts, fake.counts])})}
    ids = pa.table({"query": released, "query_id": np.arange(len(released))})
    with engine.table("released_ids", ids):
        tables["clicks"] = _paper_clicks(engine, released, chosen, source)
        tables["transitions"] = _paper_transitions(engine, released, chosen, source, limits)
    return Drawn({name: DrawnTable(rows) for name, rows in tables.items()})


def _paper_clicks(engine: Engine, released: pa.Array, chosen: SafelogParameters, source: RandomSource) -> pa.Table:
    pairs = engine.arrow(
        "safelog/paper_clicks", clicks_per_user=chosen.clicks_per_user, min_frequency=chosen.min_frequency
    )
    drawn = paper.draw_paper_clicks(source, pairs["events"].to_numpy(), chosen)
    pairs = pairs.take(pa.array(drawn.indices))
    texts = released.take(pairs["query_id"].combine_chunks())
    return pa.table({"query": texts, "url": pairs["url"], "events": drawn.counts})


def _paper_transitions(
    engine: Engine, released: pa.Array, chosen: SafelogParameters, source: RandomSource, limits: dict[str, int]
) -> pa.Table:
    made = engine.arrays("safelog/paper_transitions", **limits)
    drawn = paper.draw_paper_transitions(
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
