"""Worked numbers of crowd for the page of guarantees."""

from __future__ import annotations

import math

from qlog_assets.mechanisms.crowd.guarantee import (
    artifact_differential,
    artifact_threshold,
    user_differential,
    user_threshold,
)
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.privacy.parameters import AOL_USERS
from qlog_assets.report.markdown import bound, table


def examples() -> str:
    """How many artifacts each threshold allows."""
    epsilon, delta = math.log(10), 1 / (AOL_USERS + 1)
    least = [
        (str(d), bound(artifact_threshold(d, epsilon, delta)), bound(user_threshold(d, epsilon, delta)))
        for d in (1, 2, 3, 5, 10, 20)
    ]
    allowed = []
    for threshold in (5, 6, 7, 13, 20, 50, 100, 200):
        chosen = CrowdParameters(threshold=threshold)
        figures = [policy(chosen).figures for policy in (artifact_differential, user_differential)]
        allowed.append((str(threshold), *(f"{found['artifacts_allowed']:.0f}" for found in figures)))
    return (
        f"**Examples.** ε = ln 10, δ = 1/(n+1), n = {AOL_USERS:,}. Least thresholds for d artifacts per user:\n\n"
        + table(("d", "k_a", "k_u"), least)
        + "\n\nand the largest d that a threshold k allows (the paper says one for k up to 7):\n\n"
        + table(("k", "DP_a", "DP_u"), allowed)
    )
