"""The keys of epochs: made when first needed, deleted when the epoch closes, and never made again.

Whoever holds an epoch's key can test guesses of artifacts, and so can who makes tokens for evaluations, whose key comes
from the same secret; so it lies in one file of the randomness server, and the
file is overwritten and removed before anybody may aggregate. That an epoch's key was deleted is written down before the
file is touched: whenever the process is killed, the next one finishes the deletion, and a file that is not there is
never taken for one that is yet to be made. When an epoch closes is written down as its key is made: no job file that
changes, breaks or goes away later lets the key live longer than people were told. What a copy-on-write file system or
a disk keeps of overwritten blocks is beyond this: the folder belongs on an encrypted disk, and into no backup.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qlog_assets.crowd.inbox import writing
from qlog_assets.crowd.job_list import JobList
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.keys import epoch_evaluator, public_key_of
from qlog_assets.crowd.tokens import token_evaluator
from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.storage.scratch import sync
from qlog_assets.storage.secret_keys import find_key, make_key

if TYPE_CHECKING:
    from voprf.ristretto import Evaluator

FOLDER = "epochs"
SCHEMA = """
CREATE TABLE IF NOT EXISTS epochs (
    epoch TEXT PRIMARY KEY, state TEXT NOT NULL, closes REAL, public_key BLOB, deleted_at TEXT
) WITHOUT ROWID;
"""


class UnknownEpochError(QlogError):
    """An epoch that no job is about."""


class DeletedEpochError(QlogError):
    """An epoch whose key is gone for good."""


@dataclass(frozen=True)
class Statement:
    """What the randomness server states of an epoch, to everybody who asks."""

    state: Literal["open", "deleted"]
    public_key: bytes | None
    """None where the epoch closed before anybody needed its key."""
    deleted_at: str | None


@dataclass(frozen=True)
class OpenEpoch:
    """The secret of an open epoch, in memory."""

    seed: bytes
    evaluator: Evaluator


class Epochs:
    """The epochs of one randomness server."""

    def __init__(
        self,
        folder: Path,
        connection: sqlite3.Connection,
        jobs: JobList,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder / FOLDER
        self._connection = connection
        self._jobs = jobs
        self._clock = clock
        self._secrets: dict[str, OpenEpoch] = {}
        for epoch in self._in_state("deleting"):  # a process was killed at it
            self._remove(epoch)

    def evaluator(self, epoch: Month) -> Evaluator:
        """What evaluates blinded inputs of an open epoch; the key is made if this is the first time."""
        if self.statement(epoch).state == "deleted":
            raise DeletedEpochError(f"{epoch}: its key was deleted")
        return self._secrets[epoch].evaluator

    def token_evaluator(self, job: Job) -> Evaluator:
        """What makes and checks a job's tokens for evaluations, while its epoch is open. No other party has it."""
        self.evaluator(job.epoch)
        return token_evaluator(self._secrets[job.epoch].seed, "evaluate", job)

    def statement(self, epoch: Month) -> Statement:
        """What is true of an epoch now. One that has closed loses its key here, if nobody saw to it before."""
        state, public_key, deleted_at = self._row(epoch)
        if state == "deleted":
            self._secrets.pop(epoch, None)  # another process may have deleted it
            return Statement("deleted", public_key, deleted_at)
        if state == "deleting" or self._closing(epoch) <= self._clock():
            return self.delete(epoch)
        return self._open(epoch, state, public_key)

    def _closing(self, epoch: Month) -> float:
        """When the key is deleted: as written down when it was made, before that when the last of its jobs closes."""
        found = self._connection.execute("SELECT closes FROM epochs WHERE epoch = ?", (epoch,)).fetchone()
        if found is not None:
            return float(found[0])
        closings = [job.closes.timestamp() for job in self._jobs.of_epoch(epoch)]
        if not closings:
            raise UnknownEpochError(f"{epoch}: no job is about it")
        return max(closings)

    def delete(self, epoch: Month) -> Statement:
        """Delete an epoch's key for good."""
        with writing(self._connection) as connection:
            connection.execute(
                "INSERT INTO epochs VALUES (?, 'deleting', ?, NULL, NULL) "
                "ON CONFLICT DO UPDATE SET state = 'deleting' WHERE state = 'open'",
                (epoch, self._clock()),
            )
        self._remove(epoch)
        _, public_key, deleted_at = self._row(epoch)
        return Statement("deleted", public_key, deleted_at)

    def delete_closed(self) -> list[str]:
        """Delete the keys of all epochs that have closed; returns which."""
        query = "SELECT epoch FROM epochs WHERE state = 'open' AND closes <= ?"
        due = [Month(epoch) for (epoch,) in self._connection.execute(query, (self._clock(),)).fetchall()]
        for epoch in due:
            self.delete(epoch)
        return list(due)

    def _open(self, epoch: Month, state: str | None, public_key: bytes | None) -> Statement:
        if epoch not in self._secrets or not self._file(epoch).exists():
            seed = find_key(self._file(epoch))
            if seed is None and state == "open":
                # It is gone, by whomever: another key would give equal artifacts two tags.
                return self.delete(epoch)
            if seed is None:
                make_key(self._file(epoch))
                sync(self._folder)
                seed = find_key(self._file(epoch))
            if seed is None:
                raise QlogError(f"{self._file(epoch)}: is no key that its owner alone can read: chmod 600 it")
            self._secrets[epoch] = OpenEpoch(seed, epoch_evaluator(seed, epoch))
        if state is None:
            public_key = public_key_of(self._secrets[epoch].evaluator)
            row = (epoch, self._closing(epoch), public_key)
            with writing(self._connection) as connection:
                connection.execute("INSERT OR IGNORE INTO epochs VALUES (?, 'open', ?, ?, NULL)", row)
        return Statement("open", public_key, None)

    def _remove(self, epoch: str) -> None:
        self._secrets.pop(epoch, None)
        path = self._file(epoch)
        if path.exists():
            with path.open("r+b") as stream:
                stream.write(os.urandom(path.stat().st_size))
                stream.flush()
                os.fsync(stream.fileno())
            path.unlink()
            sync(self._folder)
        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")
        with writing(self._connection) as connection:
            connection.execute(
                "UPDATE epochs SET state = 'deleted', deleted_at = ? WHERE epoch = ? AND state = 'deleting'",
                (at, epoch),
            )

    def _file(self, epoch: str) -> Path:
        return self._folder / f"{epoch}.key"

    def _row(self, epoch: str) -> tuple[str | None, bytes | None, str | None]:
        query = "SELECT state, public_key, deleted_at FROM epochs WHERE epoch = ?"
        found: tuple[str, bytes | None, str | None] | None = self._connection.execute(query, (epoch,)).fetchone()
        return found or (None, None, None)

    def _in_state(self, state: str) -> list[str]:
        return [epoch for (epoch,) in self._connection.execute("SELECT epoch FROM epochs WHERE state = ?", (state,))]
