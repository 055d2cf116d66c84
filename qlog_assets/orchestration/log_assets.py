"""Assets of the group `log`: from landing files to the cleaned log. Glue over `pipeline`."""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg

from qlog_assets.ledger import Book
from qlog_assets.months import Month
from qlog_assets.orchestration import words
from qlog_assets.orchestration.asking import is_refused
from qlog_assets.orchestration.batch_pages import DATA_VERSION_TAG, FEW_ROWS_REJECTED, batch_metadata
from qlog_assets.orchestration.metadata import (
    OWNERS,
    data_version,
    materialized,
    partition_metadata,
    to_check_result,
)
from qlog_assets.orchestration.resources import BATCHES, PolicyResource, WarehouseResource, month_of
from qlog_assets.orchestration.stage_assets import Definition, month_check, stage_assets
from qlog_assets.orchestration.study_assets import PROGRESS
from qlog_assets.pipeline.batches import (
    LANDING_BATCH,
    in_use,
    ingest_batch,
    inspect_batch,
    inspect_rejected,
    months_of,
    readable_batches,
    warn_of_urls,
)
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG
from qlog_assets.pipeline.decided_months import forgotten_months
from qlog_assets.pipeline.landing import find_batch
from qlog_assets.pipeline.raw_log import RAW_LOG_VERSION, assemble_raw_log, inspect_raw_log, inspect_user_ids
from qlog_assets.pipeline.withdrawal import refuse_withdrawn, restore_batch

GROUP = "log"
LANDING_CODE_VERSION = "2"
"""What Dagster compares. It is not raised with READER_VERSION: a file that an earlier reader read is not out of date,
and neither is what was released from it."""

INGEST_CONFIG = {
    "again_because": dg.Field(
        dg.String,
        is_required=False,
        description="Why a file that was withdrawn is to be used again after all; it is recorded.",
    ),
    "bring_back_forgotten": dg.Field(
        dg.Bool,
        is_required=False,
        description="Keep good rows of months that were forgotten, too. Without it they are counted and left out.",
    ),
}
"""What a run may say to a file besides the policy."""


def log_assets(months: dg.PartitionsDefinition) -> list[Definition]:
    """The group's assets and checks, partitioned by these months."""

    @dg.asset(
        name=LANDING_BATCH,
        group_name=GROUP,
        partitions_def=BATCHES,
        kinds={"duckdb", "parquet"},
        owners=OWNERS,
        code_version=LANDING_CODE_VERSION,
        config_schema=INGEST_CONFIG,
        description=words.LANDING_BATCH,
    )
    def landing_batch(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        started, home, chosen = time.monotonic(), warehouse.open(), policy.chosen()
        admission, book = chosen.admission, Book(warehouse.ledger(context.run), chosen.dataset)

        def progress(done: int, size: int) -> None:
            context.log.info(f"{PROGRESS}{done}/{size} reading {context.partition_key}")

        said = context.op_execution_context.op_config
        batch = find_batch(home, context.partition_key)
        if "again_because" in said:
            restore_batch(book, batch, said["again_because"])
        refuse_withdrawn(book, batch, "say why it is to be used again, as again_because in the run's config")

        def gone() -> list[str]:
            return [] if said.get("bring_back_forgotten") else list(forgotten_months(home, book))

        with warehouse.duckdb() as engine:
            partition, fresh = ingest_batch(home, engine, batch, admission, context.run_id, book, gone, progress)
            facts = batch_metadata(home, engine, book, partition, warn_of_urls([batch.source], chosen.has_urls))
        yield materialized(partition, started, fresh, facts)
        # After the batch: what is reported before what it is made of would look out of date.
        for month in map(Month, sorted(months_of(partition))):
            raw, _ = assemble_raw_log(home, month, context.run_id, book)
            context.log_event(
                dg.AssetMaterialization(
                    "raw_log",
                    partition=month,
                    metadata=partition_metadata(raw, started, fresh),
                    tags={DATA_VERSION_TAG: data_version(raw)},
                )
            )

    @dg.asset(
        group_name=GROUP,
        partitions_def=months,
        deps=[dg.AssetDep(landing_batch, partition_mapping=dg.AllPartitionMapping())],
        kinds={"parquet"},
        owners=OWNERS,
        code_version=RAW_LOG_VERSION,
        description=words.RAW_LOG,
        output_required=False,
    )
    def raw_log(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        if is_refused(context, warehouse, policy):
            return
        started, book = time.monotonic(), Book(warehouse.ledger(context.run), policy.chosen().dataset)
        partition, fresh = assemble_raw_log(warehouse.open(), month_of(context), context.run_id, book)
        yield materialized(partition, started, fresh)

    @dg.asset_check(asset=landing_batch, blocking=True, name="rows_accounted_for", description=words.ROWS_ACCOUNTED_FOR)
    def rows_accounted_for(context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource) -> dg.AssetCheckResult:
        with warehouse.duckdb() as engine:
            home = warehouse.open()
            found = inspect_batch(home, engine, home.current(LANDING_BATCH, context.partition_key))
            return to_check_result(found, words.ROWS_ACCOUNTED_FOR_NEXT)

    @dg.asset_check(asset=landing_batch, name=FEW_ROWS_REJECTED, description=words.FEW_ROWS_REJECTED)
    def few_rows_rejected(
        context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.AssetCheckResult:
        home, chosen = warehouse.open(), policy.chosen()
        ledger = warehouse.read_ledger()
        withdrawals = {} if ledger is None else Book(ledger, chosen.dataset).withdrawals()
        share, used = chosen.admission.max_rejected_share, in_use(readable_batches(home), withdrawals)
        batch = next((each for each in used if each.provenance.month == context.partition_key), None)
        with warehouse.duckdb() as engine:
            found = inspect_rejected(home, engine, batch, share, used)
            return to_check_result(found, words.FEW_ROWS_REJECTED_NEXT, dg.AssetCheckSeverity.WARN)

    @dg.asset_check(asset=raw_log, name="one_id_per_person", description=words.ONE_ID_PER_PERSON)
    def one_id_per_person(context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource) -> dg.AssetCheckResult:
        with warehouse.duckdb() as engine:
            month = warehouse.open().current("raw_log", month_of(context))
            found = inspect_user_ids(engine, month)
            return to_check_result(found, words.ONE_ID_PER_PERSON_NEXT, dg.AssetCheckSeverity.WARN)

    return [
        landing_batch,
        raw_log,
        rows_accounted_for,
        few_rows_rejected,
        one_id_per_person,
        month_check("raw_log", "rows_of_the_month", inspect_raw_log, words.ROWS_OF_THE_MONTH),
        *stage_assets(months, CLEANED_LOG, GROUP),
    ]
