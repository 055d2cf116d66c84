"""Which items of an unknown domain may be named, from counts of users: truncated geometric and Gaussian counts.

Here each user has been limited to `items_per_user` distinct items before the counting (d below), and at most d counts
move by 1 with a user. Choosing and weighting a user's items inside the mechanism is in `weighted`; the
stability histogram, which these replace where d or the precision of a release asks for it, is in `histogram`.

Every function takes a total (ε, δ) and returns what it released with what it cost. Nothing that decides an output is a
float. `min_users` shifts counts as in `histogram`: nothing held by fewer users has any influence.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from mpmath.ctx_iv import MPIntervalContext

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.gaussian import (
    COUNT_UNIT,
    CountPlan,
    checked_budget,
    gaussian_budget,
    plan_counts,
    whole_users,
)
from qlog_assets.privacy.guarantee import PrivacyLoss
from qlog_assets.privacy.histogram import FIRST_PRECISION, ceilings, check_positive, shifted_counts
from qlog_assets.privacy.noise import discrete_gaussian, discrete_laplace
from qlog_assets.privacy.noise_tables import GUARD_BITS, Brackets, InverseTable, Law, outwards
from qlog_assets.privacy.numbers import divide, exp_bracket
from qlog_assets.privacy.randomness import RandomSource

LARGEST_ITEM_EPSILON = 50
MOST_GAUSSIAN_USERS = 1 << 50


@dataclass(frozen=True)
class Selected:
    """What was released, and what it cost.

    `items` are positions in the counts given (or item ids, where pairs were given), ascending; `users` their noisy
    counts, None where only the set is released.
    """

    items: np.ndarray
    users: np.ndarray | None
    loss: PrivacyLoss


def truncated_geometric_set(
    source: RandomSource, users: np.ndarray, items_per_user: int, epsilon: Fraction, delta: Fraction, min_users: int = 1
) -> Selected:
    """The items whose count reaches a random threshold of its own: each kept with the largest probability allowed.

    Per item ε' = ε/d and δ' = δ/d, and an item of n users is kept with probability π(n), where π(0) = 0 and
    π(n) = min{e^ε'·π(n-1) + δ', 1 - e^(-ε')·(1 - π(n-1) - δ'), 1} (Desfontaines, Voss, Gipson, Mandayam 2022).
    Proof: that is π(n) <= e^ε'·π(n-1) + δ' and 1 - π(n-1) <= e^ε'·(1 - π(n)) + δ' with as little slack as possible; the
    other two inequalities hold because π grows. So one item's presence bit is (ε', δ')-DP in both directions, also from
    absent to n = 1, and d independent items compose to (ε, δ). π grows to 1, so it is the distribution function of an
    integer N, drawn exactly from brackets of π; the item is kept if n >= N.
    """
    loss, epsilon, delta = _checked(items_per_user, epsilon, delta)
    shifted = shifted_counts(users, min_users)
    support = np.flatnonzero(shifted)
    least = _selection_table(epsilon / items_per_user, delta / items_per_user).draw(source, len(support))
    return Selected(support[shifted[support] >= least].astype(np.int64), None, loss)


def selection_law(epsilon: Fraction, delta: Fraction) -> Law:
    """π of `truncated_geometric_set` for one item, as brackets of a distribution function on 1, 2, ….

    Rounding errors grow with the first recurrence, by less than e^ε'/(δ'·(1 - e^(-ε'))) in all, and shrink with the
    second: so many bits are added.
    """
    lost = (delta.denominator // delta.numerator).bit_length() + (epsilon.denominator // epsilon.numerator).bit_length()

    def brackets(bits: int) -> Brackets:
        guard = GUARD_BITS + lost + 2 * LARGEST_ITEM_EPSILON
        precision = bits + guard
        one = 1 << precision
        shrink = exp_bracket(epsilon, precision)
        step = (
            (delta.numerator << precision) // delta.denominator,
            -((-delta.numerator << precision) // delta.denominator),
        )
        low, high, pairs = 0, 0, []
        while low < one:
            rise = divide((low, high), shrink, precision)
            missing = max(one - high - step[1], 0), max(one - low - step[0], 0)
            decay = one - (missing[1] * shrink[1] >> precision) - 1, one - (missing[0] * shrink[0] >> precision)
            low = min(rise[0] + step[0], decay[0] if missing[1] else one, one)
            high = min(rise[1] + step[1], decay[1], one)
            pairs.append(outwards((low, high), guard, bits))
        return Brackets(1, [pair[0] for pair in pairs], [pair[1] for pair in pairs])

    return brackets


@lru_cache(maxsize=64)
def _selection_table(epsilon: Fraction, delta: Fraction) -> InverseTable:
    return InverseTable(selection_law(epsilon, delta))


def truncated_geometric_counts(
    source: RandomSource, users: np.ndarray, items_per_user: int, epsilon: Fraction, delta: Fraction, min_users: int = 1
) -> Selected:
    """Items with noisy counts above k, under two-sided geometric noise cut off at [-k, k].

    Per item ε' = ε/d, δ' = δ/d, P[X=x] proportional to e^(-ε'|x|) on [-k, k], k the least with P[X=k] <= δ'. Proof:
    n + X and n + 1 + X have masses within e^(±ε') of each other on the values both can take, and each can take one
    value the other cannot, with probability P[X=±k] <= δ': (ε', δ') in both directions. 0 + X never exceeds k, so an
    item nobody holds is treated like every other by not looking at it. d independent items compose to (ε, δ).

    The noise is exact: discrete Laplace noise beyond k, which is rare, is drawn again.
    """
    loss, epsilon, delta = _checked(items_per_user, epsilon, delta)
    cut = truncation(epsilon / items_per_user, delta / items_per_user)
    shifted = shifted_counts(users, min_users)
    support = np.flatnonzero(shifted)
    noise = discrete_laplace(source, items_per_user / epsilon, len(support))
    beyond = np.flatnonzero(np.abs(noise) > cut)
    while len(beyond):
        noise[beyond] = discrete_laplace(source, items_per_user / epsilon, len(beyond))
        beyond = beyond[np.abs(noise[beyond]) > cut]
    noisy = shifted[support] + noise
    kept = noisy > cut
    return Selected(support[kept].astype(np.int64), noisy[kept] + (min_users - 1), loss)


def truncation(epsilon: Fraction, delta: Fraction) -> int:
    """The least k with P[X=k] = a^k(1-a)/(1+a-2a^(k+1)) <= δ, a = e^(-ε): the ceiling of ln((1-a+2aδ)/(δ(1+a)))/ε.

    Decided by narrowing an interval, which ends as in `stability_threshold`: equality would make a a root of
    a^k(1-a+2aδ) = δ(1+a), which is not the zero polynomial for δ < 1.
    """
    context, precision = MPIntervalContext(), FIRST_PRECISION
    while True:
        context.prec = precision
        rate = context.mpf(epsilon.numerator) / epsilon.denominator
        share = context.mpf(delta.numerator) / delta.denominator
        a = context.exp(-rate)
        low, high = ceilings(context.log((1 - a + 2 * a * share) / (share * (1 + a))) / rate)
        if low == high:
            return low
        precision *= 2


def gaussian_counts(
    source: RandomSource, users: np.ndarray, items_per_user: int, epsilon: Fraction, delta: Fraction, min_users: int = 1
) -> Selected:
    """Items whose count with discrete Gaussian noise reaches a threshold; the tested count is printed, rounded.

    Proof in `gaussian`: a user moves at most d counts by 1, Δ² = d; the threshold hides d items only that user holds
    with probability 1 - δ/2; the converse direction pays the missing 1/(1 - δ/2) out of ε.
    """
    check_positive("items_per_user", items_per_user)
    budget = gaussian_budget(epsilon, delta)
    items, noisy = draw_gaussian_counts(source, users, plan_counts(items_per_user, budget), min_users)
    return Selected(items, noisy, PrivacyLoss(budget.epsilon, budget.delta, budget.rho))


def draw_gaussian_counts(
    source: RandomSource, users: np.ndarray, plan: CountPlan, min_users: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and noisy counts of `gaussian_counts` where the noise is planned, from a share of a budget for one."""
    shifted = shifted_counts(users, min_users)
    if shifted.max(initial=0) > MOST_GAUSSIAN_USERS:
        raise ParameterError("user counts beyond 2**50 do not fit the fine units of Gaussian counts")
    support = np.flatnonzero(shifted)
    noisy = shifted[support] * COUNT_UNIT + discrete_gaussian(source, Fraction(plan.variance), len(support))
    kept = noisy >= plan.fine_threshold
    return support[kept].astype(np.int64), whole_users(noisy[kept]) + (min_users - 1)


def _checked(items_per_user: int, epsilon: Fraction, delta: Fraction) -> tuple[PrivacyLoss, Fraction, Fraction]:
    check_positive("items_per_user", items_per_user)
    epsilon, delta = checked_budget(epsilon, delta)
    if epsilon / items_per_user > LARGEST_ITEM_EPSILON:
        raise ParameterError(f"epsilon above {LARGEST_ITEM_EPSILON} an item promises nothing")
    return PrivacyLoss(epsilon, delta), epsilon, delta
