"""Attacks on k-anonymity: Z3, k - 1 fake accounts that hold a guess tell whether one more user holds it; and K1, what
is learned of a person from people who are all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import duckdb
import numpy as np
import pyarrow as pa

from qlog_assets.attacks.auditor import AuditResult, Claim, Mechanism, audit_ratio
from qlog_assets.attacks.case import Cases, rows_of, without_x
from qlog_assets.mechanisms.baselines.draw import print_histories, print_sessions
from qlog_assets.mechanisms.baselines.inference import infer
from qlog_assets.mechanisms.baselines.paper import print_baseline
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.storage.engine import DuckDBEngine, Engine

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


# Histories and sessions. The accounts hold all that the victim may have typed, in one session.

TYPED = {**{f"account {number}": ("known", "sensitive") for number in range(LEAST - 1)}, "X": ("known", "sensitive")}
Print = Callable[[Engine, int], pa.Table]
"""From the table cleaned_queries and k to what is printed."""


def whole_items(prints: Print, learns: Callable[[Engine, pa.Table], bool]) -> Mechanism:
    """A baseline of several queries, by the statements that studies run; the event: what is learned of its print."""

    def mechanism(log: Mapping[str, tuple[str, ...]], source: RandomSource, runs: int) -> np.ndarray:
        with duckdb.connect(":memory:") as connection, DuckDBEngine.lent(connection) as engine:
            with engine.table("cleaned_queries", searches_of(log)):
                learned = learns(engine, prints(engine, LEAST))
            return np.full(runs, learned)

    return mechanism


def searches_of(log: Mapping[str, tuple[str, ...]]) -> pa.Table:
    """Everybody's queries, a minute apart."""
    rows = [(user, query, minute) for user, queries in log.items() for minute, query in enumerate(queries)]
    users, queries, minutes = zip(*rows, strict=True)
    times = [datetime(2006, 3, 1) + timedelta(minutes=minute) for minute in minutes]
    return pa.table({"user": list(users), "query": list(queries), "time": times})


def is_printed(engine: Engine, printed: pa.Table) -> bool:
    return printed.num_rows > 0


def is_inferred(engine: Engine, printed: pa.Table) -> bool:
    """Whether whoever knows one query of the victim, and only that, learns the other with certainty."""
    return infer(engine, printed).betrayed_by.get("known", 0) == 1


def attack_whole(prints: Print, learns: Callable[[Engine, pa.Table], bool], source: RandomSource) -> AuditResult:
    return audit_ratio(whole_items(prints, learns), TYPED, without_x(TYPED), Claim(1, 1e-6), source, 2000)


@CASES.add("Z3", "fake accounts against whole histories", "fail")
def by_histories(source: RandomSource) -> AuditResult:
    """Certain, but the attacker must guess all that the victim typed."""
    return attack_whole(print_histories, is_printed, source)


@CASES.add("Z3", "fake accounts against whole sessions", "fail")
def by_sessions(source: RandomSource) -> AuditResult:
    """Certain, and one session of the victim is enough."""
    return attack_whole(print_sessions, is_printed, source)


@CASES.add("K1", "inference from histories that all hold the sensitive query", "fail")
def inference_from_histories(source: RandomSource) -> AuditResult:
    """Certain, without any fake account: k people stand behind the history, and all of them typed the query."""
    return attack_whole(print_histories, is_inferred, source)


@CASES.add("K1", "inference from sessions that all hold the sensitive query", "fail")
def inference_from_sessions(source: RandomSource) -> AuditResult:
    """Certain, as for histories."""
    return attack_whole(print_sessions, is_inferred, source)
