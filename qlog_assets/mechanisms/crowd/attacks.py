"""A6: what CrowdLogging gives analysts besides the noisy counts, and what the counts themselves cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from qlog_assets.attacks.auditor import (
    AuditResult,
    Bounds,
    Claim,
    Mechanism,
    audit_ratio,
    audit_sensitivity,
    audit_structural_zero,
)
from qlog_assets.attacks.case import Cases, claim_of, printed, rows_of, side_by_side, without_x
from qlog_assets.mechanisms.crowd import paper as crowd
from qlog_assets.mechanisms.crowd.guarantee import sound, user_differential
from qlog_assets.mechanisms.crowd.noise import release
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.privacy.limits import count_events, count_users, last_distinct
from qlog_assets.privacy.paper_selection import select_then_print
from qlog_assets.privacy.randomness import RandomSource

CASES = Cases("crowd")
RUNS = 1_000_000

# DP_u as printed: ε = ln 10, and δ = 5e-7 makes k_u = 7 with one artifact a user. Its own theorem gives twice the ε
# once counts are printed.
THRESHOLD = 7
PAPER = user_differential(CrowdParameters(threshold=THRESHOLD, delta="5e-7"))
SCALE = PAPER.figures["noise_scale"]
CLAIMED = claim_of(PAPER.claimed)
WITH_COUNTS = Claim(PAPER.figures["epsilon_with_counts"], CLAIMED.delta)

CrowdLog = Mapping[str, tuple[str, ...]]
"""The raw spellings a user sent, in the order of time."""


def artifacts(log: CrowdLog, vocabulary: tuple[str, ...]) -> crowd.Artifacts:
    """The rows of a small log: the normalised artifact is the lower-case spelling."""
    users, spellings = rows_of(log, vocabulary)
    normal = sorted({spelling.lower() for spelling in vocabulary})
    numbers = np.array([normal.index(spelling.lower()) for spelling in vocabulary])
    return crowd.Artifacts(users, numbers[spellings], spellings, len(normal))


def users_of(spellings: tuple[str, ...], number: int) -> dict[str, tuple[str, ...]]:
    return {f"user {index}": spellings for index in range(number)}


def released_as_printed(log: CrowdLog, vocabulary: tuple[str, ...], source: RandomSource) -> crowd.CrowdRelease:
    return crowd.differential_paper(source, artifacts(log, vocabulary), 1, THRESHOLD, SCALE, SCALE, "users")


def undecrypted_string(log: CrowdLog, source: RandomSource, runs: int) -> np.ndarray:
    """DP_u as printed; the event: analysts get more than one string, decrypted or not."""
    releases = (released_as_printed(log, ("dog food", "my own name"), source) for _ in range(runs))
    return np.array([len(release.artifacts) + len(release.undecrypted) > 1 for release in releases])


def odd_spelling(log: CrowdLog, source: RandomSource, runs: int) -> np.ndarray:
    """DP_u as printed; the event: analysts get a second spelling of the artifact."""
    releases = (released_as_printed(log, ("dog food", "DOG food"), source) for _ in range(runs))
    return np.array([len(release.spellings) > 1 for release in releases])


@CASES.add("A6", "as printed, undecrypted strings", "fail", floats=True)
def undecrypted(source: RandomSource) -> AuditResult:
    """Every run shows one string more when X is there."""
    log = {**users_of(("dog food",), 9), "X": ("my own name",)}
    return audit_structural_zero(undecrypted_string, log, without_x(log), WITH_COUNTS, source, 500)


@CASES.add("A6", "as printed, raw spellings", "fail", floats=True)
def spellings(source: RandomSource) -> AuditResult:
    """Nearly every run prints the odd capitals that only X typed, with the exact number of times."""
    log = {**users_of(("dog food",), 9), "X": ("DOG food",)}
    return audit_structural_zero(odd_spelling, log, without_x(log), WITH_COUNTS, source, 500)


def printed_at_least(limit: Literal["events", "distinct"], least: float) -> Mechanism:
    """DP_u as printed, one artifact a user; the event: "dog food" is printed with at least so many events."""

    def mechanism(log: CrowdLog, source: RandomSource, runs: int) -> np.ndarray:
        rows = crowd.limit_artifacts(artifacts(log, ("dog food",)), 1, limit)
        users, events = count_users(rows.users, rows.artifacts, 1), count_events(rows.artifacts, 1)
        copies = side_by_side(users, runs), side_by_side(events, runs)
        draw = select_then_print(source, *copies, SCALE, SCALE, THRESHOLD)
        return printed(draw.indices, draw.counts, runs, 1)[:, 0] >= least

    return mechanism


def events_counter(limit: Literal["events", "distinct"]) -> AuditResult:
    def counter(log: CrowdLog) -> dict[int, int]:
        rows = crowd.limit_artifacts(artifacts(log, ("dog food",)), 1, limit)
        return dict(enumerate(count_events(rows.artifacts, 1).tolist()))

    return audit_sensitivity(counter, {**users_of(("dog food",), 6), "X": ("dog food",) * 200}, Bounds(l1=1))


@CASES.add("A6", "as printed, events of d distinct artifacts", "fail", floats=True)
def uncapped_events(source: RandomSource) -> AuditResult:
    """At least 8.8 where 4.6 is claimed: X sends one artifact 200 times. More runs would show more without end."""
    log = {**users_of(("dog food",), 6), "X": ("dog food",) * 200}
    return audit_ratio(printed_at_least("distinct", 100), log, without_x(log), WITH_COUNTS, source, RUNS // 5)


@CASES.add("A6", "events of d distinct artifacts, sensitivity", "fail")
def uncapped_sensitivity(source: RandomSource) -> AuditResult:
    """Exact: one user moves one count by 200."""
    return events_counter("distinct")


@CASES.add("A6", "events capped at d, sensitivity", "pass")
def capped_sensitivity(source: RandomSource) -> AuditResult:
    """Exact: L1 = 1 of 1."""
    return events_counter("events")


SHARED = {**users_of(("dog food",), 6), "X": ("dog food",)}
COUNTS_PAPER = printed_at_least("events", 7)


@CASES.add("A6", "as printed, selection and count as one ε", "fail", floats=True)
def one_epsilon(source: RandomSource) -> AuditResult:
    """About 4.5 where ln 10 = 2.3 is claimed: the second noise is paid for by nobody."""
    return audit_ratio(COUNTS_PAPER, SHARED, without_x(SHARED), CLAIMED, source, 3 * RUNS)


@CASES.add("A6", "as printed, selection and count as two ε", "pass", floats=True)
def two_epsilons(source: RandomSource) -> AuditResult:
    """About 4.53 of 4.61: six users give the event a probability of 0.25 %, seen to 6 % by three million runs."""
    return audit_ratio(COUNTS_PAPER, SHARED, without_x(SHARED), WITH_COUNTS, source, 3 * RUNS)


# Sound: the stability histogram on users; analysts get (artifact, noisy users) and nothing else.


def sound_printed(artifact: str, **settings: Any) -> tuple[Mechanism, Claim, int]:
    """One artifact a user; the event: the artifact is released. With it what the variant claims and its threshold."""
    vocabulary = ("dog food", "my own name")
    chosen = CrowdParameters(**{"artifacts_per_user": 1, "share_threshold": 1, **settings})
    promised = sound(chosen)

    def mechanism(log: CrowdLog, source: RandomSource, runs: int) -> np.ndarray:
        rows = artifacts(log, vocabulary)
        users = side_by_side(count_users(*last_distinct(rows.users, rows.artifacts, 1), rows.domain), runs)
        draw = release(source, users, 1, chosen.noise_scale, chosen.job_delta, chosen.share_threshold)
        return printed(draw.indices, draw.users, runs, rows.domain)[:, vocabulary.index(artifact)] > 0

    return mechanism, claim_of(promised.claimed), promised.thresholds["queries"]


@CASES.add("A6", "sound, user counts and one draw", "pass")
def sound_counts(source: RandomSource) -> AuditResult:
    """About 2.28 of 2.3: the count sits at the threshold, where the ratio is exactly e^ε; the rest is sampling."""
    mechanism, claim, threshold = sound_printed("dog food", epsilon="2.3", delta="1e-6")
    log = {**users_of(("dog food",), threshold - 1), "X": ("dog food",)}
    return audit_ratio(mechanism, log, without_x(log), claim, source, RUNS)


@CASES.add("A6", "sound, an artifact only X sent", "pass")
def sound_new_artifact(source: RandomSource) -> AuditResult:
    """About 0.93 % of 1 %: scaled to b = 20, where the whole-number threshold wastes at most 5 % of δ."""
    log = {**users_of(("dog food",), 9), "X": ("my own name",)}
    mechanism, claim, _ = sound_printed("my own name", epsilon="0.05", delta="0.01")
    return audit_structural_zero(mechanism, log, without_x(log), claim, source, RUNS // 2)


@CASES.add("A6", "sound, X brings the last key share", "pass")
def sound_last_share(source: RandomSource) -> AuditResult:
    """The same 0.93 % of 1 %: the fifth share makes the shifted count 1, as if X alone had sent the artifact."""
    log = {**users_of(("my own name",), 4), "X": ("my own name",)}
    mechanism, claim, _ = sound_printed("my own name", epsilon="0.05", delta="0.01", share_threshold=5)
    return audit_structural_zero(mechanism, log, without_x(log), claim, source, RUNS // 2)
