"""How privacy losses add up: exactly inside one release, adaptively across releases. Arithmetic only, no ledger.

Inside one release the parameters are fixed before anything is drawn, so the exact law of the privacy loss may be used.
Across releases the next parameters may depend on what the last release showed. Two rules are proven for that case: the
plain sum of ε and δ (Rogers, Roth, Ullman, Vadhan 2016), and the zCDP filter, which sums ρ and δ and converts once at
a δ set aside for it (Whitehouse, Ramdas, Rogers, Wu 2023). The conversions are here; the ledger keeps the running
total. Adding up privacy loss distributions of adaptively chosen releases is not valid, so nothing here offers it.

Every float here errs upwards in ε and δ and downwards in ρ left to spend: a loss is never under-reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from qlog_assets.errors import ParameterError

WIDEST_LATTICE = 1 << 17
"""Most points of the loss lattice kept exactly; beyond it losses are rounded up to a grid of this many points."""
RELATIVE_MARGIN = 1e-8
"""Added to every δ: far above what log-gamma and the convolutions lose in doubles (about 1e-11 for 10,000 counts)."""
ABSOLUTE_MARGIN = 1e-290
"""Added to every δ for probabilities that underflow to zero."""


@dataclass(frozen=True)
class Noise:
    """Counts for the exact accountant: one user moves at most `counts` of them by 1, each under noise of `scale`."""

    counts: int
    scale: Fraction

    def __post_init__(self) -> None:
        if self.counts < 0 or self.scale <= 0:
            raise ParameterError("noise needs a count of at least 0 and a scale above 0")


# Inside one release ---------------------------------------------------------------------------------------------------


def pure_epsilon(noises: Iterable[Noise]) -> Fraction:
    """ε at δ = 0: the sum of counts over scale."""
    return sum((Fraction(noise.counts) / noise.scale for noise in noises), Fraction(0))


@dataclass(frozen=True)
class LossDistribution:
    """The law of the privacy loss of a set of two-sided geometric counts.

    One count moved by 1 under noise a^|z|, a = e^(-1/b), has loss +1/b with probability 1/(1+a) and -1/b with
    probability a/(1+a): randomised response. Independent counts add their losses, so the law is a convolution of
    binomials on the lattice that the 1/b span. δ(ε) = E[max(0, 1 - e^(ε - loss))]; by symmetry of the noise the law is
    the same for adding and for removing the user, and with fewer or unmoved counts δ(ε) can only be smaller.
    """

    losses: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    greatest: Fraction

    def delta(self, epsilon: float) -> float:
        """An upper bound of δ(ε), exact but for the margins above."""
        if epsilon >= self.greatest:
            return 0.0
        margin = 1e-13 * (1 + float(self.greatest))
        above = self.losses + margin - epsilon
        kept = above > 0
        total = float(np.sum(-np.expm1(-above[kept]) * self.probabilities[kept]))
        return min(1.0, total * (1 + RELATIVE_MARGIN) + ABSOLUTE_MARGIN)

    def epsilon(self, delta: float) -> float:
        """The least ε with δ(ε) <= delta, rounded up; the pure ε where delta is 0."""
        high = rounded_up(self.greatest)
        if delta <= 0:
            return high
        if self.delta(0.0) <= delta:
            return 0.0
        low = 0.0
        while high - low > 1e-12 * (1 + high):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


def loss_distribution(noises: Sequence[Noise]) -> LossDistribution:
    """The privacy loss distribution of one release's counts, on its exact lattice where that is small enough."""
    merged: dict[Fraction, int] = {}
    for noise in noises:
        if noise.counts:
            merged[noise.scale] = merged.get(noise.scale, 0) + noise.counts
    greatest = pure_epsilon(noises)
    if not merged:
        return LossDistribution(np.zeros(1), np.ones(1), greatest)
    unit = max(common_unit([1 / scale for scale in merged]), 2 * greatest / WIDEST_LATTICE)
    law: NDArray[np.float64] = np.ones(1)
    offset = 0
    for scale, counts in merged.items():
        # Losses off the lattice move up to the next point: a larger loss can only raise δ(ε).
        places = [math.ceil(Fraction(counts - 2 * lower) / scale / unit) for lower in range(counts + 1)]
        least = min(places)
        wider = np.zeros(len(law) + max(places) - least)
        for place, weight in zip(places, binomial_weights(counts, float(1 / scale)), strict=True):
            wider[place - least : place - least + len(law)] += weight * law
        law, offset = wider, offset + least
    losses: NDArray[np.float64] = (offset + np.arange(len(law), dtype=np.float64)) * np.float64(unit)
    return LossDistribution(losses, law, greatest)


def common_unit(steps: Sequence[Fraction]) -> Fraction:
    """The largest rational of which every step is a whole multiple."""
    denominator = math.lcm(*(step.denominator for step in steps))
    return Fraction(math.gcd(*(int(step * denominator) for step in steps)), denominator)


def binomial_weights(counts: int, step: float) -> NDArray[np.float64]:
    """P[exactly j of the counts have the negative loss], j = 0..counts, by logarithms so that nothing overflows."""
    lower = np.arange(counts + 1, dtype=np.float64)
    # Here, because it costs every process that loads the definitions a quarter of a second.
    from scipy.special import gammaln

    choices = gammaln(counts + 1.0) - gammaln(lower + 1) - gammaln(counts - lower + 1)
    return np.exp(choices - lower * step - counts * math.log1p(math.exp(-step)))


def geometric_epsilon(noises: Sequence[Noise], delta: float) -> float:
    """ε(δ) of two-sided geometric counts under several scales, rounded up and never above the pure sum."""
    if not 0 <= delta < 1:
        raise ParameterError("delta must be at least 0 and below 1")
    return loss_distribution(noises).epsilon(float(delta))


def release_loss(
    noises: Sequence[Noise], stability_delta: Fraction, accounting_delta: Fraction
) -> tuple[float, Fraction]:
    """(ε, δ) of one release with fixed parameters by exact accounting: thresholds' δ plus the accountant's δ.

    Proof. D' = D plus a user; E' = "no brand-new item of the user is printed", P[E'] >= 1 - stability_delta. Given E',
    the output on D' and the output on D differ only in the noisy counts of items both hold, so they are (ε, δ_a)-close
    by the loss distribution, also table after table (the domain of one table may depend on another's output). Thin an
    event of D at random to the same probability; then P[D] <= stability + (1 - stability)·(e^ε·P[D'|E'] + δ_a) and
    likewise the other way round: (ε, stability_delta + accounting_delta).
    """
    return geometric_epsilon(noises, float(accounting_delta)), stability_delta + accounting_delta


# zCDP -----------------------------------------------------------------------------------------------------------------


def pure_rho(epsilon: Fraction) -> Fraction:
    """ρ of an ε-DP mechanism: ε²/2 (Bun and Steinke 2016)."""
    return epsilon * epsilon / 2


def zcdp_epsilon(rho: Fraction | float, delta: Fraction | float) -> float:
    """The ε at `delta` of a ρ-zCDP mechanism, rounded up.

    ε = min over α > 1 of αρ + [ln(1/δ) + (α-1)·ln(1 - 1/α) - ln α]/(α-1) (Canonne, Kamath, Steinke 2020). Every α
    gives a valid ε, so an inexact minimum only costs tightness.
    """
    if not (math.isfinite(rho) and rho >= 0 and 0 < delta < 1):
        raise ParameterError("zCDP converts at a finite rho >= 0 and at 0 < delta < 1")
    spent, target = rounded_up(Fraction(rho)), float(delta)
    if spent == 0:
        return 0.0

    def at(log_order: float) -> float:
        above = math.exp(log_order)  # α - 1
        order = 1 + above
        return order * spent + (-math.log(target) - math.log(order)) / above + math.log(above) - math.log(order)

    # The bound is unimodal in ln(α-1); the first guess is the minimum of ρα + ln(1/δ)/(α-1).
    centre = math.log(math.sqrt(-math.log(target) / spent))
    low, high = centre - 12, centre + 12
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(120):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if at(left) <= at(right) else (left, high)
    return max(0.0, at((low + high) / 2) * (1 + 1e-12) + 1e-15)


def zcdp_rho(epsilon: Fraction | float, delta: Fraction | float) -> Fraction:
    """The largest ρ whose ε at `delta` is at most `epsilon`, rounded down: what a zCDP budget holds."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ParameterError("a zCDP budget needs a finite epsilon above 0")
    most = float(epsilon)
    if Fraction(most) > Fraction(epsilon):
        most = math.nextafter(most, 0.0)
    low, high = 0.0, most
    while zcdp_epsilon(high, delta) <= most:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if zcdp_epsilon(middle, delta) <= most else (low, middle)
    return Fraction(low)


def rounded_up(value: Fraction) -> float:
    """The least double not below a rational."""
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)
