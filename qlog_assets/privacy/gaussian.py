"""What exact discrete Gaussian noise costs, and the noise and thresholds a budget buys. Nothing is drawn here.

Let μ² = Σ Δᵢ²/sᵢ² over the tables of a release, each chosen after the ones before it, where table i adds independent
N(0, sᵢ²) to coordinates that one user moves by at most Δᵢ in L2. Such a release is μ-GDP (Dong, Roth, Su 2019, adaptive
composition), hence (ε, δ(ε))-DP with δ(ε) = Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ), in both directions.

**From continuous to discrete noise.** Published noise is discrete: Z with P[Z=z] proportional to e^(-z²/2σ²) on the
integers, on integer coordinates. It costs what N(0, σ² - r²) costs, up to a factor that is as good as 1: draw
Y ~ N(v, s²), s² = σ² - r², and round it at random, P[z|Y] proportional to e^(-(z-Y)²/2r²). Rounding is
post-processing. By Poisson summation its normaliser is r·√(2π)·(1+θ(Y)), |θ| <= e0 = Σ_{k≠0} e^(-2π²r²k²), and
Gaussians convolve to Gaussians, so z comes out with probability n(z; v, σ²)/(1±e0). The discrete Gaussian around the
integer v has P[z] = n(z; v, σ²)/(1+θ'), 0 <= θ' <= e0, by the same formula. So the two laws differ by a factor within
e^(±η), η = ln((1+e0)/(1-e0)), on each coordinate the user moves; all others have one law with and without the user.
For c moved coordinates P <= e^(cη)·P~ <= e^(cη)·(e^ε'·P~' + δ(ε')) <= e^(ε'+2cη)·P' + e^(cη)·δ(ε').
The usual way over zCDP asks for 6 % more noise at (2.3, 5e-7) than this.

**New items.** A user's item that nobody else holds has no noise without the user. Let δ_new bound the probability that
any such item is printed in any table, and R be the output on all other items. Forward: P[A(D') in E] <= δ_new +
P[R(D') in E]. Converse: A(D) prints no such item, and on outputs without one P[A(D')=o] >= (1-δ_new)·P[R(D')=o], as
their noise is independent of R (over several tables the factors multiply to at least 1 - δ_new). So A is
(ε, δ_new + δ(ε'))-DP if R is (ε', δ(ε'))-DP and ε' - ln(1-δ_new) <= ε; ε' <= ε - δ_new/(1-δ_new) is enough. By the same
two steps A is δ_new-approximately (ρ + δ_new/(1-δ_new))-zCDP with ρ = Σ Δᵢ²/2σᵢ² <= μ²/2.

Special functions are evaluated with over 100 bits more than a double has, and every result is then rounded to the safe
side by a factor 1 + 2**-40: more noise, higher thresholds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
from mpmath.ctx_mp import MPContext

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.histogram import check_positive, checked_delta
from qlog_assets.privacy.parameters import exact

Whole = TypeVar("Whole", int, np.ndarray)

SMOOTHING = 64
"""r². All noise is drawn in fine units, in which 64 is nothing."""
COORDINATE_LOSS = Fraction(1, 10**500)
"""η at r² = 64: e0 = 2e^(-128π²) + … < 1e-547."""
WEIGHTED_COORDINATES = 10**100
"""c for weighted tables, where a user may move a coordinate for every item there is."""
NEW_ITEM_SHARE = Fraction(1, 2)
"""The part of δ that hides new items; the rest is the noise's own. From a third to two thirds, weighted selection of
the peers' log (5 million rows, (2.3, 1e-6), 200 items per user) names 2,620 to 2,648 items; a half, 2,645."""
WHOLE = Fraction(1)
Method = Literal["weighted_gaussian", "sips"]
METHODS: dict[Method, tuple[Fraction, ...]] = {
    "weighted_gaussian": (WHOLE,),
    "sips": (Fraction(9, 139), Fraction(30, 139), Fraction(100, 139)),
}
"""What each round of a weighted selection spends. Those of DP-SIPS are 3/10 of the next, as Google implements it."""
WEIGHT_UNIT = 1 << 16
"""A weight of 1 in integer units: 1/√t is then off by at most 2**-16, that is 0.02 % at t = 200."""
COUNT_UNIT = 1 << 10
"""One user in a count, in integer units: noise on a fine grid costs no more than continuous noise, and thresholds lie
where they should; printed counts are rounded to whole users."""
SAFETY = 1 + Fraction(1, 2**40)
LARGEST_VARIANCE = 10**16  # what the sampler draws at most
GRID = 1 << 64


@dataclass(frozen=True)
class GaussianBudget:
    """What a release by Gaussian noise may spend: μ² on noise, δ_new on new items; and what spending all of it costs.

    The tables of one release may share it, one after another: their μ² and their δ_new add up. Besides (ε, δ) the
    release is δ-approximately ρ-zCDP.
    """

    squared: Fraction
    new_item_delta: Fraction
    epsilon: Fraction
    delta: Fraction
    rho: Fraction


def gaussian_budget(epsilon: Fraction, delta: Fraction, count_coordinates: int = 0) -> GaussianBudget:
    """The budget that a total (ε, δ) buys. `count_coordinates`: plain counts that one user moves, over all tables."""
    epsilon, delta = checked_budget(epsilon, delta)
    hidden = delta * NEW_ITEM_SHARE
    squared = noise_squared(epsilon, delta - hidden, hidden, count_coordinates)
    return GaussianBudget(squared, hidden, epsilon, delta, squared / 2 + new_item_slack(hidden))


def checked_budget(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """A total (ε, δ) that an unknown domain can be released under: exact, ε > 0, 0 < δ < 1."""
    try:
        epsilon = exact(epsilon)
    except ValueError as error:
        raise ParameterError(f"epsilon: {error}") from None
    if epsilon <= 0:
        raise ParameterError("epsilon must be above 0")
    delta = checked_delta(delta)
    if delta == 0:
        raise ParameterError("delta must be above 0: without a public domain nothing can be released at delta = 0")
    return epsilon, delta


def new_item_slack(new_item_delta: Fraction) -> Fraction:
    """What the absence of a new item adds to ε and to ρ: at least -ln(1 - δ_new)."""
    return new_item_delta / (1 - new_item_delta)


@lru_cache(maxsize=256)
def noise_squared(epsilon: Fraction, noise_delta: Fraction, hidden: Fraction, count_coordinates: int = 0) -> Fraction:
    """The largest μ² on a grid of 2**-64 that (ε, noise_delta + hidden) buys."""
    loss = (WEIGHTED_COORDINATES + count_coordinates) * COORDINATE_LOSS
    left = epsilon - new_item_slack(hidden) - 2 * loss
    if left <= 0:
        raise ParameterError("epsilon is too small for so large a delta")
    context = MPContext()
    context.prec = 200 + 2 * math.ceil(1 / noise_delta).bit_length()
    exponent = as_real(context, left)
    most = as_real(context, noise_delta / (1 + 2 * loss) / SAFETY)  # e^(cη) <= 1 + 2cη

    def fits(steps: int) -> bool:
        mu = context.sqrt(context.mpf(steps) / GRID)
        upper, lower = context.ncdf(mu / 2 - exponent / mu), context.ncdf(-mu / 2 - exponent / mu)
        return bool(upper - context.exp(exponent) * lower <= most)

    high = 1
    while fits(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    if low == 0:
        raise ParameterError("epsilon and delta are too small for any Gaussian noise")
    return Fraction(low, GRID)


def as_real(context: MPContext, value: Fraction) -> Any:
    """A rational in a context of many digits."""
    return context.mpf(value.numerator) / value.denominator


def variance_for(squared_sensitivity: int, squared: Fraction) -> int:
    """The least whole variance σ² with Δ²/(σ² - r²) <= μ²."""
    if squared <= 0:
        raise ParameterError("a share of nothing buys no noise: the budget must be above 0")
    variance = math.ceil(squared_sensitivity / squared) + SMOOTHING
    if variance > LARGEST_VARIANCE:
        raise ParameterError("so small a budget asks for more noise than can be drawn: raise epsilon or the share")
    return variance


@lru_cache(maxsize=256)
def new_item_threshold(variance: int, weights: tuple[int, ...], delta: Fraction) -> int:
    """The least T (by the bound below) with t·P[weights[t-1] + Z >= T] <= δ for every number t of items a user holds.

    A user of t items adds weights[t-1] to each, and a new item has nothing else: by the union bound any new one is
    printed with probability at most δ. The tail: for k - 1/2 >= σ the density is convex from there on, so each
    term of the sum over z >= k is at most its integral over [z - 1/2, z + 1/2], and the normaliser is at least σ·√(2π)
    (Poisson summation): P[Z >= k] <= 1 - Φ((k - 1/2)/σ).
    """
    context = MPContext()
    context.prec = 160 + math.ceil(1 / delta).bit_length()
    deviation, most = context.sqrt(variance), as_real(context, delta / SAFETY)

    def hides(threshold: int, items: int) -> bool:
        distance = threshold - weights[items - 1] - context.mpf(1) / 2
        return bool(items * context.ncdf(-distance / deviation) <= most)

    step = math.isqrt(variance) + 1
    least = max(weights) + step + 1  # the tail bound starts one deviation out
    for items in range(len(weights), 0, -1):  # many items usually ask for most: the others then cost one look each
        if hides(least, items):
            continue
        low, high = least, least + step
        while not hides(high, items):
            low, high = high, high + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if hides(middle, items) else (middle, high)
        least = high
    return least


@dataclass(frozen=True)
class ThresholdPlan:
    """One table of noisy sums that names new items, in integer units.

    A user of t items adds weights[t-1] to each; there are as many weights as a user may have items. Then the
    variance of the noise, and the least noisy sum whose item is printed.
    """

    weights: tuple[int, ...]
    variance: int
    threshold: int


@dataclass(frozen=True)
class CountPlan:
    """Plain counts that name new items: the noise and the tested threshold in units of COUNT_UNIT."""

    variance: int
    fine_threshold: int

    @property
    def threshold(self) -> int:
        """The least count that can be printed, in users."""
        return whole_users(self.fine_threshold)


@dataclass(frozen=True)
class SetCountPlan:
    """Counts over a set that is already public: a user's L2 is at most √counted_items_per_user, in units of COUNT_UNIT.

    `total_variance` belongs to the one number that corrects the counts for users of many items; None: no correction.
    """

    counted_items_per_user: int
    variance: int
    most_items: int
    total_variance: int | None


@dataclass(frozen=True)
class SelectionPlan:
    """Rounds that name items, each without those already named, and the counts of the named ones, if they get any."""

    rounds: tuple[ThresholdPlan, ...]
    counting: SetCountPlan | None


def plan_counts(items_per_user: int, budget: GaussianBudget, part: Fraction = WHOLE) -> CountPlan:
    """Plain counts from a part of a budget: each of at most `items_per_user` items moves by 1 user."""
    check_positive("items_per_user", items_per_user)
    variance = variance_for(items_per_user * COUNT_UNIT**2, part_of(budget.squared, part))
    return CountPlan(
        variance, new_item_threshold(variance, (COUNT_UNIT,) * items_per_user, budget.new_item_delta * part)
    )


def plan_weighted(
    method: Method,
    items_per_user: int,
    budget: GaussianBudget,
    part: Fraction = WHOLE,
    set_share: Fraction = WHOLE,
    counted_items_per_user: int = 10,
) -> SelectionPlan:
    """Weighted selection from a part of a budget, of whose μ² `set_share` names the items and the rest counts them."""
    squared, set_squared = part_of(budget.squared, part), part_of(budget.squared * part, set_share)
    shares = METHODS[method]
    rounds = tuple(
        plan_weights(items_per_user, set_squared * share, budget.new_item_delta * part * share) for share in shares
    )
    if set_share == 1:
        return SelectionPlan(rounds, None)
    return SelectionPlan(rounds, plan_set_counts(counted_items_per_user, items_per_user, squared - set_squared))


def plan_weights(items_per_user: int, squared: Fraction, new_item_delta: Fraction) -> ThresholdPlan:
    """One round for μ² = `squared`: a user of t items adds ⌊W/√t⌋ to each, in integers, so t·weight² <= W² = Δ²."""
    check_positive("items_per_user", items_per_user)
    weights = tuple(math.isqrt(WEIGHT_UNIT**2 // items) for items in range(1, items_per_user + 1))
    variance = variance_for(WEIGHT_UNIT**2, squared)
    return ThresholdPlan(weights, variance, new_item_threshold(variance, weights, new_item_delta))


def plan_set_counts(
    counted_items_per_user: int, most_items: int, squared: Fraction, total_share: Fraction = Fraction(1, 10)
) -> SetCountPlan:
    """Counts of a public set for μ² = `squared`, of which `total_share` pays for the correcting total.

    A user's share of the total is cut at `most_items`, its sensitivity.
    """
    check_positive("counted_items_per_user", counted_items_per_user)
    check_positive("most_items", most_items)
    if not 0 <= total_share < 1:
        raise ParameterError("the share of the total is at least 0 and below 1")
    sensitivity = counted_items_per_user * COUNT_UNIT**2
    variance = variance_for(sensitivity, squared * (1 - total_share))
    total = variance_for(most_items**2, squared * total_share) if total_share else None
    return SetCountPlan(counted_items_per_user, variance, most_items, total)


def whole_users(fine: Whole) -> Whole:
    """Units of COUNT_UNIT rounded to the nearest whole number of users."""
    return (2 * fine + COUNT_UNIT) // (2 * COUNT_UNIT)


def part_of(squared: Fraction, part: Fraction) -> Fraction:
    """A part of a budget's μ² or δ; more than the whole is refused."""
    if not 0 < part <= 1:
        raise ParameterError("a share of a budget is above 0 and at most 1")
    return squared * part
