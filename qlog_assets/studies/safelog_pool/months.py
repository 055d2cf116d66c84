"""Earlier releases as the pool of the next month, from the warehouse's first month to the one that is asked about.

The releases are made here, with seeded noise: nothing is read from the ledger or from `released/`, and nothing is
written there. The same people are held out in every month, so that no release knows anything of those who test it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from qlog_assets.months import Month
from qlog_assets.pipeline.public_material import PoolPolicy
from qlog_assets.policy import Policy
from qlog_assets.studies.paper_draws import SAFELOG, pool_of
from qlog_assets.studies.parts import hold_out
from qlog_assets.studies.retrieval_rows import split_words
from qlog_assets.studies.safelog_pool.printed_queries import price
from qlog_assets.studies.safelog_pool.settings import RELEASED, PoolSettings, fitted
from qlog_assets.studies.safelog_pool.shares import queries_of, read_fold
from qlog_assets.studies.search_log import SearchLog
from qlog_assets.studies.study import Row, StudyWork, Tables

OWN, EARLIER, BOTH = "the policy's", "earlier releases", "both"
EARLIER_LOG = "raw_log of {}"
PART = 0
"""The part of the users who test every month."""


def months_until(work: StudyWork) -> list[Month]:
    """The months that the warehouse has a log of, up to the one that is asked about."""
    assert work.month is not None
    return sorted(month for month in work.warehouse.months("raw_log") if month <= work.month)


def logs_until(work: StudyWork) -> dict[str, str]:
    """What the study is made from: the month's log, and that of every earlier month."""
    shapes = {month: work.warehouse.current("raw_log", month).provenance.shape for month in months_until(work)}
    assert work.month is not None
    earlier = {EARLIER_LOG.format(month): shape for month, shape in shapes.items() if month != work.month}
    return {"raw_log": work.warehouse.current("raw_log", work.month).provenance.shape, **earlier}


def at_month(work: StudyWork, month: Month) -> StudyWork:
    """The same study on an earlier month."""
    log = "raw_log" if month == work.month else EARLIER_LOG.format(month)
    return replace(work, month=month, reads={"raw_log": work.reads[log]})


@dataclass
class Chain:
    """Releases of one variant, month by month, each with what the ones before it published."""

    variant: str
    pool: str
    """What serves as the pool. As long as nothing was released, it is the policy's own."""
    released: list[pa.ChunkedArray] = field(default_factory=list)

    def pool_texts(self, own: pa.ChunkedArray) -> pa.ChunkedArray:
        """The pool of the next release."""
        if self.pool == OWN or not sum(map(len, self.released)):
            return own
        texts = [*self.released, own] if self.pool == BOTH else self.released
        return pa.chunked_array([pc.unique(pa.chunked_array([chunk for each in texts for chunk in each.chunks]))])


def measure_months(work: StudyWork) -> Tables:
    """Every month in order: each variant drawn with each kind of pool, and what is printed kept for the next month."""
    settings: PoolSettings = work.settings
    chains = [Chain(variant, pool) for variant in RELEASED for pool in (OWN, EARLIER, BOTH)]
    rows: list[Row] = []
    for month in _months_read(work):
        at = at_month(work, month)
        with hold_out(at, PART, settings.split) as fold:
            reader, own = read_fold(at, fold), queries_of(pool_of(at))
            for number, chain in enumerate(chains):
                texts = chain.pool_texts(own)
                policy = with_pool(at.policy, texts, fold.trained.warehouse.home.parent / f"pool-{number}.parquet")
                policy = fitted(policy, chain.variant, len(texts))
                drawn = fold.trained.draw(SAFELOG, chain.variant, settings.seed, policy)
                log = SearchLog.of_tables(drawn.tables)
                chain.released.append(log.queries["query"])
                rows.append(
                    {
                        "split": split_words(settings),
                        "variant": chain.variant,
                        "pool": chain.pool,
                        "month": str(month),
                        "K": drawn.guarantee.thresholds.get("queries_in_pool"),
                        **price(drawn.guarantee),
                        **reader.columns(log, texts),
                    }
                )
    order = [(chain.variant, chain.pool) for chain in chains]
    return {"months": sorted(rows, key=lambda row: order.index((row["variant"], row["pool"])))}


def _months_read(work: StudyWork) -> Sequence[Month]:
    """As they were when the study was asked: a month that came later is no part of it."""
    earlier = [month for month in months_until(work) if EARLIER_LOG.format(month) in work.reads]
    assert work.month is not None
    return [*earlier, work.month]


def with_pool(policy: Policy, texts: pa.ChunkedArray, path: Path) -> Policy:
    """The policy with these texts as its pool: a file beside the part's own warehouse, which goes with it."""
    pq.write_table(pa.table({"query": texts}), path)
    pool = PoolPolicy(kind="query_list", path=path, description="queries of seeded draws, for a study")
    return policy.with_changes(pool=pool, public_directories=(path.parent,))
