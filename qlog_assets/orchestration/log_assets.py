"""Assets of the group `log`: from landing files to the cleaned log. Glue over `ingest` and `chain`."""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from typing import Any

import dagster as dg

from qlog_assets import inspection
from qlog_assets.months import Month
from qlog_assets.orchestration.metadata import partition_metadata, to_check_result
from qlog_assets.orchestration.resources import BATCHES, PolicyResource, WarehouseResource, month_of
from qlog_assets.pipeline.batches import READER_VERSION, batch_counts, ingest_batch, is_usable
from qlog_assets.pipeline.chain import CLEANED_VERSION, Chain
from qlog_assets.pipeline.landing import find_batch
from qlog_assets.pipeline.raw_log import assemble_raw_log

OWNERS = ["team:privacy-engineering"]
RAW_LOG_VERSION = "1"


def log_assets(months: dg.PartitionsDefinition) -> list[dg.AssetsDefinition | dg.AssetChecksDefinition]:
    """The group's assets and checks, partitioned by these months."""

    @dg.asset(
        group_name="log",
        partitions_def=BATCHES,
        kinds={"duckdb", "parquet"},
        owners=OWNERS,
        code_version=READER_VERSION,
        description="Rows of a landing file that could not be used: file, line and reason, never the content. "
        "Reading the file also writes the accepted rows of all its months.",
    )
    def rejected_log(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        started, home, chosen = time.monotonic(), warehouse.open(), policy.chosen()
        with warehouse.engine() as engine:
            partition, fresh = ingest_batch(
                home, engine, find_batch(home, context.partition_key), chosen, context.run_id
            )
        for name in sorted(set(partition.provenance.tables) - {"rejected"}):
            # What is wrong with this file its check says; what is wrong with another, raw_log when it is asked for.
            if not is_usable(home, Month(name), chosen):
                continue
            raw, _ = assemble_raw_log(home, Month(name), chosen, context.run_id)
            context.log_event(
                dg.AssetMaterialization("raw_log", partition=name, metadata=partition_metadata(raw, started, fresh))
            )
        return dg.MaterializeResult(
            metadata={**partition_metadata(partition, started, fresh), **batch_counts(partition)}
        )

    @dg.asset(
        group_name="log",
        partitions_def=months,
        deps=[dg.AssetDep(rejected_log, partition_mapping=dg.AllPartitionMapping())],
        kinds={"parquet"},
        owners=OWNERS,
        code_version=RAW_LOG_VERSION,
        description="The accepted rows of a month, from every ingested file, as they came.",
    )
    def raw_log(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        started = time.monotonic()
        partition, fresh = assemble_raw_log(warehouse.open(), month_of(context), policy.chosen(), context.run_id)
        return dg.MaterializeResult(metadata=partition_metadata(partition, started, fresh))

    @dg.asset(
        group_name="log",
        partitions_def=months,
        deps=[raw_log],
        kinds={"duckdb", "sql", "parquet"},
        owners=OWNERS,
        code_version=CLEANED_VERSION,
        description="The rows of a month with normalised queries and addresses; those that hold no query are gone.",
    )
    def cleaned_log(context: dg.AssetExecutionContext, warehouse: WarehouseResource) -> dg.MaterializeResult[Any]:
        started, home, month = time.monotonic(), warehouse.open(), month_of(context)
        with warehouse.engine() as engine:
            partition, fresh = Chain(home, engine, context.run_id).clean(month, home.current("raw_log", month))
        return dg.MaterializeResult(metadata=partition_metadata(partition, started, fresh))

    @dg.asset_check(asset=rejected_log, blocking=True, name="rows_accounted_for")
    def rows_accounted_for(
        context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.AssetCheckResult:
        """Accepted and rejected rows add up to the rows read, and no more than the policy's share is bad."""
        home = warehouse.open()
        share = float(policy.chosen().ingest.max_rejected_share)
        with warehouse.engine() as engine:
            batch = home.current("rejected_log", context.partition_key)
            return to_check_result(inspection.inspect_rejected_log(engine, batch, share))

    @dg.asset_check(asset=raw_log, blocking=True, name="rows_of_the_month")
    def rows_of_the_month(context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource) -> dg.AssetCheckResult:
        """Schema, month boundaries, and no row without user or query."""
        month = month_of(context)
        with warehouse.engine() as engine:
            partition = warehouse.open().current("raw_log", month)
            return to_check_result(inspection.inspect_raw_log(engine, partition, month))

    @dg.asset_check(asset=cleaned_log, blocking=True, name="normalised_rows")
    def normalised_rows(context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource) -> dg.AssetCheckResult:
        """Schema, month boundaries, and nothing that escaped the normalisation."""
        month = month_of(context)
        with warehouse.engine() as engine:
            partition = warehouse.open().current("cleaned_log", month)
            return to_check_result(inspection.inspect_cleaned_log(engine, partition, month))

    return [rejected_log, raw_log, cleaned_log, rows_accounted_for, rows_of_the_month, normalised_rows]
