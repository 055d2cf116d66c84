"""The jobs of a collector: kept in its database as they were first seen, because clients may have been shown them.

A report is judged by the job that it was made for, although the job's file is broken or away for a moment, or another
one has come for the same artifacts, before or after a restart. Shown is what is kept and has its file still.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from qlog_assets.crowd.inbox import writing
from qlog_assets.crowd.job_list import JobList
from qlog_assets.crowd.jobs import Application, Job, parse_job

LOG = logging.getLogger(__name__)
SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    epoch TEXT NOT NULL, application TEXT NOT NULL, digest BLOB NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (epoch, application)
) WITHOUT ROWID;
"""


class KeptJobs:
    """The jobs that one collector has seen, by its database and the files in its folder."""

    def __init__(self, connection: sqlite3.Connection, folder: Path, tell: Callable[[str], None] = LOG.warning) -> None:
        self._connection = connection
        self._folder = folder
        self._tell = tell
        self._kept: dict[bytes, Job] = {}
        self._read_kept()
        self._files = JobList(folder, tell, frozenset(self._kept))
        self._told: set[bytes] = set()

    def by_digest(self) -> dict[bytes, Job]:
        """All jobs that were ever seen; those whose files are new are kept from here on."""
        found = self._files.by_digest()
        if not found.keys() <= self._kept.keys() | self._told:
            rows = [(job.epoch, job.application, digest, job.as_toml()) for digest, job in found.items()]
            with writing(self._connection) as connection:
                connection.executemany("INSERT OR IGNORE INTO jobs VALUES (?, ?, ?, ?)", rows)
        self._read_kept()
        for digest in found.keys() - self._kept.keys() - self._told:
            job = found[digest]
            self._told.add(digest)
            reason = f"has another job {job.application} of {job.epoch} than was seen before, which stays"
            self._tell(f"{self._folder}: {reason} (left out; the other jobs go on)")
        return self._kept

    def _read_kept(self) -> None:
        for digest, text in self._connection.execute("SELECT digest, text FROM jobs").fetchall():
            if digest not in self._kept:
                self._kept[digest] = parse_job(text)

    def shown(self) -> list[Job]:
        """The jobs that clients are shown."""
        kept = self.by_digest()
        return [job for digest, job in self._files.by_digest().items() if digest in kept]

    def of_epoch(self, epoch: str) -> list[Job]:
        order = get_args(Application)
        found = [job for job in self.by_digest().values() if job.epoch == epoch]
        return sorted(found, key=lambda job: order.index(job.application))

    def left_out(self) -> int:
        """How many files of the folder are no jobs, or other ones than were seen before."""
        return self._files.left_out() + len(self._files.by_digest().keys() - self.by_digest().keys())
