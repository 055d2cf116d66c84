"""The least threshold that a tail of noise allows, found by exact bisection: what faster formulas are compared with."""

from __future__ import annotations

from fractions import Fraction

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.numbers import laplace_survival


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
