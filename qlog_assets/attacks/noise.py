"""A8, A9 and A10: the stability histogram at its limits, the low-order bits of float noise, and averaging re-runs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from qlog_assets.attacks.auditor import AuditResult, Claim, Mechanism, audit_ratio, audit_structural_zero
from qlog_assets.attacks.case import Cases, printed, rows_of, side_by_side, without_x
from qlog_assets.privacy.histogram import Released, public_histogram, stability_histogram, stability_threshold
from qlog_assets.privacy.limits import count_users, first_distinct
from qlog_assets.privacy.noise import discrete_laplace
from qlog_assets.privacy.paper_noise import continuous_laplace
from qlog_assets.privacy.randomness import RandomSource

CASES = Cases("noise")
RUNS = 1_000_000

ItemLog = Mapping[str, tuple[int, ...]]

# A8. The stability histogram with m items per user: new ones use up δ, shared ones use up ε.

ITEMS = 3


def count(log: ItemLog) -> np.ndarray:
    return count_users(*first_distinct(*rows_of(log, range(ITEMS)), ITEMS), ITEMS)


def any_printed(scale: Fraction, delta: Fraction, lower_by: int = 0) -> Mechanism:
    """The event: at least one item is released. `lower_by` is what an off-by-one error takes from the threshold."""

    def mechanism(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
        users = side_by_side(count(log), runs)
        if lower_by:
            threshold = stability_threshold(ITEMS, scale, delta) - lower_by
            support = np.flatnonzero(users)
            draw = public_histogram(source, users[support], scale, threshold)
            draw = Released(support[draw.indices], draw.users)
        else:
            draw = stability_histogram(source, users, ITEMS, scale, delta)
        return np.asarray((printed(draw.indices, draw.users, runs, ITEMS) > 0).any(axis=1))

    return mechanism


NEW_ITEMS: ItemLog = {"X": (0, 1, 2)}
NEW_DELTA = Fraction(1, 100)


@CASES.add("A8", "stability histogram, m new items", "pass")
def new_items(source: RandomSource) -> AuditResult:
    """About 0.95 % of 1 %: with b = 30 the whole-number threshold wastes at most 3 % of δ, sampling hides the rest."""
    return audit_structural_zero(
        any_printed(Fraction(30), NEW_DELTA), NEW_ITEMS, without_x(NEW_ITEMS), Claim(0.1, 0.01), source, RUNS
    )


@CASES.add("A8", "stability histogram, threshold one too low", "fail")
def threshold_too_low(source: RandomSource) -> AuditResult:
    """Shows that the audit would see an off-by-one error: with b = 3/2 one step is a factor of 1.9."""
    scale = Fraction(3, 2)
    mechanism = any_printed(scale, NEW_DELTA, lower_by=1)
    return audit_structural_zero(mechanism, NEW_ITEMS, without_x(NEW_ITEMS), Claim(2, 0.01), source, RUNS // 4)


def all_printed(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
    """ε = 1 with m = 3; the event: every item is released."""
    draw = stability_histogram(source, side_by_side(count(log), runs), ITEMS, Fraction(ITEMS), Fraction(1, 10**6))
    return np.asarray((printed(draw.indices, draw.users, runs, ITEMS) > 0).all(axis=1))


@CASES.add("A8", "stability histogram, m shared items", "pass")
def shared_items(source: RandomSource) -> AuditResult:
    """About 0.98 of 1: all counts sit at the threshold, where the ratio is exactly e^(m/b); the rest is sampling."""
    users = stability_threshold(ITEMS, Fraction(ITEMS), Fraction(1, 10**6)) - 1
    log = {**{f"user {number}": (0, 1, 2) for number in range(users)}, "X": (0, 1, 2)}
    return audit_ratio(all_printed, log, without_x(log), Claim(1, 1e-6), source, RUNS)


# A9. One count, 1 with X and 0 without, noise of scale 1.

ONE_USER: ItemLog = {"X": (0,)}


def fine_bits(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
    """Float Laplace; the event: the value is within 1/2 of 0 and not a multiple of 2^-53.

    A double near 0 has finer bits than that. Noise z is added to 1 only after it was rounded as a number between -3/2
    and -1/2, whose last bit is worth 2^-53 or more; the sum is exact, so with X the event is impossible.
    """
    values = len(log) + continuous_laplace(source, 1.0, runs)
    return (np.abs(values) < 0.5) & (np.fmod(values, 2.0**-53) != 0)


def at_least_one(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
    """Integer noise; the event: the value is 1 or more."""
    return len(log) + discrete_laplace(source, Fraction(1), runs) >= 1


def is_odd(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
    """Integer noise; the event: the lowest bit is set."""
    return (len(log) + discrete_laplace(source, Fraction(1), runs)) % 2 == 1


@CASES.add("A9", "float Laplace", "fail", floats=True)
def float_bits(source: RandomSource) -> AuditResult:
    """As much as the runs can show for an event of one run in four (9.1), where ε = 1 is claimed: one sample tells."""
    return audit_ratio(fine_bits, ONE_USER, without_x(ONE_USER), Claim(1), source, RUNS // 2)


@CASES.add("A9", "two-sided geometric, the value", "pass")
def integer_value(source: RandomSource) -> AuditResult:
    """About 0.99 of 1: the ratio of the tails is exactly e; the rest is sampling error."""
    return audit_ratio(at_least_one, ONE_USER, without_x(ONE_USER), Claim(1), source, RUNS)


@CASES.add("A9", "two-sided geometric, the lowest bit", "pass")
def integer_bit(source: RandomSource) -> AuditResult:
    """0.43 of 1: an integer's low bits carry less than its value does (P[odd] is 0.61 or 0.39)."""
    return audit_ratio(is_odd, ONE_USER, without_x(ONE_USER), Claim(1), source, RUNS)


# A10. The same count released 25 times, ε = 1/5 each.

RERUNS = 25
RERUN_SCALE = Fraction(5)


def mean_high(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
    """25 independent draws; the event: their mean is at least 3/2."""
    values = len(log) + discrete_laplace(source, RERUN_SCALE, runs * RERUNS).reshape(runs, RERUNS)
    return values.mean(axis=1) >= 1.5


def cached_mean_high(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
    """One draw that is handed out 25 times; the event: the mean is at least 1."""
    values = len(log) + discrete_laplace(source, RERUN_SCALE, runs)
    return np.repeat(values[:, None], RERUNS, axis=1).mean(axis=1) >= 1


@CASES.add("A10", "25 re-runs claimed as one", "fail")
def reruns_as_one(source: RandomSource) -> AuditResult:
    """About 0.88 where 0.2 is claimed."""
    return audit_ratio(mean_high, ONE_USER, without_x(ONE_USER), Claim(0.2), source, RUNS // 5, batch=20_000)


@CASES.add("A10", "25 re-runs claimed as 25", "pass")
def reruns_as_many(source: RandomSource) -> AuditResult:
    """About 0.88 of 5: the worst outcome, all 25 draws at 1 or more, has probability 3e-7 and is never seen."""
    return audit_ratio(mean_high, ONE_USER, without_x(ONE_USER), Claim(5), source, RUNS // 5, batch=20_000)


@CASES.add("A10", "one cached release", "pass")
def cached(source: RandomSource) -> AuditResult:
    """About 0.19 of 0.2: the ratio is exactly e^(1/5); the rest is sampling error."""
    return audit_ratio(cached_mean_high, ONE_USER, without_x(ONE_USER), Claim(0.2), source, RUNS)
