"""What a client must not forget: who it is, which jobs it took part in, and its planned messages until they are sent.

One SQLite file in the client's folder that its owner alone can read. Each step is one transaction, made before what it
permits happens: a job is entered before its first byte leaves, and messages are stored before the first is sent. So
after a crash nothing is sent twice but the very bytes that may have been sent before. What is no more needed is
overwritten: artifacts and tokens when the messages are made of them, a message when it is sent.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from qlog_assets.crowd.jobs import Job, parse_job
from qlog_assets.errors import QlogError
from qlog_assets.storage.private_files import tighten
from qlog_assets.storage.scratch import hold_lock, make_private, sync, temporary_directory

FILE, LOCK = "client.db", "client.lock"
USER_KEY_BYTES = 32
WAIT_SECONDS = 30.0
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

Stage = Literal["chosen", "paid", "planned", "lost"]
"""Of a job: its artifacts are chosen; its tokens are there; its messages are stored; it ended without any."""

TABLES = """
CREATE TABLE identity (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE participations (
    job BLOB PRIMARY KEY,
    application TEXT NOT NULL,
    epoch TEXT NOT NULL,
    description TEXT NOT NULL,
    stage TEXT NOT NULL CHECK (stage IN ('chosen', 'paid', 'planned', 'lost')),
    artifacts TEXT,
    tokens TEXT,
    UNIQUE (application, epoch)
) STRICT;
CREATE TABLE messages (
    job BLOB NOT NULL REFERENCES participations,
    number INTEGER NOT NULL,
    due INTEGER NOT NULL,
    relay TEXT NOT NULL,
    body BLOB,
    state TEXT NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'sent', 'missed')),
    PRIMARY KEY (job, number)
) STRICT;
CREATE INDEX messages_due ON messages (due) WHERE state = 'planned';
"""


@dataclass(frozen=True)
class Identity:
    """Whom tokens are issued to, and what the places of this user's shares are made of."""

    account: str
    secret: str = field(repr=False)
    user_key: bytes = field(repr=False)


@dataclass(frozen=True)
class Participation:
    """A job that this client entered."""

    job: Job
    stage: Stage
    artifacts: tuple[bytes, ...] = field(repr=False)
    """Encoded; empty when the messages are made."""
    tokens: tuple[tuple[bytes, bytes], ...] = field(repr=False)
    """Serial and output: the one for the randomness server, then those of the reports."""


@dataclass(frozen=True)
class Planned:
    """A message as it will be sent."""

    due: datetime
    relay: str
    """The name of the first relay."""
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Waiting:
    """A planned message that was not sent yet."""

    job: bytes
    number: int
    planned: Planned


@dataclass(frozen=True)
class Progress:
    """How far a job is."""

    job: Job
    stage: Stage
    messages: dict[str, int]
    """How many are planned, sent, and missed."""
    next_due: datetime | None


class ClientState:
    """The client's memory. One process works on it at a time: see `hold`."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._connection = connection

    @staticmethod
    def create(folder: Path, account: str, secret: str) -> None:
        """Make the memory of a new client, whole or not at all."""
        make_private(folder)
        tighten(folder)
        with temporary_directory(folder) as scratch:
            fresh = scratch / FILE
            os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            with contextlib.closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
                connection.executescript(f"BEGIN; {TABLES} COMMIT;")
                identity = {"account": account.encode(), "secret": secret.encode()}
                identity["user_key"] = secrets.token_bytes(USER_KEY_BYTES)
                connection.executemany("INSERT INTO identity VALUES (?, ?)", list(identity.items()))
            sync(fresh)
            # A link and no rename: of two that begin at once, the first one counts.
            try:
                os.link(fresh, folder / FILE)
            except FileExistsError:
                raise QlogError(f"{folder}: another process makes a client here: use that one") from None
        sync(folder)

    def change_secret(self, account: str, secret: str) -> None:
        """Put another secret in place of the account's. The account stays: its tokens were counted for it."""
        if self.identity().account != account:
            raise QlogError(f"{self.folder}: is the folder of another account: take a folder of its own for this one")
        with self._step() as connection:
            connection.execute("UPDATE identity SET value = ? WHERE name = 'secret'", (secret.encode(),))

    @classmethod
    @contextlib.contextmanager
    def open(cls, folder: Path) -> Iterator[ClientState]:
        """The memory of a client for the time of a block."""
        path = folder / FILE
        if not path.is_file():
            raise QlogError(f"{folder}: is no client's folder: `qlog crowd client init` makes one")
        tighten(path)
        try:
            with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=WAIT_SECONDS)) as connection:
                connection.execute("PRAGMA secure_delete = ON")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
                yield cls(folder, connection)
        except sqlite3.DatabaseError as error:
            # Not its own words: they may quote a value.
            name = getattr(error, "sqlite_errorname", type(error).__name__)
            raise QlogError(f"{path}: cannot be used ({name}): restore it, or begin anew in another folder") from None

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Be the only process that takes part or sends."""
        busy = f"{self.folder}: another process of this client is at work: wait for it"
        with hold_lock(self.folder / LOCK, WAIT_SECONDS, busy):
            yield

    @contextlib.contextmanager
    def _step(self) -> Iterator[sqlite3.Connection]:
        """One transaction, on the disk when the block is left."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def identity(self) -> Identity:
        found = dict(self._connection.execute("SELECT name, value FROM identity"))
        return Identity(found["account"].decode(), found["secret"].decode(), found["user_key"])

    # The steps of a job ----------------------------------------------------------------------------------------------

    def enter(self, job: Job, artifacts: Sequence[bytes]) -> None:
        """Enter a job with what was chosen for it, before anything leaves. Once per application and epoch, for good."""
        if len(artifacts) > job.artifacts_per_user:
            raise ValueError("more artifacts than a client sends")
        with self._step() as connection:
            entered = connection.execute(
                "SELECT count(*) FROM participations WHERE application = ? AND epoch = ?", (job.application, job.epoch)
            ).fetchone()[0]
            if entered:
                raise QlogError(
                    f"{job.application} of {job.epoch}: this client took part already: nothing is sent twice"
                )
            values = (job.digest, job.application, str(job.epoch), job.as_toml(), _texts(artifacts))
            connection.execute(
                """INSERT INTO participations (job, application, epoch, description, stage, artifacts)
                   VALUES (?, ?, ?, ?, 'chosen', ?)""",
                values,
            )

    def pay(self, job: Job, tokens: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep the tokens of a job."""
        with self._step() as connection:
            self._change(connection, job, ("chosen",), "paid", _texts([part for token in tokens for part in token]))

    def lose(self, job: Job) -> None:
        """End a job that can send nothing: its tokens never arrived, or it closed before its messages were made."""
        with self._step() as connection:
            self._change(connection, job, ("chosen", "paid"), "lost", None)

    def plan(self, job: Job, messages: Sequence[Planned]) -> None:
        """Store all messages of a job, and forget what they were made of."""
        if len(messages) != job.artifacts_per_user:
            raise ValueError("every client sends as many messages as the job says")
        with self._step() as connection:
            self._change(connection, job, ("paid",), "planned", None)
            connection.executemany(
                "INSERT INTO messages (job, number, due, relay, body) VALUES (?, ?, ?, ?, ?)",
                [(job.digest, n, _ticks(each.due), each.relay, each.body) for n, each in enumerate(messages)],
            )

    def _change(
        self, connection: sqlite3.Connection, job: Job, before: tuple[Stage, ...], after: Stage, tokens: str | None
    ) -> None:
        keeping = after == "paid"
        changed = connection.execute(
            """UPDATE participations SET stage = ?, tokens = ?, artifacts = CASE WHEN ? THEN artifacts END
               WHERE job = ? AND stage IN (?, ?)""",
            (after, tokens, keeping, job.digest, before[0], before[-1]),
        )
        if changed.rowcount != 1:
            raise RuntimeError(f"a job that is not {' or '.join(before)} cannot become {after}")

    def find(self, job: Job) -> Participation | None:
        """This client's part in a job."""
        row = self._connection.execute(
            "SELECT description, stage, artifacts, tokens FROM participations WHERE job = ?", (job.digest,)
        ).fetchone()
        return None if row is None else _participation(*row)

    def unfinished(self) -> list[Participation]:
        """The jobs that were entered and have no messages yet."""
        rows = self._connection.execute(
            """SELECT description, stage, artifacts, tokens FROM participations
               WHERE stage IN ('chosen', 'paid') ORDER BY epoch, application"""
        )
        return [_participation(*row) for row in rows]

    # Sending ---------------------------------------------------------------------------------------------------------

    def due(self, now: datetime) -> list[Waiting]:
        """The messages to send by now, the longest due first."""
        rows = self._connection.execute(
            """SELECT job, number, due, relay, body FROM messages
               WHERE state = 'planned' AND due <= ? ORDER BY due, job, number""",
            (_ticks(now),),
        )
        return [Waiting(job, number, Planned(_moment(due), relay, body)) for job, number, due, relay, body in rows]

    def next_due(self) -> datetime | None:
        """When the next message is to be sent."""
        found = self._connection.execute("SELECT min(due) FROM messages WHERE state = 'planned'").fetchone()[0]
        return None if found is None else _moment(found)

    def put_off(self, times: Sequence[tuple[Waiting, datetime]]) -> None:
        """Give messages other times."""
        with self._step() as connection:
            connection.executemany(
                "UPDATE messages SET due = ? WHERE job = ? AND number = ? AND state = 'planned'",
                [(_ticks(due), waiting.job, waiting.number) for waiting, due in times],
            )

    def mark_sent(self, waiting: Waiting) -> None:
        """Forget the bytes of a message that a relay accepted."""
        with self._step() as connection:
            connection.execute(
                "UPDATE messages SET state = 'sent', body = NULL WHERE job = ? AND number = ? AND state = 'planned'",
                (waiting.job, waiting.number),
            )

    def give_up(self, is_over: Callable[[Job], bool]) -> int:
        """Forget the messages of jobs that are over; returns how many there were."""
        over = [each.job.digest for each in self.progress() if each.next_due is not None and is_over(each.job)]
        with self._step() as connection:
            return sum(
                connection.execute(
                    "UPDATE messages SET state = 'missed', body = NULL WHERE job = ? AND state = 'planned'", (digest,)
                ).rowcount
                for digest in over
            )

    def progress(self) -> list[Progress]:
        """All jobs that were entered, by epoch and application."""
        found = []
        for digest, description, stage in self._connection.execute(
            "SELECT job, description, stage FROM participations ORDER BY epoch, application"
        ).fetchall():
            counts = dict(
                self._connection.execute("SELECT state, count(*) FROM messages WHERE job = ? GROUP BY state", (digest,))
            )
            earliest = self._connection.execute(
                "SELECT min(due) FROM messages WHERE job = ? AND state = 'planned'", (digest,)
            ).fetchone()[0]
            messages = {state: counts.get(state, 0) for state in ("planned", "sent", "missed")}
            next_due = None if earliest is None else _moment(earliest)
            found.append(Progress(parse_job(description), stage, messages, next_due))
        return found


def _participation(description: str, stage: Stage, artifacts: str | None, tokens: str | None) -> Participation:
    parts = _values(tokens)
    pairs = tuple(zip(parts[::2], parts[1::2], strict=True))
    return Participation(parse_job(description), stage, tuple(_values(artifacts)), pairs)


def _texts(values: Sequence[bytes]) -> str:
    return json.dumps([base64.b64encode(value).decode("ascii") for value in values])


def _values(text: str | None) -> list[bytes]:
    return [base64.b64decode(each) for each in json.loads(text)] if text else []


def _ticks(moment: datetime) -> int:
    return (moment - BEGINNING) // MICROSECOND


def _moment(ticks: int) -> datetime:
    return BEGINNING + ticks * MICROSECOND
