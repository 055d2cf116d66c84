"""The group `baselines`: what k-anonymity would print of a month. Studies only: the door knows no such mechanism."""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from typing import Any

import dagster as dg

from qlog_assets.orchestration.log_assets import OWNERS
from qlog_assets.orchestration.resources import WarehouseResource, month_of
from qlog_assets.studies.baselines import simulate_baselines

BASELINES_VERSION = "1"


class BaselineConfig(dg.Config):
    """How many users, or events, an item must have."""

    k: int = 50


def baseline_assets(months: dg.PartitionsDefinition) -> list[dg.AssetsDefinition]:
    """The group's asset, partitioned by these months."""

    @dg.asset(
        group_name="baselines",
        partitions_def=months,
        deps=["raw_log"],
        kinds={"numpy", "parquet"},
        owners=OWNERS,
        code_version=BASELINES_VERSION,
        description="Queries by three k-anonymity methods, with exact counts. No (ε, δ) holds for any of them: k - 1 "
        "fake accounts reveal whether a user typed a query. Private, never published.",
    )
    def simulated_baselines(
        context: dg.AssetExecutionContext, config: BaselineConfig, warehouse: WarehouseResource
    ) -> dg.MaterializeResult[Any]:
        started = time.monotonic()
        with warehouse.engine() as engine:
            facts = simulate_baselines(warehouse.open(), engine, month_of(context), config.k, context.run_id)
        rows = {f"rows {name}": count for name, count in facts["rows"].items()}
        return dg.MaterializeResult(metadata={**rows, "k": config.k, "seconds": round(time.monotonic() - started, 3)})

    return [simulated_baselines]
