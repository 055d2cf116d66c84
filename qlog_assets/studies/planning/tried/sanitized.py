"""What a plan tries of the sanitized log: the pairs that made-up users can have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from qlog_assets.mechanisms.sanitized import noise as sanitized
from qlog_assets.mechanisms.sanitized.guarantee import pair_budget
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.privacy.histogram import Released
from qlog_assets.privacy.limits import count_users
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.privacy.steered import PublicItems, release_steered
from qlog_assets.studies.planning.population import Pool, Population
from qlog_assets.studies.planning.settings import FEW_ITEMS_PER_USER, ITEMS_PER_USER, Settings
from qlog_assets.studies.planning.trials import Outcomes, chosen_items, outcome

PAPERS_EPSILON = Fraction("0.6931471806")
"""ln 2, not below the true one: just below it no two users may share a pair."""
printed: Mapping[str, Settings] = {"paper": {"epsilon": PAPERS_EPSILON, "delta": Fraction(1, 2)}}
"""e^ε = 2 and δ = 0.5: Tables 5 and 6."""


def settings(section: Parameters, epsilon: Fraction, delta: Fraction, pool: int) -> Iterator[Settings]:
    methods = {"stability": FEW_ITEMS_PER_USER, "weighted_gaussian": ITEMS_PER_USER, "steered": ITEMS_PER_USER[-2:]}
    for method, tried in methods.items():
        for per_user in tried:
            yield {"method": method, "pairs_per_user": per_user, "epsilon": epsilon, "delta": delta}


def compared(users: int) -> Settings:
    """As many made-up users as there are, or as a made-up log may have with the largest limit that is tried: with more,
    the methods that name most could not be drawn."""
    return {"synthetic_users": min(users, sanitized.MOST_EVENTS // ITEMS_PER_USER[-1])}


def trial(people: Population, variant: str, chosen: SanitizedParameters, seed: int, pool: Pool) -> Outcomes:
    """The log that is made up from the pairs costs nothing."""
    users, items = chosen_items(people, "clicks", chosen.pairs_per_user, seed)
    counts = count_users(users, items, people.domain("clicks"))
    if sanitized.is_steered(chosen):
        found = release_steered(
            SeededRandom(seed), users, items, people.domain("clicks"), PublicItems(), pair_budget(chosen)
        )
        drawn = Released(found.items, found.users)
    elif sanitized.takes_rows(chosen):
        drawn, _ = sanitized.draw_rows(SeededRandom(seed), users, items, chosen)
    else:
        drawn = sanitized.draw_counts(SeededRandom(seed), counts, chosen)
    return {"pairs": outcome(drawn.users, counts[drawn.indices], people.truth["clicks"][drawn.indices])}
