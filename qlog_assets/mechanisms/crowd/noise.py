"""What analysts may be given of CrowdLogging: noisy user counts, one draw, nothing else. Pure; encryption is elsewhere.

A job's counts of users in, positions and noisy counts out. The paper's four policies are `paper.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qlog_assets.mechanisms.crowd.guarantee import job_budget
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.mechanisms.planned_noise import count_noise, geometric_noise
from qlog_assets.privacy.gaussian import CountPlan, plan_counts
from qlog_assets.privacy.histogram import Released, stability_histogram, stability_threshold
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.selection import draw_gaussian_counts
from qlog_assets.report.table_noise import TableNoise


@dataclass(frozen=True)
class JobDraw:
    """What was drawn of one job: positions of artifacts, ascending, their noisy counts, the least count there can be,
    and what is publicly known of the noise."""

    artifacts: np.ndarray
    users: np.ndarray
    threshold: int
    noise: TableNoise


def release(
    source: RandomSource, users: np.ndarray, per_user: int, scale: Fraction, delta: Fraction, min_shares: int = 1
) -> Released:
    """`sound`: the stability histogram on users of at most `per_user` distinct artifacts; (per_user/scale, delta).

    `min_shares` is the number of key shares that decryption needs. It cuts on the true count, so it is accounted for as
    a minimum of users: counts are shifted before the noise, never cut after it (gap G5).
    """
    return stability_histogram(source, users, per_user, scale, delta, min_users=min_shares)


def plan_job(parameters: CrowdParameters) -> CountPlan:
    """`gaussian`: the noise and the threshold of each job, from its part of the release's budget.

    Proof: shifted counts are counts that one user moves by at most 1 in at most d places, Δ² = d, and that are 1 where
    they are hers alone (`guarantee`); all else is `gaussian`'s: the μ² of the jobs add up to the budget's, and their
    thresholds share δ_new.
    """
    return plan_counts(parameters.artifacts_per_user, job_budget(parameters), Fraction(1, len(parameters.jobs)))


def draw_counts(source: RandomSource, users: np.ndarray, variant: str, parameters: CrowdParameters) -> JobDraw:
    """One job, from how many users sent each artifact: of `sound` or `gaussian`."""
    shares = parameters.share_threshold
    if variant == "sound":
        per_user, scale, delta = parameters.artifacts_per_user, parameters.noise_scale, parameters.job_delta
        drawn = release(source, users, per_user, scale, delta, shares)
        least = stability_threshold(per_user, scale, delta) + shares - 1
        return JobDraw(drawn.indices, drawn.users, least, geometric_noise(scale, min_users=shares))
    plan = plan_job(parameters)
    artifacts, noisy = draw_gaussian_counts(source, users, plan, shares)
    return JobDraw(artifacts, noisy, plan.threshold + shares - 1, count_noise(plan, min_users=shares))


def draw_nothing(variant: str, parameters: CrowdParameters) -> JobDraw:
    """A job of no artifacts, which takes no random bit: it tells the threshold, and parameters that cannot be drawn
    raise. Plans and scales follow from the parameters alone and are the same for every job."""
    return draw_counts(SeededRandom(0), np.empty(0, dtype=np.int64), variant, parameters)
