"""Which items may be named, from (user, item) pairs: weighted Gaussian selection, in one round or three, with counts.

A user of few items gives each more weight, so that every user is heard equally: that names about five times as many
items as a Laplace threshold on a long-tailed log. Here a user's items are chosen and weighted inside the mechanism;
methods that take finished counts are in `selection`, the arithmetic of noise and thresholds in `gaussian`.

**Choosing a user's items.** Every pair draws its own random word, and a user keeps the pairs with the smallest: a
choice among that user's pairs alone, uniform whatever numbers and order the caller gave users and items. (A keyed hash
of the numbers would be uniform only as far as the hash is: numbering items is itself a look at all users.)

**Privacy** (adding or removing one user), by `gaussian`. Given everyone's choices, which have the same law with and
without the user, a round moves the user's t items by ⌊W/√t⌋ each: L2 at most W. New ones among them are hidden by the
round's threshold with probability 1 - δ_i. A round sees the items no earlier round printed, the counts see the items
printed: each is chosen by what is already public, so μ² and δ_i add up, in both directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.gaussian import (
    COUNT_UNIT,
    WHOLE,
    GaussianBudget,
    SelectionPlan,
    SetCountPlan,
    ThresholdPlan,
    gaussian_budget,
    plan_set_counts,
    plan_weighted,
)
from qlog_assets.privacy.guarantee import PrivacyLoss
from qlog_assets.privacy.noise import discrete_gaussian
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.selection import Selected

MOST_PAIRS = 1 << 36  # sums of weights up to 2**16 then stay below 2**53, up to which doubles are exact

CLEAR_TOTAL = 20
"""How many deviations of its noise a total must be above 0 to be used: its relative error is then about 5 % or less."""


@dataclass(frozen=True)
class Contributions:
    """Distinct (user, item) pairs in order of user: numbers of users and items, and the id of every item number."""

    owners: np.ndarray
    items: np.ndarray
    names: np.ndarray

    @classmethod
    def of(cls, user_ids: np.ndarray, item_ids: np.ndarray) -> Contributions:
        """The distinct pairs of two integer arrays of one length."""
        user_ids, item_ids = _checked_pairs(user_ids, item_ids)
        names, items = numbered(item_ids)
        return cls._distinct(user_ids, items, names)

    @classmethod
    def among(cls, user_ids: np.ndarray, item_ids: np.ndarray, size: int) -> Contributions:
        """The same where items are the numbers 0, 1, … below `size`, held by somebody or not."""
        return cls.numbered_in(np.arange(size), user_ids, item_ids)

    @classmethod
    def numbered_in(cls, names: np.ndarray, user_ids: np.ndarray, item_ids: np.ndarray) -> Contributions:
        """The same where items are places in an array of their ids, which pairs of other users may share."""
        user_ids, item_ids = _checked_pairs(user_ids, item_ids)
        if len(item_ids) and not (item_ids.min() >= 0 and item_ids.max() < len(names)):
            raise ParameterError(f"item ids are numbers from 0 to {len(names) - 1}")
        return cls._distinct(user_ids, item_ids.astype(np.int64), names)

    @classmethod
    def _distinct(cls, user_ids: np.ndarray, items: np.ndarray, names: np.ndarray) -> Contributions:
        users, owners = numbered(user_ids)
        width = max(len(names), 1)
        if len(users) * width >= 1 << 63:
            raise ParameterError("too many users and items for one table: release by parts of the domain")
        pairs = np.sort(owners * width + items)
        pairs = pairs[np.r_[True, pairs[1:] != pairs[:-1]]] if len(pairs) else pairs
        owners = pairs // width
        return cls(owners, pairs - owners * width, names)

    def where(self, kept: np.ndarray) -> Contributions:
        """The pairs that a mask keeps."""
        return Contributions(self.owners[kept], self.items[kept], self.names)

    def degrees(self) -> np.ndarray:
        """How many items each user has."""
        return np.bincount(self.owners)

    def sampled(self, source: RandomSource, items_per_user: int) -> Contributions:
        """At most so many pairs per user, a uniform choice among the user's own."""
        crowded = np.flatnonzero(self.degrees()[self.owners] > items_per_user)
        if not len(crowded):
            return self
        owners = self.owners[crowded]
        shuffled = crowded[shuffled_within(source, owners)]
        starts = run_starts(owners)
        places = np.arange(len(owners)) - np.repeat(starts, np.diff(np.r_[starts, len(owners)]))
        kept = np.ones(len(self.owners), dtype=bool)
        kept[shuffled[places >= items_per_user]] = False
        return self.where(kept)


class SetCounts(NamedTuple):
    """Noisy numbers of users, and the standard deviation of the noise in each: by parameters and noisy numbers alone,
    so it may be published."""

    users: np.ndarray
    deviation: float


class WeightedDraw(NamedTuple):
    """The ids of named items, ascending; their noisy counts, with the standard deviation of the noise, if counted."""

    items: np.ndarray
    users: np.ndarray | None
    deviation: float | None


def _checked_pairs(user_ids: np.ndarray, item_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    user_ids, item_ids = (np.asarray(ids) for ids in (user_ids, item_ids))
    if user_ids.ndim != 1 or user_ids.shape != item_ids.shape:
        raise ParameterError("user ids and item ids must be one-dimensional and of one length")
    if len(user_ids) and not all(ids.dtype.kind in "iu" and ids.dtype != np.uint64 for ids in (user_ids, item_ids)):
        raise ParameterError("user ids and item ids must be whole numbers that fit 64 bits with a sign")
    if len(user_ids) > MOST_PAIRS:
        raise ParameterError("more than 2**36 pairs: release by parts of the domain")
    return user_ids, item_ids


def numbered(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ids, ascending, and the number of each id among them; without sorting where ids are nearly dense."""
    ids = ids.astype(np.int64)
    if not len(ids):
        return ids, ids
    first = int(ids.min())
    span = int(ids.max()) - first + 1
    if span > 4 * len(ids) + (1 << 20):
        names, numbers = np.unique(ids, return_inverse=True)
        return names, numbers
    offsets = ids - first
    present = np.zeros(span, dtype=bool)
    present[offsets] = True
    return np.flatnonzero(present) + first, (np.cumsum(present) - 1)[offsets]


def shuffled_within(source: RandomSource, groups: np.ndarray) -> np.ndarray:
    """A permutation that sorts by group number and is uniform within each group, exactly.

    Members are ordered by random bits that fill up the word behind the group's number; in the rare case that two of a
    group have equal bits, everyone gets a further word behind those it has, until all differ.
    """
    spare = np.uint64(64 - int(groups.max(initial=1)).bit_length())
    leading = groups.astype(np.uint64) << spare | source.words(len(groups)) >> (np.uint64(64) - spare)
    order = np.argsort(leading)
    keys = [leading]
    while np.logical_and.reduce([key[order[1:]] == key[order[:-1]] for key in keys]).any():
        keys.insert(0, source.words(len(groups)))
        order = np.lexsort(keys)
    return order


def weighted_gaussian(
    source: RandomSource,
    user_ids: np.ndarray,
    item_ids: np.ndarray,
    items_per_user: int,
    epsilon: Fraction,
    delta: Fraction,
    set_share: Fraction = WHOLE,
    counted_items_per_user: int = 10,
) -> Selected:
    """Weighted Gaussian selection (Gopi et al. 2020): one round, then counts where `set_share` < 1 leaves a budget."""
    budget = gaussian_budget(epsilon, delta)
    plan = plan_weighted("weighted_gaussian", items_per_user, budget, WHOLE, set_share, counted_items_per_user)
    return _selected(draw_weighted(source, Contributions.of(user_ids, item_ids), plan), budget)


def sips(
    source: RandomSource,
    user_ids: np.ndarray,
    item_ids: np.ndarray,
    items_per_user: int,
    epsilon: Fraction,
    delta: Fraction,
    set_share: Fraction = WHOLE,
    counted_items_per_user: int = 10,
) -> Selected:
    """DP-SIPS (Swanberg, Desfontaines, Haney 2023): three rounds, each richer than the last, then counts as above."""
    budget = gaussian_budget(epsilon, delta)
    plan = plan_weighted("sips", items_per_user, budget, WHOLE, set_share, counted_items_per_user)
    return _selected(draw_weighted(source, Contributions.of(user_ids, item_ids), plan), budget)


def gaussian_counts_of_set(
    source: RandomSource,
    user_ids: np.ndarray,
    item_ids: np.ndarray,
    chosen: np.ndarray,
    counted_items_per_user: int,
    most_items: int,
    epsilon: Fraction,
    delta: Fraction,
) -> Selected:
    """Noisy counts of items that are public already (a set released before), under a budget of their own."""
    budget = gaussian_budget(epsilon, delta)
    plan = plan_set_counts(counted_items_per_user, most_items, budget.squared)
    chosen = np.unique(np.asarray(chosen, dtype=np.int64))
    contributions = Contributions.of(user_ids, item_ids)
    return _selected(WeightedDraw(chosen, *draw_set_counts(source, contributions, chosen, plan)), budget)


def _selected(drawn: WeightedDraw, budget: GaussianBudget) -> Selected:
    return Selected(drawn.items, drawn.users, PrivacyLoss(budget.epsilon, budget.delta, budget.rho))


def draw_weighted(source: RandomSource, contributions: Contributions, plan: SelectionPlan) -> WeightedDraw:
    """The named items, and their noisy counts if the plan has any."""
    named = np.zeros(len(contributions.names), dtype=bool)
    for step in plan.rounds:
        named[_draw_round(source, contributions.where(~named[contributions.items]), step)] = True
    chosen = contributions.names[named]
    if plan.counting is None:
        return WeightedDraw(chosen, None, None)
    return WeightedDraw(chosen, *draw_set_counts(source, contributions, chosen, plan.counting))


def _draw_round(source: RandomSource, contributions: Contributions, plan: ThresholdPlan) -> np.ndarray:
    """The numbers of the items whose noisy weight reaches the threshold."""
    sample = contributions.sampled(source, len(plan.weights))
    weights = np.array([0, *plan.weights], dtype=np.int64)[sample.degrees()[sample.owners]]
    sums = exact_sums(sample.items, weights, len(sample.names))
    support = np.flatnonzero(sums)
    noisy = sums[support] + discrete_gaussian(source, Fraction(plan.variance), len(support))
    return support[noisy >= plan.threshold]


def draw_set_counts(
    source: RandomSource, contributions: Contributions, chosen: np.ndarray, plan: SetCountPlan
) -> SetCounts:
    """Noisy counts of users for every item of a public set, at least 1 each.

    A user of k chosen items adds min(1, √(c/k)) to each, c = counted_items_per_user: L2 at most √c, and no item is
    dropped at random. That counts users of many items for less than one, so the counts are then stretched to a noisy
    total of the pairs, for which a user counts at most `most_items`, where that total is well above its own noise:
    post-processing. The result is unbiased where active and quiet users hold the same items in like proportions; a
    larger c depends on that less and is noisier. The noise is stretched with the counts.
    """
    place = np.searchsorted(chosen, contributions.names)
    place[place == len(chosen)] = 0
    is_chosen = chosen[place] == contributions.names if len(chosen) else np.zeros(len(place), dtype=bool)
    pairs = contributions.where(is_chosen[contributions.items])
    degrees = pairs.degrees()
    sums = exact_sums(
        place[pairs.items], shrunk_weights(degrees, plan.counted_items_per_user)[pairs.owners], len(chosen)
    )
    noisy = sums + discrete_gaussian(source, Fraction(plan.variance), len(chosen))
    unit = COUNT_UNIT
    stretch, divisor = 1, unit
    if plan.total_variance is not None:
        held = int(np.minimum(degrees, plan.most_items).sum())
        held += int(discrete_gaussian(source, Fraction(plan.total_variance), 1)[0])
        counted = int(noisy.sum())
        if 0 < counted < held * unit and held**2 > CLEAR_TOTAL**2 * plan.total_variance:
            stretch, divisor = held, counted
    stretched = noisy.astype(object) * stretch
    users = np.maximum((2 * stretched + divisor) // (2 * divisor), 1).astype(np.int64)
    return SetCounts(users, math.sqrt(plan.variance) * stretch / divisor)


def shrunk_weights(degrees: np.ndarray, counted_items: int) -> np.ndarray:
    """min(1, √(c/k)) in units of COUNT_UNIT for users of k items, rounded down: k·weight² <= c·COUNT_UNIT²."""
    distinct, inverse = np.unique(degrees, return_inverse=True)
    squares = (counted_items * COUNT_UNIT**2 // max(int(items), counted_items) for items in distinct)
    return np.array([math.isqrt(square) for square in squares], dtype=np.int64)[inverse]


def run_starts(owners: np.ndarray) -> np.ndarray:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]]) if len(owners) else np.empty(0, np.int64)


def ceil_roots(squares: np.ndarray) -> np.ndarray:
    """The least whole numbers whose squares are not below these, up to 2**62, exactly."""
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    roots -= roots * roots > squares
    roots += (roots + 1) * (roots + 1) <= squares
    return roots + (roots * roots < squares)


def exact_sums(items: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """The sum of integer weights by item."""
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, items, weights)
    return sums
