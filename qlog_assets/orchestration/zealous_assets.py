"""Assets of the group `zealous`: each user's chosen items; the rest is `mechanism_assets`."""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from typing import Any

import dagster as dg

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.orchestration.log_assets import OWNERS
from qlog_assets.orchestration.mechanism_assets import mechanism_assets
from qlog_assets.orchestration.metadata import partition_metadata
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource, month_of
from qlog_assets.pipeline.chain import ITEMS_VERSION, Chain


def zealous_assets(months: dg.PartitionsDefinition) -> list[dg.AssetsDefinition | dg.AssetChecksDefinition]:
    """The group's assets and checks, partitioned by these months."""

    @dg.asset(
        group_name="zealous",
        partitions_def=months,
        deps=["cleaned_log"],
        kinds={"duckdb", "sql", "parquet"},
        owners=OWNERS,
        code_version=ITEMS_VERSION,
        description="What each user may contribute: a few of their distinct keywords, queries, pairs of queries and "
        "clicks, chosen by a keyed rule. Reads one user's rows at a time, so one user changes no other user's rows.",
    )
    def zealous_items(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        started, home, month = time.monotonic(), warehouse.open(), month_of(context)
        with warehouse.engine() as engine:
            partition, fresh = Chain(home, engine, context.run_id).choose_items(
                month, home.current("cleaned_log", month), policy.chosen().zealous.items_per_user
            )
        return dg.MaterializeResult(metadata=partition_metadata(partition, started, fresh))

    return [zealous_items, *mechanism_assets(months, mechanism("zealous"))]
