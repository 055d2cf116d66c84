"""Exact inversion by table: random bits are looked up, and bits that a table cannot decide are refined without end.

Belongs here: laws as brackets of their distribution functions, and the two lookup structures, one for draws and one
for coin flips. How laws combine into noise is in `noise`.

Why a table is exact. Let U be uniform on [0, 1) with infinitely many bits, of which only as many are drawn as are
needed. A law with distribution function F is sampled by X = the least z with F(z) > U. After n bits U lies in the cell
[u, u+1)/2**n, and X is settled once every z has F(z)·2**n ≤ u (then z < X) or F(z)·2**n ≥ u+1 (then X ≤ z). A table
holds the answer of every settled cell; in the others more bits are drawn, and at last U is compared with brackets
of F whose precision grows with the bits. Every answer is the one the infinite U would have given, whichever step
gave it, so the sampled law is the stated one and not an approximation of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from qlog_assets.privacy.numbers import GUARD_BITS, Bracket, divide, exp_bracket
from qlog_assets.privacy.randomness import RandomSource

CHUNK = 1 << 16  # draws per step: the working set of a step stays in the processor's cache


class Brackets(NamedTuple):
    """low[i] ≤ F(first + i)·2**bits ≤ high[i]. Below `first` F is zero, or F(first)·2**bits ≤ 1 and low[0] is 0.

    Above the last value F is one, or at least 1 - 2**-bits, and the last pair is (2**bits - 1, 2**bits).
    """

    first: int
    low: list[int]
    high: list[int]


Law = Callable[[int], Brackets]
"""A distribution on the integers: from a number of bits to brackets of its distribution function."""


def powers(start: Bracket, ratio: Bracket, precision: int, floor: int, limit: int | None = None) -> list[Bracket]:
    """Brackets of start·ratio**k for k = 0, 1, …, up to `limit` terms or the first that is at most `floor`."""
    low, high = start
    terms = [(low, high)]
    while high > floor if limit is None else len(terms) < limit:
        low = low * ratio[0] >> precision
        high = (high * ratio[1] >> precision) + 1
        terms.append((low, high))
    return terms


def outwards(bracket: Bracket, spare: int, bits: int) -> Bracket:
    """The bracket with `spare` fewer bits, still a bracket, and inside [0, 2**bits]."""
    return max(0, bracket[0] >> spare), min(1 << bits, -(-bracket[1] >> spare))


def two_sided_law(scale: Fraction, block: int = 1) -> Law:
    """floor(X / block) for X discrete Laplace: with a = exp(-1/scale), P[X ≥ k] = a**k/(1+a) for k ≥ 1.

    For v ≥ 0: F(v) = 1 - P[X ≥ block·(v+1)]. For v = -k < 0: F(v) = P[X ≤ block·(1-k) - 1] = P[X ≥ block·(k-1) + 1].
    """

    def brackets(bits: int) -> Brackets:
        precision = bits + GUARD_BITS
        one, floor = 1 << precision, 1 << GUARD_BITS
        a = exp_bracket(1 / scale, precision)
        ratio = exp_bracket(Fraction(block) / scale, precision)
        total = (one + a[0], one + a[1])
        below = powers(divide(a, total, precision), ratio, precision, floor)
        above = powers(divide(ratio, total, precision), ratio, precision, floor)
        pairs = [outwards(term, GUARD_BITS, bits) for term in reversed(below)]
        pairs += [outwards((one - high, one - low), GUARD_BITS, bits) for low, high in above]
        return _infinite(-len(below), pairs, bits)

    return brackets


def geometric_law(scale: Fraction) -> Law:
    """G ≥ 0 with P[G = g] proportional to exp(-g/scale): F(g) = 1 - exp(-(g+1)/scale)."""

    def brackets(bits: int) -> Brackets:
        precision = bits + GUARD_BITS
        one = 1 << precision
        a = exp_bracket(1 / scale, precision)
        tails = powers(a, a, precision, 1 << GUARD_BITS)
        return _infinite(0, [outwards((one - high, one - low), GUARD_BITS, bits) for low, high in tails], bits)

    return brackets


def digit_law(scale: Fraction, base: int) -> Law:
    """G mod base for G geometric: P[d] proportional to exp(-d/scale) on [0, base)."""

    def brackets(bits: int) -> Brackets:
        # 1 - exp(-base/scale) is about base/scale: the division below loses that many bits, so they are added.
        guard = GUARD_BITS + (scale.numerator // scale.denominator).bit_length()
        precision = bits + guard
        one = 1 << precision
        a = exp_bracket(1 / scale, precision)
        tails = powers(a, a, precision, 0, base)
        masses = [(one - high, one - low) for low, high in tails]
        pairs = [outwards(divide(mass, masses[-1], precision), guard, bits) for mass in masses[:-1]]
        pairs.append((1 << bits, 1 << bits))
        return Brackets(0, [low for low, _ in pairs], [high for _, high in pairs])

    return brackets


def gaussian_law(variance: Fraction, half: bool = False) -> Law:
    """Z with P[Z = z] proportional to exp(-z²/(2·variance)), on all integers, or on z ≥ 0 where `half`.

    Weights e(z) follow e(z+1) = e(z)·r(z), r(z+1) = r(z)·exp(-1/variance), r(0) = exp(-1/(2·variance)). Beyond the last
    weight the ratios only fall, so the rest is at most e(last)·r/(1-r). T(z) = the sum of e from z on gives every F.
    """

    def brackets(bits: int) -> Brackets:
        precision = bits + GUARD_BITS
        one = 1 << precision
        step = exp_bracket(1 / variance, precision)
        ratio = exp_bracket(1 / (2 * variance), precision)
        weights = [(one, one)]
        # The last weight's tail, e·r/(1-r), must be below half a unit of the bits asked for.
        while weights[-1][1] * ratio[1] >= (one - ratio[1]) << (GUARD_BITS - 1):
            weights.append((weights[-1][0] * ratio[0] >> precision, (weights[-1][1] * ratio[1] >> precision) + 1))
            ratio = (ratio[0] * step[0] >> precision, (ratio[1] * step[1] >> precision) + 1)
        low, high = 0, 1 << (GUARD_BITS - 1)
        tails = []
        for weight in reversed(weights):
            low, high = low + weight[0], high + weight[1]
            tails.append((low, high))
        tails.reverse()
        total = tails[0] if half else (2 * tails[0][0] - one, 2 * tails[0][1] - one)
        shares = [divide(tail, total, precision) for tail in tails[1:]] + [(0, 1 << GUARD_BITS)]
        pairs = [] if half else [(0, 1)] + [outwards(share, GUARD_BITS, bits) for share in reversed(shares[:-1])]
        first = -len(pairs)
        pairs += [outwards((one - high, one - low), GUARD_BITS, bits) for low, high in shares]
        return _infinite(first, pairs, bits)

    return brackets


def _infinite(first: int, pairs: list[Bracket], bits: int) -> Brackets:
    """Brackets whose ends stand for everything beyond them, as `Brackets` demands of a law without an end."""
    low, high = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if first < 0:
        low[0] = 0
    low[-1], high[-1] = (1 << bits) - 1, 1 << bits
    return Brackets(first, low, high)


def settle(source: RandomSource, law: Law, prefix: int, bits: int) -> int:
    """X given that the first `bits` bits of U are `prefix`, drawing more bits until the brackets leave one value.

    `lowest` is the least z that may have F(z) > U, `highest` the least that surely has; X lies between them.
    """
    while True:
        prefix = prefix << 64 | source.bigint(64)
        bits += 64
        brackets = law(bits)
        lowest = bisect_right(brackets.high, prefix)
        highest = bisect_left(brackets.low, prefix + 1)
        if lowest == highest < len(brackets.low):
            return brackets.first + lowest


class InverseTable:
    """Draws from one law: `coarse_bits` bits settle most draws, `fine_bits` nearly all others, and `settle` the rest.

    `edges[i]` is floor(F(first + i)·2**fine_bits). A fine word w above an edge has F ≤ U, below it F > U; only w equal
    to an edge is open. A coarse cell is settled when no edge is one of its fine words. The smaller sizes that tests
    use make the rare branches common; the law is the same at every size.
    """

    def __init__(self, law: Law, coarse_bits: int = 16, fine_bits: int = 64) -> None:
        self.law, self.coarse_bits, self.fine_bits = law, coarse_bits, fine_bits
        self.first, self.edges = _edges(law, fine_bits)
        spare = fine_bits - coarse_bits
        cells = np.arange(1 << coarse_bits, dtype=np.uint64) << np.uint64(spare)
        start = np.searchsorted(self.edges, cells, side="left")
        stop = np.searchsorted(self.edges, cells | np.uint64((1 << spare) - 1), side="right")
        values = np.where(start == stop, start + self.first, 0)
        narrow = np.int16 if np.abs(values).max() < 1 << 15 else np.int64  # a table that fits the cache is faster
        self.unsettled = np.iinfo(narrow).min
        self.coarse = np.where(start == stop, values, self.unsettled).astype(narrow)

    def draw(self, source: RandomSource, size: int) -> np.ndarray:
        """`size` independent draws."""
        out = np.empty(size, dtype=np.int64)
        for start in range(0, size, CHUNK):
            self._draw_chunk(source, out[start : start + CHUNK])
        return out

    def _draw_chunk(self, source: RandomSource, out: np.ndarray) -> None:
        cells = source.words((len(out) + 3) // 4).view(np.uint16)[: len(out)]
        if self.coarse_bits < 16:
            cells = cells >> np.uint16(16 - self.coarse_bits)
        values = self.coarse.take(cells)
        out[:] = values
        unsettled = np.flatnonzero(values == self.unsettled)
        if len(unsettled):
            out[unsettled] = self._draw_fine(source, cells[unsettled])

    def _draw_fine(self, source: RandomSource, cells: np.ndarray) -> np.ndarray:
        spare = self.fine_bits - self.coarse_bits
        words = cells.astype(np.uint64) << np.uint64(spare) | source.words(len(cells)) >> np.uint64(64 - spare)
        places = np.searchsorted(self.edges, words, side="left")
        values = places + self.first
        for index in np.flatnonzero(self.edges[places] == words):
            values[index] = settle(source, self.law, int(words[index]), self.fine_bits)
        return values


def _edges(law: Law, fine_bits: int) -> tuple[int, np.ndarray]:
    """floor(F·2**fine_bits) of every value, with as much precision as it takes to know them all."""
    spare = 64
    largest = (1 << fine_bits) - 1
    while True:
        brackets = law(fine_bits + spare)
        low = [min(value >> spare, largest) for value in brackets.low]
        high = [min(value >> spare, largest) for value in brackets.high]
        if low == high:
            # Of equal edges at either end one is enough: it leaves its word open for `settle`.
            start, stop = low.count(0), len(low) - low.count(largest)
            start = max(start - 1, 0)
            return brackets.first + start, np.array(low[start : stop + 1], dtype=np.uint64)
        spare *= 2


class CoinTable:
    """Coins that fall heads with probability exp(-n·rate) for integers 0 ≤ n < 2**62, n its own for each coin.

    exp(-n·rate) is the product over the digits d of n, in base 2**12, of exp(-d·2**(12·place)·rate), so the coin is
    heads exactly when one independent coin a digit is. A digit's coin compares a word w with the edge
    floor(p·2**64): below is heads, above is tails, equal is settled with further bits against brackets of p.
    """

    digit_bits = 12

    def __init__(self, rate: Fraction, fine_bits: int = 64) -> None:
        self.rate, self.fine_bits = rate, fine_bits
        self._edges: list[np.ndarray] = []

    def flip(self, source: RandomSource, exponents: np.ndarray) -> np.ndarray:
        """One coin for each exponent, True for heads."""
        heads = np.ones(len(exponents), dtype=bool)
        places = -(-int(exponents.max(initial=0)).bit_length() // self.digit_bits)
        for place in range(places):
            digits = exponents >> (self.digit_bits * place) & ((1 << self.digit_bits) - 1)
            edges = self._place(place)[digits]
            words = source.words(len(exponents)) >> np.uint64(64 - self.fine_bits)
            coins = words < edges
            for index in np.flatnonzero(words == edges):
                exponent = (int(digits[index]) << (self.digit_bits * place)) * self.rate
                coins[index] = self._settle(source, exponent, int(words[index]))
            heads &= coins
        return heads

    def _place(self, place: int) -> np.ndarray:
        while len(self._edges) <= place:
            self._edges.append(self._digit_edges((1 << (self.digit_bits * len(self._edges))) * self.rate))
        return self._edges[place]

    def _digit_edges(self, rate: Fraction) -> np.ndarray:
        largest = (1 << self.fine_bits) - 1
        spare = 64
        while True:
            precision = self.fine_bits + spare + GUARD_BITS
            one = 1 << precision
            terms = powers((one, one), exp_bracket(rate, precision), precision, 0, 1 << self.digit_bits)
            low = [min(term[0] >> (precision - self.fine_bits), largest) for term in terms]
            high = [min(term[1] >> (precision - self.fine_bits), largest) for term in terms]
            if low == high:
                return np.array(low, dtype=np.uint64)
            spare *= 2

    def _settle(self, source: RandomSource, exponent: Fraction, prefix: int) -> bool:
        """U < exp(-exponent), given the first bits of U."""
        bits = self.fine_bits
        while True:
            prefix = prefix << 64 | source.bigint(64)
            bits += 64
            low, high = exp_bracket(exponent, bits)
            if prefix + 1 <= low:
                return True
            if prefix >= high:
                return False
