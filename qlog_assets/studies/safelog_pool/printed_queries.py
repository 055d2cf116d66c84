"""Which queries of a release were in the pool, and which of them somebody typed: what a pool costs and finds."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.studies.measures.retrieval import TestedClicks
from qlog_assets.studies.retrieval_rows import RW, mean_columns, score_methods
from qlog_assets.studies.search_log import SearchLog
from qlog_assets.studies.study import Row


@dataclass(frozen=True)
class PoolReader:
    """Reads releases of one log: by what its people typed, and by what people who were held out clicked."""

    typed: pa.ChunkedArray
    """Every query that somebody typed among those who are drawn from."""
    tested: TestedClicks
    seed: int

    def columns(self, log: SearchLog, pool: pa.ChunkedArray) -> Row:
        """Of a release that was drawn with a pool."""
        released = log.queries["query"]
        in_pool = pc.is_in(released, value_set=pool)
        typed = pc.is_in(released, value_set=self.typed)
        (scores,) = score_methods(log, self.tested, (RW,)).values()
        return {
            "pool_queries": len(pool),
            "pool_typed": count(pc.is_in(pool, value_set=self.typed)),
            "queries": len(released),
            "found_in_pool": count(pc.and_(in_pool, typed)),
            "fakes": count(pc.and_(in_pool, pc.invert(typed))),
            "pairs": log.clicks.num_rows,
            **mean_columns(scores, "ndcg", self.seed),
        }


def price(guarantee: Guarantee) -> Row:
    """ε and δ as claimed, ε with the tight α where the claim is the paper's, and what is proven."""
    tight = guarantee.figures.get("epsilon_with_tight_alpha")
    return {
        "epsilon": None if guarantee.claimed is None else float(guarantee.claimed.epsilon),
        "epsilon_tight": tight,
        "delta": None if guarantee.claimed is None else float(guarantee.claimed.delta),
        "proven": None if guarantee.proven is None else float(guarantee.proven.epsilon),
    }


def count(mask: pa.ChunkedArray) -> int:
    return int(pc.sum(mask).as_py() or 0)
