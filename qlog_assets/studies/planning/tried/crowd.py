"""What a plan tries of CrowdLogging."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from qlog_assets.mechanisms.crowd import noise as crowd
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.studies.planning.population import Pool, Population
from qlog_assets.studies.planning.settings import FEW_ITEMS_PER_USER, Settings
from qlog_assets.studies.planning.trials import Outcomes, capped_counts, outcome


def settings(section: Parameters, epsilon: Fraction, delta: Fraction, pool: int) -> Iterator[Settings]:
    for per_user in FEW_ITEMS_PER_USER:
        yield {"artifacts_per_user": per_user, "epsilon": epsilon, "delta": delta}


def trial(people: Population, variant: str, chosen: CrowdParameters, seed: int, pool: Pool) -> Outcomes:
    told: Outcomes = {}
    for job in chosen.jobs:
        kind = {"reformulations": "pairs"}.get(job, job)
        counts = capped_counts(people, kind, chosen.artifacts_per_user)
        drawn = crowd.release(
            SeededRandom(seed),
            counts,
            chosen.artifacts_per_user,
            chosen.noise_scale,
            chosen.job_delta,
            chosen.share_threshold,
        )
        told[job] = outcome(drawn.users, counts[drawn.indices], people.truth[kind][drawn.indices])
    return told
