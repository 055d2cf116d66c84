"""The settings that a plan tries for each mechanism, at one ε and δ. Public numbers alone decide which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from qlog_assets.mechanisms.safelog.noise import few_fakes_threshold
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.mechanisms.zealous.parameters import SelectionMethod
from qlog_assets.privacy.parameters import Parameters

Settings = dict[str, Any]
Tried = Callable[[Any, Fraction, Fraction, int], Iterator[Settings]]
"""From a section of the policy, ε, δ and the size of the pool to changes of the section, each at that cost."""

QUERIES_PER_USER = (1, 2, 3, 5)
QUERY_SHARES = {1: (Fraction(1),), 2: (Fraction(1, 2), Fraction(2, 3)), 3: (Fraction(1, 2),)}
"""What queries take of ε, by the number of tables: the others share the rest equally."""
ITEMS_PER_USER = (5, 20, 50, 200)
FEW_ITEMS_PER_USER = (1, 2, 5, 10)
"""For noise that grows with the limit itself and not with its root."""
SET_SHARES = (Fraction(8, 10), Fraction(9, 10))
COUNTED_IN_ONE_STEP: tuple[SelectionMethod, ...] = ("truncated_geometric", "gaussian_counts")
CHOSEN_FIRST: tuple[SelectionMethod, ...] = ("weighted_gaussian", "sips")


def safelog_settings(section: SafelogParameters, epsilon: Fraction, delta: Fraction, pool: int) -> Iterator[Settings]:
    """Limits and which tables share ε; each with the threshold at which one query of the pool is expected to be fake.

    Tables that the section leaves out stay out.
    """
    optional = [name for name in ("click_scale", "transition_scale") if getattr(section, name) is not None]
    for tables in ([], *([name] for name in optional), *([optional] if len(optional) > 1 else [])):
        for per_user in QUERIES_PER_USER:
            if "transition_scale" in tables and per_user == 1:
                continue
            for share in QUERY_SHARES[1 + len(tables)]:
                each = epsilon * (1 - share) / max(len(tables), 1)
                scale = per_user / (epsilon * share)
                yield {
                    "queries_per_user": per_user,
                    **({"clicks_per_user": per_user} if "click_scale" in tables else {}),
                    "selection_scale": scale,
                    "click_scale": per_user / each if "click_scale" in tables else None,
                    "transition_scale": (per_user - 1) / each if "transition_scale" in tables else None,
                    "threshold": few_fakes_threshold(pool, scale),
                    "delta": delta,
                }


def zealous_settings(section: Any, epsilon: Fraction, delta: Fraction, pool: int) -> Iterator[Settings]:
    """Methods and limits, for the kinds that the section names."""
    cost = {"epsilon": epsilon, "delta": delta}
    for per_user in FEW_ITEMS_PER_USER:
        yield {"variant": "sound", "items_per_user": per_user, **cost}
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


def crowd_settings(section: Parameters, epsilon: Fraction, delta: Fraction, pool: int) -> Iterator[Settings]:
    for per_user in FEW_ITEMS_PER_USER:
        yield {"artifacts_per_user": per_user, "epsilon": epsilon, "delta": delta}


def sanitized_settings(section: Parameters, epsilon: Fraction, delta: Fraction, pool: int) -> Iterator[Settings]:
    for method, tried in (("stability", FEW_ITEMS_PER_USER), ("weighted_gaussian", ITEMS_PER_USER)):
        for per_user in tried:
            yield {"method": method, "pairs_per_user": per_user, "epsilon": epsilon, "delta": delta}


def with_pool(section: SafelogParameters, pool: int) -> SafelogParameters:
    """A section with the threshold that a pool of so many queries asks for: one of them is expected to be fake."""
    return section.with_changes(threshold=few_fakes_threshold(pool, section.selection_scale))


TRIED: Mapping[str, Tried] = {
    "safelog": safelog_settings,
    "zealous": zealous_settings,
    "crowd": crowd_settings,
    "sanitized": sanitized_settings,
}
