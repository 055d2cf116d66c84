"""Steered selection: a first noisy look, which nobody sees, decides where each user's weight is spent.

Items are numbers, and a user's items were chosen before, by a rule that reads that user's records alone. Some items
may be *public* before anything is drawn: `known` ones come with a size (an earlier release, which was paid for),
`listed` ones without (a pool). Everything else is unknown, and naming it costs δ.

1. **First look**, f of the set's μ². A user of t items that are not known adds ⌊W/√t⌋ to each: L2 at most W. Every
   item that is held or listed gets exact discrete Gaussian noise. An item is *certain*, and named, if its noisy sum Y
   reaches T₁, a listed one if it reaches its own, lower threshold. Nothing of items that are not named is kept or
   published; the deviations of named items follow from their Y, which the proof allows.
2. **Second look**, the rest of the set's μ². A user gives weight to own items that are not certain and have Y >= c,
   where c is a part κ of the threshold (the others are hopeless), to at most d of them, those nearest to c first, in
   proportion to c/Y (what is nearly certain needs little). The weights are whole numbers whose squares add up to at
   most W². Fresh noise goes to every item that somebody gives weight to and to every listed one that is not certain. An
   item is named if its noisy sum reaches T, a listed one if it reaches its own, lower threshold.
3. **Counts** of all named and all known items, by `scaled_counts`: sizes of named items are their Y.

Without T₁ a user of more than d hopeful items would leave out the largest, and so would everybody: on a log of words
the hundred most common ones were never named.

**Privacy** (adding or removing one user), for D' = D and a user u. Caps and choices of others do not depend on u. Items
that u alone holds, and no list, are *own*; let Y° be their Y. Call an item *shared* if it is public or somebody else
gives it weight in the second look, and *new* if u alone does; own items are of that kind, and so are those that others
hold and leave out, because of d. Let R be: Y on all items but own ones, the noisy sums of the second look on shared
items, and the counts. Fix Y°, at any value that makes no own item certain.
* Without own items the first look is a Gaussian mechanism that u moves by L2 at most W. Which other items are certain
  follows from it.
* Given Y there, all others' weights in the second look are the same with and without u, and so is which items are
  shared; u's weights there have L2 at most W, whatever Y° is. So the second look on shared items is a Gaussian
  mechanism given the first.
* Counts are one, given the names and Y (`scaled_counts`); every item of their set has noise.
  So R composes adaptively, for every such Y°: μ² adds up over the three (`gaussian`), and R with u and R without are
  (ε', δ(ε'))-indistinguishable.
* Y° has noise of its own and u's weights alone, at most M whole numbers of L2 at most W: by T₁ (`hidden_items`) no own
  item is certain but for a probability of δ₁.
* A new item has fresh noise in the second look and u's weight alone. Whatever Y° and R are, u's weights on new items
  are at most d whole numbers of L2 at most W, so by T none is named but for a probability of δ₂. It does not help that
  an item must pass the first look: others may have pushed up Y of an item that they leave out, so it passes surely.
* With u: P[output in E] <= δ₁ + δ₂ + P[no own or new item named, and the function of R that is then published in E];
  for every Y° the last is at most e^ε'·P[the same without u] + δ(ε'). Conversely an output without u never names own
  or new items; with u it has, averaged over the Y° that make none certain, at least (1 - δ₁)·(1 - δ₂) times its
  probability under R. With δ₁ + δ₂ = δ_new this product is at least 1 - δ_new.
The release is therefore (ε, δ_new + δ(ε'))-DP with ε' - ln(1 - δ_new) <= ε. Here δ's two parts are added: the joint
bound of one round, where a user's items are either shared or new, does not hold, as u may be in both looks with all of
W.

**Ties.** A user's items of equal Y are taken in the order of their numbers: the caller numbers items in a public
order, such as that of their bytes, so that nobody else's items decide between two of u's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.gaussian import WEIGHT_UNIT, WHOLE, GaussianBudget, part_of, variance_for
from qlog_assets.privacy.hidden_items import hiding_threshold
from qlog_assets.privacy.holdings import MOST_ITEMS, HeldPairs, Holdings
from qlog_assets.privacy.noise import discrete_gaussian
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.scaled_counts import (
    ScaledCountPlan,
    draw_scaled_counts,
    item_scales,
    plan_scaled_counts,
)
from qlog_assets.privacy.weighted import Contributions, ceil_roots, numbered, run_starts

FIRST_SHARE = Fraction(1, 4)
"""f: the first look's part of the set's μ². 1/5 to 1/3 name within 4 % as many on the peers' log and the demo's."""
HOPE = Fraction(11, 20)
"""κ: from which part of its threshold on an item is worth weight. 0.4 and 0.7 name 3 and 9 % less of the demo's log."""
WEIGHED_ITEMS = 50
"""d: how many items a user gives weight to. 10 to 50 name within 2 % as many; of queries that active users alone type,
50 name nearly three times as many as 20 in a first month of the peers' log."""
SET_SHARE, LATER_SET_SHARE = Fraction(9, 10), Fraction(3, 5)
"""The set's part of μ²; the counts get the rest, and more of it where known items are counted that nobody must name.
In a third month of the peers' log 2/3 names 1 % more and has 79, not 81 % of counts within a fifth of the truth."""
COUNTED_ITEMS = Fraction(2)
"""c: the squared L2 of one user in the counts. Counts of what active users alone type are 37 % too low at 2, and 7 % at
10, where the median error is 21 instead of 15 users (peers' log, first month)."""
MOST_TOTAL_ITEMS = 100
"""How many items one user counts in the total that corrects the counts. 200 makes counts of 100,000 active users a
little better (84 instead of 82 % of a second month within a fifth of the truth) and those of 5,000 much worse (40
instead of 77 %)."""
TYPICAL_PERCENTILE = 20
"""Items up to this percentile of the sizes get a whole share, larger ones less."""
KNOWN_DEVIATIONS = 3
"""A known item is printed if its sum is so many deviations above 0: noise alone prints one in 740."""
LISTED_FAKES = 1
"""How many listed items that nobody holds are expected to be named, in both looks together."""
CERTAIN_SHARE = Fraction(1, 10)
"""The first look's part of δ_new and of the listed fakes. T grows by less than a hundredth for it."""
SHARE_UNIT = 1 << 24
"""c/Y in whole units. Squares of 2**13 of them add up below 2**63."""
MOST_WEIGHED_ITEMS = 1 << 13


def no_items() -> np.ndarray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class PublicItems:
    """Which items are public before anything is drawn. Known and listed ones do not overlap.

    All of a release or list, whether anybody holds its items or not: a list of those that are held is not public.
    """

    known: np.ndarray = field(default_factory=no_items)
    known_users: np.ndarray = field(default_factory=no_items)
    """The number of users that was published of each known item, at least 1."""
    listed: np.ndarray = field(default_factory=no_items)

    def __post_init__(self) -> None:
        if any(array.dtype.kind not in "iu" for array in (self.known, self.known_users, self.listed)):
            raise ParameterError("public items and their numbers of users are whole numbers")
        if len(self.known) != len(self.known_users):
            raise ParameterError("each known item has one published number of users")
        if len(self.known_users) and self.known_users.min() < 1:
            raise ParameterError("a known item was published with at least one user")
        both = np.concatenate([self.known, self.listed])
        if len(np.unique(both)) != len(both):
            raise ParameterError("an item is public once: known or listed")

    def check_below(self, items: int) -> None:
        """Refuse numbers that are no item's: a negative one would mean an item counted from the end."""
        for numbers in (self.known, self.listed):
            if len(numbers) and not (numbers.min() >= 0 and numbers.max() < items):
                raise ParameterError(f"public items are numbers from 0 to {items - 1}")


@dataclass(frozen=True)
class SteeredPlan:
    """The noise and thresholds of a steered selection with counts, in units of WEIGHT_UNIT."""

    first_variance: int
    certain_threshold: int
    certain_listed_threshold: int
    second_variance: int
    threshold: int
    listed_threshold: int
    weighed_items: int
    counting: ScaledCountPlan

    def least_hopeful(self, threshold: int) -> int:
        return math.ceil(HOPE * threshold)

    def least_hopeful_of(self, listed: np.ndarray) -> np.ndarray:
        """From which Y on each of some items is worth weight."""
        return np.where(listed, self.least_hopeful(self.listed_threshold), self.least_hopeful(self.threshold))


@dataclass(frozen=True)
class SteeredDraw:
    """What is printed: item numbers, ascending, their noisy numbers of users, and the deviation of each one's noise."""

    items: np.ndarray
    users: np.ndarray
    deviations: np.ndarray


def plan_steered(
    squared: Fraction,
    new_item_delta: Fraction,
    *,
    listed_items: int = 0,
    with_known: bool = False,
    weighed_items: int = WEIGHED_ITEMS,
) -> SteeredPlan:
    """A steered selection with counts for μ² = `squared` and δ_new; how many items are listed, and whether any are
    known, is public."""
    if not 1 <= weighed_items <= MOST_WEIGHED_ITEMS:
        raise ParameterError(f"weighed items per user are between 1 and {MOST_WEIGHED_ITEMS}")
    set_squared = squared * (LATER_SET_SHARE if with_known else SET_SHARE)
    first, second = (variance_for(WEIGHT_UNIT**2, set_squared * part) for part in (FIRST_SHARE, 1 - FIRST_SHARE))
    certain = hiding_threshold(first, WEIGHT_UNIT, MOST_ITEMS, new_item_delta * CERTAIN_SHARE)
    threshold = hiding_threshold(second, WEIGHT_UNIT, weighed_items, new_item_delta * (1 - CERTAIN_SHARE))
    return SteeredPlan(
        first_variance=first,
        certain_threshold=certain,
        certain_listed_threshold=min(certain, few_listed_threshold(first, listed_items, CERTAIN_SHARE)),
        second_variance=second,
        threshold=threshold,
        listed_threshold=min(threshold, few_listed_threshold(second, listed_items, 1 - CERTAIN_SHARE)),
        weighed_items=weighed_items,
        counting=plan_scaled_counts(COUNTED_ITEMS, MOST_TOTAL_ITEMS, squared - set_squared),
    )


def few_listed_threshold(variance: int, listed_items: int, part: Fraction) -> int:
    """Where about a part of `LISTED_FAKES` of so many items without weight is named: post-processing, so by doubles."""
    from scipy.special import ndtri  # a quarter of a second, only where a plan is made

    fakes = float(LISTED_FAKES * part)
    return max(1, math.ceil(-ndtri(fakes / max(listed_items, 2 * LISTED_FAKES)) * math.sqrt(variance)))


def draw_steered(
    source: RandomSource, contributions: Contributions, public: PublicItems, plan: SteeredPlan
) -> SteeredDraw:
    """The items of one table and their counts. `contributions.names` are the numbers 0, 1, … of all items there are."""
    return draw_held(source, HeldPairs(contributions, public.known), public, plan)


def draw_held(source: RandomSource, held: Holdings, public: PublicItems, plan: SteeredPlan) -> SteeredDraw:
    """The same, asking for the pairs of hopeful items, and of those that are counted, alone.

    Only items are held in memory. What a user gives follows from the user's own pairs and what is drawn of items, and
    whole numbers are added up: in how many parts users come changes nothing, and noise is drawn behind the last.
    """
    public.check_below(held.size)
    kept = keep_hopeful(source, held, public, plan)
    certain = kept.first >= np.where(kept.listed, plan.certain_listed_threshold, plan.certain_threshold)
    places = np.flatnonzero(~certain & (kept.first >= plan.least_hopeful_of(kept.listed)))
    numbers = np.arange(len(kept.items))
    with closing(held.holders(kept.items[places])) as hopeful:
        doubtful = (Contributions(pairs.owners, places[pairs.items], numbers) for pairs in hopeful)
        found = look_again(source, doubtful, kept.first, kept.listed & ~certain, plan)
    named = np.concatenate([np.flatnonzero(certain), found])
    chosen = np.concatenate([public.known, kept.items[named]])
    is_known = np.arange(len(chosen)) < len(public.known)
    order = np.argsort(chosen)
    scales = np.concatenate(
        [
            item_scales(sizes, typical_size(sizes), plan.counting.unit)
            for sizes in (public.known_users, np.maximum(kept.first[named], 1))
        ]
    )[order]
    chosen, is_known = chosen[order], is_known[order]
    with closing(held.holders(chosen)) as holders:
        counted = draw_scaled_counts(source, holders, scales, plan.counting)
    printed = ~is_known | (counted.signals >= KNOWN_DEVIATIONS)
    users = np.maximum(np.rint(counted.users[printed]), 1).astype(np.int64)
    return SteeredDraw(chosen[printed], users, counted.deviations[printed])


@dataclass(frozen=True)
class KeptItems:
    """What the first look leaves of all items: those that could be named, ascending, Y, and whether each is listed."""

    items: np.ndarray
    first: np.ndarray
    listed: np.ndarray


def keep_hopeful(source: RandomSource, held: Holdings, public: PublicItems, plan: SteeredPlan) -> KeptItems:
    """The first look, so many items at a time. What is neither listed nor reaches any threshold is never looked at
    again: noise alone keeps about one in thirty of the items that are held, by default."""
    known, listed = np.sort(public.known), np.sort(public.listed)
    least = min(plan.certain_threshold, plan.least_hopeful(plan.threshold))
    start, found = 0, []
    with closing(held.even_sums()) as parts:
        for sums in parts:
            inside = [slice(*np.searchsorted(numbers, (start, start + len(sums)))) for numbers in (known, listed)]
            sums[known[inside[0]] - start] = 0
            is_listed = np.zeros(len(sums), dtype=bool)
            is_listed[listed[inside[1]] - start] = True
            first = look_first(source, sums, is_listed, plan)
            kept = np.flatnonzero(is_listed | (first >= least))
            found.append((start + kept, first[kept], is_listed[kept]))
            start += len(sums)
    return KeptItems(*(np.concatenate(each) for each in zip(*found, strict=True)))


def release_steered(
    source: RandomSource,
    user_ids: np.ndarray,
    item_ids: np.ndarray,
    items: int,
    public: PublicItems,
    budget: GaussianBudget,
    part: Fraction = WHOLE,
) -> SteeredDraw:
    """One table from rows of (user, item), by a part of a budget; items are the numbers below `items`."""
    held = HeldPairs(Contributions.among(user_ids, item_ids, items), public.known)
    return release_held(source, held, public, budget, part)


def release_held(
    source: RandomSource, held: Holdings, public: PublicItems, budget: GaussianBudget, part: Fraction = WHOLE
) -> SteeredDraw:
    """The same from holdings."""
    plan = plan_part(budget, part, len(public.listed), with_known=len(public.known) > 0)
    return draw_held(source, held, public, plan)


def plan_part(
    budget: GaussianBudget, part: Fraction = WHOLE, listed_items: int = 0, *, with_known: bool = False
) -> SteeredPlan:
    """The plan of a table that gets a part of a budget: of its μ² and of its δ for new items."""
    squared, hidden = part_of(budget.squared, part), part_of(budget.new_item_delta, part)
    return plan_steered(squared, hidden, listed_items=listed_items, with_known=with_known)


def look_first(source: RandomSource, sums: np.ndarray, listed: np.ndarray, plan: SteeredPlan) -> np.ndarray:
    """Y: noisy sums of even weights, for every item that is held or listed; 0 for the others."""
    noised = np.flatnonzero((sums > 0) | listed)
    noisy = sums.copy()
    noisy[noised] += discrete_gaussian(source, Fraction(plan.first_variance), len(noised))
    return noisy


def look_again(
    source: RandomSource, parts: Iterable[Contributions], first: np.ndarray, listed: np.ndarray, plan: SteeredPlan
) -> np.ndarray:
    """The numbers of the named items: noisy sums of steered weights against the thresholds.

    `parts` have the pairs of all users, each user in one of them.
    """
    sums = np.zeros(len(listed), dtype=np.int64)
    for contributions in parts:
        pairs, weights = steer_weights(contributions, first, listed, plan)
        np.add.at(sums, pairs.items, weights)
    noised = np.flatnonzero((sums > 0) | listed)
    noisy = sums[noised] + discrete_gaussian(source, Fraction(plan.second_variance), len(noised))
    return noised[noisy >= np.where(listed[noised], plan.listed_threshold, plan.threshold)]


def steer_weights(
    contributions: Contributions, first: np.ndarray, listed: np.ndarray, plan: SteeredPlan
) -> tuple[Contributions, np.ndarray]:
    """Where each user's weight goes: the pairs that get some, by user, and how much. Squares add up to W² or less.

    With s = ⌊SHARE_UNIT·c/Y⌋ and N = ⌈√Σs²⌉ over a user's pairs the weight is ⌊W·s/N⌋: all whole numbers, so
    Σ weight² <= W²·Σs²/N² <= W².
    """
    # Only what these users hold is looked at: there may be many more items.
    pairs = contributions.where(first[contributions.items] >= plan.least_hopeful_of(listed[contributions.items]))
    pairs = nearest_first(pairs, first, plan.weighed_items)
    # At most 2**24 by the line above. c·2**24 fits 63 bits: c is below 2**36 for every variance that can be drawn.
    shares = np.maximum(plan.least_hopeful_of(listed[pairs.items]) * SHARE_UNIT // first[pairs.items], 1)
    starts = run_starts(pairs.owners)
    norms = ceil_roots(np.add.reduceat(shares * shares, starts)) if len(shares) else starts
    weights = shares * WEIGHT_UNIT // np.repeat(norms, np.diff(np.r_[starts, len(shares)]))
    return pairs, weights


def nearest_first(pairs: Contributions, first: np.ndarray, most: int) -> Contributions:
    """At most so many pairs of each user: those whose items have the least Y, and of equal ones the least number."""
    items, numbers = numbered(pairs.items)
    order = np.argsort(first[items], kind="stable")
    by_first, rank = items[order], np.empty_like(order)
    rank[order] = np.arange(len(order))
    width = max(len(order), 1)
    keys = np.sort(pairs.owners * width + rank[numbers])
    owners = keys // width
    starts = run_starts(owners)
    kept = np.arange(len(owners)) - np.repeat(starts, np.diff(np.r_[starts, len(owners)])) < most
    return Contributions(owners[kept], by_first[(keys - owners * width)[kept]], pairs.names)


def typical_size(sizes: np.ndarray) -> float:
    """The size up to which items have a whole share."""
    return float(np.percentile(sizes, TYPICAL_PERCENTILE)) if len(sizes) else 1.0
