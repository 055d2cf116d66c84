"""Counts whose noise follows their size: what one user can move, what it costs, whether the stated noise is so."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from qlog_assets.errors import ParameterError
from qlog_assets.privacy import scaled_counts
from qlog_assets.privacy.gaussian import LARGEST_VARIANCE, SMOOTHING
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.scaled_counts import (
    FINEST_UNIT,
    MOST_ITEMS_OF_ONE,
    ScaledCountPlan,
    draw_scaled_counts,
    item_scales,
    plan_scaled_counts,
    shared_values,
)
from qlog_assets.privacy.weighted import Contributions, exact_sums

ITEMS = 25
LOGS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, ITEMS - 1)), max_size=100)
UNITS = st.sampled_from([1, 2, 16, 1 << 10, FINEST_UNIT])


class NoDraw(RandomSource):
    """A source that must not be asked: bad parameters are refused before anything is drawn."""

    secure = False

    def _key(self, number: int) -> bytes:
        raise AssertionError("something was drawn")


def pairs_of(log: list[tuple[int, int]]) -> Contributions:
    table = np.array(log, dtype=np.int64).reshape(-1, 2)
    return Contributions.among(table[:, 0], table[:, 1], ITEMS)


def plan_of(unit: int, counted: Fraction = Fraction(2)) -> ScaledCountPlan:
    return ScaledCountPlan(unit, math.floor(counted * unit**2), 10**6, 5, 10**6)


def largest_squares(pairs: Contributions, values: np.ndarray) -> int:
    """The largest sum of squares of one user, in Python's integers."""
    squares: dict[int, int] = {}
    for owner, value in zip(pairs.owners.tolist(), values.tolist(), strict=True):
        squares[owner] = squares.get(owner, 0) + value**2
    return max(squares.values(), default=0)


def spent(plan: ScaledCountPlan) -> Fraction:
    """μ² of sums and total, as the docstring says it."""
    sums = Fraction(plan.squared_limit, plan.variance - SMOOTHING)
    return sums + Fraction(plan.most_items**2, plan.total_variance - SMOOTHING)


@settings(max_examples=80, deadline=None)
@given(log=LOGS, unit=UNITS, counted=st.fractions(Fraction(1, 3), 9, max_denominator=9), seed=st.integers(0, 999))
def test_no_user_moves_the_sums_by_more_than_their_bound_in_l2(
    log: list[tuple[int, int]], unit: int, counted: Fraction, seed: int
) -> None:
    """All sums with and without each user, in exact integers."""
    pairs, plan = pairs_of(log), plan_of(unit, counted)
    scales = np.random.default_rng(seed).integers(1, unit + 1, ITEMS)

    def sums(kept: Contributions) -> np.ndarray:
        return exact_sums(kept.items, shared_values(kept, scales, plan), ITEMS)

    for user in np.unique(pairs.owners):
        change = sums(pairs) - sums(pairs.where(pairs.owners != user))
        assert sum(int(value) ** 2 for value in change) <= plan.squared_limit
        assert change.min() >= 0


@settings(max_examples=40, deadline=None)
@given(log=LOGS, seed=st.integers(0, 999))
def test_what_a_user_adds_does_not_depend_on_anyone_else(log: list[tuple[int, int]], seed: int) -> None:
    pairs, plan = pairs_of(log), plan_of(FINEST_UNIT)
    scales = np.random.default_rng(seed).integers(1, FINEST_UNIT + 1, ITEMS)
    values = shared_values(pairs, scales, plan)
    for user in np.unique(pairs.owners):
        alone = pairs.where(pairs.owners == user)
        assert np.array_equal(shared_values(alone, scales, plan), values[pairs.owners == user])


def test_quiet_users_count_whole_and_busy_ones_use_up_their_bound() -> None:
    plan = plan_of(FINEST_UNIT)
    whole = np.full(ITEMS, FINEST_UNIT)
    assert list(shared_values(pairs_of([(0, 1), (0, 2)]), whole, plan)) == [FINEST_UNIT] * 2
    busy = pairs_of([(0, item) for item in range(ITEMS)])
    assert 0.9999 * plan.squared_limit < largest_squares(busy, shared_values(busy, whole, plan)) <= plan.squared_limit


def test_the_squares_of_the_busiest_user_allowed_do_not_overflow() -> None:
    items = np.arange(MOST_ITEMS_OF_ONE + 1)
    pairs = Contributions(np.zeros_like(items), items, items)
    scales, plan = np.full(len(items), FINEST_UNIT), plan_of(FINEST_UNIT)
    values = shared_values(pairs.where(items < MOST_ITEMS_OF_ONE), scales, plan)
    assert values.min() > 0 and int((values**2).sum()) <= plan.squared_limit
    with pytest.raises(ParameterError, match="limit them"):
        shared_values(pairs, scales, plan)


def rounding_keeps_the_bound() -> bool:
    """Whether 400 users of random scales stay within C, at a unit so coarse that roundings are large."""
    generator, plan = np.random.default_rng(5), plan_of(16, Fraction(1))
    log = [(user, item) for user in range(400) for item in generator.permutation(ITEMS)[: 2 + user % 20]]
    pairs = pairs_of(log)
    return largest_squares(pairs, shared_values(pairs, generator.integers(1, 17, ITEMS), plan)) <= plan.squared_limit


def test_a_norm_that_is_rounded_down_breaks_the_bound_and_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rounding_keeps_the_bound()
    monkeypatch.setattr(scaled_counts, "ceil_roots", lambda squares: np.sqrt(squares).astype(np.int64))
    assert not rounding_keeps_the_bound()


@pytest.mark.parametrize(
    "squared", [Fraction(1, 10**7), Fraction(1, 1000), Fraction(1, 3), Fraction(100), Fraction(10**9)]
)
def test_sums_and_total_spend_what_they_may_and_hardly_less(squared: Fraction) -> None:
    plan = plan_scaled_counts(Fraction(2), 200, squared)
    assert spent(plan) <= squared and plan.variance <= LARGEST_VARIANCE
    assert spent(plan) > squared * Fraction(99, 100) or squared > 10**6


def test_a_total_that_is_not_paid_for_is_seen() -> None:
    """Mutants of the plan: everything for the sums, and a total with hardly any noise or with noise for one item."""
    squared = Fraction(1, 3)
    plan = plan_scaled_counts(Fraction(2), 200, squared)
    unpaid = plan_scaled_counts(Fraction(2), 200, squared / (1 - scaled_counts.TOTAL_SHARE))
    assert not spent(replace(plan, variance=unpaid.variance)) <= squared
    assert not spent(replace(plan, total_variance=SMOOTHING + 1)) <= squared
    one = plan_scaled_counts(Fraction(2), 1, squared)
    assert not spent(replace(plan, total_variance=one.total_variance)) <= squared


def draws_what_is_charged() -> bool:
    """Whether noise of both stated variances is drawn, once for every item and once for the total, held or not."""
    drawn: list[tuple[Fraction, int]] = []
    plan = plan_scaled_counts(Fraction(2), 200, Fraction(1, 3))
    original = scaled_counts.discrete_gaussian

    def recording(source: RandomSource, variance: Fraction, size: int) -> np.ndarray:
        drawn.append((variance, size))
        return original(source, variance, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaled_counts, "discrete_gaussian", recording)
        scaled_counts.draw_scaled_counts(SeededRandom(1), [pairs_of([(0, 3)])], np.full(ITEMS, plan.unit), plan)
    return drawn == [(plan.variance, ITEMS), (plan.total_variance, 1)]


def test_counts_without_noise_on_the_total_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert draws_what_is_charged()
    original = scaled_counts.draw_scaled_counts
    monkeypatch.setattr(
        scaled_counts,
        "draw_scaled_counts",
        lambda source, pairs, scales, plan: original(source, pairs, scales, replace(plan, total_variance=65)),
    )
    assert not draws_what_is_charged()


def one_item_users(sizes: np.ndarray) -> Contributions:
    items = np.repeat(np.arange(len(sizes)), sizes)
    return Contributions.among(np.arange(len(items)), items, len(sizes))


def test_deviations_are_those_of_the_noise_where_users_have_one_item() -> None:
    """2,000 items of 1 to 2,000 users, whose noise differs by a factor of four. False-alarm rate 1e-6 (fixed seed)."""
    sizes = np.arange(1, 2001)
    plan = plan_scaled_counts(Fraction(2), 1, Fraction(1, 2))
    scales = item_scales(sizes, 100.0, plan.unit)
    drawn = draw_scaled_counts(SeededRandom(3), [one_item_users(sizes)], scales, plan)
    assert drawn.deviations.max() > 4 * drawn.deviations.min()
    squares = np.sum(((drawn.users - sizes) / drawn.deviations) ** 2)
    assert chi2.ppf(5e-7, len(sizes)) < squares < chi2.isf(5e-7, len(sizes))


def test_items_that_nobody_holds_have_the_same_noise() -> None:
    """False-alarm rate 1e-6 (χ², fixed seed)."""
    plan = plan_scaled_counts(Fraction(2), 1, Fraction(1, 2))
    sizes = np.r_[np.zeros(3000, dtype=np.int64), np.full(50, 40)]
    drawn = draw_scaled_counts(SeededRandom(4), [one_item_users(sizes)], np.full(len(sizes), plan.unit), plan)
    squares = np.sum((drawn.users[:3000] / drawn.deviations[:3000]) ** 2)
    assert chi2.ppf(5e-7, 3000) < squares < chi2.isf(5e-7, 3000)


def test_counts_are_unbiased_where_users_are_alike() -> None:
    """3,000 users of 20 of 60 items, ten times as many as count whole: mean error within 2 % of the mean count."""
    generator = np.random.default_rng(6)
    items = np.concatenate([generator.permutation(60)[:20] for _ in range(3000)])
    pairs = Contributions.among(np.repeat(np.arange(3000), 20), items, 60)
    truth = np.bincount(items, minlength=60)
    plan = plan_scaled_counts(Fraction(2), 200, Fraction(1))
    scales = item_scales(np.linspace(500, 2000, 60), 500.0, plan.unit)  # wrong sizes change the noise, not the mean
    drawn = draw_scaled_counts(SeededRandom(6), [pairs], scales, plan)
    assert abs(np.mean(drawn.users - truth)) < 0.02 * truth.mean()
    assert np.abs(drawn.users - truth).max() < 0.1 * truth.mean()


def test_scales_fall_with_the_root_of_the_size_and_stay_within_the_unit() -> None:
    scales = item_scales(np.array([1, 50, 100, 400, 10**15]), 100.0, FINEST_UNIT)
    assert list(scales[:4]) == [FINEST_UNIT, FINEST_UNIT, FINEST_UNIT, FINEST_UNIT // 2] and scales[4] >= 1
    assert list(item_scales(np.array([1, 10**9]), 1.0, 1)) == [1, 1]


def test_nothing_comes_of_nothing() -> None:
    plan = plan_scaled_counts(Fraction(2), 200, Fraction(1))
    none = Contributions.among(np.empty(0, np.int64), np.empty(0, np.int64), 0)
    assert len(draw_scaled_counts(SeededRandom(7), [none], np.empty(0, np.int64), plan).users) == 0


@pytest.mark.parametrize(
    "bad",
    [
        lambda: plan_scaled_counts(Fraction(0), 200, Fraction(1)),
        lambda: plan_scaled_counts(Fraction(2), 0, Fraction(1)),
        lambda: plan_scaled_counts(Fraction(2), 200, Fraction(1, 10**20)),
        lambda: plan_scaled_counts(Fraction(2), 200, Fraction(0)),
        lambda: plan_scaled_counts(Fraction(2), 200, Fraction(-1)),
        lambda: draw_scaled_counts(NoDraw(), [pairs_of([(0, 1)])], np.zeros(ITEMS, np.int64), plan_of(16)),
        lambda: draw_scaled_counts(NoDraw(), [pairs_of([(0, 1)])], np.full(ITEMS, 17), plan_of(16)),
    ],
)
def test_bad_parameters_are_refused_before_anything_is_drawn(bad: Callable) -> None:
    with pytest.raises(ParameterError):
        bad()
