"""Adding up losses: the exact accountant against high-precision sums and Google's, zCDP conversions, bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.accountant import accountant_epsilon

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.register import guarantee
from qlog_assets.mechanisms.register import mechanism as known
from qlog_assets.privacy.composition import (
    WIDEST_LATTICE,
    Noise,
    geometric_epsilon,
    loss_distribution,
    pure_epsilon,
    pure_rho,
    release_loss,
    zcdp_epsilon,
    zcdp_rho,
)

SCALES = st.fractions(min_value=Fraction(1, 2), max_value=40, max_denominator=20)
NOISES = st.lists(st.builds(Noise, st.integers(0, 8), SCALES), min_size=1, max_size=3)


def reference_law(noises: list[Noise]) -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    """Every outcome's loss and probability with 60 digits: Σ (m - 2j)/b and Π C(m,j)·a^j/(1+a)^m."""
    law = [(mpmath.mpf(0), mpmath.mpf(1))]
    with mpmath.workdps(60):
        for noise in noises:
            step = mpmath.mpf(noise.scale.denominator) / noise.scale.numerator
            a = mpmath.exp(-step)
            table = [
                ((noise.counts - 2 * j) * step, mpmath.binomial(noise.counts, j) * a**j / (1 + a) ** noise.counts)
                for j in range(noise.counts + 1)
            ]
            law = [(x + y, p * q) for (x, p), (y, q) in product(law, table)]
    return law


def reference_delta(law: list[tuple[mpmath.mpf, mpmath.mpf]], epsilon: float) -> mpmath.mpf:
    """Σ P[loss]·max(0, 1 - e^(ε - loss)) with 60 digits (specification 8.5, for several scales)."""
    with mpmath.workdps(60):
        return mpmath.fsum(p * (1 - mpmath.exp(epsilon - loss)) for loss, p in law if loss > epsilon)


def rounding(noises: list[Noise]) -> float:
    """How far losses may be rounded up: one step of the coarsest grid for each table."""
    return len(noises) * 2 * float(pure_epsilon(noises)) / WIDEST_LATTICE


@settings(max_examples=40, deadline=None, derandomize=True)
@given(NOISES, st.floats(0, 1))
def test_delta_is_never_below_the_exact_sum_and_close_to_it(noises: list[Noise], share: float) -> None:
    epsilon = share * float(pure_epsilon(noises))
    found, law = loss_distribution(noises).delta(epsilon), reference_law(noises)
    assert found >= reference_delta(law, epsilon)
    nearby = reference_delta(law, epsilon - rounding(noises))
    assert found <= nearby * (1 + mpmath.mpf("1e-6")) + mpmath.mpf("1e-12")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(NOISES, st.sampled_from([1e-3, 1e-6, 1e-9, 1e-15]))
def test_epsilon_keeps_its_delta_and_is_never_above_the_pure_sum(noises: list[Noise], delta: float) -> None:
    epsilon = geometric_epsilon(noises, delta)
    assert epsilon <= float(pure_epsilon(noises)) * (1 + 1e-15)
    law = reference_law(noises)
    assert reference_delta(law, epsilon) <= delta
    if epsilon > 0:
        assert reference_delta(law, epsilon - rounding(noises) - 1e-6) > delta * (1 - 1e-6)


@pytest.mark.parametrize(("counts", "printed"), [(30, 2.35), (150, 6.07), (600, 14.0)])
def test_exact_accounting_of_safelog_at_scale_10(counts: int, printed: float) -> None:
    """specification 8.5: 2.35 of a pure 3, 6.07 of 15, and 14.0 of 60 where the paper prints 85.45; δ = 1e-6."""
    assert geometric_epsilon([Noise(counts, Fraction(10))], 1e-6) == pytest.approx(printed, abs=0.005)


def test_google_accountant_agrees() -> None:
    for noises in (
        [Noise(30, Fraction(10))],
        [Noise(10, Fraction(10)), Noise(10, Fraction(20)), Noise(9, Fraction(18))],
        [Noise(4, Fraction(1)), Noise(4, Fraction(3, 2))],
    ):
        for delta in (1e-4, 1e-8):
            theirs = accountant_epsilon(noises, delta)
            assert geometric_epsilon(noises, delta) == pytest.approx(theirs, abs=3e-3)
            assert geometric_epsilon(noises, delta) <= theirs + 1e-7


def test_scales_without_a_small_common_lattice_are_rounded_up_not_down() -> None:
    noises = [Noise(6, Fraction("7.30109")), Noise(6, Fraction("9.97301")), Noise(5, Fraction("11.00073"))]
    law = reference_law(noises)
    for epsilon in (0.0, 0.5, 1.2):
        exact = reference_delta(law, epsilon)
        assert exact <= loss_distribution(noises).delta(epsilon) <= exact * mpmath.mpf("1.001")
    assert len(loss_distribution(noises).losses) <= WIDEST_LATTICE + 20


def test_ten_thousand_counts_neither_overflow_nor_vanish() -> None:
    noises = [Noise(10_000, Fraction(100)), Noise(9_999, Fraction(50))]
    epsilon = geometric_epsilon(noises, 1e-9)
    assert 0 < epsilon < 60
    # zCDP bounds the same release from above; the exact law must not be worse.
    assert epsilon <= zcdp_epsilon(sum(noise.counts * pure_rho(1 / noise.scale) for noise in noises), 1e-9)


def test_no_noise_and_no_delta_are_the_ends_of_the_curve() -> None:
    assert geometric_epsilon([], 1e-6) == 0
    assert geometric_epsilon([Noise(0, Fraction(3))], 0) == 0
    assert geometric_epsilon([Noise(7, Fraction(2))], 0) == 3.5
    assert loss_distribution([Noise(7, Fraction(2))]).delta(3.5) == 0
    assert loss_distribution([Noise(1, Fraction(1))]).delta(0) == pytest.approx(math.tanh(0.5), rel=1e-6)


def test_release_loss_adds_the_thresholds_delta_on_top() -> None:
    noises = [Noise(150, Fraction(10))]
    epsilon, delta = release_loss(noises, Fraction(1, 10**6), Fraction(1, 10**6))
    assert epsilon == geometric_epsilon(noises, 1e-6)
    assert delta == Fraction(2, 10**6)


@pytest.mark.parametrize("mechanism", ["crowd", "safelog", "sanitized", "sessions", "zealous"])
def test_accounting_inside_a_release_is_never_worse_than_the_sum(mechanism: str) -> None:
    many = {"queries_per_user": 30, "clicks_per_user": 30, "selection_scale": 30} if mechanism == "safelog" else {}
    promise = guarantee(mechanism, "sound", known(mechanism).parameters(**many))
    assert promise.proven is not None
    assert pure_epsilon(promise.noise) == promise.proven.epsilon
    accounted = promise.accounted()
    assert (accounted is None) == (mechanism in ("sessions", "crowd", "sanitized")), "few counts: nothing to gain"
    if accounted is not None:
        assert accounted.epsilon < promise.proven.epsilon
        assert accounted.delta == 2 * promise.proven.delta


@pytest.mark.parametrize("mechanism", ["safelog", "sessions", "zealous"])
def test_a_release_by_gaussian_noise_is_accounted_by_its_own_budget_and_gains_nothing_here(mechanism: str) -> None:
    promise = guarantee(mechanism, "modern", known(mechanism).policy_section())
    assert promise.noise == () and promise.accounted() is None
    assert promise.proven is not None and promise.proven.rho is not None


# zCDP -----------------------------------------------------------------------------------------------------------------


def test_zcdp_conversion_matches_another_librarys_value() -> None:
    """OpenDP's own tests: Gaussian of scale 4, sensitivity 1, δ = 1e-3 gives ε = 0.6880024554878085."""
    rho = Fraction(1, 2 * 16)
    assert rho == Fraction(1, 32)
    assert zcdp_epsilon(rho, Fraction(1, 1000)) == pytest.approx(0.6880024554878085, rel=1e-10)
    assert zcdp_epsilon(rho, Fraction(1, 1000)) >= 0.6880024554878085


def test_zcdp_sigma_of_the_selection_methods() -> None:
    """specification 8.7: σ = 2.152 at (2.3, 5e-7) for sensitivity 1."""
    rho = zcdp_rho(Fraction("2.3"), Fraction("5e-7"))
    assert 1 / math.sqrt(2 * rho) == pytest.approx(2.152, abs=5e-4)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.fractions(min_value=Fraction(1, 100), max_value=50, max_denominator=1000),
    st.integers(2, 30).map(lambda n: Fraction(1, 2**n)),
)
def test_zcdp_rho_is_the_inverse_rounded_down(epsilon: Fraction, delta: Fraction) -> None:
    rho = zcdp_rho(epsilon, delta)
    assert rho > 0
    assert Fraction(zcdp_epsilon(rho, delta)) <= epsilon
    assert zcdp_epsilon(rho * Fraction(1001, 1000), delta) > float(epsilon)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.floats(1e-6, 20), st.floats(1e-12, 0.4), st.floats(1.01, 500))
def test_zcdp_epsilon_is_the_least_over_all_orders(rho: float, delta: float, order: float) -> None:
    at_order = order * rho + (math.log(1 / delta) + (order - 1) * math.log1p(-1 / order) - math.log(order)) / (
        order - 1
    )
    assert zcdp_epsilon(rho, delta) <= max(0.0, at_order) * (1 + 1e-9) + 1e-9


def test_zcdp_epsilon_holds_for_a_real_mechanism() -> None:
    """Two-sided geometric counts are m/(2b²)-zCDP, so their exact ε(δ) can never exceed the converted one."""
    for counts, scale in ((1, 2), (10, 5), (200, 10), (600, 30)):
        rho = counts * pure_rho(Fraction(1, scale))
        for delta in (1e-3, 1e-6, 1e-10):
            assert geometric_epsilon([Noise(counts, Fraction(scale))], delta) <= zcdp_epsilon(rho, delta) + 1e-9


def test_nothing_spent_costs_nothing() -> None:
    assert zcdp_epsilon(0, Fraction(1, 10)) == 0
    assert pure_rho(Fraction(2)) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: Noise(-1, Fraction(1)),
        lambda: Noise(1, Fraction(0)),
        lambda: geometric_epsilon([Noise(1, Fraction(1))], math.nan),
        lambda: geometric_epsilon([Noise(1, Fraction(1))], 1.0),
        lambda: zcdp_epsilon(-1, Fraction(1, 10)),
        lambda: zcdp_epsilon(1, 0),
        lambda: zcdp_epsilon(1, 1),
        lambda: zcdp_epsilon(math.nan, Fraction(1, 10)),
        lambda: zcdp_epsilon(math.inf, Fraction(1, 10)),
        lambda: zcdp_rho(0, Fraction(1, 10)),
        lambda: zcdp_rho(math.nan, Fraction(1, 10)),
    ],
)
def test_meaningless_losses_are_refused(call: object) -> None:
    with pytest.raises(ParameterError):
        call()  # type: ignore[operator]
