"""The noise that may be published: exact integer laws, drawn in bulk from a source of random bits.

Belongs here: discrete Laplace, its tails, discrete Gaussian, and the reading of their scales. No float decides, or
even enters, a draw: bits are looked up in tables of integers and undecided ones refined exactly (`tables`). Float noise
for studies of the papers is in `paper_noise`; what noise costs is in `guarantees`.

Values are 64-bit integers. A draw that does not fit raises OverflowError instead of wrapping round; at the largest
scale allowed that has a probability below exp(-10**9).
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np

from qlog_assets.privacy.errors import ParameterError
from qlog_assets.privacy.parameters import exact
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.tables import (
    CHUNK,
    CoinTable,
    InverseTable,
    digit_law,
    gaussian_law,
    geometric_law,
    two_sided_law,
)

SMALLEST_SCALE, LARGEST_SCALE = Fraction(1, 10**6), Fraction(10**9)
# One table serves scales up to this; its coarse cells then settle nine draws in ten, and it is built in a tenth of a
# second. Larger scales are drawn digit by digit, each digit from a table of its own.
LARGEST_TABLE_SCALE = 1024
DIGIT_BASE = 1024


def as_scale(value: int | str | Decimal | Fraction) -> Fraction:
    """A noise scale or variance as an exact rational: `10`, `"37.3"`, `"3/7"`. Floats, zero and below are refused."""
    try:
        if isinstance(value, str | Decimal) and "/" not in str(value):
            number = Decimal(value)
            if number.is_finite() and abs(number.adjusted()) > 30:  # before it becomes a number of a billion digits
                raise ParameterError(f"a noise scale of {number} is out of range")
        scale = exact(value)
    except (InvalidOperation, ValueError, TypeError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"a noise scale is an exact number such as 10, '37.3' or '3/7', not {value!r}") from None
    if scale <= 0:
        raise ParameterError(f"a noise scale is above zero, not {value}")
    return scale


def checked_scale(scale: Fraction, size: int = 0) -> Fraction:
    """The scale as a Fraction, if Laplace noise of that scale and that many draws of it can be had."""
    scale = as_scale(scale)
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise ParameterError(f"a noise scale lies between 1/{SMALLEST_SCALE.denominator} and {LARGEST_SCALE}")
    if size < 0:
        raise ParameterError("a number of draws is zero or more")
    return scale


def discrete_laplace(source: RandomSource, scale: Fraction, size: int) -> np.ndarray:
    """`size` independent X with P[X = z] proportional to exp(-|z|/scale), exactly.

    Up to LARGEST_TABLE_SCALE by one table. Above, X = m·V + D with V = floor(X/m) and m a power of DIGIT_BASE. With
    a = exp(-1/scale): given V ≥ 0, P[D = d] is proportional to a**d on [0, m); given V < 0, |X| = m|V| - D, so
    E = m - 1 - D has P[E = e] proportional to a**e on [0, m). So D or E is a remainder independent of V, and
    its digits are independent: a**(d0 + d1·base) is a product. V and each digit come from a table of their own.
    """
    scale = checked_scale(scale, size)
    places = _places(scale)
    table = _two_sided(scale, places)
    if not places:
        return table.draw(source, size)
    block = DIGIT_BASE**places
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        part = out[start : start + CHUNK]
        steps = table.draw(source, len(part))
        remainder = _remainder(source, scale, places, len(part))
        np.subtract(block - 1, remainder, out=remainder, where=steps < 0)
        np.add(_scaled(steps, block), remainder, out=part)
    return out


def discrete_laplace_tail(source: RandomSource, scale: Fraction, at_least: int, size: int) -> np.ndarray:
    """`size` independent draws of X given X ≥ at_least, X discrete Laplace, exactly.

    For at_least ≥ 1 the mass falls by a = exp(-1/scale) a step, so X - at_least is geometric. For at_least ≤ 0 the
    condition holds with probability above one half: draws that miss it are drawn again.
    """
    scale = checked_scale(scale, size)
    if at_least >= 1:
        return geometric(source, scale, size) + at_least
    out = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        values = discrete_laplace(source, scale, min(size - filled, CHUNK))
        values = values[values >= at_least]
        out[filled : filled + len(values)] = values
        filled += len(values)
    return out


def geometric(source: RandomSource, scale: Fraction, size: int) -> np.ndarray:
    """`size` independent G ≥ 0 with P[G = g] proportional to exp(-g/scale), exactly; large scales digit by digit."""
    scale = checked_scale(scale, size)
    places = _places(scale)
    table = _geometric(scale, places)
    if not places:
        return table.draw(source, size)
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        part = out[start : start + CHUNK]
        steps = table.draw(source, len(part))
        np.add(_scaled(steps, DIGIT_BASE**places), _remainder(source, scale, places, len(part)), out=part)
    return out


def discrete_gaussian(source: RandomSource, variance: Fraction, size: int) -> np.ndarray:
    """`size` independent Z with P[Z = z] proportional to exp(-z²/(2·variance)), exactly.

    Up to a standard deviation of LARGEST_TABLE_SCALE by one table. Above, by rejection: with t about a sixteenth of
    the standard deviation draw K ≥ 0 with P[K = k] proportional to exp(-(k·t)²/(2·variance)), u uniform on [0, t) and a
    sign. y = k·t + u has y² = (k·t)² + u·(2·k·t + u), so keeping it with probability exp(-u·(2·k·t + u)/(2·variance))
    leaves P[y] proportional to exp(-y²/(2·variance)) on y ≥ 0; dropping -0 makes both signs of every other value, and
    zero once. More than nine in ten are kept.
    """
    variance = as_scale(variance)
    if not SMALLEST_SCALE**2 <= variance <= LARGEST_SCALE**2 / 100:
        raise ParameterError("a variance lies between 1e-12 and 1e16")
    if size < 0:
        raise ParameterError("a number of draws is zero or more")
    if variance <= LARGEST_TABLE_SCALE**2:
        return _gaussian(variance).draw(source, size)
    block = isqrt(int(variance)) // 16
    steps, coins = _gaussian_parts(variance, block)
    out = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        count = min(size - filled, CHUNK)
        base = steps.draw(source, count)
        if base.max(initial=0) >= 1 << 10:  # sixty standard deviations: the products below would not fit
            raise OverflowError("a draw of discrete Gaussian noise does not fit 64 bits")
        base *= block
        within = source.integers(block, count)
        kept = coins.flip(source, within * (2 * base + within))
        values = base + within
        negative = np.unpackbits(source.words((count + 63) // 64).view(np.uint8))[:count].astype(np.bool_)
        kept &= ~(negative & (values == 0))
        np.negative(values, out=values, where=negative)
        values = values[kept]
        out[filled : filled + len(values)] = values
        filled += len(values)
    return out


def _places(scale: Fraction) -> int:
    """How many digits are split off so that what remains has a scale one table can serve."""
    places = 0
    while scale > LARGEST_TABLE_SCALE * DIGIT_BASE**places:
        places += 1
    return places


def _remainder(source: RandomSource, scale: Fraction, places: int, size: int) -> np.ndarray:
    """R on [0, DIGIT_BASE**places) with P[R = r] proportional to exp(-r/scale)."""
    total = np.zeros(size, dtype=np.int64)
    for place in range(places):
        total += _digit(scale, place).draw(source, size) * DIGIT_BASE**place
    return total


def _scaled(values: np.ndarray, block: int) -> np.ndarray:
    if len(values) and max(abs(int(values.min())), abs(int(values.max()))) >= (1 << 62) // block:
        raise OverflowError("a draw of discrete Laplace noise does not fit 64 bits")
    return values * block


# Tables are built once a scale and process; each is at most a few megabytes.
@lru_cache(maxsize=64)
def _two_sided(scale: Fraction, places: int) -> InverseTable:
    return InverseTable(two_sided_law(scale, DIGIT_BASE**places))


@lru_cache(maxsize=64)
def _geometric(scale: Fraction, places: int) -> InverseTable:
    return InverseTable(geometric_law(scale / DIGIT_BASE**places))


@lru_cache(maxsize=64)
def _digit(scale: Fraction, place: int) -> InverseTable:
    return InverseTable(digit_law(scale / DIGIT_BASE**place, DIGIT_BASE))


@lru_cache(maxsize=64)
def _gaussian(variance: Fraction) -> InverseTable:
    return InverseTable(gaussian_law(variance))


@lru_cache(maxsize=16)
def _gaussian_parts(variance: Fraction, block: int) -> tuple[InverseTable, CoinTable]:
    return InverseTable(gaussian_law(variance / block**2, half=True)), CoinTable(1 / (2 * variance))
