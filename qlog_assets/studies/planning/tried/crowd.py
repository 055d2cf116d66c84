"""What a plan tries of CrowdLogging."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from qlog_assets.crowd.jobs import Application
from qlog_assets.mechanisms.crowd import noise as crowd
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.studies.planning.population import Pool, Population
from qlog_assets.studies.planning.settings import FEW_ITEMS_PER_USER, ITEMS_PER_USER, Settings
from qlog_assets.studies.planning.trials import Outcomes, capped_counts, outcome

KINDS: dict[Application, str] = {
    "queries": "queries",
    "reformulations": "pairs",
    "clicks": "clicks",
    # Made-up users click results of queries, which have no hosts: a host, or an address alone, has as many users at
    # least as one of its clicks.
    "click_hosts": "clicks",
    "urls": "clicks",
}


def settings(section: Parameters, epsilon: Fraction, delta: Fraction, pool: int) -> Iterator[Settings]:
    """Both variants, each with limits that suit how its noise grows with them."""
    for variant, limits in (("sound", FEW_ITEMS_PER_USER), ("gaussian", ITEMS_PER_USER)):
        for per_user in limits:
            yield {"variant": variant, "artifacts_per_user": per_user, "epsilon": epsilon, "delta": delta}


def compared(users: int) -> Settings:
    """Hosts and addresses alone say nothing of a query and a page."""
    return {"jobs": ("queries", "reformulations", "clicks")}


def trial(people: Population, variant: str, chosen: CrowdParameters, seed: int, pool: Pool) -> Outcomes:
    told: Outcomes = {}
    for job in chosen.jobs:
        kind = KINDS[job]
        counts = capped_counts(people, kind, chosen.artifacts_per_user)
        drawn = crowd.draw_counts(SeededRandom(seed), counts, variant, chosen)
        told[job] = outcome(drawn.users, counts[drawn.artifacts], people.truth[kind][drawn.artifacts])
    return told
