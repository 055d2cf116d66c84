"""The jobs that people are shown for a month, from the policy that its release will follow: the two cannot differ."""

from __future__ import annotations

from datetime import datetime

from qlog_assets.crowd.jobs import Job
from qlog_assets.mechanisms.crowd.parameters import CrowdPolicy
from qlog_assets.months import Month
from qlog_assets.privacy.parameters import decimal_text


def ask_jobs(chosen: CrowdPolicy, month: Month, opens: datetime, closes: datetime) -> list[Job]:
    """One job per application of the policy's section, with what the release will promise."""
    return [
        Job(
            application=application,
            epoch=month,
            artifacts_per_user=chosen.artifacts_per_user,
            share_threshold=chosen.share_threshold,
            policy=chosen.variant,
            opens=opens,
            closes=closes,
            epsilon=decimal_text(chosen.epsilon),
            delta=decimal_text(chosen.delta),
        )
        for application in chosen.jobs
    ]
