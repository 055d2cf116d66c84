"""What Dagster loads: assets, checks, jobs, schedules and sensors, put together. No logic and no slow import here."""

from __future__ import annotations

import dagster as dg

from qlog_assets.mechanisms.register import register
from qlog_assets.orchestration.audit_assets import audit_assets
from qlog_assets.orchestration.baseline_assets import baseline_assets
from qlog_assets.orchestration.jobs import (
    audit_job,
    events_logger,
    ingest_job,
    landing_sensor,
    monthly_schedule,
    release_job,
    simulation_job,
)
from qlog_assets.orchestration.log_assets import log_assets
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource, month_partitions
from qlog_assets.orchestration.safelog_assets import safelog_assets
from qlog_assets.orchestration.zealous_assets import zealous_assets
from qlog_assets.policy import Policy
from qlog_assets.settings import Settings

policy = Policy.load(Settings.from_environment().policy_file)
months = month_partitions(policy)
parts = [
    *log_assets(months),
    *safelog_assets(months),
    *zealous_assets(months),
    *baseline_assets(months),
    *audit_assets(),
]
releases = {entry: release_job(entry) for entry in register().values()}

defs = dg.Definitions(
    assets=[part for part in parts if not isinstance(part, dg.AssetChecksDefinition)],
    asset_checks=[part for part in parts if isinstance(part, dg.AssetChecksDefinition)],
    jobs=[ingest_job(), audit_job(), *releases.values(), *(simulation_job(entry) for entry in releases)],
    schedules=[monthly_schedule(entry, job) for entry, job in releases.items()],
    sensors=[landing_sensor()],
    resources={"policy": PolicyResource.showing(policy), "warehouse": WarehouseResource()},
    loggers={"console": dg.colored_console_logger, "events": events_logger},
    # Four steps take 9 s in one process and 30 s in four: months run in parallel as runs, not steps as processes.
    executor=dg.in_process_executor,
)
