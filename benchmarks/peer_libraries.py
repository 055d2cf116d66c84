"""The peer task in other libraries: user-level counts of queries with unknown keys, as each library's guide has it.

(2.3, 1e-6), ten distinct queries per user. Runs in the peers' own environment and imports nothing of ours. Usage:
.cache/peers/bin/python benchmarks/peer_libraries.py opendp|pipelinedp PEER_LOG.parquet
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

EPSILON, DELTA, QUERIES_PER_USER = 2.3, 1e-6, 10


def opendp(path: str) -> int:
    """OpenDP's Polars interface: one row per user and query, ten queries per user, noisy length where it passes."""
    import opendp.prelude as dp  # type: ignore[import-not-found, unused-ignore]
    import polars as pl  # type: ignore[import-not-found, unused-ignore]

    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=dp.loss_of(epsilon=EPSILON, delta=DELTA),
        split_evenly_over=1,
        margins=[],
    )
    # keep="sample", the default, fails in 0.16.0: "multiple fields with name 'query' found".
    counts = (
        context.query()
        .truncate_per_group(1, by=["query"])
        .truncate_num_groups(QUERIES_PER_USER, by=["query"], keep="first")
        .group_by("query")
        .agg(dp.len())
    )
    return int(counts.release().collect().height)


def pipelinedp(path: str) -> int:
    """PipelineDP on its local backend: the number of users of each query, partitions selected privately."""
    import pipeline_dp  # type: ignore[import-not-found, unused-ignore]
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    rows = list(zip(table["user_id"].to_pylist(), table["query"].to_pylist(), strict=True))
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    parameters = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        metrics=[pipeline_dp.Metrics.PRIVACY_ID_COUNT],
        max_partitions_contributed=QUERIES_PER_USER,
        max_contributions_per_partition=1,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=lambda row: 0
    )
    released: Any = engine.aggregate(rows, parameters, extractors)
    accountant.compute_budgets()
    return sum(1 for _ in released)


LIBRARIES = {"opendp": opendp, "pipelinedp": pipelinedp}


def main() -> None:
    warnings.simplefilter("ignore")
    name, path = sys.argv[1:3]
    started = time.perf_counter()
    released = LIBRARIES[name](path)
    print(json.dumps({"seconds": time.perf_counter() - started, "rows": {"queries": released}}))


if __name__ == "__main__":
    main()
