"""Noisy numbers of users for a public set of items, where a user's share in an item shrinks with the item's size.

The set and the items' sizes are public before anything here is drawn: a list, an earlier release, or the outcome of a
noisy step that was paid for. What one user can change, and what it costs:

* **Item sums.** Item i has a scale bᵢ in (0, 1], smaller for larger items. A user of the items S adds bᵢ·min(1,
  √c/‖b_S‖₂) to each of them: L2 at most √c, whatever the sizes. A count of a large item gets more noise that way,
  which it can bear, and leaves the user's budget to the small ones. In whole units U: bᵢ is a whole number of units,
  and a user adds ⌊bᵢ·m⌋ with m = 1 if Σ bᵢ² <= C and otherwise R/⌈√(Σ bᵢ²)⌉, where C = ⌊c·U²⌋ and R = ⌊√C⌋. The
  squares of these numbers add up to at most max(Σ bᵢ², R²) <= C in both cases, in integer arithmetic: no float
  decides.
* **One total**, which corrects for users of many items, who count for less than one: each user adds the number of
  their items in the set, at most `most_items`. That is a second query of sensitivity `most_items`, paid from its own
  share.

Both are sums over users of a function of one user's items and public numbers, with exact discrete Gaussian noise
(`gaussian`): μ² = C/(σ² - r²) + most_items²/(σ_t² - r²). Every item of the set gets noise, held or not, so no δ is
spent. Estimates, deviations and roundings follow from the noisy sums and public numbers: post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.gaussian import LARGEST_VARIANCE, SMOOTHING, variance_for
from qlog_assets.privacy.histogram import check_positive
from qlog_assets.privacy.noise import discrete_gaussian
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.weighted import Contributions, ceil_roots, run_starts

FINEST_UNIT = 1 << 20
"""One user in whole units, at most. Then a user of 10,000 items in large queries still adds hundreds of units."""
MOST_USERS = 1 << 33
"""Sums of so many times the finest unit stay below 2**53, up to which doubles, which estimates are, are exact."""
MOST_ITEMS_OF_ONE = 1 << 22
"""Of so many items the squares of the scales add up below 2**63."""
TOTAL_SHARE = Fraction(1, 10)
"""The part of μ² for the total: its relative noise is then far below that of the items."""

CLEAR = 5
"""How many deviations of its noise a sum must be above 0 to be used: its relative error is then a fifth at most, less
than what counts lose that are not stretched."""
CORRECTED_FROM = 2
"""From how many deviations of its own noise on a stretch is used: what noise alone suggests would make all counts too
high, by 0.4 deviations on average where nothing needs correcting."""


@dataclass(frozen=True)
class ScaledCountPlan:
    """What the counts of a set spend: the whole unit, C of the item sums, and the variances of sums and total."""

    unit: int
    squared_limit: int
    variance: int
    most_items: int
    total_variance: int


def plan_scaled_counts(counted_items: Fraction, most_items: int, squared: Fraction) -> ScaledCountPlan:
    """Counts for μ² = `squared`; a user's L2 in the item sums is at most √counted_items."""
    check_positive("most_items", most_items)
    if counted_items <= 0 or squared <= 0:
        raise ParameterError("counted items per user and the budget of counts must be above 0")
    sums, total = squared * (1 - TOTAL_SHARE), squared * TOTAL_SHARE
    unit = FINEST_UNIT
    # A small budget needs noise of so many units that the sampler could not draw it: the unit gets coarser then.
    while unit > 1 and counted_items * unit**2 / sums + SMOOTHING + 1 > LARGEST_VARIANCE:
        unit //= 2
    limit = math.floor(counted_items * unit**2)
    return ScaledCountPlan(unit, limit, variance_for(limit, sums), most_items, variance_for(most_items**2, total))


@dataclass(frozen=True)
class ScaledCounts:
    """Estimated numbers of users, one for each item of the set, and the standard deviation of each one's noise."""

    users: np.ndarray
    deviations: np.ndarray
    signals: np.ndarray
    """How many deviations of its noise each item's own sum is above 0, before anything is corrected."""


def item_scales(sizes: np.ndarray, typical: float, unit: int) -> np.ndarray:
    """bᵢ = min(1, √(typical/size)) in whole units, at least one. Sizes are public, so doubles may compute it."""
    ratios = typical / np.maximum(np.asarray(sizes, dtype=np.float64), typical)
    return np.maximum(np.floor(np.sqrt(ratios) * unit), 1).astype(np.int64)


def shared_values(pairs: Contributions, scales: np.ndarray, plan: ScaledCountPlan) -> np.ndarray:
    """What each pair adds to its item: the user's scales, shrunk so that their squares add up to at most C."""
    if len(scales) and not (scales.min() >= 1 and scales.max() <= plan.unit):
        raise ParameterError("a scale is a whole number from 1 to the unit")
    own = scales[pairs.items]
    starts = run_starts(pairs.owners)
    lengths = np.diff(np.r_[starts, len(own)])
    if len(own) and lengths.max() > MOST_ITEMS_OF_ONE:
        raise ParameterError(f"one user holds more than {MOST_ITEMS_OF_ONE:,} items: limit them before")
    squares = np.add.reduceat(own * own, starts) if len(own) else starts
    root = math.isqrt(plan.squared_limit)
    # own·root stays below 2**63: own <= unit <= 2**20, and root <= √c·unit, with c far below 2**40.
    norms = np.where(squares <= plan.squared_limit, root, ceil_roots(squares))
    return own * root // np.repeat(norms, lengths)


def draw_scaled_counts(
    source: RandomSource, parts: Iterable[Contributions], scales: np.ndarray, plan: ScaledCountPlan
) -> ScaledCounts:
    """Counts of the items 0, 1, … of a set with these scales; `parts` have all pairs of the set, numbered like it, and
    each user in one of them."""
    sums, users, total = np.zeros(len(scales), dtype=np.int64), 0, 0
    for pairs in parts:
        np.add.at(sums, pairs.items, shared_values(pairs, scales, plan))
        held_by_each = np.diff(np.r_[run_starts(pairs.owners), len(pairs.owners)])
        users += len(held_by_each)
        total += limited_total(held_by_each, plan)
    if users > MOST_USERS:
        raise ParameterError("more than 2**33 users: release by parts of the log")
    noisy = sums + discrete_gaussian(source, Fraction(plan.variance), len(scales))
    total = int(noisy_total(source, total, plan)[0])
    estimates, deviations = noisy / scales, math.sqrt(plan.variance) / scales
    # Exact sums: how items are numbered hangs on who holds them, and the last bit of a plain sum on their order.
    counted, spread = math.fsum(estimates), math.fsum(deviations**2)
    stretch, uncertainty = stretch_to(total, counted, plan.total_variance, spread)
    estimated = estimates * stretch
    return ScaledCounts(
        estimated, np.hypot(deviations * stretch, estimated * uncertainty), signals=noisy / math.sqrt(plan.variance)
    )


def limited_total(held_by_each: np.ndarray, plan: ScaledCountPlan) -> int:
    """How many items some users hold together, each at most `most_items`."""
    return int(np.minimum(held_by_each, plan.most_items).sum())


def noisy_total(source: RandomSource, total: int, plan: ScaledCountPlan, draws: int = 1) -> np.ndarray:
    """The `limited_total` of all users with noise; a release draws it once."""
    return total + discrete_gaussian(source, Fraction(plan.total_variance), draws)


def stretch_to(total: int, counted: float, total_variance: int, counted_variance: float) -> tuple[float, float]:
    """By what the estimates are multiplied, so that they add up to the noisy total, and the relative deviation of that.

    1 and 0 where either sum is not well above its own noise, or where what there is to correct is no more than noise.
    """
    if total <= CLEAR * math.sqrt(total_variance) or counted <= CLEAR * math.sqrt(counted_variance):
        return 1.0, 0.0
    stretch, uncertainty = (
        total / counted,
        math.hypot(math.sqrt(total_variance) / total, math.sqrt(counted_variance) / counted),
    )
    return (stretch, uncertainty) if stretch >= 1 + CORRECTED_FROM * stretch * uncertainty else (1.0, 0.0)
