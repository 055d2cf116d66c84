"""What Dagster loads: assets, checks, jobs, schedules and sensors, put together. No logic and no slow import here."""

from __future__ import annotations

import dagster as dg

from qlog_assets.assets.audit import audit_assets
from qlog_assets.assets.baselines import baseline_assets
from qlog_assets.assets.jobs import (
    audit_job,
    events_logger,
    ingest_job,
    landing_sensor,
    monthly_schedule,
    release_job,
    simulation_job,
)
from qlog_assets.assets.log import log_assets
from qlog_assets.assets.resources import PolicyResource, WarehouseResource, month_partitions
from qlog_assets.assets.safelog import safelog_assets
from qlog_assets.assets.zealous import zealous_assets
from qlog_assets.drawing import register
from qlog_assets.settings import Policy, Settings

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
