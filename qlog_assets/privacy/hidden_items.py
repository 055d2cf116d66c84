"""The threshold that hides items to which one user alone gives weight, however the user spreads it. Draws nothing.

`gaussian.new_item_threshold` is for users who give all their items the same weight. Where weights follow what a noisy
round said of the items, a user's weight vector may be anything of at most d items and of L2 at most W, so the
threshold must hide all of them: the least T with

    sup { Σ P[wᵢ + Z >= T] : at most d whole numbers wᵢ in [0, W], Σ wᵢ² <= W² } <= δ.

**Bound.** Let g(w) be an upper bound of P[w + Z >= T] and λ >= 0. If g(w) <= m + λ·w² for every w in [0, W], then the
sum is at most d·m + λ·W² (the value of a Lagrange relaxation; at the best λ it is d times the concave envelope of w² ↦
g at W²/d). λ and a first T are found with doubles, which decide nothing: the inequality d·m + λ·W² <= δ is then proven
for the chosen λ, exactly.

**Proof by intervals.** g grows with w, so on a whole interval [a, b] of weights g(w) - λ·w² <= g(b) - λ·a². Intervals
for which this is not enough are halved until it is, or until a single weight breaks the bound: then T is too low. The
values are those of `gaussian`: g(w) = 1 - Φ((T - w - 1/2)/σ) bounds the tail wherever T - w - 1/2 >= σ, evaluated with
over 100 bits more than a double has and rounded up by 1 + 2**-40.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from mpmath.ctx_mp import MPContext

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.gaussian import SAFETY, as_real
from qlog_assets.privacy.histogram import check_positive, checked_delta

GRID_POINTS = 1 << 12
"""How many weights the search with doubles looks at."""
STEP = Fraction(1, 1 << 16)
"""By what part T is raised where the proof fails for what the search found."""
SMALLEST_DELTA = Fraction(1, 10**300)
"""Below it the doubles of the search are 0, and T would be found in steps of a 2**16th."""


@lru_cache(maxsize=256)
def hiding_threshold(variance: int, largest_weight: int, items_per_user: int, delta: Fraction) -> int:
    """T for d = `items_per_user` weights of L2 at most W = `largest_weight`, the noise's variance and δ: at most a few
    parts in 2**16 above the least."""
    check_positive("items_per_user", items_per_user)
    check_positive("largest_weight", largest_weight)
    if checked_delta(delta) < SMALLEST_DELTA:
        raise ParameterError(f"the delta that hides new items is at least {float(SMALLEST_DELTA)}")
    found = _search_threshold(variance, largest_weight, items_per_user, float(delta))
    threshold = max(_tail_starts(variance, largest_weight), found)
    while not hides(threshold, variance, largest_weight, items_per_user, delta):
        threshold += math.ceil(threshold * STEP)
    return threshold


def hides(threshold: int, variance: int, largest_weight: int, items_per_user: int, delta: Fraction) -> bool:
    """Whether the bound above proves that T = `threshold` hides every weight vector, at the λ that doubles suggest."""
    if threshold < _tail_starts(variance, largest_weight):
        return False
    slope = _best_slope(threshold, variance, largest_weight, items_per_user)[0]
    most = (delta / SAFETY - slope * largest_weight**2) / items_per_user
    if most <= 0:
        return False
    context = MPContext()
    context.prec = 160 + math.ceil(1 / delta).bit_length()
    deviation, bound, rise = context.sqrt(variance), as_real(context, most), as_real(context, slope)

    def tail(weight: int) -> object:
        return context.ncdf(-(threshold - weight - context.mpf(1) / 2) / deviation)

    open_intervals = [(0, largest_weight, tail(largest_weight))]
    while open_intervals:
        low, high, at_high = open_intervals.pop()
        if at_high <= bound + rise * low**2:
            continue
        if low == high:
            return False
        middle = (low + high) // 2
        open_intervals += [(low, middle, tail(middle)), (middle + 1, high, at_high)]
    return True


def _tail_starts(variance: int, largest_weight: int) -> int:
    """From where on the tail bound holds for every weight: T - W - 1/2 >= σ."""
    return largest_weight + math.isqrt(variance) + 2


def _search_threshold(variance: int, largest_weight: int, items_per_user: int, delta: float) -> int:
    """Nearly the least T, by doubles."""
    low, high = 0, 1
    while _best_slope(high, variance, largest_weight, items_per_user)[1] > delta:
        low, high = high, 2 * high
    while high - low > max(1, high >> 20):
        middle = (low + high) // 2
        small = _best_slope(middle, variance, largest_weight, items_per_user)[1] <= delta
        low, high = (low, middle) if small else (middle, high)
    return high


def _best_slope(threshold: int, variance: int, largest_weight: int, items_per_user: int) -> tuple[Fraction, float]:
    """λ with the least d·max(g - λw²) + λW² over a grid of weights, and that value.

    It is the slope of the concave envelope of w² ↦ g over W²/d, where the point that a line touches passes W²/d.
    """
    from scipy.special import ndtr  # a quarter of a second, only where a plan is made

    weights = np.linspace(0, largest_weight, GRID_POINTS + 1)
    squares, tails = weights**2, ndtr((weights - threshold + 0.5) / math.sqrt(variance))
    even = largest_weight**2 / items_per_user
    low, high = 0.0, float(tails[-1] / squares[1])
    for _ in range(200):
        middle = (low + high) / 2
        touching = squares[np.argmax(tails - middle * squares)]
        low, high = (middle, high) if touching > even else (low, middle)
    value = items_per_user * float((tails - high * squares).max()) + high * largest_weight**2
    return Fraction(high), value
