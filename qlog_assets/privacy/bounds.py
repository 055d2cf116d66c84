"""Bounds in print: an upper bound is never printed below its value, a lower bound never above it. Text only.

What was spent or is promised is an upper bound (`at_most`); what is left of a budget is a lower one (`at_least`). A
number that few digits hold stays as it is: exactly one millionth is `1e-06`, a little more is `1.01e-06`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

Number = Fraction | float | int

EXP_SLACK = Fraction(1, 10**12)
"""More than `math.exp` and the rounding of its argument err by, for arguments up to `LARGEST_EXPONENT`."""
LARGEST_EXPONENT = 700
"""The largest ε whose exponential is taken; beyond it a double overflows."""


def at_most(value: Number, digits: int = 4) -> str:
    """An upper bound in so many significant digits, rounded up."""
    return _printed(value, digits, math.ceil)


def at_least(value: Number, digits: int = 4) -> str:
    """A lower bound in so many significant digits, rounded down."""
    return _printed(value, digits, math.floor)


def exp_at_most(exponent: Number) -> Fraction:
    """A number not below e^exponent, and above it by less than a part in 10^11."""
    if exponent == 0:
        return Fraction(1)
    return Fraction(math.exp(float(exponent))) * (1 + EXP_SLACK)


def exact_value(value: Number) -> Fraction:
    """The number as a rational. A double stands for the decimal that it is printed as: 0.1 is one tenth."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def double_at_least(value: Fraction) -> float:
    """The nearest double if it reads as the value itself, otherwise never above the value."""
    number = float(value)
    if Fraction(repr(number)) == value or Fraction(number) <= value:
        return number
    return math.nextafter(number, -math.inf)


def _printed(value: Number, digits: int, towards: Callable[[Fraction], int]) -> str:
    if not math.isfinite(value):
        return str(float(value))
    number = exact_value(value)
    if number == 0:
        return "0"
    power = len(str(abs(number.numerator))) - len(str(number.denominator))  # of ten: this one, or the one below
    if abs(number) < Fraction(10) ** power:
        power -= 1
    unit = Fraction(10) ** (power - digits + 1)
    # A decimal of at most 15 digits survives the way to a double and back.
    return f"{float(towards(number / unit) * unit):.{digits}g}"
