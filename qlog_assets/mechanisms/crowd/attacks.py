"""A6: what CrowdLogging gives analysts besides the noisy counts, and what the counts themselves cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from qlog_assets.attacks.auditor import (
    AuditResult,
    Bounds,
    Claim,
    Counter,
    Mechanism,
    audit_ratio,
    audit_sensitivity,
    audit_structural_zero,
)
from qlog_assets.attacks.case import Cases, claim_of, printed, rows_of, side_by_side, without_x
from qlog_assets.crowd.aggregation import WIDTHS, aggregate, stack
from qlog_assets.crowd.field import ELEMENT_BYTES, PRIME
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.keys import derive, hashed, share_place
from qlog_assets.crowd.messages import make_report
from qlog_assets.crowd.shares import recover
from qlog_assets.crowd.tokens import OUTPUT_BYTES, SERIAL_BYTES, Token
from qlog_assets.mechanisms.crowd import paper as crowd
from qlog_assets.mechanisms.crowd.guarantee import gaussian, sound, user_differential
from qlog_assets.mechanisms.crowd.noise import draw_counts, draw_nothing
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.months import Month
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


# What may be published: counts of users with one noise; analysts get (artifact, noisy users) and nothing else.

VOCABULARY = ("dog food", "my own name")
PROMISES = {"sound": sound, "gaussian": gaussian}


def released(variant: str, artifact: str, **settings: Any) -> tuple[Mechanism, Claim, int]:
    """One artifact a user; the event: the artifact is released. With it what the variant claims and its threshold."""
    chosen = CrowdParameters(**{"artifacts_per_user": 1, "share_threshold": 1, **settings})

    def mechanism(log: CrowdLog, source: RandomSource, runs: int) -> np.ndarray:
        rows = artifacts(log, VOCABULARY)
        users = side_by_side(count_users(*last_distinct(rows.users, rows.artifacts, 1), rows.domain), runs)
        draw = draw_counts(source, users, variant, chosen)
        return printed(draw.artifacts, draw.users, runs, rows.domain)[:, VOCABULARY.index(artifact)] > 0

    return mechanism, claim_of(PROMISES[variant](chosen).claimed), draw_nothing(variant, chosen).threshold


def new_artifact(variant: str, source: RandomSource, runs: int, **settings: Any) -> AuditResult:
    """X alone sent the artifact."""
    log = {**users_of(("dog food",), 9), "X": ("my own name",)}
    mechanism, claim, _ = released(variant, "my own name", **settings)
    return audit_structural_zero(mechanism, log, without_x(log), claim, source, runs)


def last_share(variant: str, source: RandomSource, runs: int, **settings: Any) -> AuditResult:
    """Four others sent it, and five shares make the key: X's is the last, which makes the shifted count 1."""
    log = {**users_of(("my own name",), 4), "X": ("my own name",)}
    mechanism, claim, _ = released(variant, "my own name", share_threshold=5, **settings)
    return audit_structural_zero(mechanism, log, without_x(log), claim, source, runs)


@CASES.add("A6", "sound, user counts and one draw", "pass")
def sound_counts(source: RandomSource) -> AuditResult:
    """About 2.28 of 2.3: the count sits at the threshold, where the ratio is exactly e^ε; the rest is sampling."""
    mechanism, claim, threshold = released("sound", "dog food", epsilon="2.3", delta="1e-6")
    log = {**users_of(("dog food",), threshold - 1), "X": ("dog food",)}
    return audit_ratio(mechanism, log, without_x(log), claim, source, RUNS)


@CASES.add("A6", "sound, an artifact only X sent", "pass")
def sound_new_artifact(source: RandomSource) -> AuditResult:
    """About 0.93 % of 1 %: scaled to b = 20, where the whole-number threshold wastes at most 5 % of δ."""
    return new_artifact("sound", source, RUNS // 2, epsilon="0.05", delta="0.01")


@CASES.add("A6", "sound, X brings the last key share", "pass")
def sound_last_share(source: RandomSource) -> AuditResult:
    """The same 0.93 % of 1 %: the fifth share makes the shifted count 1, as if X alone had sent the artifact."""
    return last_share("sound", source, RUNS // 2, epsilon="0.05", delta="0.01")


GAUSSIAN = {"epsilon": "3", "delta": "0.01"}
TELLING = 5
"""Others who send an artifact besides X: of all numbers the one at which its release tells most of X, at (3, 0.01)."""


@CASES.add("A6", "Gaussian, an artifact that others sent", "pass")
def gaussian_counts(source: RandomSource) -> AuditResult:
    """About 2.5 of 3, where six users are missed: half of δ hides new artifacts and has nothing to do here; the rest is
    sampling error."""
    mechanism, claim, _ = released("gaussian", "dog food", **GAUSSIAN)
    log = {**users_of(("dog food",), TELLING), "X": ("dog food",)}
    return audit_ratio(mechanism, log, without_x(log), claim, source, RUNS)


@CASES.add("A6", "Gaussian, an artifact only X sent", "pass")
def gaussian_new_artifact(source: RandomSource) -> AuditResult:
    """About 0.45 % of 1 %: new artifacts get half of δ, the noise's own tail the other half."""
    return new_artifact("gaussian", source, RUNS // 2, epsilon="1", delta="0.01")


@CASES.add("A6", "Gaussian, X brings the last key share", "pass")
def gaussian_last_share(source: RandomSource) -> AuditResult:
    """The same: the fifth share makes the shifted count 1."""
    return last_share("gaussian", source, RUNS // 2, epsilon="1", delta="0.01")


# Sybils: an attacker's accounts send a guessed artifact; X is the victim.

KEY_SHARES = 5


def decrypted(log: CrowdLog, source: RandomSource, runs: int) -> np.ndarray:
    """FT_u; the event: the guessed artifact is printed. Nothing in it is random."""
    shown = crowd.frequency_threshold(artifacts(log, VOCABULARY), KEY_SHARES, "users").artifacts
    return np.full(runs, VOCABULARY.index("my own name") in shown)


@CASES.add("A6", "FT_u, k - 1 fake accounts", "fail")
def sybils_against_frequency(source: RandomSource) -> AuditResult:
    """Certain if X sent it, impossible if not. FT_u claims no ε; it is held against the claim of the sound case."""
    log = {**users_of(("my own name",), KEY_SHARES - 1), "X": ("my own name",)}
    return audit_structural_zero(decrypted, log, without_x(log), Claim(1, 1e-6), source, 2000)


def sybils(variant: str, source: RandomSource, accounts: int, **settings: Any) -> AuditResult:
    mechanism, claim, _ = released(variant, "my own name", share_threshold=KEY_SHARES, **settings)
    log = {**users_of(("my own name",), accounts), "X": ("my own name",)}
    return audit_ratio(mechanism, log, without_x(log), claim, source, RUNS)


@CASES.add("A6", "sound, fake accounts", "pass")
def sybils_against_sound(source: RandomSource) -> AuditResult:
    """About 0.99 of 1: one account below the threshold is the attacker's best number, and gains e^ε and no more."""
    settings = {"epsilon": "1", "delta": "1e-6"}
    _, _, threshold = released("sound", "my own name", share_threshold=KEY_SHARES, **settings)
    return sybils("sound", source, threshold - 1, **settings)


@CASES.add("A6", "Gaussian, fake accounts", "pass")
def sybils_against_gaussian(source: RandomSource) -> AuditResult:
    """About 2.5 of 3, as where the others are people: accounts below the key's threshold are taken off every count."""
    return sybils("gaussian", source, TELLING + KEY_SHARES - 1, **GAUSSIAN)


# Sybils that lie: they hold the artifact, and send wrong shares or another text under its tag.

LIARS = 30
ARTIFACT, OTHER = b"my own name", b"another name"
JOB = Job(
    application="queries",
    epoch=Month("2006-03"),
    artifacts_per_user=1,
    share_threshold=KEY_SHARES,
    policy="sound",
    opens=datetime(2006, 4, 1, tzinfo=UTC),
    closes=datetime(2006, 4, 8, tzinfo=UTC),
)


def lied_to(lie: str) -> dict[str, tuple[str, ...]]:
    """Just as many liars as leave one right share too few without X's."""
    honest = {f"user {index}": ("my own name",) for index in range(LIARS + KEY_SHARES - 1)}
    return {**honest, **{f"liar {index}": (lie,) for index in range(LIARS)}, "X": ("my own name",)}


def sealed_reports(log: CrowdLog) -> pa.Table:
    """What the collector seals of such a log."""
    material = derive(hashed(JOB, ARTIFACT), JOB, ARTIFACT)
    rows = []
    for user, (sent,) in log.items():
        text = OTHER if sent == "another text" else ARTIFACT
        place = share_place(user.encode(), JOB, ARTIFACT)
        report = make_report(JOB, text, material, place, Token(bytes(SERIAL_BYTES), bytes(OUTPUT_BYTES)))
        value = (report.y + (sent == "a wrong share")) % PRIME
        numbers = (each.to_bytes(ELEMENT_BYTES, "big") for each in (place, value))
        rows.append(dict(zip(WIDTHS, (report.job, report.tag, report.ciphertext, *numbers), strict=True)))
    return pa.Table.from_pylist(rows, pa.schema([(name, pa.binary(width)) for name, width in WIDTHS.items()]))


def shifted(users: int) -> int:
    """The count that noise is added to."""
    return max(0, users - (KEY_SHARES - 1))


def counted_net(log: CrowdLog) -> dict[str, int]:
    """What is counted: right reports less wrong ones, by text."""
    return {row["query"]: shifted(row["users"]) for row in aggregate(sealed_reports(log), JOB).artifacts.to_pylist()}


def counted_right(log: CrowdLog) -> dict[str, int]:
    """What a collector would count that corrects wrong shares and then forgets them."""
    reports = sealed_reports(log)
    found = recover(np.zeros(len(reports), np.int64), stack(reports["x"]), stack(reports["y"]), KEY_SHARES)
    return {"my own name": shifted(int(found.right[0]))}


def lying_sybils(counter: Counter, lie: str) -> AuditResult:
    return audit_sensitivity(counter, lied_to(lie), Bounds(l1=1, linf=1))


@CASES.add("A6", "wrong shares of fake accounts, right ones counted", "fail")
def wrong_shares_forgotten(source: RandomSource) -> AuditResult:
    """Exact: 31 of 1. X's share makes the others' decodable, and all of them count at once."""
    return lying_sybils(counted_right, "a wrong share")


@CASES.add("A6", "wrong shares of fake accounts, right less wrong", "pass")
def wrong_shares_taken_off(source: RandomSource) -> AuditResult:
    """Exact: L1 = 1 of 1."""
    return lying_sybils(counted_net, "a wrong share")


@CASES.add("A6", "another text of fake accounts under X's tag", "pass")
def other_text(source: RandomSource) -> AuditResult:
    """Exact: L1 = 1 of 1. The tag commits to one text; reports with another are wrong ones."""
    return lying_sybils(counted_net, "another text")
