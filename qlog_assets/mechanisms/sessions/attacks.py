"""A4 and A5: sessions and clicks released together, and a session that repeats one query."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from qlog_assets.attacks.auditor import (
    AuditResult,
    Bounds,
    Mechanism,
    audit_ratio,
    audit_sensitivity,
    audit_structural_zero,
)
from qlog_assets.attacks.case import Cases, claim_of, printed, side_by_side, without_x
from qlog_assets.attacks.steered import attack_new_items, table_target
from qlog_assets.mechanisms.sessions import guarantee, paper
from qlog_assets.mechanisms.sessions import noise as sessions
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.privacy.randomness import RandomSource

CASES = Cases("sessions")
RUNS = 1_000_000
TINY = Fraction(1, 10**6)

SessionLog = Mapping[str, tuple[int, ...]]
"""One session a user, as numbers of queries."""


def count_sessions(log: SessionLog, queries_per_session: int, repeats: bool) -> tuple[np.ndarray, np.ndarray]:
    """The items of a log of single sessions and their counts, through the mechanism's own segmentation and limits."""
    lengths = [len(session) for session in log.values()]
    users = np.repeat(np.arange(len(lengths)), lengths)
    queries = np.array([query for session in log.values() for query in session], np.int64)
    numbers = sessions.segment(users, np.zeros(users.size, np.int64))
    owners, matrix = sessions.limit_sessions(users, numbers, queries, 1, queries_per_session)
    return sessions.count_items(sessions.session_items(owners, matrix, repeats)[1])


# A4. Everybody has the session (0, 1) and one click on the same page; X is one user more.


def together(users: int) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    without: dict[str, tuple[int, ...]] = {f"user {number}": (0, 1) for number in range(users)}
    return {**without, "X": (0, 1)}, without


def both_printed_high(scale: float, threshold: float) -> Mechanism:
    """A_Session and A_Click as printed; the event: both are released and both print at least the threshold."""

    def mechanism(log: SessionLog, source: RandomSource, runs: int) -> np.ndarray:
        happened = np.ones(runs, bool)
        for counts in (count_sessions(log, 2, repeats=True)[1], np.array([len(log)])):
            draw = paper.release_items_paper(source, side_by_side(counts, runs), scale, threshold)
            happened &= printed(draw.indices, draw.counts, runs, 1)[:, 0] >= threshold
        return happened

    return mechanism


def both_printed(log: SessionLog, source: RandomSource, runs: int) -> np.ndarray:
    """The sound release of sessions and of clicks, ε = 1 each; the event: both are released."""
    happened = np.ones(runs, bool)
    for counts in (count_sessions(log, 2, repeats=False)[1], np.array([len(log)])):
        draw = sessions.release_items(source, side_by_side(counts, runs), 1, Fraction(1), TINY)
        happened &= printed(draw.indices, draw.users, runs, 1)[:, 0] > 0
    return happened


# Δ = l = 1 and b = 2: A_Session and A_Click claim ε = 1/b + 1/b = 1 each; K = 40 makes the printed δ 2e-9 each.
SMALL: dict[str, Any] = {"sessions_per_user": 1, "queries_per_session": 2, "clicks_per_user": 1}
PAPER = guarantee.paper(SessionParameters(**SMALL, session_scale=2, click_scale=2, threshold=40))
PAPER_EVENT = both_printed_high(scale=2.0, threshold=40.0)
SOUND = guarantee.sound(SessionParameters(**SMALL, session_scale=1, click_scale=1, threshold=1, delta=2 * TINY))
AT_THRESHOLD = SOUND.thresholds["sessions"]


@CASES.add("A4", "as printed, one ε for both", "fail", floats=True)
def one_epsilon_for_both(source: RandomSource) -> AuditResult:
    """Measures about 1.92 where 1 is claimed and 2 is true."""
    return audit_ratio(PAPER_EVENT, *together(39), claim_of(PAPER.claimed), source, RUNS)


@CASES.add("A4", "as printed, the sum", "pass", floats=True)
def sum_as_printed(source: RandomSource) -> AuditResult:
    """About 1.92 of 2: the event has probability 0.8 % without X, so a million runs see it to within 6 %."""
    return audit_ratio(PAPER_EVENT, *together(39), claim_of(PAPER.proven), source, RUNS)


@CASES.add("A4", "sound, one ε for both", "fail")
def sound_claimed_once(source: RandomSource) -> AuditResult:
    """Integer noise does not excuse the claim: about 1.98 where the sessions alone claim 1."""
    claim = claim_of(SOUND.parts[0].claimed)
    return audit_ratio(both_printed, *together(AT_THRESHOLD - 1), claim, source, RUNS)


@CASES.add("A4", "sound, the sum", "pass")
def sound_sum(source: RandomSource) -> AuditResult:
    """About 1.98 of 2: both counts sit at the threshold, where the ratio is exactly e²; the rest is sampling error."""
    return audit_ratio(both_printed, *together(AT_THRESHOLD - 1), claim_of(SOUND.claimed), source, RUNS)


# A5. X alone has a session of four queries; nobody else has any of its subsequences.

ITEMS = 2**4 - 1 - 4  # Δ for one session of four queries
DELTA = Fraction(1, 100)
REPEATING: SessionLog = {"X": (0, 0, 0, 0), "other": (8, 9)}
VARIED: SessionLog = {"X": (0, 1, 2, 3), "other": (8, 9)}


def item_of_x_printed(repeats: bool, scale: Fraction) -> Mechanism:
    """The stability histogram on session items; the event: any item that starts with a query of X is released."""

    def mechanism(log: SessionLog, source: RandomSource, runs: int) -> np.ndarray:
        items, counts = count_sessions(log, 4, repeats)
        draw = sessions.release_items(source, side_by_side(counts, runs), ITEMS, scale, DELTA)
        table = printed(draw.indices, draw.users, runs, len(items))
        return np.asarray((table[:, items[:, 0] < 8] > 0).any(axis=1))

    return mechanism


def new_items(log: SessionLog, repeats: bool, scale: int, source: RandomSource) -> AuditResult:
    mechanism = item_of_x_printed(repeats, Fraction(scale))
    settings = {**SMALL, "queries_per_session": 4, "items": "subsequences", "session_scale": scale}
    settings |= {"click_scale": None, "delta": DELTA}
    claim = claim_of(guarantee.sound(SessionParameters(**settings)).claimed)
    return audit_structural_zero(mechanism, log, without_x(log), claim, source, 300_000, batch=50_000)


def moved_by_one_user(repeats: bool) -> AuditResult:
    def counter(log: SessionLog) -> dict[tuple[int, ...], int]:
        items, counts = count_sessions(log, 4, repeats)
        return {tuple(item): int(count) for item, count in zip(items.tolist(), counts, strict=True)}

    return audit_sensitivity(counter, REPEATING, Bounds(l1=ITEMS, linf=1))


@CASES.add("A5", "subsequences with multiplicity", "fail")
def multiplicity(source: RandomSource) -> AuditResult:
    """11 % of the runs print an item of X where 1 % is claimed: (a, a) counts 6, the threshold was made for 1."""
    return new_items(REPEATING, True, 1, source)


@CASES.add("A5", "subsequences with multiplicity, sensitivity", "fail")
def multiplicity_sensitivity(source: RandomSource) -> AuditResult:
    """Exact: one user moves one count by 6."""
    return moved_by_one_user(repeats=True)


@CASES.add("A5", "distinct subsequences", "pass")
def distinct_repeating(source: RandomSource) -> AuditResult:
    """0.16 % of 1 %: the repeating session has 3 distinct items where 11 are paid for."""
    return new_items(REPEATING, False, 1, source)


@CASES.add("A5", "distinct subsequences of a varied session", "pass")
def distinct_varied(source: RandomSource) -> AuditResult:
    """About 0.90 % of 1 %: all 11 items are new; the threshold is a whole number, so p is up to e^(-1/20) too small."""
    return new_items(VARIED, False, 20, source)


@CASES.add("A5", "distinct subsequences, sensitivity", "pass")
def distinct_sensitivity(source: RandomSource) -> AuditResult:
    """Exact: L∞ = 1; L1 = 3 of 11 on the repeating session."""
    return moved_by_one_user(repeats=False)


STEERED = SessionParameters(method="steered", epsilon=500, delta="0.2", click_share="0.5")


@CASES.add("A5", "steered, a sequence that only X typed", "pass")
def steered_sequence(source: RandomSource) -> AuditResult:
    """About 4.6 % of 5 %: at so large an ε the sequence passes the first look; the rest is sampling error."""
    target = table_target(guarantee.modern_budget(STEERED), STEERED.session_part)
    return attack_new_items(target, source, 100_000)
