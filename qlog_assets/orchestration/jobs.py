"""Jobs, the monthly schedule and the landing sensor. A sensor ingests and never releases."""

from __future__ import annotations

import json
import logging
from typing import Any, TypeAlias

import dagster as dg

from qlog_assets.door.due import find_due_month
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.orchestration import words
from qlog_assets.orchestration.landing_look import look_at_landing
from qlog_assets.orchestration.resources import BATCHES, PolicyResource, WarehouseResource
from qlog_assets.pipeline.batches import LANDING_BATCH
from qlog_assets.studies.study import Study

AssetJob: TypeAlias = Any
"""What `define_asset_job` gives: Dagster has no public name for the type."""
EVENTS_LOGGER = "qlog.dagster_events"
"""A logger that prints nothing: the command line listens to it instead of Dagster's console output."""


def ingest_job() -> AssetJob:
    return dg.define_asset_job(
        "ingest",
        selection=dg.AssetSelection.assets(LANDING_BATCH),
        description=words.INGEST_JOB,
    )


def release_job(mechanism: Mechanism) -> AssetJob:
    """From what the mechanism's stages are made of to its published tables."""
    reads = {name for stage in mechanism.stages for name in stage.reads}
    log = ("raw_log", "cleaned_log") if "cleaned_log" in reads else ()
    chain = (
        *log,
        *mechanism.public_inputs,
        *mechanism.inputs,
        mechanism.draw_asset,
        *mechanism.released_assets.values(),
    )
    return dg.define_asset_job(
        f"{mechanism.name}_release",
        selection=dg.AssetSelection.assets(*chain),
        description=words.release_job(mechanism),
    )


def simulation_job(mechanism: Mechanism) -> AssetJob:
    return dg.define_asset_job(
        f"{mechanism.name}_simulation",
        selection=dg.AssetSelection.assets(f"simulated_{mechanism.name}"),
        description=words.simulation_job(mechanism),
    )


def study_job(study: Study) -> AssetJob:
    return dg.define_asset_job(
        study.job,
        selection=dg.AssetSelection.assets(study.asset),
        description=words.study_job(study),
    )


def schedule_name(mechanism: Mechanism) -> str:
    """What the schedule of a mechanism's releases is called."""
    return f"{mechanism.name}_monthly"


def monthly_schedule(mechanism: Mechanism, job: AssetJob) -> dg.ScheduleDefinition:
    """On the second of each month, at night, the month that ended: late files of the first day are in by then."""

    @dg.schedule(
        name=schedule_name(mechanism),
        job=job,
        cron_schedule="0 3 2 * *",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=words.monthly_schedule(mechanism),
    )
    def monthly(
        context: dg.ScheduleEvaluationContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.RunRequest | dg.SkipReason:
        due = find_due_month(
            warehouse.open(), policy.chosen(), warehouse.read_ledger(), mechanism, context.scheduled_execution_time
        )
        return dg.SkipReason(due.reason) if due.month is None else dg.RunRequest(partition_key=due.month)

    return monthly


def audit_job() -> AssetJob:
    return dg.define_asset_job(
        "audit",
        selection=dg.AssetSelection.assets("release_audit"),
        description=words.AUDIT_JOB,
    )


def budget_job() -> AssetJob:
    return dg.define_asset_job(
        "budget",
        selection=dg.AssetSelection.assets("privacy_budget"),
        description=words.BUDGET_JOB,
    )


def budget_schedule(job: AssetJob) -> dg.ScheduleDefinition:
    """Every morning, switched on from the start: it reads and charges nothing, and a lost month shows on the day."""
    return dg.ScheduleDefinition(
        name="budget_daily",
        job=job,
        cron_schedule="0 7 * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=words.BUDGET_SCHEDULE,
    )


def landing_sensor(every_seconds: int) -> dg.SensorDefinition:
    """Asks for an ingest of every landing file that is new and no longer grows."""

    @dg.sensor(
        name="landing_files",
        job_name="ingest",
        minimum_interval_seconds=every_seconds,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=words.landing_sensor(every_seconds),
    )
    def landing_files(
        context: dg.SensorEvaluationContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.SensorResult:
        home, chosen = warehouse.open(), policy.chosen()
        look = look_at_landing(home, chosen, warehouse.read_ledger(), json.loads(context.cursor or "{}"))
        for warning in look.warnings:
            context.log.warning(warning)
        # A tick shows either the runs it asks for or a text: what is wrong is still wrong at the next one.
        return dg.SensorResult(
            run_requests=[dg.RunRequest(run_key=key, partition_key=key) for key in look.keys],
            dynamic_partitions_requests=[BATCHES.build_add_request(look.keys)] if look.keys else [],
            skip_reason=None if look.keys else "; ".join(look.warnings) or "no new file in the landing zone",
            cursor=json.dumps(look.cursor, sort_keys=True),
        )

    return landing_files


@dg.logger({}, description="Hands events to the process that runs the job and prints nothing.")
def events_logger(context: dg.InitLoggerContext) -> logging.Logger:
    logger = logging.getLogger(EVENTS_LOGGER)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    return logger
