"""The collector's second step: from sealed reports that were accepted to reports that count, in a process of its own.

A report is opened, its job and its token are checked, and it is moved, or counted under a reason for which it is not.
Moving, counting and taking it out of the inbox are one transaction: whenever the process is killed, a report is on one
side and on one only. No time is stored, and the table is ordered by the tokens' serials, which are random.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from qlog_assets.crowd import inbox, kept_jobs
from qlog_assets.crowd.cast import DAY_SECONDS, CollectorSettings, PartyFolder, open_folder
from qlog_assets.crowd.envelopes import REPORT, open_sealed
from qlog_assets.crowd.inbox import open_database, remove_messages, waiting_messages, writing
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.kept_jobs import KeptJobs
from qlog_assets.crowd.malformed import MalformedError
from qlog_assets.crowd.messages import Report
from qlog_assets.crowd.tokens import check, token_evaluator
from qlog_assets.storage.scratch import hold_lock

if TYPE_CHECKING:
    from voprf.ristretto import Evaluator

DATABASE = "collector.db"
LOCK = "opener.lock"
LOCK_SECONDS = 60
"""The opener of a collector that was killed ends with the batch it is at."""
BATCH = 500
NICENESS = 10
"""Accepting reports goes first where both want the same core: opening can wait, and senders would try again."""
SEALED = "epoch is sealed"
UNKNOWN_EPOCH = ""
"""Of reports that were rejected before it was known what they are about."""
SCHEMA = f"""
{inbox.SCHEMA}
{kept_jobs.SCHEMA}
CREATE TABLE IF NOT EXISTS reports (
    job BLOB NOT NULL, serial BLOB NOT NULL, tag BLOB NOT NULL, ciphertext BLOB NOT NULL, x BLOB NOT NULL,
    y BLOB NOT NULL, PRIMARY KEY (job, serial)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS accepted (epoch TEXT PRIMARY KEY, reports INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rejected (
    epoch TEXT NOT NULL, reason TEXT NOT NULL, reports INTEGER NOT NULL, PRIMARY KEY (epoch, reason)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sealed (epoch TEXT PRIMARY KEY, at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS epoch_keys (epoch TEXT PRIMARY KEY, public_key BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS evaluation_keys (job BLOB PRIMARY KEY, public_key BLOB NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Fit:
    """A report that counts, unless its epoch is sealed or its token spent."""

    epoch: str
    report: Report


@dataclass(frozen=True)
class Unfit:
    """A report that does not count, and why."""

    epoch: str
    reason: str


def open_collector(folder: Path) -> sqlite3.Connection:
    return open_database(folder / DATABASE, SCHEMA)


class Opener:
    """Opens accepted reports, batch by batch."""

    def __init__(self, home: PartyFolder[CollectorSettings], clock: Callable[[], float] = time.time) -> None:
        self._key = home.private_key
        self._seed = home.token_seed()
        self._evaluators: dict[bytes, Evaluator] = {}
        self._connection = open_collector(home.folder)
        self._jobs = KeptJobs(self._connection, home.jobs, tell=lambda _: None)  # the collector tells it
        self._clock = clock

    def open_waiting(self, batch: int = BATCH) -> int:
        """Open reports that wait, at most a batch; returns how many."""
        rows = self._connection.execute("SELECT digest, message FROM waiting LIMIT ?", (batch,)).fetchall()
        if not rows:
            return 0
        jobs = self._jobs.by_digest()
        verdicts = [self._judge(message, jobs) for _, message in rows]
        with writing(self._connection) as connection:
            sealed = {epoch for (epoch,) in connection.execute("SELECT epoch FROM sealed")}
            accepted: Counter[str] = Counter()
            rejected: Counter[tuple[str, str]] = Counter()
            for verdict in verdicts:
                if isinstance(verdict, Unfit):
                    reason: str | None = verdict.reason
                else:
                    reason = SEALED if verdict.epoch in sealed else store_report(connection, verdict.report)
                if reason is None:
                    accepted[verdict.epoch] += 1
                else:
                    rejected[verdict.epoch, reason] += 1
            count_accepted(connection, accepted)
            count_rejected(connection, rejected)
            remove_messages(connection, [digest for digest, _ in rows], int(self._clock() // DAY_SECONDS))
        return len(rows)

    def waiting(self) -> int:
        return waiting_messages(self._connection)

    def _judge(self, message: bytes, jobs: dict[bytes, Job]) -> Fit | Unfit:
        try:
            report = Report.unpack(open_sealed(self._key, message, REPORT))
        except MalformedError as error:
            return Unfit(UNKNOWN_EPOCH, error.reason)
        job = jobs.get(report.job)
        if job is None:
            return Unfit(UNKNOWN_EPOCH, "unknown job")
        # There is no "too late" here: a report that was accepted in time may be opened later, after a restart.
        if datetime.fromtimestamp(self._clock(), UTC) < job.opens:
            return Unfit(job.epoch, "job is not open yet")
        if report.job not in self._evaluators:
            self._evaluators[report.job] = token_evaluator(self._seed, "report", job)
        if not check(self._evaluators[report.job], report.token):
            return Unfit(job.epoch, "forged token")
        return Fit(job.epoch, report)


def store_report(connection: sqlite3.Connection, report: Report) -> str | None:
    """Store a report under its token; returns why not if the token was spent. The first one to come counts."""
    row = (report.tag, report.ciphertext, report.x.to_bytes(16, "big"), report.y.to_bytes(16, "big"))
    key = (report.job, report.token.serial)
    stored = connection.execute("INSERT OR IGNORE INTO reports VALUES (?, ?, ?, ?, ?, ?)", (*key, *row))
    if stored.rowcount:
        return None
    earlier = "SELECT tag, ciphertext, x, y FROM reports WHERE job = ? AND serial = ?"
    is_same = connection.execute(earlier, key).fetchone() == row
    return "report came before" if is_same else "token is spent"


def count_accepted(connection: sqlite3.Connection, counts: Counter[str]) -> None:
    connection.executemany(
        "INSERT INTO accepted VALUES (?, ?) ON CONFLICT DO UPDATE SET reports = reports + excluded.reports",
        counts.items(),
    )


def count_rejected(connection: sqlite3.Connection, counts: Counter[tuple[str, str]]) -> None:
    connection.executemany(
        "INSERT INTO rejected VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET reports = reports + excluded.reports",
        ((epoch, reason, reports) for (epoch, reason), reports in counts.items()),
    )


def run_opener(folder: Path, woken: Iterable[bytes]) -> None:
    """Open all that waits whenever somebody says that there is more, until nobody can any more."""
    with hold_lock(folder / LOCK, LOCK_SECONDS, f"{folder}: another process opens its reports"):
        opener = Opener(open_folder(folder, CollectorSettings))
        for _ in woken:
            while opener.open_waiting():
                pass


def main() -> None:
    """The collector writes a line to standard input when it stored reports, and ends this process by closing it."""
    os.nice(NICENESS)
    run_opener(Path(sys.argv[1]), sys.stdin.buffer)


if __name__ == "__main__":
    main()
