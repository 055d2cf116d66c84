"""Steered selection against its plain form: every pair and every item in one array, nothing left out on the way.

What runs looks at sums part by part and asks for the pairs of few items, some users at a time. It must draw what this
draws, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from qlog_assets.privacy.gaussian import WEIGHT_UNIT, gaussian_budget
from qlog_assets.privacy.holdings import HeldPairs, pairs_within
from qlog_assets.privacy.noise import discrete_gaussian
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.scaled_counts import draw_scaled_counts, item_scales
from qlog_assets.privacy.steered import (
    KNOWN_DEVIATIONS,
    PublicItems,
    SteeredDraw,
    SteeredPlan,
    draw_held,
    look_again,
    plan_part,
    typical_size,
)
from qlog_assets.privacy.weighted import Contributions


@dataclass(frozen=True)
class DividedPairs(HeldPairs):
    """Pairs in memory that are given some users at a time, in any order of users, as no draw may hang on it."""

    parts: int

    def holders(self, items: np.ndarray) -> Generator[Contributions, None, None]:
        for part in range(self.parts):
            yield pairs_within(self.pairs.where(self.pairs.owners * 7 % self.parts == part), items)


def draw_plainly(source: RandomSource, pairs: Contributions, public: PublicItems, plan: SteeredPlan) -> SteeredDraw:
    """The module's three steps, word for word, on arrays of all items."""
    size = len(pairs.names)
    is_known, is_listed = np.isin(np.arange(size), public.known), np.isin(np.arange(size), public.listed)
    unknown = pairs.where(~is_known[pairs.items])
    noisy = np.zeros(size, dtype=np.int64)
    for owner, item in zip(unknown.owners.tolist(), unknown.items.tolist(), strict=True):
        noisy[item] += math.isqrt(WEIGHT_UNIT**2 // int((unknown.owners == owner).sum()))
    seen = np.flatnonzero((noisy > 0) | is_listed)
    noisy[seen] += discrete_gaussian(source, Fraction(plan.first_variance), len(seen))
    certain = noisy >= np.where(is_listed, plan.certain_listed_threshold, plan.certain_threshold)
    doubtful = unknown.where(~certain[unknown.items])
    named = [*np.flatnonzero(certain), *look_again(source, [doubtful], noisy, is_listed & ~certain, plan)]
    chosen = np.array([*public.known, *named], dtype=np.int64)
    sizes = (public.known_users, np.maximum(noisy[np.array(named, dtype=np.int64)], 1))
    scales = np.concatenate([item_scales(each, typical_size(each), plan.counting.unit) for each in sizes])
    order = np.argsort(chosen)
    chosen, scales = chosen[order], scales[order]
    inside = pairs.where(np.isin(pairs.items, chosen))
    numbered = Contributions(inside.owners, np.searchsorted(chosen, inside.items), chosen)
    counted = draw_scaled_counts(source, [numbered], scales, plan.counting)
    printed = ~np.isin(chosen, public.known) | (counted.signals >= KNOWN_DEVIATIONS)
    users = np.maximum(np.rint(counted.users[printed]), 1).astype(np.int64)
    return SteeredDraw(chosen[printed], users, counted.deviations[printed])


@pytest.mark.parametrize("epsilon", ["1/2", "2", "8", "50"])
@pytest.mark.parametrize("seed", range(6))
def test_what_runs_draws_what_the_plain_form_draws(seed: int, epsilon: str) -> None:
    """Users of all sizes; known items, held and not; listed ones, held and not; or nothing public at all. In one
    part, in some, and with a part for each user and some for nobody."""
    generator = np.random.default_rng(seed)
    users, items = generator.zipf(1.4, 3_000) % 300, generator.zipf(1.3, 3_000) % 400
    size, numbers = 500, generator.permutation(500)
    public = PublicItems(
        known=numbers[: 40 * (seed % 2)],
        known_users=generator.integers(1, 200, 40 * (seed % 2)),
        listed=numbers[100 : 100 + 150 * (seed % 3)],
    )
    plan = plan_part(
        gaussian_budget(Fraction(epsilon), Fraction(1, 1000)), Fraction(1), len(public.listed), with_known=seed % 2 == 1
    )
    pairs = Contributions.among(users, items, size)
    expected = draw_plainly(SeededRandom(seed), pairs, public, plan)
    assert len(expected.items) > 0 or epsilon == "1/2"
    for parts in (1, 5, 400):
        found = draw_held(SeededRandom(seed), DividedPairs(pairs, public.known, parts), public, plan)
        assert np.array_equal(found.items, expected.items) and np.array_equal(found.users, expected.users)
        assert np.array_equal(found.deviations, expected.deviations)
