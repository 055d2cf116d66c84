"""The jobs that people are shown, as a policy says: what `qlog crowd jobs` writes."""

from __future__ import annotations

from datetime import datetime

from qlog_assets.crowd.jobs import Job
from qlog_assets.mechanisms.crowd.asked_jobs import ask_jobs
from qlog_assets.mechanisms.crowd.parameters import CrowdPolicy
from qlog_assets.months import Month
from qlog_assets.policy import Policy


def jobs_from_policy(policy: Policy, month: Month, opens: datetime, closes: datetime) -> list[Job]:
    """One job per application that `[crowd]` names, with what its release will promise."""
    section = policy.section("crowd")
    assert isinstance(section, CrowdPolicy)
    return ask_jobs(section, month, opens, closes)
