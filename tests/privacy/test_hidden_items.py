"""The threshold that hides every way to spread a weight, against the exact optimum over all weight vectors."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from qlog_assets.errors import ParameterError
from qlog_assets.privacy import hidden_items
from qlog_assets.privacy.gaussian import WEIGHT_UNIT, gaussian_budget, new_item_threshold
from qlog_assets.privacy.hidden_items import hides, hiding_threshold
from qlog_assets.privacy.steered import plan_part

# variance, W, d, δ: from weights that are nothing beside the noise to weights that are all of the threshold
SMALL = [
    (40_000, 200, 5, Fraction(1, 100)),
    (160_000, 200, 3, Fraction(1, 10**4)),
    (10_000, 100, 30, Fraction(1, 10**8)),
    (900, 120, 20, Fraction(1, 10**6)),
    (900, 150, 1, Fraction(1, 1000)),
    (90_000, 100, 8, Fraction(1, 20)),
    (400, 140, 12, Fraction(1, 50)),
]
BUDGETS = [
    (Fraction("2.3"), Fraction(1, 10**6)),
    (Fraction(1), Fraction(1, 100)),
    (Fraction(1, 100), Fraction(1, 10**6)),
    (Fraction(1, 2), Fraction(1, 10**30)),
    (Fraction(50), Fraction(1, 10**6)),
    (Fraction(10**4), Fraction(1, 10)),
]


def tails(variance: int, threshold: int, largest_weight: int) -> np.ndarray:
    """P[w + Z >= T] for w = 0 … W under the exact discrete law, summed in extended precision."""
    reach = threshold + math.isqrt(400 * variance) + 2
    z = np.arange(-reach, reach + 1, dtype=np.longdouble)
    mass = np.exp(-z * z / (2 * variance))
    upper = np.cumsum(mass[::-1])[::-1] / mass.sum()
    return np.array([float(upper[reach + threshold - weight]) for weight in range(largest_weight + 1)])


def most_named(variance: int, threshold: int, largest_weight: int, items: int) -> float:
    """The exact maximum of Σ P[wᵢ + Z >= T] over whole weights, by dynamic programming over what of W² is spent."""
    chances = tails(variance, threshold, largest_weight)
    best = np.zeros(largest_weight**2 + 1)
    for _ in range(items):
        one_more = best + chances[0]
        for weight in range(1, largest_weight + 1):
            spent = weight * weight
            np.maximum(one_more[spent:], best[: len(best) - spent] + chances[weight], out=one_more[spent:])
        best = one_more
    return float(best[-1])


@pytest.mark.parametrize(("variance", "largest_weight", "items", "delta"), SMALL)
def test_no_weight_vector_is_named_more_often_than_delta_and_a_threshold_one_percent_lower_lets_one_be(
    variance: int, largest_weight: int, items: int, delta: Fraction
) -> None:
    threshold = hiding_threshold(variance, largest_weight, items, delta)
    assert most_named(variance, threshold, largest_weight, items) <= delta
    assert most_named(variance, math.floor(threshold * 0.99), largest_weight, items) > delta


@pytest.mark.parametrize("budget", BUDGETS)
def test_threshold_of_a_plan_is_tight_for_even_weights_of_some_number_of_items(
    budget: tuple[Fraction, Fraction],
) -> None:
    spent = gaussian_budget(*budget)
    plan = plan_part(spent)
    items = np.arange(1, plan.weighed_items + 1)

    def named(threshold: float) -> float:
        distances = (threshold - WEIGHT_UNIT / np.sqrt(items)) / math.sqrt(plan.second_variance)
        return float((items * norm.sf(distances)).max())

    assert named(plan.threshold) <= spent.new_item_delta < named(plan.threshold * 0.99)


@pytest.mark.parametrize("budget", BUDGETS)
def test_uneven_weights_never_get_by_with_less_than_even_ones(budget: tuple[Fraction, Fraction]) -> None:
    spent = gaussian_budget(*budget)
    plan = plan_part(spent)
    even = tuple(math.isqrt(WEIGHT_UNIT**2 // items) for items in range(1, plan.weighed_items + 1))
    assert plan.threshold >= new_item_threshold(plan.second_variance, even, spent.new_item_delta)


@pytest.mark.parametrize(("variance", "largest_weight", "items", "delta"), SMALL)
def test_the_proof_fails_for_a_threshold_a_little_lower(
    variance: int, largest_weight: int, items: int, delta: Fraction
) -> None:
    """In the units of a release, where one part in 2**13 is hundreds of units: both sides of a fine line."""
    scale = WEIGHT_UNIT // largest_weight
    settings = variance * scale**2, largest_weight * scale, items, delta
    threshold = hiding_threshold(*settings)
    assert hides(threshold, *settings)
    assert not hides(threshold - (threshold >> 13), *settings)


def test_more_items_and_less_delta_raise_the_threshold() -> None:
    by_items = [hiding_threshold(10**10, WEIGHT_UNIT, items, Fraction(1, 10**6)) for items in (1, 2, 5, 20, 200)]
    by_delta = [hiding_threshold(10**10, WEIGHT_UNIT, 20, Fraction(1, 10**power)) for power in (1, 2, 6, 30, 60)]
    assert by_items == sorted(set(by_items)) and by_delta == sorted(set(by_delta))


def test_one_item_needs_the_threshold_of_one_item() -> None:
    for variance, delta in ((10**10, Fraction(1, 10**6)), (10**6, Fraction(1, 100))):
        one = new_item_threshold(variance, (WEIGHT_UNIT,), delta)
        assert one <= hiding_threshold(variance, WEIGHT_UNIT, 1, delta) <= one * (1 + 2**-15)


def test_nothing_is_proven_where_the_tail_bound_does_not_hold() -> None:
    """Within one deviation of the largest weight the sum over the discrete law may exceed its integral."""
    variance, weight = 10**8, 1000
    starts = hiding_threshold(variance, weight, 1, Fraction(9, 10))
    assert starts >= weight + math.isqrt(variance)
    assert not hides(weight + math.isqrt(variance), variance, weight, 1, Fraction(9, 10))


def test_what_doubles_suggest_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that returns far too low a threshold is corrected by the proof; a bad slope costs width, not privacy."""
    settings = 2_500, 50, 5, Fraction(1, 100)
    least = hiding_threshold(*settings)
    monkeypatch.setattr(hidden_items, "_search_threshold", lambda *_: 1)
    assert hiding_threshold.__wrapped__(*settings) >= least - 1
    monkeypatch.setattr(hidden_items, "_best_slope", lambda *_: (Fraction(0), 0.0))
    assert hiding_threshold.__wrapped__(*settings) >= least


@pytest.mark.parametrize(
    "changes",
    [
        {"delta": Fraction(0)},
        {"delta": Fraction(1)},
        {"delta": Fraction(-1, 10)},
        {"delta": Fraction(1, 10**301)},
        {"delta": 0.01},
        {"items_per_user": 0},
        {"items_per_user": 1.5},
        {"largest_weight": 0},
    ],
)
def test_parameters_that_nothing_can_hide_are_refused_instead_of_searched_for_ever(changes: dict) -> None:
    arguments = {"variance": 10**10, "largest_weight": 100, "items_per_user": 3, "delta": Fraction(1, 100), **changes}
    with pytest.raises(ParameterError):
        hiding_threshold(**arguments)
