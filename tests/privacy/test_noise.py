"""The noise a release is made with follows its stated law at every scale, in its tails and between its signs.

That single tables are exact is proven in test_tables; here whole draws are tested, those put together from several
tables too. Seeded, so deterministic; with random seeds each case would fail wrongly with probability 1e-6.
"""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from support.reference_laws import (
    FALSE_ALARM,
    assert_fits,
    gaussian_cdf,
    geometric_cdf,
    laplace_cdf,
    reference_gaussian,
    reference_laplace,
)

from qlog_assets.errors import ParameterError
from qlog_assets.privacy import noise
from qlog_assets.privacy.noise import as_scale, discrete_gaussian, discrete_laplace, discrete_laplace_tail, geometric
from qlog_assets.privacy.paper_noise import continuous_laplace
from qlog_assets.privacy.randomness import SecureRandom, SeededRandom

SCALES = ["0.001", "1/2", "3/7", "10", "37.3", "1000", "5000", "1e6", "1e9"]


def cells(spread: float) -> np.ndarray:
    """Edges of about a hundred cells over ± 15 spreads, one integer wide where the spread is small."""
    reach = int(15 * spread) + 3
    return np.arange(-reach, reach + 1, max(1, int(spread / 4)))


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_noise_fits_its_law(scale):
    scale = as_scale(scale)
    values = discrete_laplace(SeededRandom(21), scale, 1_000_000)
    assert values.dtype == np.int64
    assert_fits(values, laplace_cdf(scale), cells(float(scale)))


@pytest.mark.parametrize("scale", ["10", "5000", "1e6"])
def test_low_digits_of_laplace_noise_fit_their_law(scale):
    """Every residue modulo 64 by its exact probability: what a wrong digit of a composed draw would show in."""
    scale = as_scale(scale)
    counts = np.bincount(discrete_laplace(SeededRandom(22), scale, 1_000_000) % 64, minlength=64)
    with mpmath.workdps(50):
        a = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        mass = [(1 - a) / (1 + a) * (a**r + a ** (64 - r)) / (1 - a**64) for r in range(64)]
    assert float(sum(mass)) == pytest.approx(1, abs=1e-15)
    assert stats.chisquare(counts, 1_000_000 * np.array([float(m) for m in mass])).pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", ["1/2", "10", "37.3"])
def test_laplace_tails_hold_down_to_one_in_a_million(scale):
    """Poisson test of the number of draws beyond ever rarer points, both sides; union over 2·5 points."""
    scale = as_scale(scale)
    size, cdf = 20_000_000, laplace_cdf(scale)
    values = discrete_laplace(SeededRandom(23), scale, size)
    for rarity in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        point = int(-float(scale) * np.log(rarity))
        expected = size * float(cdf(-point))
        for beyond in ((values >= point).sum(), (values <= -point).sum()):
            low, high = stats.poisson.interval(1 - FALSE_ALARM / 10, expected)
            assert low <= beyond <= high


@pytest.mark.parametrize("scale", ["3/7", "10", "37.3", "5000", "1e6"])
def test_laplace_noise_is_symmetric(scale):
    """As many positive as negative draws, and |X| of both signs alike by a two-sample test."""
    values = discrete_laplace(SeededRandom(24), as_scale(scale), 400_000)
    positive, negative = values[values > 0], -values[values < 0]
    assert stats.binomtest(len(positive), len(positive) + len(negative)).pvalue > FALSE_ALARM
    edges = np.unique(np.quantile(np.abs(values[values != 0]), np.linspace(0, 1, 41)))
    table = np.array([np.histogram(side, edges)[0] for side in (positive, negative)])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 20]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", ["1/2", "37/10", "10"])
def test_laplace_noise_agrees_with_the_reference_sampler(scale):
    """Two-sample χ² against Algorithm 2 of Canonne, Kamath and Steinke in fractions."""
    scale, rng = as_scale(scale), random.Random(25)
    reference = np.array([reference_laplace(rng, scale) for _ in range(6_000)])
    ours = discrete_laplace(SeededRandom(25), scale, 60_000)
    _assert_same_law(reference, ours)


@pytest.mark.parametrize("variance", ["1/3", "30"])
def test_gaussian_noise_agrees_with_the_reference_sampler(variance):
    """Two-sample χ² against Algorithm 3 of Canonne, Kamath and Steinke in fractions."""
    variance, rng = as_scale(variance), random.Random(26)
    reference = np.array([reference_gaussian(rng, variance) for _ in range(3_000)])
    _assert_same_law(reference, discrete_gaussian(SeededRandom(26), variance, 60_000))


def _assert_same_law(one: np.ndarray, other: np.ndarray) -> None:
    reach = np.arange(min(one.min(), other.min()), max(one.max(), other.max()) + 2)
    table = np.array([np.histogram(sample, reach)[0] for sample in (one, other)])
    common = table.sum(axis=0) > 60
    table = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("variance", ["0.01", "1/3", "2.25", "100", "10000"])
def test_gaussian_noise_fits_its_law(variance):
    variance = as_scale(variance)
    values = discrete_gaussian(SeededRandom(27), variance, 1_000_000)
    assert values.dtype == np.int64
    assert_fits(values, gaussian_cdf(variance), cells(float(variance) ** 0.5))


@pytest.mark.parametrize("deviation", [1024.5, 5000, 2_000_000, 10**8])
def test_gaussian_noise_of_a_large_deviation_fits_its_law(deviation):
    """Against the continuous law over integer cells: for these deviations they differ by less than 1e-9 a cell."""
    values = discrete_gaussian(SeededRandom(28), Fraction(deviation) ** 2, 500_000)
    edges = cells(deviation / 4)
    cumulative = stats.norm.cdf((edges - 0.5) / deviation)
    counts = np.histogram(values, np.append(edges[:-1], edges[-1] - 0.5))[0]
    expected = np.diff(cumulative) * len(values)
    enough = expected > 10
    total = counts[enough].sum()
    assert stats.chisquare(counts[enough], expected[enough] * total / expected[enough].sum()).pvalue > FALSE_ALARM
    assert stats.binomtest(int((values > 0).sum()), int((values != 0).sum())).pvalue > FALSE_ALARM
    # Offsets inside a block are where a wrong acceptance would show: residues are uniform to within exp(-10**6).
    assert stats.chisquare(np.bincount(values % 61, minlength=61)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", ["3/7", "10", "5000"])
@pytest.mark.parametrize("at_least", [100, 1, 0, -1, -7, -1_000_000])
def test_conditional_tails_fit_their_law(scale, at_least):
    scale, cdf = as_scale(scale), laplace_cdf(as_scale(scale))
    values = discrete_laplace_tail(SeededRandom(29), scale, at_least, 200_000)
    assert values.min() >= at_least
    if at_least >= 1:
        assert_fits(values - at_least, geometric_cdf(scale), cells(float(scale)))
    else:
        below = cdf(at_least - 1)
        edges = cells(float(scale))
        assert_fits(values, lambda z: max(0, cdf(z) - below) / (1 - below), edges)


@pytest.mark.parametrize(("scale", "base", "places"), [("10", 4, 2), ("37.3", 8, 1), ("3/7", 2, 3)])
def test_noise_put_together_from_digits_fits_its_law(scale, base, places):
    """Small digits at small scales, where every single value has a cell of its own."""
    scale = as_scale(scale)
    two_sided = noise._composed_laplace(SeededRandom(32), scale, base, places, 400_000)
    assert_fits(two_sided, laplace_cdf(scale), np.arange(-300, 301))
    one_sided = noise._composed_geometric(SeededRandom(33), scale, base, places, 400_000)
    assert_fits(one_sided, geometric_cdf(scale), np.arange(-1, 300))


@pytest.mark.parametrize(("variance", "block"), [("81/4", 1), ("81/4", 3), ("1/3", 2), ("150", 20)])
def test_gaussian_noise_by_rejection_fits_its_law(variance, block):
    """Blocks of a few integers, down to none of a standard deviation and up to several, each value its own cell."""
    variance = as_scale(variance)
    values = noise._gaussian_by_rejection(SeededRandom(34), variance, block, 400_000)
    assert_fits(values, gaussian_cdf(variance), np.arange(-80, 81))


@pytest.mark.parametrize("scale", ["1/2", "10", "1e6"])
def test_geometric_noise_fits_its_law(scale):
    scale = as_scale(scale)
    assert_fits(geometric(SeededRandom(30), scale, 500_000), geometric_cdf(scale), cells(float(scale)))


def test_neighbouring_draws_are_independent():
    """Serial correlation of a million draws, lags 1 to 4 and across the chunks draws are made in."""
    values = discrete_laplace(SeededRandom(31), Fraction(10), 1_000_000).astype(float)
    for lag in (1, 2, 3, 4, 1 << 16):
        correlation = np.corrcoef(values[:-lag], values[lag:])[0, 1]
        assert abs(correlation) * np.sqrt(len(values) - lag) < stats.norm.isf(FALSE_ALARM / 10)


def test_equal_seeds_give_equal_noise_and_a_secure_source_never_does():
    for draw in (discrete_laplace, discrete_gaussian):
        again = [draw(SeededRandom(5), Fraction(10), 1000) for _ in range(2)]
        assert (again[0] == again[1]).all()
        secure = [draw(SecureRandom(), Fraction(10), 1000) for _ in range(2)]
        assert (secure[0] != secure[1]).any()


@pytest.mark.parametrize("size", [0, 1, 5, 65_537])
def test_every_size_is_served(size):
    source = SeededRandom(6)
    for scale in (Fraction(10), Fraction(5000)):
        assert len(discrete_laplace(source, scale, size)) == size
        assert len(discrete_laplace_tail(source, scale, 3, size)) == size
        assert len(discrete_laplace_tail(source, scale, -3, size)) == size
    for variance in (Fraction(10), Fraction(10**8)):
        assert len(discrete_gaussian(source, variance, size)) == size


@pytest.mark.parametrize(
    ("text", "value"),
    [(10, Fraction(10)), ("37.3", Fraction(373, 10)), ("3/7", Fraction(3, 7)), (Decimal("0.1"), Fraction(1, 10)),
     ("1e6", Fraction(10**6)), (Fraction(1, 2), Fraction(1, 2))],
)  # fmt: skip
def test_scales_are_read_exactly(text, value):
    assert as_scale(text) == value


@pytest.mark.parametrize(
    "value",
    [0, "0", -1, "-0.5", 0.1, float("nan"), float("inf"), "nan", "inf", "-inf", Decimal("NaN"), Decimal("Infinity"),
     "1/0", "", "ten", None, True, "1e999999999", "1e-999999999"],
)  # fmt: skip
def test_a_scale_that_is_not_an_exact_positive_number_is_refused(value):
    with pytest.raises(ParameterError):
        as_scale(value)


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), 0.5, float("nan"), "inf", Fraction(1, 10**7), 10**10])
def test_bad_scales_are_refused_before_anything_is_drawn(scale):
    source = SeededRandom(7)
    for draw in (discrete_laplace, lambda s, b, n: discrete_laplace_tail(s, b, 3, n), geometric):
        with pytest.raises(ParameterError):
            draw(source, scale, 10)
    if scale not in (Fraction(1, 10**7), 10**10):
        with pytest.raises(ParameterError):
            discrete_gaussian(source, scale, 10)
    assert source.bytes(8) == SeededRandom(7).bytes(8)


@pytest.mark.parametrize("at_least", [2**62, -(2**70)])
def test_a_threshold_whose_tail_would_not_fit_is_refused(at_least):
    with pytest.raises(ParameterError):
        discrete_laplace_tail(SeededRandom(7), Fraction(10), at_least, 1)


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian, geometric])
def test_a_negative_number_of_draws_is_refused(draw):
    with pytest.raises(ParameterError):
        draw(SeededRandom(7), Fraction(10), -1)


def test_paper_noise_refuses_the_source_of_publishable_noise():
    with pytest.raises(ParameterError, match="cannot be published"):
        continuous_laplace(SecureRandom(), 10, 5)


def test_paper_noise_is_reproducible_and_fits_the_continuous_law():
    values = continuous_laplace(SeededRandom(9), 10, 100_000)
    assert (values == continuous_laplace(SeededRandom(9), 10, 100_000)).all()
    assert stats.kstest(values, stats.laplace(scale=10).cdf).pvalue > FALSE_ALARM
    assert len(continuous_laplace(np.random.default_rng(1), 10, 5)) == 5


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf")])
def test_paper_noise_refuses_bad_scales(scale):
    with pytest.raises(ParameterError):
        continuous_laplace(SeededRandom(9), scale, 5)
