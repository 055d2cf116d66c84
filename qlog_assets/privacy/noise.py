"""The noise that may be published: exact integer laws, drawn in bulk from a source of random bits.

Belongs here: discrete Laplace, its tails, discrete Gaussian, and the reading of their scales. No float decides, or
even enters, a draw: bits are looked up in tables of integers and undecided ones refined exactly (`noise_tables`). Float
noise for studies of the papers is in `paper_noise`; what noise costs is in `guarantee`.

Values are 64-bit integers. A draw too large for the arithmetic raises OverflowError instead of wrapping round; that has
a probability below exp(-2000) a draw, at any scale allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.noise_tables import (
    CHUNK,
    CoinTable,
    InverseTable,
    Law,
    digit_law,
    gaussian_law,
    geometric_law,
    two_sided_law,
)
from qlog_assets.privacy.parameters import exact
from qlog_assets.privacy.randomness import RandomSource

SMALLEST_SCALE, LARGEST_SCALE = Fraction(1, 10**6), Fraction(10**9)
# One table serves scales up to this; its coarse cells then settle six draws in seven, and it is built in a third of a
# second. Larger scales are drawn digit by digit, each digit from a table of its own.
LARGEST_TABLE_SCALE = 1024
DIGIT_BASE = 1024
SMALLEST_VARIANCE, LARGEST_VARIANCE = SMALLEST_SCALE**2, Fraction(10**16)
MOST_BLOCKS = 1 << 10  # sixty standard deviations of the largest variance, whose products still fit 63 bits


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
    """`size` independent X with P[X = z] proportional to exp(-|z|/scale), exactly."""
    scale = checked_scale(scale, size)
    places = _places(scale)
    if places:
        return _composed_laplace(source, scale, DIGIT_BASE, places, size)
    return _table(two_sided_law, scale, 1).draw(source, size)


def _composed_laplace(source: RandomSource, scale: Fraction, base: int, places: int, size: int) -> np.ndarray:
    """Discrete Laplace noise whose lowest `places` digits are drawn on their own: X = m·V + D, m = base**places.

    With a = exp(-1/scale): given V = floor(X/m) ≥ 0, P[D = d] is proportional to a**d on [0, m). Given V < 0,
    |X| = m·|V| - D, so E = m - 1 - D has P[E = e] proportional to a**e on [0, m). Either way one remainder, with
    the same law whatever V is, gives D; and V comes from a table of its own.
    """
    block = base**places
    table = _table(two_sided_law, scale, block)
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        part = out[start : start + CHUNK]
        steps = table.draw(source, len(part))
        remainder = _remainder(source, scale, base, places, len(part))
        np.subtract(block - 1, remainder, out=remainder, where=steps < 0)
        np.add(_scaled(steps, block), remainder, out=part)
    return out


def discrete_laplace_tail(source: RandomSource, scale: Fraction, at_least: int, size: int) -> np.ndarray:
    """`size` independent draws of X given X ≥ at_least, X discrete Laplace, exactly.

    For at_least ≥ 1 the mass falls by a = exp(-1/scale) a step, so X - at_least is geometric. For at_least ≤ 0 the
    condition holds with probability above one half: draws that miss it are drawn again.
    """
    scale = checked_scale(scale, size)
    if abs(at_least) >= 1 << 61:
        raise ParameterError("a threshold lies between -2**61 and 2**61")
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
    """`size` independent G ≥ 0 with P[G = g] proportional to exp(-g/scale), exactly."""
    scale = checked_scale(scale, size)
    places = _places(scale)
    if places:
        return _composed_geometric(source, scale, DIGIT_BASE, places, size)
    return _table(geometric_law, scale).draw(source, size)


def _composed_geometric(source: RandomSource, scale: Fraction, base: int, places: int, size: int) -> np.ndarray:
    """Geometric noise as m·V + R, m = base**places: a**(m·v + r) is a product, so V and R are independent."""
    block = base**places
    table = _table(geometric_law, scale / block)
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        part = out[start : start + CHUNK]
        steps = _scaled(table.draw(source, len(part)), block)
        np.add(steps, _remainder(source, scale, base, places, len(part)), out=part)
    return out


def _remainder(source: RandomSource, scale: Fraction, base: int, places: int, size: int) -> np.ndarray:
    """R on [0, base**places) with P[R = r] proportional to exp(-r/scale): independent digits, for the same reason."""
    total = np.zeros(size, dtype=np.int64)
    for place in range(places):
        total += _table(digit_law, scale / base**place, base).draw(source, size) * base**place
    return total


def discrete_gaussian(source: RandomSource, variance: Fraction, size: int) -> np.ndarray:
    """`size` independent Z with P[Z = z] proportional to exp(-z²/(2·variance)), exactly."""
    variance = as_scale(variance)
    if not SMALLEST_VARIANCE <= variance <= LARGEST_VARIANCE:
        raise ParameterError("a variance of Gaussian noise lies between 1e-12 and 1e16")
    if size < 0:
        raise ParameterError("a number of draws is zero or more")
    if variance > LARGEST_TABLE_SCALE**2:
        return _gaussian_by_rejection(source, variance, isqrt(int(variance)) // 16, size)
    return _table(gaussian_law, variance).draw(source, size)


def _gaussian_by_rejection(source: RandomSource, variance: Fraction, block: int, size: int) -> np.ndarray:
    """Discrete Gaussian noise from a coarse one, whose steps are `block` wide.

    Draw x = k·block with P[k] proportional to exp(-x²/(2·variance)) on k ≥ 0, u uniform on [0, block), and a sign.
    As (x + u)² = x² + u·(2·x + u), keeping x + u with probability exp(-u·(2·x + u)/(2·variance)) leaves y = x + u with
    P[y] proportional to exp(-y²/(2·variance)) on y ≥ 0; then -0 is dropped, so that zero is there once like every other
    value. With blocks of a sixteenth of the standard deviation more than nine in ten are kept.
    """
    steps, coins = _table(gaussian_law, variance / block**2, True), _coins(1 / (2 * variance))
    out = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        count = min(size - filled, CHUNK)
        base = steps.draw(source, count)
        if base.max() >= MOST_BLOCKS:
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


def _scaled(values: np.ndarray, block: int) -> np.ndarray:
    if len(values) and max(abs(int(values.min())), abs(int(values.max()))) >= (1 << 62) // block:
        raise OverflowError("a draw of discrete Laplace noise does not fit 64 bits")
    return values * block


# Tables are built once per law and process; each is at most a few megabytes.
@lru_cache(maxsize=64)
def _table(law: Callable[..., Law], *parameters: Fraction | int) -> InverseTable:
    return InverseTable(law(*parameters))


@lru_cache(maxsize=16)
def _coins(rate: Fraction) -> CoinTable:
    return CoinTable(rate)
