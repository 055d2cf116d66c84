"""ZEALOUS (Götz et al. 2009): frequent keywords, queries, query pairs or clicks with two thresholds. Pure, on counts.

Each kind of item is its own histogram with its own share of the budget. The limit of m distinct items per user comes
before (`privacy/limits`, or SQL at scale) and must read only that user's records: keeping the globally most popular
items is unsound, one user's popularity re-routes everyone's choice (gap 2). What the paper prints is `paper.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qlog_assets.mechanisms.planned_noise import count_noise, geometric_noise, steered_noise, weighted_noise
from qlog_assets.mechanisms.zealous.guarantee import modern_budget
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.gaussian import Method, SelectionPlan, plan_counts, plan_weighted
from qlog_assets.privacy.histogram import Released, stability_histogram, stability_threshold
from qlog_assets.privacy.limits import count_users, first_distinct
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.selection import draw_gaussian_counts, truncated_geometric_counts, truncation
from qlog_assets.privacy.steered import PublicItems, plan_part, release_steered
from qlog_assets.privacy.weighted import Contributions, draw_weighted
from qlog_assets.report.table_noise import TableNoise


@dataclass(frozen=True)
class KindDraw:
    """What was drawn of one kind: numbers of items, ascending, their noisy counts, the least count there can be, and
    what is publicly known of the noise."""

    items: np.ndarray
    users: np.ndarray
    threshold: int
    noise: TableNoise


def release(
    source: RandomSource, users: np.ndarray, items_per_user: int, scale: Fraction, delta: Fraction, min_users: int = 1
) -> Released:
    """`sound`: the stability histogram, integer noise, one draw; costs (items_per_user/scale, delta)."""
    return stability_histogram(source, users, items_per_user, scale, delta, min_users=min_users)


def takes_rows(variant: str, parameters: ZealousParameters) -> bool:
    """Whether a kind is drawn from rows of (user, item), by `draw_rows`, and not from finished counts."""
    return variant == "modern" and parameters.method in ("weighted_gaussian", "sips")


def is_steered(variant: str, parameters: ZealousParameters) -> bool:
    """Whether a kind is drawn by `privacy.steered`, from rows and from what is public of its items."""
    return variant == "modern" and parameters.method == "steered"


def kind_part(parameters: ZealousParameters) -> Fraction:
    """The part of the budget of `modern` that each kind gets."""
    return Fraction(1, len(parameters.kinds))


def draw_counts(source: RandomSource, users: np.ndarray, variant: str, parameters: ZealousParameters) -> KindDraw:
    """One kind from counts of users: `sound`, and the modern methods that print the count they tested."""
    per_user, epsilon, delta = parameters.items_per_user, parameters.kind_epsilon, parameters.kind_delta
    if variant == "sound":
        drawn = release(source, users, per_user, parameters.noise_scale, delta, parameters.min_users)
        least = stability_threshold(per_user, parameters.noise_scale, delta)
        known = geometric_noise(parameters.noise_scale, min_users=parameters.min_users)
        return KindDraw(drawn.indices, drawn.users, least + parameters.min_users - 1, known)
    if parameters.method == "truncated_geometric":
        chosen = truncated_geometric_counts(source, users, per_user, epsilon, delta)
        assert chosen.users is not None
        cut = truncation(epsilon / per_user, delta / per_user)
        return KindDraw(chosen.items, chosen.users, cut + 1, geometric_noise(per_user / epsilon, largest=cut))
    plan = plan_counts(per_user, modern_budget(parameters), kind_part(parameters))
    return KindDraw(*draw_gaussian_counts(source, users, plan), plan.threshold, count_noise(plan))


def draw_rows(
    source: RandomSource, user_ids: np.ndarray, item_ids: np.ndarray, parameters: ZealousParameters
) -> KindDraw:
    """One kind from rows of (user, item): the weighted methods choose a set first and count it with what is left."""
    plan = plan_rows(parameters)
    items, users, deviation = draw_weighted(source, Contributions.of(user_ids, item_ids), plan)
    assert users is not None and deviation is not None  # set_share is below 1
    return KindDraw(items, users, 1, weighted_noise(plan, deviation))


def plan_rows(parameters: ZealousParameters) -> SelectionPlan:
    """The noise and thresholds of one kind that is drawn from rows."""
    method: Method = "sips" if parameters.method == "sips" else "weighted_gaussian"
    return plan_weighted(
        method,
        parameters.items_per_user,
        modern_budget(parameters),
        kind_part(parameters),
        parameters.set_share,
        parameters.counted_items_per_user,
    )


def check_draw(variant: str, parameters: ZealousParameters) -> None:
    """Draw a kind of no items, which takes no random bit: parameters that cannot be drawn raise here.

    Plans, scales and variances follow from the parameters alone and are the same for every kind, so what does not
    raise here raises for none of them.
    """
    nothing = np.empty(0, dtype=np.int64)
    if is_steered(variant, parameters):
        for with_known in (False, True):
            plan_part(modern_budget(parameters), kind_part(parameters), with_known=with_known)
    elif takes_rows(variant, parameters):
        draw_rows(SeededRandom(0), nothing, nothing, parameters)
    else:
        draw_counts(SeededRandom(0), nothing, variant, parameters)


def release_modern(
    source: RandomSource, users: np.ndarray, items: np.ndarray, domain: int, parameters: ZealousParameters
) -> KindDraw:
    """`modern`, one kind, from rows in the order of time: methods that take counts get each user's first items."""
    if is_steered("modern", parameters):
        budget, part = modern_budget(parameters), kind_part(parameters)
        drawn = release_steered(source, users, items, domain, PublicItems(), budget, part)
        return KindDraw(drawn.items, drawn.users, 1, steered_noise(plan_part(budget, part), drawn.deviations))
    if takes_rows("modern", parameters):
        return draw_rows(source, users, items, parameters)
    counts = count_users(*first_distinct(users, items, parameters.items_per_user), domain)
    return draw_counts(source, counts, "modern", parameters)
