"""Truncated geometric and Gaussian counts: the exact law of what is printed, with and without one user."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.stats import binom

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.gaussian import COUNT_UNIT, CountPlan, gaussian_budget, new_item_threshold, plan_counts
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.selection import (
    draw_gaussian_counts,
    gaussian_counts,
    selection_law,
    truncated_geometric_counts,
    truncated_geometric_set,
    truncation,
)

METHODS: list[Callable] = [truncated_geometric_set, truncated_geometric_counts, gaussian_counts]
EPSILONS = st.fractions(Fraction(1, 50), 8, max_denominator=100)
DELTAS = st.one_of(
    st.integers(1, 12).map(lambda power: Fraction(1, 10**power)),
    st.fractions(Fraction(1, 10**4), Fraction(9, 10), max_denominator=10**4),
)


class NoDraw(RandomSource):
    """A source that must not be asked: bad parameters are refused before anything is drawn."""

    secure = False

    def _key(self, number: int) -> bytes:
        raise AssertionError("something was drawn")


def keep_probabilities(epsilon: Fraction, delta: Fraction, bits: int = 200) -> list[tuple[Fraction, Fraction]]:
    brackets = selection_law(epsilon, delta)(bits)
    assert brackets.first == 1
    return [(Fraction(low, 1 << bits), Fraction(high, 1 << bits)) for low, high in zip(*brackets[1:], strict=True)]


def closed_form(epsilon: Fraction, delta: Fraction, users: int) -> object:
    """π(n) as specification 8.7 prints it, at 300 bits."""
    e, d = mp.mpf(epsilon.numerator) / epsilon.denominator, mp.mpf(delta.numerator) / delta.denominator

    def rising(n: int) -> object:
        return d * mp.expm1(n * e) / mp.expm1(e)

    first = 1 + int(mp.floor(mp.log(1 + mp.tanh(e / 2) * (1 / d - 1)) / e))
    if users <= first:
        return rising(users)
    top = rising(first)
    second = first + int(mp.floor(mp.log(1 + mp.expm1(e) / d * (1 - top)) / e))
    if users <= second:
        return top - (1 - top + d / mp.expm1(e)) * mp.expm1(-(users - first) * e)
    return mp.mpf(1)


@settings(max_examples=40, deadline=None)
@given(epsilon=EPSILONS, delta=DELTAS)
def test_keep_probabilities_equal_the_closed_form(epsilon: Fraction, delta: Fraction) -> None:
    with mp.workprec(300):
        for users, (low, high) in enumerate(keep_probabilities(epsilon, delta), start=1):
            formula = min(closed_form(epsilon, delta, users), mp.mpf(1))
            slack = mp.mpf(2) ** -190
            assert mp.mpf(low.numerator) / low.denominator - slack <= formula
            assert formula <= mp.mpf(high.numerator) / high.denominator + slack
            if users > 400:
                break


@settings(max_examples=40, deadline=None)
@given(epsilon=EPSILONS, delta=DELTAS)
def test_keep_probabilities_grow_from_delta_to_one_within_the_promise(epsilon: Fraction, delta: Fraction) -> None:
    pairs = keep_probabilities(epsilon, delta)
    assert pairs[0][0] <= delta <= pairs[0][1] or pairs[0][1] == 1
    assert pairs[-1] == (1, 1) and all(high - low <= Fraction(1, 1 << 198) for low, high in pairs)
    with mp.workprec(300):
        kept = [mp.mpf(low.numerator) / low.denominator for low, _ in [(Fraction(0), None), *pairs]]
        factor = mp.exp(mp.mpf(epsilon.numerator) / epsilon.denominator)
        share = mp.mpf(delta.numerator) / delta.denominator + factor * mp.mpf(2) ** -190
        for before, after in pairwise(kept):
            assert before <= after <= factor * before + share
            assert 1 - before <= factor * (1 - after) + share


def test_an_item_is_certain_at_28_users_for_one_and_a_millionth() -> None:
    # specification 8.1: 50 % at about 14 users, certain at 28.
    pairs = keep_probabilities(Fraction(1), Fraction(1, 10**6))
    assert len(pairs) == 28 and pairs[26][1] < 1
    assert pairs[12][1] < Fraction(1, 2) < pairs[13][0]


def truncated_masses(epsilon: Fraction, cut: int) -> np.ndarray:
    mass = np.exp(-float(epsilon) * np.abs(np.arange(-cut, cut + 1)))
    return mass / mass.sum()


@settings(max_examples=60, deadline=None)
@given(epsilon=EPSILONS, delta=DELTAS)
def test_truncation_is_the_least_whose_end_is_below_delta(epsilon: Fraction, delta: Fraction) -> None:
    cut = truncation(epsilon, delta)
    assert cut >= 1
    assert truncated_masses(epsilon, cut)[0] <= float(delta) * (1 + 1e-9)
    assert truncated_masses(epsilon, cut - 1)[0] > float(delta) * (1 - 1e-9)


def hockey_stick(first: dict[object, float], second: dict[object, float], epsilon: float) -> float:
    """sup over events of P1 - e^ε·P2."""
    return sum(max(0.0, mass - math.exp(epsilon) * second.get(output, 0.0)) for output, mass in first.items())


def printed_law(users: int, offset: int, masses: np.ndarray, threshold: int) -> dict[object, float]:
    """What is printed of an item with so many users: its noisy count from the threshold on, or nothing."""
    law: dict[object, float] = {None: 0.0}
    for index, mass in enumerate(masses):
        value = users + index - offset
        if users and value >= threshold:
            law[value] = float(mass)
        else:
            law[None] += float(mass)
    return law


def together(first: dict[object, float], second: dict[object, float]) -> dict[object, float]:
    return {(one, two): p * q for one, p in first.items() for two, q in second.items()}


@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 1000)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_truncated_counts_keep_their_promise_in_both_directions(epsilon: Fraction, delta: Fraction) -> None:
    """One item of ε, δ, from nobody to beyond the point of certainty; then two of half of each, one of them new."""
    cut = truncation(epsilon, delta)
    laws = [printed_law(users, cut, truncated_masses(epsilon, cut), cut + 1) for users in range(2 * cut + 4)]
    for before, after in pairwise(laws):
        assert hockey_stick(after, before, float(epsilon)) <= float(delta) * (1 + 1e-9)
        assert hockey_stick(before, after, float(epsilon)) <= float(delta) * (1 + 1e-9)
    cut = truncation(epsilon / 2, delta / 2)
    laws = [printed_law(users, cut, truncated_masses(epsilon / 2, cut), cut + 1) for users in (0, 1, cut, cut + 1)]
    without, within = together(laws[0], laws[2]), together(laws[1], laws[3])
    assert hockey_stick(within, without, float(epsilon)) <= float(delta) * (1 + 1e-9)
    assert hockey_stick(without, within, float(epsilon)) <= float(delta) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize("delta", [Fraction(1, 5), Fraction(1, 1000)])
def test_gaussian_thresholds_keep_their_promise_in_both_directions(epsilon: Fraction, delta: Fraction) -> None:
    """Two items a user: both shared, one new, both new. The exact law of what is printed, enumerated."""
    budget, unit = gaussian_budget(epsilon, delta), 2
    variance = math.ceil(2 * unit**2 / budget.squared) + 2  # r² = 2 keeps η below 1e-16 and the table small
    threshold = new_item_threshold(variance, (unit, unit), budget.new_item_delta)
    reach = math.isqrt(60 * variance) + 1
    z = np.arange(-reach, reach + 1)
    masses = np.exp(-z * z / (2 * variance))
    masses /= masses.sum()
    new, shared = [
        [printed_law(users, reach, masses, threshold) for users in pair]
        for pair in ((0, unit), (threshold, threshold + unit))
    ]
    for one, two in ((new, new), (new, shared), (shared, shared)):
        without, within = together(one[0], two[0]), together(one[1], two[1])
        assert hockey_stick(within, without, float(epsilon)) <= float(delta)
        assert hockey_stick(without, within, float(epsilon)) <= float(delta)
    assert hockey_stick(together(new[1], new[1]), together(new[0], new[0]), float(epsilon)) <= float(delta / 2)


@pytest.mark.parametrize("users", [1, 3, 5, 8])
def test_set_is_drawn_with_the_stated_probabilities(users: int) -> None:
    """False-alarm rate 1e-9 a case (binomial interval, fixed seed)."""
    tries, epsilon, delta = 200_000, Fraction(2), Fraction(1, 50)
    chance = float(keep_probabilities(epsilon / 2, delta / 2)[users - 1][0])
    kept = truncated_geometric_set(SeededRandom(users), np.full(tries, users), 2, epsilon, delta)
    low, high = binom.interval(1 - 1e-9, tries, chance)
    assert low <= len(kept.items) <= high and kept.users is None


def test_truncated_noise_has_its_law_and_never_leaves_its_range() -> None:
    """A count far above the cut shows the noise itself. False-alarm rate 1e-9 a value (fixed seed)."""
    tries, epsilon, delta = 300_000, Fraction(1), Fraction(1, 10)
    cut = truncation(epsilon, delta)
    drawn = truncated_geometric_counts(SeededRandom(3), np.full(tries, 1000), 1, epsilon, delta)
    assert drawn.users is not None and len(drawn.users) == tries
    values = drawn.users - 1000
    assert values.min() == -cut and values.max() == cut
    for value, mass in zip(range(-cut, cut + 1), truncated_masses(epsilon, cut), strict=True):
        low, high = binom.interval(1 - 1e-9, tries, mass)
        assert low <= np.count_nonzero(values == value) <= high


@pytest.mark.parametrize("method", METHODS)
def test_an_item_of_one_user_is_printed_no_more_often_than_delta_allows(method: Callable) -> None:
    """Structural-zero test, three new items a user, δ = 0.1. False-alarm rate 1e-9 (binomial tail, fixed seed)."""
    tries, delta = 100_000, Fraction(1, 10)
    drawn = method(SeededRandom(5), np.ones(3 * tries, dtype=np.int64), 3, Fraction(2), delta)
    caught = len(np.unique(drawn.items // 3))
    assert 0 < caught <= binom.isf(1e-9, tries, float(delta))


@pytest.mark.parametrize("method", METHODS)
def test_minimum_users_shifts_the_whole_law_and_nothing_else(method: Callable) -> None:
    users = np.tile(np.array([1, 4, 5, 6, 60, 500]), 300)
    plain = method(SeededRandom(6), np.maximum(users - 4, 0), 2, Fraction(2), Fraction(1, 10))
    raised = method(SeededRandom(6), users, 2, Fraction(2), Fraction(1, 10), min_users=5)
    assert np.array_equal(plain.items, raised.items) and users[raised.items].min() >= 5
    if plain.users is not None:
        assert np.array_equal(plain.users + 4, raised.users)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_comes_of_nothing_and_zeros_are_never_printed(method: Callable) -> None:
    for users in (np.empty(0, dtype=np.int64), np.zeros(10_000, dtype=np.int64)):
        assert len(method(SeededRandom(7), users, 1, Fraction(5), Fraction(9, 10)).items) == 0


@pytest.mark.parametrize("method", METHODS)
def test_equal_seeds_give_equal_releases_and_the_cost_is_what_was_asked(method: Callable) -> None:
    users = np.arange(300)
    first, second, third = (method(SeededRandom(seed), users, 5, Fraction(2), Fraction(1, 1000)) for seed in (1, 1, 2))
    assert np.array_equal(first.items, second.items) and (np.diff(first.items) > 0).all()
    assert not np.array_equal(first.items, third.items)
    assert (first.loss.epsilon, first.loss.delta) == (Fraction(2), Fraction(1, 1000))
    if first.users is not None:
        assert np.array_equal(first.users, second.users) and first.users.dtype == np.int64


def test_printed_gaussian_counts_are_the_tested_ones_rounded() -> None:
    users = np.full(20_000, 60)
    plan = plan_counts(20, gaussian_budget(Fraction(2), Fraction(1, 10**6)))
    drawn = gaussian_counts(SeededRandom(9), users, 20, Fraction(2), Fraction(1, 10**6))
    assert drawn.users is not None and 0 < len(drawn.items) < len(users)
    assert drawn.users.min() == plan.threshold == round(plan.fine_threshold / COUNT_UNIT)
    everything, counts = draw_gaussian_counts(SeededRandom(9), users, CountPlan(plan.variance, -(10**9)))
    assert len(everything) == len(users) and abs(counts.mean() - 60) < 1  # mean of 20,000 draws, deviation 0.1


def test_gaussian_counts_refuse_counts_that_their_units_cannot_hold() -> None:
    with pytest.raises(ParameterError, match="fine units"):
        gaussian_counts(NoDraw(), np.array([1 << 51]), 1, Fraction(1), Fraction(1, 10))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": Fraction(0)},
        {"epsilon": Fraction(-1)},
        {"epsilon": 1.0},
        {"epsilon": float("nan")},
        {"epsilon": None},
        {"delta": Fraction(0)},
        {"delta": Fraction(1)},
        {"delta": 1e-6},
        {"items_per_user": 0},
        {"items_per_user": 1.5},
        {"min_users": 0},
        {"users": np.array([1.5])},
        {"users": np.array([-3])},
    ],
)
def test_bad_parameters_are_refused_before_anything_is_drawn(method: Callable, changes: dict) -> None:
    arguments = {
        "users": np.array([5]),
        "items_per_user": 1,
        "epsilon": Fraction(1),
        "delta": Fraction(1, 10**6),
        **changes,
    }
    with pytest.raises(ParameterError):
        method(NoDraw(), **arguments)
