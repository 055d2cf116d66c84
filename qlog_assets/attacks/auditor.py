"""The auditor: tries to catch a mechanism breaking its claim, on two neighbouring logs. Holds tests, not mechanisms.

Three tests, because none sees everything (specification 1.7):

* `audit_ratio` bounds ε from below by Clopper–Pearson. It fails a claim only when the bound exceeds it, and can never
  show more than its blindness limit (about ln(n/15) at the default false-alarm rate, ln(n/7) at one of 0.4 %): a claim
  above the limit always passes, so scale the parameters down first.
* `audit_structural_zero` takes an event that is impossible without the user. Its probability with the user is then at
  most δ whatever ε is: full power at any ε.
* `audit_sensitivity` removes every user in turn and measures how far the counters move. No sampling, no false alarm.

A pass is not a proof: the guarantee rests on the proofs in the docstrings; an audit looks for the mistakes proofs miss.

False alarms: each test errs against a true claim with probability at most `false_alarm` (default one in a million). The
ratio test uses four one-sided bounds, each at a quarter of that; the bounds of an event are those of its complement, so
looking at both costs nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from qlog_assets.privacy.bounds import at_least, at_most
from qlog_assets.privacy.randomness import RandomSource

FALSE_ALARM = 1e-6
BATCH = 100_000  # runs handed to a mechanism at once: bounds memory, large enough for numpy to be busy

Log = Mapping[str, Any]
"""A log as an auditor sees it: one entry per user, holding all records of that user. Neighbours differ in one entry."""
Mechanism = Callable[[Any, RandomSource, int], np.ndarray]
"""(log, source, runs) -> one boolean per run: did the event happen?"""
Counter = Callable[[Any], Mapping[Any, float]]
"""log -> what the mechanism adds noise to, one number per item; items that are absent count zero."""
Verdict = Literal["pass", "fail"]


@dataclass(frozen=True)
class Claim:
    """What a variant says of itself: (ε, δ) for adding or removing one user."""

    epsilon: float
    delta: float = 0.0

    def __str__(self) -> str:
        return f"ε={at_most(self.epsilon)}" + (f", δ={at_most(self.delta, 3)}" if self.delta else "")


@dataclass(frozen=True)
class Bounds:
    """What a counter says of itself: how far one user can move it, in each norm that is claimed."""

    l1: float | None = None
    l2: float | None = None
    linf: float | None = None

    def __str__(self) -> str:
        named = (("L1", self.l1), ("L2", self.l2), ("L∞", self.linf))
        return ", ".join(f"{name}≤{value:g}" for name, value in named if value is not None)


@dataclass(frozen=True)
class AuditResult:
    """What one audit found. `measured` is in the unit of the claim; `limit` is the most this test could have shown."""

    test: Literal["ratio", "structural-zero", "sensitivity"]
    claim: Claim | Bounds
    measured: float
    limit: float
    verdict: Verdict
    sentence: str
    figures: Mapping[str, float] = field(default_factory=dict)
    audit: str = ""
    variant: str = ""
    expected: Verdict | None = None

    @property
    def as_expected(self) -> bool:
        """Whether an unsound variant was caught, or a sound one was left alone."""
        return self.expected is None or self.verdict == self.expected

    def row(self) -> tuple[str, str, str, str, str, str]:
        """The cells a person reads: id, variant, claim, measured, verdict, expected verdict."""
        sign = {"ratio": "ε≥", "structural-zero": "δ≥", "sensitivity": ""}[self.test]
        measured = f"{sign}{at_least(self.measured)}"
        if self.test == "sensitivity":
            norms = (("L1", "l1"), ("L2", "l2"), ("L∞", "linf"))
            measured = ", ".join(f"{name}={self.figures[key]:g}" for name, key in norms)
        return self.audit, self.variant, str(self.claim), measured, self.verdict, self.expected or ""


def lower_bound(hits: int, runs: int, error: float) -> float:
    """Clopper–Pearson: below this the true probability lies with probability at most `error`."""
    # Imported on first use: every command loads this module, and few attack anything.
    from scipy.special import betaincinv

    return 0.0 if hits == 0 else float(betaincinv(hits, runs - hits + 1, error))


def upper_bound(hits: int, runs: int, error: float) -> float:
    """Clopper–Pearson: above this the true probability lies with probability at most `error`."""
    from scipy.special import betainccinv

    return 1.0 if hits == runs else float(betainccinv(hits + 1, runs - hits, error))


def blindness_limit(runs: int, delta: float = 0.0, false_alarm: float = FALSE_ALARM) -> float:
    """The largest ε that `runs` runs can show: the event always happens on one log and never on the other."""
    error = false_alarm / 4
    certain = lower_bound(runs, runs, error) - delta
    return math.log(certain / upper_bound(0, runs, error)) if certain > 0 else 0.0


def epsilon_lower_bound(
    hits_with: int,
    hits_without: int,
    runs: int,
    delta: float = 0.0,
    false_alarm: float = FALSE_ALARM,
    complement: bool = True,
) -> float:
    """The largest ε that the hits rule out: both directions, the event and its complement, never below 0."""
    error = false_alarm / 4
    with_user = lower_bound(hits_with, runs, error), upper_bound(hits_with, runs, error)
    without = lower_bound(hits_without, runs, error), upper_bound(hits_without, runs, error)
    best = 0.0
    for (one_low, one_up), (other_low, other_up) in ((with_user, without), (without, with_user)):
        for low, up in ((one_low, other_up), (1 - one_up, 1 - other_low))[: 2 if complement else 1]:
            if low > delta and up > 0:
                best = max(best, math.log((low - delta) / up))
    return best


def count_hits(mechanism: Mechanism, log: Any, source: RandomSource, runs: int, batch: int = BATCH) -> int:
    """How often the event happens in `runs` independent runs."""
    hits = 0
    for start in range(0, runs, batch):
        size = min(batch, runs - start)
        happened = np.asarray(mechanism(log, source, size))
        if happened.shape != (size,) or happened.dtype != bool:
            raise ValueError(f"the mechanism must return {size} booleans, one per run")
        hits += int(np.count_nonzero(happened))
    return hits


def require_neighbours(with_user: Log, without_user: Log) -> None:
    """Refuse two logs that differ in anything but the presence of one user."""
    if len(with_user) != len(without_user) + 1 or any(
        user not in with_user or with_user[user] != records for user, records in without_user.items()
    ):
        raise ValueError("the logs are not neighbours: the first must be the second plus exactly one user")


def audit_ratio(
    mechanism: Mechanism,
    with_user: Log,
    without_user: Log,
    claim: Claim,
    source: RandomSource,
    runs: int,
    *,
    false_alarm: float = FALSE_ALARM,
    batch: int = BATCH,
    complement: bool = True,
) -> AuditResult:
    """Fail iff the Clopper–Pearson lower bound on ε exceeds the claim.

    `complement=False` is for a claim that holds for the event alone, as probabilistic DP does outside its exceptional
    set of outputs.
    """
    require_neighbours(with_user, without_user)
    hits_with = count_hits(mechanism, with_user, source, runs, batch)
    hits_without = count_hits(mechanism, without_user, source, runs, batch)
    measured = epsilon_lower_bound(hits_with, hits_without, runs, claim.delta, false_alarm, complement)
    limit = blindness_limit(runs, claim.delta, false_alarm)
    verdict: Verdict = "fail" if measured > claim.epsilon else "pass"
    sentence = (
        f"In {runs} runs each, the event happened {hits_with} times with the user and {hits_without} times without: "
        f"ε is at least {at_least(measured)} where {at_most(claim.epsilon)} is claimed"
    )
    sentence += (
        "." if claim.epsilon <= limit else f"; so few runs cannot show more than {at_most(limit)}, the claim is unseen."
    )
    figures = {"runs": runs, "hits_with": hits_with, "hits_without": hits_without, "false_alarm": false_alarm}
    return AuditResult("ratio", claim, measured, limit, verdict, sentence, figures)


def audit_structural_zero(
    mechanism: Mechanism,
    with_user: Log,
    without_user: Log,
    claim: Claim,
    source: RandomSource,
    runs: int,
    *,
    false_alarm: float = FALSE_ALARM,
    batch: int = BATCH,
) -> AuditResult:
    """Fail iff an event that cannot happen without the user happens with more than δ.

    That it cannot happen is the caller's knowledge (the item is in nobody else's records); one hit without the user
    shows it to be wrong and raises.
    """
    require_neighbours(with_user, without_user)
    if count_hits(mechanism, without_user, source, runs, batch):
        raise ValueError("the event happens without the user: it is no structural zero")
    hits_with = count_hits(mechanism, with_user, source, runs, batch)
    measured = lower_bound(hits_with, runs, false_alarm)
    verdict: Verdict = "fail" if measured > claim.delta else "pass"
    sentence = (
        f"The event is impossible without the user and happened {hits_with} times in {runs} runs with the user: "
        f"δ is at least {at_least(measured, 3)} where {at_most(claim.delta, 3)} is claimed."
    )
    figures = {"runs": runs, "hits_with": hits_with, "hits_without": 0, "false_alarm": false_alarm}
    limit = lower_bound(runs, runs, false_alarm)
    return AuditResult("structural-zero", claim, measured, limit, verdict, sentence, figures)


def sensitivity(counter: Counter, log: Log) -> dict[str, float]:
    """How far removing one user moves the counters of this log: the largest L1, L2 and L∞ change over all users."""
    complete = counter(log)
    largest = {"l1": 0.0, "l2": 0.0, "linf": 0.0}
    for user in log:
        rest = counter({other: records for other, records in log.items() if other != user})
        changes = np.array([complete.get(item, 0) - rest.get(item, 0) for item in complete.keys() | rest.keys()], float)
        if changes.size:
            largest["l1"] = max(largest["l1"], float(np.abs(changes).sum()))
            largest["l2"] = max(largest["l2"], float(np.sqrt(np.square(changes).sum())))
            largest["linf"] = max(largest["linf"], float(np.abs(changes).max()))
    return largest


def audit_sensitivity(counter: Counter, log: Log, claim: Bounds) -> AuditResult:
    """Fail iff removing some user of this log moves the counters further than claimed in any norm."""
    largest = sensitivity(counter, log)
    claimed = {"l1": claim.l1, "l2": claim.l2, "linf": claim.linf}
    # A relative slack for the square root of the L2 norm; integer norms are exact.
    broken = [norm for norm, bound in claimed.items() if bound is not None and largest[norm] > bound * (1 + 1e-12)]
    verdict: Verdict = "fail" if broken else "pass"
    sentence = (
        f"Removing any one of {len(log)} users moves the counters by at most {largest['l1']:g} in L1, "
        f"{largest['l2']:.4g} in L2 and {largest['linf']:g} in L∞, where {claim} is claimed."
    )
    return AuditResult("sensitivity", claim, largest["l1"], math.inf, verdict, sentence, largest)
