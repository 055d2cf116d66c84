"""What discrete Gaussian noise is said to cost, against the exact law: enumerated, not trusted."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.stats import norm

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.composition import zcdp_rho
from qlog_assets.privacy.gaussian import (
    COUNT_UNIT,
    WEIGHT_UNIT,
    GaussianBudget,
    gaussian_budget,
    new_item_threshold,
    plan_counts,
    plan_set_counts,
    plan_weighted,
    plan_weights,
    variance_for,
)

PEERS = (Fraction("2.3"), Fraction(1, 10**6))
BUDGETS = [
    PEERS,
    (Fraction(1), Fraction(1, 100)),
    (Fraction(1, 2), Fraction(1, 10**3)),
    (Fraction(8), Fraction(1, 10**9)),
]


def discrete_gaussian_mass(variance: int, reach: int) -> np.ndarray:
    """P[Z = z] for z in [-reach, reach], in extended precision."""
    z = np.arange(-reach, reach + 1, dtype=np.longdouble)
    mass = np.exp(-z * z / (2 * variance))
    return mass / mass.sum()


def exact_delta(items: int, weight: int, variance: int, epsilon: float) -> float:
    """δ(ε) of `items` integer coordinates moved by `weight` each: the loss depends on the sum of their noise alone."""
    reach = int(14 * math.sqrt(variance)) + 2
    mass = discrete_gaussian_mass(variance, reach)
    total = mass
    for _ in range(items - 1):
        total = np.convolve(total, mass)
    sums = np.arange(len(total), dtype=np.longdouble) - len(total) // 2
    loss = (weight * sums + items * np.longdouble(weight) ** 2 / 2) / variance
    above = loss > epsilon
    return float(np.sum(total[above] * -np.expm1(epsilon - loss[above])))


@pytest.mark.parametrize("items", [1, 3])
@pytest.mark.parametrize("budget", BUDGETS)
def test_noise_keeps_its_promise_under_the_exact_discrete_law(items: int, budget: tuple[Fraction, Fraction]) -> None:
    spent, unit = gaussian_budget(*budget), 32
    variance = variance_for(items * unit**2, spent.squared)
    slack = float(spent.new_item_delta / (1 - spent.new_item_delta))
    for moved in {1, items}:  # a user of fewer items, or of fewer that are not new
        assert exact_delta(moved, unit, variance, float(spent.epsilon) - slack) <= spent.delta / 2
    # It is not wasteful either: a tenth less noise would break the promise.
    assert exact_delta(items, unit, int(variance * 0.9), float(spent.epsilon) - slack) > spent.delta / 2


def test_noise_on_weights_keeps_its_promise_under_the_exact_discrete_law() -> None:
    spent = gaussian_budget(*PEERS)
    plan = plan_weights(4, spent.squared, spent.new_item_delta)
    slack = float(spent.new_item_delta / (1 - spent.new_item_delta))
    delta = exact_delta(1, plan.weights[0], plan.variance, float(spent.epsilon) - slack)
    assert 0.999 * float(spent.delta / 2) <= delta <= spent.delta / 2


@pytest.mark.parametrize("budget", BUDGETS)
def test_budget_is_the_largest_the_analytic_gaussian_allows(budget: tuple[Fraction, Fraction]) -> None:
    spent = gaussian_budget(*budget)

    def delta(squared: float) -> float:
        mu, epsilon = mp.sqrt(squared), mp.mpf(spent.epsilon.numerator) / spent.epsilon.denominator
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)

    with mp.workprec(120):
        assert delta(float(spent.squared)) < spent.delta / 2
    larger = 1.0001 + 3 * float(spent.delta / spent.epsilon)
    with mp.workprec(120):
        assert delta(float(spent.squared) * larger) > float(spent.delta / 2)


def test_proof_saves_the_six_percent_that_zcdp_would_cost() -> None:
    # specification 8.7: σ 2.022 by the analytic Gaussian, 2.152 by zCDP, at (2.3, 5e-7) for L2 = 1.
    assert float(gaussian_budget(*PEERS).squared) ** -0.5 == pytest.approx(2.022, abs=5e-4)
    assert float(2 * zcdp_rho(PEERS[0], PEERS[1] / 2)) ** -0.5 == pytest.approx(2.152, abs=5e-4)


def test_concentrated_cost_covers_the_noise_that_is_drawn() -> None:
    spent = gaussian_budget(*PEERS)
    assert Fraction(50 * COUNT_UNIT**2, 2 * plan_counts(50, spent).variance) < spent.rho
    plan = plan_weighted("sips", 30, spent, Fraction(1), Fraction(9, 10), 10)
    drawn = sum(Fraction(WEIGHT_UNIT**2, 2 * step.variance) for step in plan.rounds)
    assert plan.counting is not None and plan.counting.total_variance is not None
    drawn += Fraction(10 * COUNT_UNIT**2, 2 * plan.counting.variance)
    drawn += Fraction(30**2, 2 * plan.counting.total_variance)
    assert drawn < spent.rho
    assert drawn > spent.rho * Fraction(999, 1000)


def tail(variance: int, at_least: int) -> float:
    """P[Z >= at_least], summed."""
    reach = int(14 * math.sqrt(variance)) + abs(at_least) + 2
    return float(discrete_gaussian_mass(variance, reach)[reach + at_least :].sum())


@settings(max_examples=60, deadline=None)
@given(variance=st.integers(1, 900), items=st.integers(1, 40), power=st.integers(2, 12))
def test_threshold_hides_new_items_by_the_exact_tail_and_is_at_most_one_too_high(
    variance: int, items: int, power: int
) -> None:
    delta = Fraction(1, 10**power)
    threshold = new_item_threshold(variance, (1,) * items, delta)
    assert items * tail(variance, threshold - 1) <= delta
    assert items * tail(variance, threshold - 3) > delta or threshold == 2 + math.isqrt(variance) + 1


def test_threshold_of_weights_is_the_one_of_the_formula() -> None:
    # specification 8.7: max over t of 1/√t + σ·Φ⁻¹(1 - δ/t), for continuous noise.
    spent = gaussian_budget(*PEERS)
    plan = plan_weights(200, spent.squared, spent.new_item_delta)
    deviation = float(spent.squared) ** -0.5
    formula = max(t**-0.5 + deviation * norm.isf(float(spent.new_item_delta) / t) for t in range(1, 201))
    assert plan.threshold / WEIGHT_UNIT == pytest.approx(formula, rel=1e-4)
    for items, weight in enumerate(plan.weights, start=1):
        assert items * norm.sf((plan.threshold - weight) / plan.variance**0.5) <= spent.new_item_delta


@settings(max_examples=15, deadline=None)
@given(items=st.integers(1, 500))
def test_weights_never_exceed_one_in_l2_and_lose_almost_nothing(items: int) -> None:
    weights = plan_weights(items, Fraction(1), Fraction(1, 10)).weights
    for held, weight in enumerate(weights, start=1):
        assert held * weight**2 <= WEIGHT_UNIT**2 < held * (weight + 1) ** 2


@settings(max_examples=12, deadline=None)
@given(
    epsilon=st.fractions(Fraction(1, 20), 20, max_denominator=100),
    delta=st.integers(1, 15).map(lambda power: Fraction(1, 10**power)),
    items=st.integers(1, 300),
)
def test_more_budget_buys_less_noise_and_more_items_cost_more(epsilon: Fraction, delta: Fraction, items: int) -> None:
    try:
        plan = plan_counts(items, gaussian_budget(epsilon, delta))
    except ParameterError:
        return  # a δ so large that its slack eats all of ε
    assert plan_counts(items, gaussian_budget(epsilon * 2, delta)).variance <= plan.variance
    assert plan_counts(items, gaussian_budget(epsilon, delta / 2)).variance >= plan.variance
    more = plan_counts(items + 1, gaussian_budget(epsilon, delta))
    assert more.variance >= plan.variance and more.threshold >= plan.threshold


def test_shares_of_a_budget_never_exceed_it() -> None:
    spent = gaussian_budget(*PEERS)
    with pytest.raises(ParameterError, match="share"):
        plan_weighted("sips", 10, spent, Fraction(11, 10))
    with pytest.raises(ParameterError, match="share"):
        plan_weighted("sips", 10, spent, Fraction(1), Fraction(0))
    with pytest.raises(ParameterError, match="share"):
        plan_set_counts(10, 10, spent.squared, Fraction(1))
    with pytest.raises(ParameterError, match="share"):
        plan_counts(10, spent, Fraction(2))


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (Fraction(0), Fraction(1, 100)),
        (Fraction(-1), Fraction(1, 100)),
        (2.3, Fraction(1, 100)),
        (float("nan"), Fraction(1, 100)),
        (Fraction(1), Fraction(0)),
        (Fraction(1), Fraction(1)),
        (Fraction(1), 1e-6),
        (Fraction(1, 10), Fraction(99, 100)),
    ],
)
def test_bad_budgets_are_refused(epsilon: Fraction, delta: Fraction) -> None:
    with pytest.raises(ParameterError, match=r"epsilon|delta"):
        gaussian_budget(epsilon, delta)


def test_too_small_a_budget_is_refused_when_it_is_planned() -> None:
    tiny = GaussianBudget(Fraction(1, 10**9), Fraction(1, 100), Fraction(1), Fraction(1, 50), Fraction(1))
    with pytest.raises(ParameterError, match="more noise than can be drawn"):
        plan_weighted("weighted_gaussian", 10, tiny)
