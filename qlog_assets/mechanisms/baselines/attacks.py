"""Z3 against k-anonymity: k - 1 fake accounts that hold a guessed query tell whether one more user holds it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from qlog_assets.attacks.auditor import AuditResult, Claim, Mechanism, audit_ratio
from qlog_assets.attacks.case import Cases, rows_of, without_x
from qlog_assets.mechanisms.baselines.paper import print_baseline
from qlog_assets.privacy.randomness import RandomSource

CASES = Cases("baselines")
LEAST = 5
"""k: the attacker has one account fewer, and X is the victim."""
LOG = {**{f"account {number}": (0,) for number in range(LEAST - 1)}, "X": (0,)}


def printed_by(baseline: str) -> Mechanism:
    """A baseline; the event: the guessed query is printed."""

    def mechanism(log: Mapping[str, tuple[int, ...]], source: RandomSource, runs: int) -> np.ndarray:
        return np.full(runs, print_baseline(baseline, *rows_of(log, range(1)), 1, LEAST).indices.size > 0)

    return mechanism


def fake_accounts(baseline: str, source: RandomSource) -> AuditResult:
    return audit_ratio(printed_by(baseline), LOG, without_x(LOG), Claim(1, 1e-6), source, 2000)


@CASES.add("Z3", "fake accounts against k-anonymity by users", "fail")
def by_users(source: RandomSource) -> AuditResult:
    """Certain: as much as the runs can show. k-anonymity claims no ε; it is held against that of the sound case."""
    return fake_accounts("users", source)


@CASES.add("Z3", "fake accounts against k-anonymity by frequency", "fail")
def by_frequency(source: RandomSource) -> AuditResult:
    """Certain: as much as the runs can show."""
    return fake_accounts("frequency", source)


@CASES.add("Z3", "fake accounts against secret shares", "fail")
def by_secret_sharing(source: RandomSource) -> AuditResult:
    """Certain: as much as the runs can show."""
    return fake_accounts("secret_sharing", source)
