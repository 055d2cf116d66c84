"""The stability histogram and its relatives: exact thresholds, sound minimum, laws that a pool item cannot betray."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2_contingency
from support.exact_thresholds import laplace_threshold

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.histogram import (
    hybrid_histogram,
    public_histogram,
    stability_histogram,
    stability_threshold,
)
from qlog_assets.privacy.randomness import RandomSource, SeededRandom

SCALES = st.fractions(min_value=Fraction(1, 4), max_value=60, max_denominator=40)
DELTAS = st.one_of(
    st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(999, 1000), max_denominator=10**9).filter(
        lambda d: d > 0
    ),
    st.integers(1, 60).map(lambda power: Fraction(1, 10**power)),
)


class NoDraw(RandomSource):
    """A source that must not be asked: bad parameters are refused before anything is drawn."""

    secure = False

    def _key(self, number: int) -> bytes:
        raise AssertionError("something was drawn")


def exponential(x: Fraction, digits: int = 90) -> tuple[Fraction, Fraction]:
    """Rational bounds of e^(-x), by the series of e^x with its remainder bounded: nothing of the code under test."""
    terms, power, total = 0, Fraction(1), Fraction(1)
    while terms < 2 * x + 4 or power > Fraction(1, 10**digits):
        terms += 1
        power = power * x / terms
        total += power
    return 1 / (total + power), 1 / total  # beyond 2x terms each is at most half the one before: the rest is < power


def conditions_hold(threshold: int, items_per_user: int, scale: Fraction, delta: Fraction) -> bool:
    """m·p <= δ and p <= 1 - a, decided in rationals alone."""
    low, high = exponential(1 / scale)
    exponent = threshold - 1
    if exponent >= 0:
        least, most = low**exponent / (1 + high), high**exponent / (1 + low)
    else:
        least, most = 1 - high ** (-exponent + 1) / (1 + low), 1 - low ** (-exponent + 1) / (1 + high)
    first = most * items_per_user <= delta
    second = most <= 1 - high
    assert first == (least * items_per_user <= delta), "the check needs more digits"
    assert second == (least <= 1 - low), "the check needs more digits"
    return first and second


@settings(max_examples=80, deadline=None)
@given(items_per_user=st.integers(1, 500), scale=SCALES, delta=DELTAS)
def test_threshold_is_the_least_that_satisfies_both_conditions(
    items_per_user: int, scale: Fraction, delta: Fraction
) -> None:
    threshold = stability_threshold(items_per_user, scale, delta)
    assert conditions_hold(threshold, items_per_user, scale, delta)
    assert not conditions_hold(threshold - 1, items_per_user, scale, delta)


@settings(max_examples=50, deadline=None)
@given(items_per_user=st.integers(1, 500), scale=SCALES, delta=DELTAS)
def test_threshold_bounds_the_chance_of_an_item_only_one_user_holds(
    items_per_user: int, scale: Fraction, delta: Fraction
) -> None:
    assert stability_threshold(items_per_user, scale, delta) >= 1 + laplace_threshold(scale, delta / items_per_user)


@settings(max_examples=50, deadline=None)
@given(items_per_user=st.integers(1, 300), scale=SCALES, delta=DELTAS)
def test_threshold_rises_with_items_a_user_and_falls_with_delta(
    items_per_user: int, scale: Fraction, delta: Fraction
) -> None:
    threshold = stability_threshold(items_per_user, scale, delta)
    assert stability_threshold(items_per_user + 1, scale, delta) >= threshold
    assert stability_threshold(items_per_user, scale, delta / 2) >= threshold


def test_threshold_of_the_worked_session_example() -> None:
    # specification 4.3 G3: four items, b = 1, δ = 2.25e-7.
    assert stability_threshold(4, Fraction(1), Fraction("2.25e-7")) == 18


def test_threshold_when_the_second_condition_rules() -> None:
    # With δ near 1 the first condition asks for nothing; the absence of a new item must still cost at most e^(1/b).
    delta = Fraction(999, 1000)
    assert conditions_hold(stability_threshold(1, Fraction(10), delta), 1, Fraction(10), delta)
    assert stability_threshold(1, Fraction(10), delta) == 19
    assert stability_threshold(1, Fraction(1, 10**4), Fraction(1, 10)) == 2


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(3, 2), 1e-6, float("nan"), True])
def test_impossible_deltas_are_refused_before_anything_is_drawn(delta: Fraction) -> None:
    with pytest.raises(ParameterError, match="delta"):
        stability_histogram(NoDraw(), np.array([5]), 1, Fraction(1), delta)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"items_per_user": 0}, "items_per_user"),
        ({"items_per_user": 2.5}, "items_per_user"),
        ({"scale": Fraction(0)}, "scale"),
        ({"scale": 0.1}, "scale"),
        ({"scale": float("nan")}, "scale"),
        ({"min_users": 0}, "min_users"),
        ({"at_least": 1.5}, "at_least"),
        ({"users": np.array([-1])}, "counts"),
        ({"users": np.array([1.0])}, "users"),
        ({"users": np.array([[1]])}, "users"),
    ],
)
def test_bad_parameters_are_refused_before_anything_is_drawn(changes: dict, name: str) -> None:
    arguments = {
        "users": np.array([5]),
        "items_per_user": 1,
        "scale": Fraction(1),
        "delta": Fraction(1, 1000),
        "min_users": 1,
        "at_least": 0,
        **changes,
    }
    with pytest.raises(ParameterError, match=name):
        stability_histogram(NoDraw(), **arguments)


@pytest.mark.parametrize(
    "changes",
    [
        {"zero_pool_cells": -1},
        {"in_pool": np.array([True, False])},
        {"pool_threshold": 0.5},
        {"delta": Fraction(1)},
        {"items_per_user": 0},
        {"min_users": 0},
    ],
)
def test_hybrid_refuses_bad_parameters_before_anything_is_drawn(changes: dict) -> None:
    arguments = {
        "users": np.array([5]),
        "in_pool": np.array([True]),
        "zero_pool_cells": 3,
        "scale": Fraction(1),
        "pool_threshold": 3,
        "items_per_user": 1,
        "delta": Fraction(0),
        "min_users": 1,
        **changes,
    }
    with pytest.raises(ParameterError):
        hybrid_histogram(NoDraw(), **arguments)


def test_nothing_comes_of_nothing() -> None:
    empty = np.empty(0, dtype=np.int64)
    released = stability_histogram(SeededRandom(1), empty, 3, Fraction(2), Fraction(1, 10**6))
    assert len(released.indices) == len(released.users) == 0
    released = public_histogram(SeededRandom(1), empty, Fraction(2), -100)
    assert len(released.indices) == 0
    support, cells, values = hybrid_histogram(
        SeededRandom(1), empty, empty.astype(bool), 0, Fraction(2), 1, 3, Fraction(0)
    )
    assert len(support.indices) == len(cells) == len(values) == 0


def test_equal_seeds_give_equal_releases_and_different_seeds_do_not() -> None:
    users = np.arange(200)
    runs = [stability_histogram(SeededRandom(seed), users, 2, Fraction(5), Fraction(1, 100)) for seed in (7, 7, 8)]
    assert np.array_equal(runs[0].users, runs[1].users) and np.array_equal(runs[0].indices, runs[1].indices)
    assert not np.array_equal(runs[0].users, runs[2].users)


def test_printed_counts_are_the_tested_ones_in_the_order_of_the_input() -> None:
    users = np.array([0, 10_000, 1, 20_000, 0, 30_000])
    threshold = stability_threshold(2, Fraction(3), Fraction(1, 10**6))
    released = stability_histogram(SeededRandom(3), users, 2, Fraction(3), Fraction(1, 10**6))
    assert list(released.indices) == [1, 3, 5]
    assert (np.abs(released.users - users[released.indices]) < 200).all()
    assert (released.users >= threshold).all() and released.users.dtype == np.int64
    higher = stability_histogram(SeededRandom(3), users, 2, Fraction(3), Fraction(1, 10**6), at_least=15_000)
    assert list(higher.indices) == [3, 5]


def test_items_nobody_holds_are_never_printed_without_a_public_domain() -> None:
    # δ = 0.999 makes the threshold low: a noised zero would pass it in a large share of 20,000 tries.
    released = stability_histogram(
        SeededRandom(4), np.zeros(20_000, dtype=np.int64), 1, Fraction(10), Fraction(999, 1000)
    )
    assert len(released.indices) == 0
    below = stability_histogram(SeededRandom(4), np.full(20_000, 4), 1, Fraction(10), Fraction(999, 1000), min_users=5)
    assert len(below.indices) == 0


def test_an_item_of_one_user_is_printed_as_rarely_as_the_exact_formula_says() -> None:
    """Structural-zero test at a large δ, where it has power. False-alarm rate 1e-9 (binomial tail, fixed seed)."""
    scale, delta, tries = Fraction(2), Fraction(1, 20), 400_000
    threshold = stability_threshold(1, scale, delta)
    a = float(np.exp(-0.5))
    chance = a ** (threshold - 1) / (1 + a)
    assert chance <= delta
    hits = len(stability_histogram(SeededRandom(5), np.ones(tries, dtype=np.int64), 1, scale, delta).indices)
    low, high = binom.interval(1 - 1e-9, tries, chance)
    assert low <= hits <= high


def test_minimum_users_shifts_the_whole_law_and_nothing_else() -> None:
    users = np.array([1, 4, 5, 6, 500])
    plain = stability_histogram(SeededRandom(6), np.maximum(users - 4, 0), 1, Fraction(3), Fraction(9, 10))
    raised = stability_histogram(SeededRandom(6), users, 1, Fraction(3), Fraction(9, 10), min_users=5)
    assert np.array_equal(plain.indices, raised.indices) and np.array_equal(plain.users + 4, raised.users)


def test_public_domain_noises_zeros_like_everything_else() -> None:
    released = public_histogram(SeededRandom(7), np.zeros(50_000, dtype=np.int64), Fraction(2), -(10**6))
    assert len(released.indices) == 50_000
    assert released.users.min() < 0 < released.users.max()
    raised = public_histogram(SeededRandom(7), np.full(50_000, 3), Fraction(2), -(10**6), min_users=4)
    assert np.array_equal(raised.users, released.users + 3)


def test_a_pool_item_below_the_minimum_is_indistinguishable_from_one_nobody_holds() -> None:
    """Listed rows with counts 0..3 and unlisted cells, minimum 4: equal laws. False-alarm rate 1e-6, fixed seed."""
    size, scale, threshold = 60_000, Fraction(3), 4
    users = np.tile(np.arange(4), size // 4)
    support, cells, values = hybrid_histogram(
        SeededRandom(8), users, np.ones(size, dtype=bool), size, scale, threshold, 2, Fraction(1, 1000), min_users=4
    )
    assert support.users.min() == values.min() == threshold + 3
    assert len(np.unique(cells)) == len(cells) and cells.min() >= 0 and cells.max() < size
    edges = np.r_[np.arange(7, 20), 10**9]
    groups = [np.histogram(support.users[users[support.indices] == held], edges)[0] for held in range(4)]
    rows = np.array([*groups, np.histogram(values, edges)[0]])
    missing = np.array([[size // 4]] * 4 + [[size]]) - rows.sum(axis=1, keepdims=True)
    assert chi2_contingency(np.hstack([rows, missing])).pvalue > 1e-6


def test_hybrid_asks_more_of_items_outside_the_pool() -> None:
    scale, delta, size = Fraction(2), Fraction(1, 10**6), 20_000
    outside = stability_threshold(3, scale, delta)
    users = np.full(size, outside - 1)
    in_pool = np.arange(size) % 2 == 0
    support, cells, _ = hybrid_histogram(SeededRandom(9), users, in_pool, 0, scale, 5, 3, delta)
    assert len(cells) == 0
    assert support.users[in_pool[support.indices]].min() < outside
    assert support.users[~in_pool[support.indices]].min() >= outside
    support, _, _ = hybrid_histogram(SeededRandom(9), users, in_pool, 0, scale, outside + 7, 3, delta)
    assert support.users.min() >= outside + 7


def test_hybrid_without_delta_never_prints_an_item_outside_the_pool() -> None:
    users = np.full(1000, 10**6)
    support, _, _ = hybrid_histogram(
        SeededRandom(10), users, np.arange(1000) < 400, 0, Fraction(2), 1, 3, Fraction(0), min_users=3
    )
    assert np.array_equal(support.indices, np.arange(400))


def test_the_series_behind_these_tests_is_right() -> None:
    low, high = exponential(Fraction(1), 30)
    reference = sum(Fraction((-1) ** k, factorial(k)) for k in range(60))
    assert low <= reference <= high and high - low < Fraction(1, 10**25)
