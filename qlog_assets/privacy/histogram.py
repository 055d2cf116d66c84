"""Noisy counts of users per item: the stability histogram, the histogram on a public domain, and the two together.

Arrays of user counts in, positions and noisy counts out, in the order of the input. Limiting what one user contributes,
naming items and sorting for publication happen elsewhere; better selection for many items a user is in `selection`.

Everywhere m is `items_per_user`, b the scale, a = e^(-1/b), and the noise X has P[X=z] proportional to a^|z|. Adding or
removing one user moves at most m counts, each by 1. Every count is tested with >=, and the tested value is the printed
one: a second draw would cost a second ε.

A minimum number of users τ is honoured by shifting: noise and thresholds see max(0, count - (τ-1)), and τ-1 is added
back in print. The shift is a function of one count that moves by at most 1 when the count does, and a shifted count
first differs from 0 at 1, so every proof below holds for shifted counts as it stands. Thresholds are compared with
shifted noisy counts, so that a domain's fakes are as rare as without a minimum; printed counts are τ-1 above them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from mpmath.ctx_iv import MPIntervalContext, ivmpf
from mpmath.libmp import round_ceiling, to_int

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.noise import as_scale, discrete_laplace
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.zero_domain import draw_zero_cells

FIRST_PRECISION = 128
MOST_USERS = 1 << 61  # counts and noise are added in 64 bits: larger counts could wrap around


@dataclass(frozen=True)
class Released:
    """What passed its threshold: positions in the input, ascending, and the noisy counts, which are the ones tested."""

    indices: np.ndarray
    users: np.ndarray


def stability_threshold(items_per_user: int, scale: Fraction, delta: Fraction) -> int:
    """The least T with m·p <= δ and p <= 1 - a, where p = P[1 + X >= T] = a^(T-1)/(1+a).

    The first condition bounds the chance that any item only one user holds is printed; the second bounds the factor
    1/(1-p) that such an item's absence costs (see `stability_histogram`).

    Exact: T - 1 is the ceiling of x = b·max{ln(m/(δ(1+a))), -ln(1-a²)}, computed as an interval that is narrowed until
    both ends have the same ceiling. That ends: x = k for an integer k would make a = e^(-1/b) a root of the polynomial
    m·a^k = δ(1+a) or a^k = 1-a² (neither is the zero polynomial), and e to a rational power is transcendental. x > 0
    because of its second term, so T >= 2.
    """
    check_positive("items_per_user", items_per_user)
    scale, delta = as_scale(scale), checked_delta(delta)
    if delta == 0:
        raise ParameterError("delta must be above 0: without a public domain no threshold achieves delta = 0")
    context, precision = MPIntervalContext(), FIRST_PRECISION
    while True:
        context.prec = precision
        b = context.mpf(scale.numerator) / scale.denominator
        a = context.exp(-1 / b)
        new_item = b * context.log(context.mpf(items_per_user * delta.denominator) / (delta.numerator * (1 + a)))
        missing_item = -b * context.log((1 - a) * (1 + a))
        low, high = (max(ends) for ends in zip(ceilings(new_item), ceilings(missing_item), strict=True))
        if low == high:
            return 1 + low
        precision *= 2


def stability_histogram(
    source: RandomSource,
    users: np.ndarray,
    items_per_user: int,
    scale: Fraction,
    delta: Fraction,
    min_users: int = 1,
    at_least: int = 0,
) -> Released:
    """Items of an unknown domain whose noisy count reaches max(T, at_least); items nobody holds are never looked at.

    Costs (m/b, δ) under adding or removing one user. Proof: let D' = D and a user, who holds items S1 of D's support
    and S2 outside it, |S1| + |S2| <= m. An S2 item has count 1 in D' and is printed with probability at most p; in D it
    is never printed. Let R be the output on D's support. With D' for D its law changes by a factor within
    e^(±|S1|/b), and S2's noise is independent of it.
    Forward: P[A(D') in E] <= P[an S2 item is printed] + P[R(D') in E] <= |S2|·p + e^(|S1|/b)·P[A(D) in E], and
    |S2|·p <= δ. Converse: outputs of A(D) hold no S2 item, and on such outputs
    P[A(D')=o] = (product over S2 of 1-p_i) · P[R(D')=o] >= (1-p)^|S2| · e^(-|S1|/b) · P[A(D)=o]; since
    1/(1-p) <= 1/a = e^(1/b), the ratio is at most e^(m/b). A larger threshold is post-processing.
    """
    threshold = max(stability_threshold(items_per_user, scale, delta), checked_integer("at_least", at_least))
    scale = as_scale(scale)
    shifted = shifted_counts(users, min_users)
    support = np.flatnonzero(shifted)
    return _noise_and_test(source, shifted, support, scale, threshold, min_users)


def public_histogram(
    source: RandomSource, users: np.ndarray, scale: Fraction, threshold: int, min_users: int = 1
) -> Released:
    """Items of a public domain whose noisy count reaches the threshold; a listed item with count 0 is noised too.

    The rows are the part of the domain the caller wants noised one by one: at least every item somebody holds. The rest
    of the domain, where the count is 0, must come from `zero_domain.draw_zero_cells` with the same scale and threshold
    (for it: the threshold itself, and min_users - 1 added to its values). Together they cost (m/b, 0): every item of
    the domain carries noise whether somebody holds it or not, at most m counts move by 1 and each changes the law by at
    most e^(1/b) in both directions; the threshold is post-processing.
    """
    scale = as_scale(scale)
    checked_integer("threshold", threshold)
    shifted = shifted_counts(users, min_users)
    return _noise_and_test(source, shifted, np.arange(len(shifted)), scale, threshold, min_users)


def hybrid_histogram(
    source: RandomSource,
    users: np.ndarray,
    in_pool: np.ndarray,
    zero_pool_cells: int,
    scale: Fraction,
    pool_threshold: int,
    items_per_user: int,
    delta: Fraction,
    min_users: int = 1,
) -> tuple[Released, np.ndarray, np.ndarray]:
    """Pool items against `pool_threshold`, the others against the stability threshold (and the pool's, if higher).

    `users` and `in_pool` describe the listed items: all that somebody holds, and any part of the pool. The other
    `zero_pool_cells` items of the pool, held by nobody, are numbered from 0; the second and third results are the
    numbers of those that are released and their noisy counts. With delta = 0 no item outside the pool is released.

    Costs (m/b, δ). Proof: pool and non-pool items are noised independently, so the law is a product of
    `public_histogram` and `stability_histogram` with the same b; a user who holds j pool items and m - j others changes
    it by (j/b, 0) and ((m-j)/b, δ), in both directions.

    Exact for pool items below the minimum: a listed pool item with shifted count 0 gets an ordinary draw X and is
    released with value X + min_users - 1 if X >= pool_threshold; an unlisted one is released by `draw_zero_cells` with
    exactly that law. Which of the two paths an item took is a fact about the input that its output law does not show.
    """
    scale, delta = as_scale(scale), checked_delta(delta)
    checked_integer("pool_threshold", pool_threshold)
    check_positive("items_per_user", items_per_user)
    if checked_integer("zero_pool_cells", zero_pool_cells) < 0:
        raise ParameterError("zero_pool_cells must not be negative")
    shifted = shifted_counts(users, min_users)
    in_pool = np.asarray(in_pool, dtype=bool)
    if in_pool.shape != shifted.shape:
        raise ParameterError("users and in_pool must have the same length")
    if delta == 0:
        listed = np.flatnonzero(in_pool)
        thresholds: np.ndarray | int = pool_threshold
    else:
        listed = np.flatnonzero(in_pool | (shifted > 0))
        outside = max(stability_threshold(items_per_user, scale, delta), pool_threshold)
        thresholds = np.where(in_pool[listed], pool_threshold, outside)
    released = _noise_and_test(source, shifted, listed, scale, thresholds, min_users)
    nothing = np.empty(0, dtype=np.int64)
    if zero_pool_cells == 0:
        return released, nothing, nothing
    cells, values = draw_zero_cells(source, scale, pool_threshold, zero_pool_cells, nothing)
    return released, cells, values + (min_users - 1)


def _noise_and_test(
    source: RandomSource,
    shifted: np.ndarray,
    listed: np.ndarray,
    scale: Fraction,
    thresholds: np.ndarray | int,
    min_users: int,
) -> Released:
    noisy = shifted[listed] + discrete_laplace(source, scale, len(listed))
    kept = noisy >= thresholds
    return Released(listed[kept].astype(np.int64), noisy[kept] + (min_users - 1))


def shifted_counts(users: np.ndarray, min_users: int) -> np.ndarray:
    """max(0, users - (min_users - 1)) as 64-bit integers, after checking that these are counts."""
    check_positive("min_users", min_users)
    users = np.asarray(users)
    if users.ndim != 1 or (users.size and users.dtype.kind not in "iu"):
        raise ParameterError("users must be a one-dimensional array of whole numbers")
    if users.size and not (users.min() >= 0 and users.max() <= MOST_USERS):
        raise ParameterError("user counts must not be negative, nor beyond 2**61")
    return np.maximum(users.astype(np.int64) - (min_users - 1), 0)


def checked_delta(delta: Fraction) -> Fraction:
    """δ as an exact rational in [0, 1)."""
    if isinstance(delta, bool) or not isinstance(delta, Fraction | int):
        raise ParameterError("delta must be an exact rational (a Fraction), not a float")
    if not 0 <= delta < 1:
        raise ParameterError("delta must be at least 0 and below 1")
    return Fraction(delta)


def checked_integer(name: str, value: int) -> int:
    """A whole number that fits the 64-bit arithmetic of counts, or an error that names the parameter."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or abs(int(value)) > MOST_USERS:
        raise ParameterError(f"{name} must be a whole number")
    return int(value)


def check_positive(name: str, value: int) -> None:
    """Refuse anything but a whole number of at least 1."""
    if checked_integer(name, value) < 1:
        raise ParameterError(f"{name} must be at least 1")


def ceilings(interval: ivmpf) -> tuple[int, int]:
    """The ceilings of an interval's two ends."""
    low, high = interval._mpi_
    return int(to_int(low, round_ceiling)), int(to_int(high, round_ceiling))
