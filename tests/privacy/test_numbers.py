"""Brackets contain what they bracket, thresholds are least, and the binomial is the binomial.

Statistical tests are seeded, so deterministic; with random seeds each case would fail wrongly with probability 1e-6.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from itertools import accumulate

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.exact_thresholds import laplace_threshold
from support.reference_laws import FALSE_ALARM, laplace_cdf, real

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.numbers import binomial, exp_bracket, laplace_survival
from qlog_assets.privacy.randomness import RandomSource, SeededRandom

scales = st.fractions(min_value=Fraction(1, 1000), max_value=10**6, max_denominator=1000)


@settings(max_examples=100, deadline=None)
@given(st.fractions(min_value=0, max_value=3000, max_denominator=10**6), st.sampled_from([8, 64, 128, 300]))
def test_exponential_brackets_contain_the_exponential_and_are_narrow(x, bits):
    low, high = exp_bracket(x, bits)
    with mpmath.workprec(bits + 200):
        assert low <= mpmath.exp(-real(x)) * 2**bits <= high
    assert 0 <= low <= high <= 2**bits
    assert high - low <= 4


def test_exponential_of_a_positive_exponent_is_refused():
    with pytest.raises(ParameterError):
        exp_bracket(Fraction(-1), 64)


@settings(max_examples=60, deadline=None)
@given(scales, st.integers(-10_000, 10_000), st.sampled_from([32, 256]))
def test_survival_brackets_contain_the_tail_and_are_narrow(scale, at_least, bits):
    low, high = laplace_survival(scale, at_least, bits)
    assert 0 <= low <= high <= 1
    assert high - low <= Fraction(1, 2**bits)
    with mpmath.workdps(110):
        tail = 1 - laplace_cdf(scale)(at_least - 1)
        slack = mpmath.mpf(10) ** -100
        assert real(low) - slack <= tail <= real(high) + slack


def test_survival_of_the_worked_example():
    """Specification 2.2: K = b = 10 passes 19.3 % of the zero cells for two-sided geometric noise; continuous ½/e."""
    low, high = laplace_survival(Fraction(10), 10)
    assert float(low) == float(high) == pytest.approx(math.exp(-1) / (1 + math.exp(-0.1)), rel=1e-15)


@settings(max_examples=60, deadline=None)
@given(scales, st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(999, 1000), max_denominator=10**9))
def test_thresholds_are_the_least_that_satisfy_the_bound(scale, probability):
    threshold = laplace_threshold(scale, probability)
    assert laplace_survival(scale, threshold, 512)[1] <= probability
    assert laplace_survival(scale, threshold - 1, 512)[0] > probability


@pytest.mark.parametrize("probability", [Fraction(0), Fraction(1), Fraction(-1, 2)])
def test_a_threshold_for_an_impossible_probability_is_refused(probability):
    with pytest.raises(ParameterError):
        laplace_threshold(Fraction(10), probability)


class GivenBits(RandomSource):
    """The bits of one number in [0, 1), 64 at a time, then zeros."""

    secure = False

    def __init__(self, uniform: int, bits: int) -> None:
        super().__init__()
        self.pieces = [uniform >> shift & (1 << 64) - 1 for shift in range(bits - 64, -1, -64)]

    def _key(self, number: int) -> bytes:
        raise NotImplementedError

    def _fill(self, out: memoryview) -> None:
        piece = self.pieces.pop(0) if self.pieces else 0
        out[:] = piece.to_bytes(len(out), "little")


@pytest.mark.parametrize(("trials", "success"), [(1, Fraction(1, 7)), (30, Fraction(1, 3)), (200, Fraction(3, 400))])
def test_the_binomial_changes_value_exactly_where_its_distribution_function_does(trials, success):
    """U one part in 2**192 either side of the exact rational P[N ≤ k], for all k but the ends."""
    masses = [math.comb(trials, k) * success**k * (1 - success) ** (trials - k) for k in range(trials + 1)]
    for k, edge in enumerate(accumulate(masses)):
        word = int(edge * 2**192)
        if 1 < word < 2**192 - 2 and masses[k] * 2**192 > 4:
            assert binomial(GivenBits(word - 1, 192), trials, success) == k
        if 1 < word < 2**192 - 2 and k < trials and masses[k + 1] * 2**192 > 4:
            assert binomial(GivenBits(word + 1, 192), trials, success) == k + 1


@pytest.mark.parametrize("success", [Fraction(1, 3), Fraction(9, 10), Fraction(1, 2)])
def test_small_binomials_fit_their_law(success):
    source = SeededRandom(4)
    drawn = np.bincount([binomial(source, 6, success) for _ in range(3_000)], minlength=7)
    expected = 3_000 * stats.binom.pmf(range(7), 6, float(success))
    enough = expected >= 5
    observed = np.append(drawn[enough], drawn[~enough].sum())
    expected = np.append(expected[enough], expected[~enough].sum()) + 1e-12
    assert stats.chisquare(observed, expected * 3_000 / expected.sum()).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("trials", "scale", "threshold", "draws"),
    [(10**6, 10, 10, 30), (4 * 10**8, 10, 100, 100), (10**12, 10, 230, 200), (10**6, 10, -60, 100)],
)
def test_large_binomials_fit_their_law(trials, scale, threshold, draws):
    """Kolmogorov–Smirnov on randomised ranks, uniform if the law is right. Means from 50 to 200,000, p up to 1."""
    source, rng = SeededRandom(trials), np.random.default_rng(1)
    success = partial(laplace_survival, Fraction(scale), threshold)
    law = stats.binom(trials, float(success(64)[0]))
    drawn = np.array([binomial(source, trials, success) for _ in range(draws)])
    ranks = law.cdf(drawn - 1) + rng.random(draws) * law.pmf(drawn)
    assert stats.kstest(ranks, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize("trials", [0, 1, 10**12])
def test_binomials_at_the_ends_of_the_range(trials):
    source = SeededRandom(1)
    assert binomial(source, trials, Fraction(0)) == 0
    assert binomial(source, trials, Fraction(1)) == trials
    assert binomial(source, trials, partial(laplace_survival, Fraction(1, 2), 10**6)) == 0  # p < exp(-10**6)
    assert binomial(source, trials, partial(laplace_survival, Fraction(1, 2), -(10**6))) == trials


@pytest.mark.parametrize(("trials", "success"), [(-1, Fraction(1, 2)), (5, Fraction(3, 2)), (5, Fraction(-1, 2))])
def test_a_binomial_of_impossible_parameters_is_refused(trials, success):
    with pytest.raises(ParameterError):
        binomial(SeededRandom(1), trials, success)
