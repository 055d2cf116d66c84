"""What Dagster loads: assets, checks, jobs, schedules and sensors, put together. No logic and no slow import here."""

from __future__ import annotations

import dagster as dg

from qlog_assets.mechanisms import register as mechanisms
from qlog_assets.orchestration.audit_assets import audit_assets
from qlog_assets.orchestration.batch_pages import withdrawal_job
from qlog_assets.orchestration.budget_assets import budget_assets
from qlog_assets.orchestration.jobs import (
    audit_job,
    budget_job,
    budget_schedule,
    events_logger,
    ingest_job,
    landing_sensor,
    monthly_schedule,
    release_job,
    simulation_job,
    study_job,
)
from qlog_assets.orchestration.log_assets import log_assets
from qlog_assets.orchestration.mechanism_assets import mechanism_assets
from qlog_assets.orchestration.public_assets import public_assets
from qlog_assets.orchestration.resources import WarehouseResource, month_partitions, policy_resource
from qlog_assets.orchestration.skip_job import skip_job
from qlog_assets.orchestration.study_assets import study_asset
from qlog_assets.orchestration.withdraw_job import withdraw_release_job
from qlog_assets.policy import Policy
from qlog_assets.settings import Settings
from qlog_assets.studies import register as studies
from qlog_assets.ui.unlocked import warn_if_unlocked

warn_if_unlocked()
settings = Settings.from_environment()
policy = Policy.load(settings.policy_file)
months = month_partitions(policy)
definitions = [
    *log_assets(months),
    *public_assets(),
    *(part for mechanism in mechanisms.mechanisms() for part in mechanism_assets(months, mechanism)),
    *(study_asset(months, study) for study in studies.studies()),
    *audit_assets(),
    *budget_assets(),
]
budget = budget_job()
releases = [(mechanism, release_job(mechanism)) for mechanism in mechanisms.releasable()]

defs = dg.Definitions(
    assets=[part for part in definitions if not isinstance(part, dg.AssetChecksDefinition)],
    asset_checks=[part for part in definitions if isinstance(part, dg.AssetChecksDefinition)],
    jobs=[
        ingest_job(),
        withdrawal_job(),
        audit_job(),
        budget,
        skip_job(months),
        withdraw_release_job(),
        *(job for _, job in releases),
        *(simulation_job(mechanism) for mechanism in mechanisms.simulated()),
        *(study_job(study) for study in studies.studies()),
    ],
    schedules=[*(monthly_schedule(mechanism, job) for mechanism, job in releases), budget_schedule(budget)],
    sensors=[landing_sensor(settings.landing_seconds)],
    resources={"policy": policy_resource(), "warehouse": WarehouseResource()},
    loggers={"console": dg.colored_console_logger, "events": events_logger},
    # Four steps take 9 s in one process and 30 s in four: months run in parallel as runs, not steps as processes.
    executor=dg.in_process_executor,
)
