"""A durable queue: messages that a server answered for, until the next party has them.

One writer thread takes all that waits, writes it in one transaction, and answers everybody: a single wait for the disk
serves hundreds of requests. A message is known by its SHA-256 after it left the queue, so that who sends it again,
because an answer was lost or to see where it goes, changes nothing. The messages of one transaction are written in the
order of their digests. While a message waits, a thief of the files learns which transaction it came with and the two
times that the server gave it, which are random or coarse; when it has left, that there was one of this digest. Until
the log beside the database is emptied, which is when nothing waits any more or a few minutes later, it holds messages
that have left; what a disk keeps of files that were cut off or overwritten is beyond this.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from qlog_assets.crowd.cast import DAY_SECONDS
from qlog_assets.errors import QlogError

BUSY_SECONDS = 60.0
"""How long a writer waits for another process that writes; a transaction here takes some hundredths of a second."""
MOST_IN_MEMORY = 50_000
"""Messages that may wait for the writer. At a few thousand per second they are some seconds' worth."""
MOST_PER_TRANSACTION = 8_000
CACHE_KILOBYTES = 65_536
CHECKPOINT_PAGES = 8_000
"""32 MB of log before it is copied into the database: at the default of 4 MB that happens several times per second."""
LOG_SECONDS = 300.0
"""How long messages that have left may stay in that log while others wait."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS waiting (
    number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, message BLOB NOT NULL,
    onward TEXT NOT NULL, size INTEGER NOT NULL, due REAL NOT NULL, late REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS seen (digest BLOB PRIMARY KEY, day INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS totals (name TEXT PRIMARY KEY, messages INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO totals VALUES ('waiting', 0);
"""
DUE_INDEX = "CREATE INDEX IF NOT EXISTS waiting_by_due ON waiting (onward, size, due, late);"
PUT = """
INSERT OR IGNORE INTO waiting (digest, message, onward, due, late, size)
SELECT ?1, ?2, ?3, ?4, ?5, length(?2) WHERE NOT EXISTS (SELECT 1 FROM seen WHERE digest = ?1)
"""


class FullError(Exception):
    """The backlog is at its limit: the sender is to try again later."""


class ClosedError(Exception):
    """The server is ending: nothing was stored."""


class Item(NamedTuple):
    """A message in the queue."""

    digest: bytes
    """What it is known by: SHA-256 of what came, which may be another thing than what goes on."""
    message: bytes
    onward: str = ""
    """The party it goes to; empty where it stays."""
    due: float = 0.0
    """When it may go on with others."""
    late: float = 0.0
    """When it goes on in any case."""


class Group(NamedTuple):
    """Messages that may go on to one party and look alike."""

    onward: str
    size: int
    messages: int
    late: float
    """When the first of them goes on in any case."""


@dataclass
class _Put:
    items: Sequence[Item]
    answer: asyncio.Future[None]
    is_refused: bool = False


@dataclass
class _Done:
    digests: Sequence[bytes]
    answer: asyncio.Future[None]


def open_database(path: Path, schema: str) -> sqlite3.Connection:
    """A database whose commits are on the disk when they return, and whose deleted rows are overwritten in its file.

    The log beside it (-wal) holds them until `empty_log`: who deletes what must be gone calls it.
    """
    try:
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        path.chmod(0o600)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.executescript(schema)
    except sqlite3.Error as error:
        raise QlogError(
            f"{path}: cannot be opened ({error}): is the disk full, or the file another program's?"
        ) from None
    return connection


@contextlib.contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One transaction, which nobody else writes beside."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def empty_log(connection: sqlite3.Connection) -> bool:
    """Cut off the log beside a database, with what was deleted; False if another process read in it for too long."""
    (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy


def digest_of(message: bytes) -> bytes:
    return hashlib.sha256(message).digest()


def waiting_messages(connection: sqlite3.Connection) -> int:
    """How many messages wait."""
    (found,) = connection.execute("SELECT messages FROM totals WHERE name = 'waiting'").fetchone()
    return int(found)


def remove_messages(connection: sqlite3.Connection, digests: Sequence[bytes], day: int) -> int:
    """Inside a transaction: take messages out of the queue, and remember them; returns how many were there."""
    before = connection.total_changes
    connection.executemany("DELETE FROM waiting WHERE digest = ?", ((digest,) for digest in digests))
    removed = connection.total_changes - before
    connection.executemany("INSERT OR IGNORE INTO seen VALUES (?, ?)", ((digest, day) for digest in digests))
    connection.execute("UPDATE totals SET messages = messages - ? WHERE name = 'waiting'", (removed,))
    return removed


class Inbox:
    """The queue as a server uses it, from one event loop."""

    def __init__(
        self,
        path: Path,
        *,
        largest_backlog: int,
        remember_days: int | None = None,
        delayed: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`delayed`: messages are taken out by when they are due. `remember_days`: how long those are known again
        that have left; for ever unless told."""
        self._connection = open_database(path, SCHEMA + (DUE_INDEX if delayed else ""))
        self._reader = open_database(path, "")
        self._largest_backlog = largest_backlog
        self.stored = 0
        self.repeated = 0
        """Of messages since this server started, for its metrics."""
        self._clock = clock
        self._remember_days = remember_days
        self._forgot_on: int | None = None
        self._emptied_at = clock()
        self._waiting: list[_Put | _Done] = []
        self._in_memory = 0
        self._changed = threading.Condition()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer = threading.Thread(target=self._write, name="inbox", daemon=True)
        self._writer.start()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Write what waits, then end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._writer.join()
        self._connection.close()
        self._reader.close()

    # The event loop's side --------------------------------------------------------------------------------------------

    async def put(self, items: Sequence[Item]) -> None:
        """Store messages. When this returns, they survive a power cut. Raises FullError and stores none of them."""
        if self._in_memory + len(items) > MOST_IN_MEMORY:
            raise FullError
        self._in_memory += len(items)
        self._loop = asyncio.get_running_loop()
        entry = _Put(items, self._loop.create_future())
        try:
            self._hand_over(entry)
            await entry.answer
        finally:
            self._in_memory -= len(items)

    async def done(self, digests: Sequence[bytes]) -> None:
        """Take messages out: the next party has them, or nobody ever will."""
        self._loop = asyncio.get_running_loop()
        entry = _Done(digests, self._loop.create_future())
        self._hand_over(entry)
        await entry.answer

    def _hand_over(self, entry: _Put | _Done) -> None:
        with self._changed:
            if self._closed:
                raise ClosedError
            self._waiting.append(entry)
            self._changed.notify()

    def backlog(self) -> int:
        """How many stored messages wait."""
        return waiting_messages(self._reader)

    def due_groups(self, now: float) -> list[Group]:
        """The messages that may go on, by where they go and how they look."""
        rows = self._reader.execute(
            "SELECT onward, size, count(*), min(late) FROM waiting WHERE due <= ? GROUP BY onward, size", (now,)
        )
        return [Group(*row) for row in rows]

    def take(self, group: Group, now: float, most: int) -> list[tuple[bytes, bytes]]:
        """Messages of a group with their digests, those first that waited longest. They stay until `done`."""
        return self._reader.execute(
            "SELECT digest, message FROM waiting WHERE onward = ? AND size = ? AND due <= ? ORDER BY late LIMIT ?",
            (group.onward, group.size, now, most),
        ).fetchall()

    # The writer's side ------------------------------------------------------------------------------------------------

    def _today(self) -> int:
        """The day that is stored with a message which left: none where none is needed."""
        return 0 if self._remember_days is None else int(self._clock() // DAY_SECONDS)

    def _write(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._waiting or self._closed)
                    if not self._waiting:
                        return
                    entries, self._waiting = self._waiting, []
                for chunk in chunks(entries):
                    self._write_together(chunk)
        finally:
            with self._changed:  # whatever ended it, nobody is to wait for a writer that is gone
                self._closed = True

    def _write_together(self, entries: list[_Put | _Done]) -> None:
        failure: sqlite3.Error | None = None
        try:
            with writing(self._connection):
                self._forget_seen()
                self._put_all([entry for entry in entries if isinstance(entry, _Put)])
                for entry in entries:
                    if isinstance(entry, _Done):
                        remove_messages(self._connection, entry.digests, self._today())
            if any(isinstance(entry, _Done) for entry in entries):
                self._empty_log()
        except sqlite3.Error as error:  # a full disk: everybody who waits hears of it, and nobody was told otherwise
            failure = error
        if self._loop is not None:
            # The loop may be gone where a server was stopped by force: then nobody waits for an answer.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(answer_all, entries, failure)

    def _empty_log(self) -> None:
        """Cut off the log beside the database, which holds the messages that left, if it is time to."""
        now = self._clock()
        is_time = waiting_messages(self._connection) == 0 or now - self._emptied_at >= LOG_SECONDS
        if is_time and empty_log(self._connection):
            self._emptied_at = now

    def _forget_seen(self) -> None:
        """Once per day: forget messages that left some weeks ago."""
        today = self._today()
        if self._remember_days is not None and today != self._forgot_on:
            self._connection.execute("DELETE FROM seen WHERE day < ?", (today - self._remember_days,))
            self._forgot_on = today

    def _put_all(self, entries: list[_Put]) -> None:
        room = self._largest_backlog - waiting_messages(self._connection)
        rows: dict[bytes, Item] = {}
        asked = 0
        for entry in entries:
            if len(entry.items) > room:
                entry.is_refused = True
                continue
            room -= len(entry.items)
            asked += len(entry.items)
            rows.update((item.digest, item) for item in entry.items)
        before = self._connection.total_changes
        self._connection.executemany(PUT, sorted(rows.values()))
        new = self._connection.total_changes - before
        self._connection.execute("UPDATE totals SET messages = messages + ? WHERE name = 'waiting'", (new,))
        self.stored += new
        self.repeated += asked - new


def chunks(entries: list[_Put | _Done]) -> Iterator[list[_Put | _Done]]:
    """Entries in groups of a bounded number of messages: who asked first is not to wait for all who came later."""
    group: list[_Put | _Done] = []
    messages = 0
    for entry in entries:
        group.append(entry)
        messages += len(entry.items if isinstance(entry, _Put) else entry.digests)
        if messages >= MOST_PER_TRANSACTION:
            yield group
            group, messages = [], 0
    if group:
        yield group


def answer_all(entries: list[_Put | _Done], failure: sqlite3.Error | None) -> None:
    """In the event loop: tell everybody what became of what they asked for."""
    for entry in entries:
        if entry.answer.done():  # who asked has gone away
            continue
        if failure is not None:
            entry.answer.set_exception(failure)
        elif isinstance(entry, _Put) and entry.is_refused:
            entry.answer.set_exception(FullError())
        else:
            entry.answer.set_result(None)
