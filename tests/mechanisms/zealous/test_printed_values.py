"""ZEALOUS's printed numbers: those our formulas reproduce, and, one test each, those that do not hold.

A test of the second kind asserts our number and names the paper's in its docstring. No noise is drawn here.
"""

from __future__ import annotations

import math

import pytest

from qlog_assets.mechanisms.register import guarantee
from qlog_assets.mechanisms.zealous.guarantee import (
    probabilistic_threshold,
)
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.parameters import AOL_USERS


def probabilistic_scale(items_per_user: int, epsilon: float) -> float:
    """λ = 2m/ε: replacing one user changes 2m counts."""
    return 2 * items_per_user / epsilon


def approximate_threshold(items_per_user: int, scale: float, delta: float) -> float:
    """The least τ′ at τ = 1 for (ε, δ)-DP with Laplace(λ): max{1 + λ·ln(m/(2δ)), 1 - λ·ln(2 - 2e^(-1/λ))}."""
    new_item = scale * math.log(items_per_user / (2 * delta))
    missing_item = -scale * math.log(-2 * math.expm1(-1 / scale))
    return 1 + max(0.0, new_item, missing_item)


def korolova_threshold(items_per_user: int, epsilon: float, delta: float) -> float:
    """m·(1 - ln(2δ/m)/ε): fits the noise scale m/ε of adding or removing a user. Too low for ZEALOUS' 2m/ε."""
    return items_per_user * (1 - math.log(2 * delta / items_per_user) / epsilon)


LN_10 = math.log(10)
ZEALOUS_EXAMPLES = [
    # m, ε, λ, τ, τ′ of probabilistic DP, τ′ of (ε, δ)-DP (replace, then add or remove), the Korolova setting
    (1, LN_10, 0.87, 1, 24.0, 12.4, 6.7, 6.7),
    (5, LN_10, 4.34, 5, 120.2, 65.0, 33.0, 37.0),
    (10, 10.0, 2.0, 2, 58.3, 31.8, 16.4, 25.4),
    (20, 10.0, 4.0, 4, 116.5, 65.5, 33.2, 52.2),
]


@pytest.mark.parametrize("row", ZEALOUS_EXAMPLES)
def test_the_korolova_setting_is_too_low_for_zealous_noise(row: tuple[float, ...]) -> None:
    """Attributed to Götz et al.: λ = 2m/ε with τ′ = m(1 - ln(2δ/m)/ε). The proof needs up to twice that at this λ."""
    items, threshold, delta = int(row[0]), int(row[3]), 1e-6
    _, epsilon, scale, _, noisy, replaced, removed, korolova = row
    assert probabilistic_scale(items, epsilon) == pytest.approx(scale, abs=0.005)
    assert math.ceil(probabilistic_scale(items, epsilon)) == threshold
    needed = probabilistic_threshold(items, 2 * items / epsilon, delta, AOL_USERS, threshold)
    assert needed == pytest.approx(noisy, abs=0.051)
    assert approximate_threshold(items, 2 * items / epsilon, delta) == pytest.approx(replaced, abs=0.051)
    assert approximate_threshold(items, items / epsilon, delta) == pytest.approx(removed, abs=0.051)
    setting = korolova_threshold(items, epsilon, delta)
    assert setting == pytest.approx(korolova, abs=0.051)
    assert setting < approximate_threshold(items, 2 * items / epsilon, delta)
    assert setting >= approximate_threshold(items, items / epsilon, delta) - 1e-9


def test_zealous_with_a_threshold_below_its_theorem_promises_nothing() -> None:
    parameters = ZealousParameters(items_per_user=5, epsilon="2.3", kinds=("queries",))
    least = guarantee("zealous", "paper", parameters).figures["least_noisy_threshold"]
    low = guarantee("zealous", "paper", parameters.with_changes(noisy_threshold=math.floor(least)))
    assert low.claimed is None
    assert low.proven is None
    high = guarantee("zealous", "paper", parameters.with_changes(noisy_threshold=math.ceil(least)))
    assert high.proven is not None
