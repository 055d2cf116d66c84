"""What the UI shows of a landing batch, and the job that withdraws one. Counts, months and reasons, never a row."""

# No `from __future__ import annotations`: Dagster reads the annotations of op functions as they are.

from collections.abc import Sequence
from typing import Any

import dagster as dg

from qlog_assets.door.preconditions import lock_months
from qlog_assets.ledger import Book
from qlog_assets.orchestration import words
from qlog_assets.orchestration.metadata import data_version, to_check_result
from qlog_assets.orchestration.resources import BATCHES, PolicyResource, WarehouseResource
from qlog_assets.pipeline.batches import (
    LANDING_BATCH,
    batch_counts,
    count_reasons,
    in_use,
    inspect_rejected,
    left_out,
    months_of,
    name_of,
    note_no_search,
    readable_batches,
    rejected_share,
    state_of,
)
from qlog_assets.pipeline.decided_months import LAUNCHPAD, describe_effect, describe_late_rows, describe_left_out
from qlog_assets.pipeline.withdrawal import Withdrawn, known_batch, withdraw_batch
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.warehouse import Warehouse

FEW_ROWS_REJECTED = "few_rows_rejected"
WITHDRAW_JOB, WITHDRAW_STEP = "withdraw_batch", "withdrawal"
"""The job and its one step, which takes the reason."""
DATA_VERSION_TAG = "dagster/data_version"


def batch_metadata(
    warehouse: Warehouse, engine: Engine, book: Book, partition: Partition, warnings: Sequence[str] = ()
) -> dict[str, Any]:
    """A batch's page: its file, what became of its rows, its months, and what they do to months decided before.

    `warnings` are what is known of the file besides.
    """
    counts, reasons = batch_counts(partition), count_reasons(engine, partition)
    facts: dict[str, Any] = {
        "file": name_of(warehouse, partition),
        "state": state_of(partition),
        "rows read": counts["read"],
        "rows accepted": counts["accepted"],
        "rows rejected": counts["rejected"],
        "share rejected": f"{float(100 * rejected_share(partition)):.3g} %",
        "rejected by reason": _table(("reason", "rows"), reasons),
        "months": _table(("month", "rows"), {month: partition.rows(month) for month in sorted(months_of(partition))}),
    }
    if rows := left_out(partition):
        facts["forgotten months left out"] = _table(("month", "rows"), rows)
    notes = note_no_search(partition.provenance.parameters.get("columns", {}), counts["read"], reasons)
    notes += describe_late_rows(warehouse, book, partition, LAUNCHPAD)
    notes += describe_left_out(warehouse, partition, LAUNCHPAD)
    notes += warnings
    return facts | ({"note": "\n".join(notes)} if notes else {})


def _table(columns: tuple[str, str], rows: dict[str, int]) -> dg.TableMetadataValue:
    schema = dg.TableSchema([dg.TableColumn(columns[0], "string"), dg.TableColumn(columns[1], "int")])
    records = [dg.TableRecord(dict(zip(columns, row, strict=True))) for row in rows.items()]
    return dg.MetadataValue.table(records, schema)


def withdrawal_job() -> dg.JobDefinition:
    """The job that takes a batch out of use: one step, which asks for a reason."""

    @dg.op(
        name=WITHDRAW_STEP,
        config_schema={"reason": dg.Field(dg.String, description="Why; it is recorded in the ledger.")},
        description="Records that a batch is withdrawn, and makes the raw log of its months without it.",
    )
    def withdraw(context: dg.OpExecutionContext, warehouse: WarehouseResource, policy: PolicyResource) -> None:
        home, chosen = warehouse.open(), policy.chosen()
        book = Book(warehouse.ledger(context.run), chosen.dataset)
        key, reason = context.partition_key, context.op_config["reason"]
        with lock_months(home, months_of(known_batch(home, key)), undone="nothing was withdrawn"):
            done = withdraw_batch(home, book, key, reason, context.run_id)
        for line in describe_withdrawal(home, book, done):
            context.log.info(line)
        report_withdrawal(context, home, book, done)
        used = in_use(readable_batches(home), book.withdrawals())
        with warehouse.duckdb() as engine:
            share = chosen.admission.max_rejected_share
            found = inspect_rejected(home, engine, None, share, used)
        result = to_check_result(found, words.FEW_ROWS_REJECTED_NEXT, dg.AssetCheckSeverity.WARN)
        # The file is seen in the asset's check until it is withdrawn, and no longer.
        context.instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key=dg.AssetKey(LANDING_BATCH),
                check_name=FEW_ROWS_REJECTED,
                passed=result.passed,
                severity=result.severity,
                description=result.description,
                metadata=result.metadata,
            )
        )

    @dg.job(
        name=WITHDRAW_JOB,
        partitions_def=BATCHES,
        description="Withdraws one landing file, for a recorded reason: its rows enter no month from then on. Releases "
        "that were made from it stay published as they are.",
    )
    def withdrawing() -> None:
        withdraw()

    return withdrawing


def describe_withdrawal(warehouse: Warehouse, book: Book, done: Withdrawn) -> list[str]:
    """What a withdrawal did, and what it did not."""
    already = "" if done.recorded_now else " already"
    lines = [f"{name_of(warehouse, done.batch)} ({done.record.batch}) {done.record.words}{already}"]
    for month, raw in done.months.items():
        lines.append(f"{month}: {'no other file has rows of it' if raw is None else 'its raw_log holds the others'}")
    return lines + describe_effect(book, list(map(str, done.months)), LAUNCHPAD)


def report_withdrawal(context: dg.OpExecutionContext, warehouse: Warehouse, book: Book, done: Withdrawn) -> None:
    """Show it on the pages of the batch and of its months."""
    shape = done.batch.provenance.shape
    context.log_event(
        dg.AssetMaterialization(
            LANDING_BATCH,
            partition=context.partition_key,
            metadata={
                "file": name_of(warehouse, done.batch),
                "state": "withdrawn",
                "reason": done.record.reason,
                "withdrawn by": done.record.who,
                "withdrawn on": done.record.at[:10],
                "note": "\n".join(describe_effect(book, list(map(str, done.months)), LAUNCHPAD)),
            },
            tags={DATA_VERSION_TAG: f"withdrawn-{shape}"},
        )
    )
    for month, raw in done.months.items():
        if raw is None:
            context.log_event(
                dg.AssetObservation("raw_log", partition=month, metadata={"note": "every file of it was withdrawn"})
            )
            continue
        context.log_event(
            dg.AssetMaterialization(
                "raw_log",
                partition=month,
                metadata={"dagster/row_count": raw.rows("log"), "without": done.record.batch},
                tags={DATA_VERSION_TAG: data_version(raw)},
            )
        )
