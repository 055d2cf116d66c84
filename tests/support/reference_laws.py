"""What noise is compared with in tests: distribution functions by mpmath, samplers by fractions, and a χ² test.

Nothing here is shared with the code under test.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import mpmath
import numpy as np
from scipy import stats

FALSE_ALARM = 1e-6
DIGITS = 110  # 365 bits: beyond every precision the tests ask of the code
Cdf = Callable[[int], mpmath.mpf]


def real(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def laplace_cdf(scale: Fraction) -> Cdf:
    with mpmath.workdps(DIGITS):
        a = mpmath.exp(-1 / real(scale))

    def cdf(value: int) -> mpmath.mpf:
        with mpmath.workdps(DIGITS):
            return a**-value / (1 + a) if value < 0 else 1 - a ** (value + 1) / (1 + a)

    return cdf


def geometric_cdf(scale: Fraction, values: int | None = None) -> Cdf:
    """P[G ≤ g], P[G = g] proportional to exp(-g/scale), on [0, values) or without end."""

    def cdf(value: int) -> mpmath.mpf:
        if value < 0:
            return mpmath.mpf(0)
        with mpmath.workdps(DIGITS):
            total = 1 if values is None else 1 - mpmath.exp(-values / real(scale))
            reach = value + 1 if values is None else min(value + 1, values)
            return (1 - mpmath.exp(-reach / real(scale))) / total

    return cdf


def gaussian_cdf(variance: Fraction, half: bool = False) -> Cdf:
    @lru_cache
    def sums() -> tuple[int, int, list[mpmath.mpf]]:
        v = real(variance)
        reach = int(mpmath.sqrt(2 * v * DIGITS * mpmath.log(10))) + 2
        first = 0 if half else -reach
        running, total = [], mpmath.mpf(0)
        for z in range(first, reach + 1):
            total += mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * v))
            running.append(total)
        return first, reach, running

    def cdf(value: int) -> mpmath.mpf:
        with mpmath.workdps(DIGITS):
            first, reach, running = sums()
            return mpmath.mpf(0) if value < first else running[min(value, reach) - first] / running[-1]

    return cdf


def assert_fits(values: np.ndarray, cdf: Cdf, edges: np.ndarray) -> None:
    """χ² of draws against the probabilities of [edges[i], edges[i+1]); thin cells and all outside share one cell.

    Fails wrongly with probability about FALSE_ALARM if the seed were random.
    """
    counts = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)
    with mpmath.workdps(DIGITS):
        cumulative = [cdf(int(edge) - 1) for edge in edges]
        probabilities = [high - low for low, high in pairwise(cumulative)]
        outside = float(cumulative[0] + 1 - cumulative[-1])
    observed = np.append(counts[1:-1], counts[0] + counts[-1])
    expected = np.append([float(p) for p in probabilities], outside) * len(values)
    enough = expected >= 10
    assert observed[~enough].sum() <= stats.poisson.isf(FALSE_ALARM, max(expected[~enough].sum(), 1e-300))
    observed, expected = observed[enough], expected[enough]
    if len(expected) > 1:
        assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > FALSE_ALARM


def bernoulli_exp(rng: random.Random, gamma: Fraction) -> bool:
    """Heads with probability exp(-gamma), 0 ≤ gamma ≤ 1, as Canonne, Kamath and Steinke do it."""
    k = 1
    while rng.randrange((gamma / k).denominator) < (gamma / k).numerator:
        k += 1
    return k % 2 == 1


def reference_laplace(rng: random.Random, scale: Fraction) -> int:
    """One discrete Laplace draw, their Algorithm 2, in fractions."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = rng.randrange(t)
        if not bernoulli_exp(rng, Fraction(u, t)):
            continue
        v = 0
        while bernoulli_exp(rng, Fraction(1)):
            v += 1
        y = (u + t * v) // s
        if rng.randrange(2) == 0:
            return y
        if y:
            return -y


def reference_gaussian(rng: random.Random, variance: Fraction) -> int:
    """One discrete Gaussian draw, their Algorithm 3, in fractions."""
    t = int(mpmath.floor(mpmath.sqrt(real(variance)))) + 1
    while True:
        y = reference_laplace(rng, Fraction(t))
        gamma = (abs(y) - variance / t) ** 2 / (2 * variance)
        whole = int(gamma)
        if all(bernoulli_exp(rng, Fraction(1)) for _ in range(whole)) and bernoulli_exp(rng, gamma - whole):
            return y
