"""Attacks on each step of steered selection by itself, which only code could see: does it cost what it is charged?

Attacks on whole releases (`attacks.steered`) see one threshold of a step whose noise is a part of the budget. Here the
claim is the step's own part of μ², and the event the one on which a Gaussian mechanism loses most: a noisy sum that
passes σ·(ε/μ + μ/2). X moves that sum by all that one user may. Doubles choose events and claims.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from qlog_assets.attacks.auditor import AuditResult, Claim, Mechanism, audit_ratio
from qlog_assets.attacks.case import without_x
from qlog_assets.privacy.holdings import even_sums
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.scaled_counts import TOTAL_SHARE, draw_scaled_counts, limited_total, noisy_total
from qlog_assets.privacy.steered import FIRST_SHARE, SET_SHARE, SteeredPlan, look_again, look_first, plan_steered
from qlog_assets.privacy.weighted import Contributions

EPSILON = 1.0
SHARES = {
    "first look": SET_SHARE * FIRST_SHARE,
    "second look": SET_SHARE * (1 - FIRST_SHARE),
    "counts": (1 - SET_SHARE) * (1 - TOTAL_SHARE),
    "total": (1 - SET_SHARE) * TOTAL_SHARE,
}
"""Each step's part of μ² in a first month."""

Present = Mapping[str, tuple[()]]
"""A log of which only matters whether X is in it."""
LOG: Present = {"X": ()}


def attack_step(step: str, source: RandomSource, runs: int) -> AuditResult:
    """One step at μ = 1, where a million runs show nearly all of ε = 1."""
    plan = plan_steered(1 / SHARES[step], Fraction(1, 10))
    mechanism = MECHANISMS[step](plan)
    claim = Claim(EPSILON, gaussian_delta(1.0, EPSILON))
    return audit_ratio(mechanism, LOG, without_x(LOG), claim, source, runs)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ at which a μ-Gaussian mechanism is ε-private: Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ)."""
    from scipy.special import ndtr  # every command loads this module, and few attack anything

    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def telling(deviation: float) -> int:
    """The value at which the odds change by e^ε where X moves a sum by one deviation."""
    return math.ceil(deviation * (EPSILON + 0.5))


def holding(log: Present, runs: int, items: int = 1) -> Contributions:
    """X of every run holds so many items of the run, if X is there."""
    there = runs if "X" in log else 0
    owners = np.repeat(np.arange(there), items)
    return Contributions.among(owners, np.arange(there * items), runs * items)


def first_look(plan: SteeredPlan) -> Mechanism:
    """X's only item, which is listed, so that it has noise without X too."""

    def mechanism(log: Present, source: RandomSource, runs: int) -> np.ndarray:
        seen = look_first(source, even_sums(holding(log, runs)), np.ones(runs, dtype=bool), plan)
        return seen >= telling(math.sqrt(plan.first_variance))

    return mechanism


def second_look(plan: SteeredPlan) -> Mechanism:
    """The same item where the first look found it worth all of X's weight; it is named at the telling value."""
    plan = replace(plan, listed_threshold=telling(math.sqrt(plan.second_variance)))

    def mechanism(log: Present, source: RandomSource, runs: int) -> np.ndarray:
        listed, first = np.ones(runs, dtype=bool), np.full(runs, 10 * plan.threshold)
        named = np.zeros(runs, dtype=bool)
        named[look_again(source, [holding(log, runs)], first, listed, plan)] = True
        return named

    return mechanism


def counts(plan: SteeredPlan) -> Mechanism:
    """X's two items have whole shares, so that X moves both by one user: all that one user may, at c = 2."""
    deviation = math.sqrt(plan.counting.variance) / plan.counting.unit

    def mechanism(log: Present, source: RandomSource, runs: int) -> np.ndarray:
        scales = np.full(2 * runs, plan.counting.unit)
        users = draw_scaled_counts(source, [holding(log, runs, 2)], scales, plan.counting).users
        return users.reshape(runs, 2).sum(axis=1) / math.sqrt(2) >= deviation * (EPSILON + 0.5)

    return mechanism


def total(plan: SteeredPlan) -> Mechanism:
    """X holds more items than anybody counts in the total. One run at a time: the total looks over all users."""
    items = plan.counting.most_items + 1

    def mechanism(log: Present, source: RandomSource, runs: int) -> np.ndarray:
        held = np.array([items] if "X" in log else [], dtype=np.int64)
        drawn = noisy_total(source, limited_total(held, plan.counting), plan.counting, runs)
        return drawn >= telling(math.sqrt(plan.counting.total_variance))

    return mechanism


MECHANISMS = {"first look": first_look, "second look": second_look, "counts": counts, "total": total}
