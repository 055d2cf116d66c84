"""Lookup tables hold the stated law exactly: proven by counting and at the edges, then by χ² of the rare branches.

Seeded, so deterministic; with random seeds each statistical case would fail wrongly with probability 1e-6.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
import pytest
from scipy import stats
from support.reference_laws import DIGITS, FALSE_ALARM, assert_fits, gaussian_cdf, geometric_cdf, laplace_cdf, real

from qlog_assets.privacy.noise_tables import (
    CoinTable,
    InverseTable,
    digit_law,
    gaussian_law,
    geometric_law,
    two_sided_law,
)
from qlog_assets.privacy.randomness import RandomSource, SeededRandom

BLOCKS = laplace_cdf(Fraction(50))
# Cached, because the small tables below ask for the same brackets thousands of times.
LAWS = {
    "laplace 1/2": (lru_cache(two_sided_law(Fraction(1, 2))), laplace_cdf(Fraction(1, 2))),
    "laplace 3/7": (lru_cache(two_sided_law(Fraction(3, 7))), laplace_cdf(Fraction(3, 7))),
    "laplace 10": (lru_cache(two_sided_law(Fraction(10))), laplace_cdf(Fraction(10))),
    "laplace 37.3": (lru_cache(two_sided_law(Fraction(373, 10))), laplace_cdf(Fraction(373, 10))),
    "laplace 50 in blocks of 8": (lru_cache(two_sided_law(Fraction(50), 8)), lambda value: BLOCKS(8 * value + 7)),
    "geometric 5/3": (lru_cache(geometric_law(Fraction(5, 3))), geometric_cdf(Fraction(5, 3))),
    "digit of 40": (lru_cache(digit_law(Fraction(40), 16)), geometric_cdf(Fraction(40), 16)),
    "digit of a million": (lru_cache(digit_law(Fraction(10**6), 64)), geometric_cdf(Fraction(10**6), 64)),
    "gaussian 1/3": (lru_cache(gaussian_law(Fraction(1, 3))), gaussian_cdf(Fraction(1, 3))),
    "gaussian 20.25": (lru_cache(gaussian_law(Fraction(81, 4))), gaussian_cdf(Fraction(81, 4))),
    "half gaussian 20.25": (
        lru_cache(gaussian_law(Fraction(81, 4), half=True)),
        gaussian_cdf(Fraction(81, 4), half=True),
    ),
}


class GivenBits(RandomSource):
    """The bits of one number in [0, 1), then zeros, in the order in which one draw of a full-sized table reads them."""

    secure = False

    def __init__(self, uniform: int, bits: int) -> None:
        super().__init__()
        later = bits - 64
        first = uniform >> later
        self.pieces = [first >> 48, (first & (1 << 48) - 1) << 16]
        self.pieces += [uniform >> shift & (1 << 64) - 1 for shift in range(later - 64, -1, -64)]

    def _key(self, number: int) -> bytes:
        raise NotImplementedError

    def _fill(self, out: memoryview) -> None:
        piece = self.pieces.pop(0) if self.pieces else 0
        out[:] = piece.to_bytes(len(out), "little")


@pytest.mark.parametrize("name", LAWS)
def test_table_edges_are_the_distribution_function_rounded_down(name):
    """The fine table is exact if every edge is floor(F·2**64) and the edges reach both ends of the range of words."""
    law, cdf = LAWS[name]
    table = InverseTable(law)
    with mpmath.workdps(DIGITS):
        expected = [int(mpmath.floor(cdf(table.first + i) * 2**64)) for i in range(len(table.edges))]
    assert [min(edge, 2**64 - 1) for edge in expected] == table.edges.tolist()
    assert table.edges[-1] == 2**64 - 1
    assert table.edges[0] == 0 or cdf(table.first - 1) == 0


@pytest.mark.parametrize("name", LAWS)
def test_counting_settled_words_brackets_every_probability(name):
    """Of all 2**12 words, those settled at z number at most P[z]·2**12, and with the open ones at its edges at least.

    Open words go on to `settle`, whose switching points the next test pins, so no probability can be off.
    """
    law, cdf = LAWS[name]
    table = InverseTable(law, coarse_bits=6, fine_bits=12)
    words = np.arange(1 << 12, dtype=np.uint64)
    places = np.searchsorted(table.edges, words, side="left")
    is_open = table.edges[places] == words
    settled = Counter((places[~is_open] + table.first).tolist())
    open_words = set(words[is_open].tolist())
    assert open_words == set(table.edges.tolist())
    with mpmath.workdps(DIGITS):
        for value in range(table.first - 3, table.first + len(table.edges) + 3):
            low, high = cdf(value - 1) * 2**12, cdf(value) * 2**12
            at_edges = {min(int(mpmath.floor(edge)), 2**12 - 1) for edge in (low, high)} & open_words
            assert settled[value] <= high - low <= settled[value] + len(at_edges)
    for cell, value in enumerate(table.coarse.tolist()):
        inside = slice(cell << 6, (cell + 1) << 6)
        if value == table.unsettled:
            assert is_open[inside].any()
        else:
            assert not is_open[inside].any()
            assert set((places[inside] + table.first).tolist()) == {value}


@pytest.mark.parametrize("name", LAWS)
def test_draws_change_value_exactly_where_the_distribution_function_does(name):
    """U one part in 2**256 below F(z) must give z and one part above it z + 1, through every stage of a draw."""
    law, cdf = LAWS[name]
    table = InverseTable(law)
    values = [table.first + i for i, edge in enumerate(table.edges.tolist()) if 0 < edge < 2**64 - 1]
    for value in values[:: max(1, len(values) // 25)]:
        with mpmath.workdps(DIGITS):
            edge = int(mpmath.floor(cdf(value) * 2**256))
        assert table.draw(GivenBits(edge - 1, 256), 1)[0] == value
        assert table.draw(GivenBits(edge + 1, 256), 1)[0] == value + 1


def test_far_tails_are_reached_when_the_bits_say_so():
    """Words of all zeros or ones are outside the table; the refinement still finds the value, 100 bits out."""
    table, cdf = InverseTable(two_sided_law(Fraction(10))), laplace_cdf(Fraction(10))
    for uniform in (2**156, 2**256 - 2**156):
        value = int(table.draw(GivenBits(uniform, 256), 1)[0])
        with mpmath.workdps(DIGITS):
            assert cdf(value - 1) * 2**256 <= uniform < cdf(value) * 2**256


@pytest.mark.parametrize("name", LAWS)
def test_tables_too_small_to_settle_most_draws_sample_the_same_law(name):
    """χ² with three coarse and five fine bits, so that the endless refinement is the common branch."""
    law, cdf = LAWS[name]
    values = InverseTable(law, coarse_bits=3, fine_bits=5).draw(SeededRandom(8), 10_000)
    assert_fits(values, cdf, np.arange(-70, 71))


@pytest.mark.parametrize("fine_bits", [64, 4])
@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 10**5), Fraction(7, 10**9)])
def test_coins_fall_heads_with_the_stated_probability(rate, fine_bits):
    """χ² over exponents whose digits fill one, two and three places; false-alarm rate 1e-6 a case."""
    coins = CoinTable(rate, fine_bits)
    flips = 20_000 if fine_bits == 64 else 1_000
    exponents = sorted({0, 1, 4095, 4096} | {int(x / rate) for x in (Fraction(1, 100), Fraction(1, 2), 1, 3)})
    score = 0.0
    for exponent in exponents:
        heads = int(coins.flip(SeededRandom(exponent), np.full(flips, exponent)).sum())
        probability = float(mpmath.exp(-exponent * real(rate)))
        if exponent == 0 or probability < 1e-9:
            assert heads == flips * (exponent == 0)
        else:
            score += (heads - flips * probability) ** 2 / (flips * probability * (1 - probability))
    assert score < stats.chi2.isf(FALSE_ALARM, len(exponents))


def test_coin_edges_are_the_probability_rounded_down():
    rate = Fraction(7, 10**7)
    coins = CoinTable(rate)
    coins.flip(SeededRandom(1), np.array([1 << 30]))
    with mpmath.workdps(DIGITS):
        for place in range(3):
            expected = [mpmath.exp(-(digit << 12 * place) * real(rate)) * 2**64 for digit in range(0, 4096, 97)]
            got = coins._place(place)[::97].tolist()
            assert got == [min(int(mpmath.floor(edge)), 2**64 - 1) for edge in expected]
