"""What a plan tries of ZEALOUS."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from qlog_assets.mechanisms.zealous import noise as zealous
from qlog_assets.mechanisms.zealous.parameters import SelectionMethod, ZealousParameters
from qlog_assets.privacy.limits import count_users
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.studies.planning.population import Pool, Population
from qlog_assets.studies.planning.settings import (
    FEW_ITEMS_PER_USER,
    ITEMS_PER_USER,
    MANY_ITEMS_PER_USER,
    Settings,
)
from qlog_assets.studies.planning.trials import Outcomes, chosen_items, outcome

SET_SHARES = (Fraction(8, 10), Fraction(9, 10))
COUNTED_IN_ONE_STEP: tuple[SelectionMethod, ...] = ("truncated_geometric", "gaussian_counts")
CHOSEN_FIRST: tuple[SelectionMethod, ...] = ("weighted_gaussian", "sips")


def settings(section: Any, epsilon: Fraction, delta: Fraction, pool: int) -> Iterator[Settings]:
    """Methods and limits, for the kinds that the section names."""
    cost = {"epsilon": epsilon, "delta": delta}
    for per_user in FEW_ITEMS_PER_USER:
        yield {"variant": "sound", "items_per_user": per_user, **cost}
    for per_user in MANY_ITEMS_PER_USER:
        yield {"variant": "modern", "method": "steered", "items_per_user": per_user, **cost}
    for per_user in ITEMS_PER_USER:
        for method in COUNTED_IN_ONE_STEP:
            yield {"variant": "modern", "method": method, "items_per_user": per_user, **cost}
        for method in CHOSEN_FIRST:
            for share in SET_SHARES:
                yield {
                    "variant": "modern",
                    "method": method,
                    "items_per_user": per_user,
                    "set_share": share,
                    "counted_items_per_user": min(per_user, 10),
                    **cost,
                }


def compared(users: int) -> Settings:
    """Keywords say nothing of a query."""
    return {"kinds": ("queries", "pairs", "clicks")}


def trial(people: Population, variant: str, chosen: ZealousParameters, seed: int, pool: Pool) -> Outcomes:
    told: Outcomes = {}
    for kind in chosen.kinds:
        users, items = chosen_items(people, kind, chosen.items_per_user, seed)
        source, counted = SeededRandom(seed), count_users(users, items, people.domain(kind))
        if zealous.is_steered(variant, chosen):
            drawn = zealous.release_modern(source, users, items, people.domain(kind), chosen)
        elif zealous.takes_rows(variant, chosen):
            drawn = zealous.draw_rows(source, users, items, chosen)
        else:
            drawn = zealous.draw_counts(source, counted, variant, chosen)
        told[kind] = outcome(drawn.users, counted[drawn.items], people.truth[kind][drawn.items])
    return told
