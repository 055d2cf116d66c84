"""Assets of the group `safelog`: the capped log and the counts with the pool; the rest is `mechanism_assets`."""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from typing import Any

import dagster as dg

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.orchestration.log_assets import OWNERS
from qlog_assets.orchestration.mechanism_assets import mechanism_assets
from qlog_assets.orchestration.metadata import partition_metadata
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource, month_of
from qlog_assets.pipeline.chain import AUGMENTED_VERSION, CAPPED_VERSION, Chain


def safelog_assets(months: dg.PartitionsDefinition) -> list[dg.AssetsDefinition | dg.AssetChecksDefinition]:
    """The group's assets and checks, partitioned by these months."""

    @dg.asset(
        group_name="safelog",
        partitions_def=months,
        deps=["cleaned_log"],
        kinds={"duckdb", "sql", "parquet"},
        owners=OWNERS,
        code_version=CAPPED_VERSION,
        description="What each user may contribute: their first distinct queries, clicked pairs and transitions. "
        "Reads one user's rows at a time, so one user changes no other user's rows.",
    )
    def capped_log(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        started, home, month = time.monotonic(), warehouse.open(), month_of(context)
        with warehouse.engine() as engine:
            cleaned = home.current("cleaned_log", month)
            partition, fresh = Chain(home, engine, context.run_id).cap(month, cleaned, policy.chosen().safelog)
        return dg.MaterializeResult(metadata=partition_metadata(partition, started, fresh))

    @dg.asset(
        group_name="safelog",
        partitions_def=months,
        deps=[capped_log],
        kinds={"duckdb", "sql", "parquet"},
        owners=OWNERS,
        code_version=AUGMENTED_VERSION,
        description="How many users typed each query, and every query of the public pool that nobody typed, at zero.",
    )
    def pool_augmented(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        started, home, month = time.monotonic(), warehouse.open(), month_of(context)
        with warehouse.engine() as engine:
            capped = home.current("capped_log", month)
            partition, fresh = Chain(home, engine, context.run_id).augment(month, capped, policy.chosen())
        return dg.MaterializeResult(metadata=partition_metadata(partition, started, fresh))

    return [capped_log, pool_augmented, *mechanism_assets(months, mechanism("safelog"))]
