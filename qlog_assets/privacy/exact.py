"""Arithmetic that cannot round the wrong way: integer brackets of exponentials, Laplace tails and binomial draws.

A *bracket* of a real x at `bits` is a pair of integers (low, high) with low ≤ x·2**bits ≤ high. Every function here
returns one, or a decision that follows from one; where a bracket is too wide to decide, callers ask again with more
bits. Nothing here is a float, and nothing here is an array: `noise` turns brackets into fast tables.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from qlog_assets.privacy.errors import ParameterError

Bracket = tuple[int, int]
Probability = Fraction | Callable[[int], tuple[Fraction, Fraction]]
"""A rational, or a function from bits to fractions (low, high) around a real, no further apart than about 2**-bits."""


@lru_cache(maxsize=4096)
def exp_bracket(x: Fraction, bits: int) -> Bracket:
    """A bracket of exp(-x) for x ≥ 0, at most four units wide.

    The argument is halved until y = x/2**h ≤ 2**-8 and rounded down to a fixed-point number, which moves exp(-y) by
    less than one unit. In the alternating series each term is the previous one times y/i, rounded down twice, so
    it is low by e_i ≤ e_(i-1)·y/i + 1/i + 1 < 2 units; the series stops at the first term that rounds to zero, whose
    true value (< 2 units) bounds the remainder. With n terms the sum is off by less than 2n + 3 units. Squaring h
    times, rounding outwards, restores exp(-x); the h + 16 spare bits absorb the doubling of the error.
    """
    if x < 0:
        raise ParameterError("the exponential is bracketed for exponents of zero or below")
    if x >= bits:  # exp(-bits) < 2**-bits
        return 0, 1
    halvings = (x.numerator // x.denominator).bit_length() + 8
    spare = halvings + 16
    precision = bits + spare
    one = 1 << precision
    y = (x.numerator << (precision - halvings)) // x.denominator
    total, term, index = one, one, 0
    while term:
        index += 1
        term = (term * y >> precision) // index
        total += -term if index % 2 else term
    error = 2 * index + 3
    low, high = total - error, min(one, total + error)
    for _ in range(halvings):
        low = low * low >> precision
        high = (high * high >> precision) + 1
    return low >> spare, min(1 << bits, (high >> spare) + 1)


def divide(numerator: Bracket, denominator: Bracket, bits: int) -> Bracket:
    """A bracket of the quotient of two non-negative reals given at the same number of bits."""
    return (numerator[0] << bits) // denominator[1], -((-numerator[1] << bits) // denominator[0])


def laplace_survival(scale: Fraction, at_least: int, bits: int = 256) -> tuple[Fraction, Fraction]:
    """Fractions around P[X ≥ at_least], X discrete Laplace, at most 2**-bits apart.

    With a = exp(-1/scale): a**k/(1+a) for k ≥ 1, by summing (1-a)/(1+a)·a**z over z ≥ k; and 1 - P[X ≥ 1-k] for
    k ≤ 0, because X is symmetric.
    """
    precision = bits + 8
    one = 1 << precision
    base = exp_bracket(1 / scale, precision)
    power = exp_bracket(Fraction(at_least if at_least >= 1 else 1 - at_least) / scale, precision)
    low, high = divide(power, (one + base[0], one + base[1]), precision)
    if at_least <= 0:
        low, high = one - high, one - low
    return Fraction(low, one), Fraction(min(high, one), one)


def laplace_threshold(scale: Fraction, probability: Fraction) -> int:
    """The least integer t with P[X ≥ t] ≤ probability, decided exactly, for 0 < probability < 1.

    Each comparison asks for more bits until the bracket excludes `probability`; that ends, because the survival
    function is a rational function of exp(-1/scale), which is transcendental, so it never equals a rational.
    """
    if not 0 < probability < 1:
        raise ParameterError("a tail probability lies strictly between 0 and 1")

    def holds(at_least: int) -> bool:
        bits = 64
        while True:
            low, high = laplace_survival(scale, at_least, bits)
            if high <= probability:
                return True
            if low > probability:
                return False
            bits *= 2

    low, high = -1, 1
    while holds(low):
        low *= 2
    while not holds(high):
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
