"""Shares of one list as the pool: Safelog as printed, whose claim the share is in, and as it may be released."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.policy import Policy
from qlog_assets.storage.partition import Partition
from qlog_assets.studies.paper_draws import SAFELOG, PaperCounts, paper_parameters, pool_of
from qlog_assets.studies.parts import Fold, hold_out
from qlog_assets.studies.retrieval_rows import split_words, tested_clicks
from qlog_assets.studies.safelog_pool.printed_queries import PoolReader, price
from qlog_assets.studies.safelog_pool.settings import PAPER, RELEASED, PoolSettings, fitted
from qlog_assets.studies.search_log import SearchLog
from qlog_assets.studies.study import Row, StudyWork, Tables

KEYS = ("split", "variant", "K", "p_g")


def measure_shares(work: StudyWork, part: int) -> Tables:
    """One part of five held out: every variant drawn from the others, with each share of the pool."""
    settings: PoolSettings = work.settings
    rows: list[Row] = []
    with hold_out(work, part, settings.split) as fold:
        reader = read_fold(work, fold)
        for share in settings.shares:
            at = replace(work, policy=with_share(work.policy, share))
            pool = pool_of(at)
            texts = queries_of(pool)
            for label, log, priced in [*_as_printed(at, fold, pool), *_as_released(at, fold, len(texts))]:
                rows.append(
                    {
                        "fold": part,
                        "split": split_words(settings),
                        **label,
                        "p_g": float(share),
                        **priced,
                        **reader.columns(log, texts),
                    }
                )
    return {"shares_by_fold": sorted(rows, key=lambda row: (row["variant"] != PAPER, row["variant"], row["K"] or 0))}


def read_fold(work: StudyWork, fold: Fold) -> PoolReader:
    """What releases of the people drawn from are read by."""
    typed = SearchLog.of_log(work.engine, fold.trained.cleaned).queries["query"]
    return PoolReader(typed, tested_clicks(work.engine, fold), work.settings.seed)


def with_share(policy: Policy, share: Fraction) -> Policy:
    """The policy with another share of its pool kept."""
    return policy.with_changes(pool=policy.pool.with_changes(probability=share))


def queries_of(pool: Partition) -> pa.ChunkedArray:
    return pq.read_table(pool.files("queries"), columns=["query"])["query"]


def _as_printed(work: StudyWork, fold: Fold, pool: Partition) -> list[tuple[Row, SearchLog, Row]]:
    """Algorithm 1 at each K, from one counting."""
    settings: PoolSettings = work.settings
    limits = dict.fromkeys(("queries_per_user", "clicks_per_user"), settings.limit)
    scales = dict.fromkeys(("selection_scale", "query_scale", "click_scale", "transition_scale"), settings.scale)
    chosen = paper_parameters(work.policy, **limits, **scales)
    view_cleaned(work.engine, fold.trained.cleaned)
    counts = PaperCounts.count(work.engine, pool, chosen)
    drawn = []
    for threshold in settings.thresholds:
        point = chosen.with_changes(threshold=threshold)
        claim = mechanism(SAFELOG).guarantee(PAPER, point)
        drawn.append(({"variant": PAPER, "K": threshold}, counts.draw_log(point, settings.seed), price(claim)))
    return drawn


def _as_released(work: StudyWork, fold: Fold, pool_queries: int) -> list[tuple[Row, SearchLog, Row]]:
    drawn = []
    for variant in RELEASED:
        found = fold.trained.draw(SAFELOG, variant, work.settings.seed, fitted(work.policy, variant, pool_queries))
        label = {"variant": variant, "K": found.guarantee.thresholds.get("queries_in_pool")}
        drawn.append((label, SearchLog.of_tables(found.tables), price(found.guarantee)))
    return drawn
