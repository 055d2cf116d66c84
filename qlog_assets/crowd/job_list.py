"""The jobs that a server knows: the files in its folder `jobs/`, which come without a restart."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from qlog_assets.crowd.jobs import Application, Job, read_job, read_jobs
from qlog_assets.errors import QlogError, RefusedError
from qlog_assets.months import Month
from qlog_assets.storage.private_files import write_private

LOG = logging.getLogger(__name__)


class JobList:
    """The jobs in a folder, read again when a file of it changed.

    A file that is no job is told, counted and left out: a server goes on with the other jobs.
    """

    def __init__(
        self, folder: Path, tell: Callable[[str], None] = LOG.warning, earlier: Collection[bytes] = ()
    ) -> None:
        """`earlier` are the digests of jobs that were there before this list."""
        self._folder = folder
        self._tell = tell
        self._earlier = earlier
        self._seen: list[tuple[str, int, int]] | None = None
        self._jobs: dict[bytes, Job] = {}
        self._left_out = 0

    def by_digest(self) -> dict[bytes, Job]:
        seen = [stamp for path in sorted(self._folder.glob("*.toml")) if (stamp := stamp_of(path)) is not None]
        if seen != self._seen:
            self._read([self._folder / name for name, _, _ in seen])
            self._seen = seen
        return self._jobs

    def of_epoch(self, epoch: str) -> list[Job]:
        return [job for job in self.by_digest().values() if job.epoch == epoch]

    def left_out(self) -> int:
        """How many files of the folder are no jobs."""
        self.by_digest()
        return self._left_out

    def _read(self, paths: Sequence[Path]) -> None:
        found: list[Job] = []
        self._left_out = 0
        for path in paths:
            try:
                found.append(read_job(path))
            except QlogError as error:
                self._leave_out(str(error))
        # Of two jobs on the same artifacts the one stays that was there before: clients may have been shown it.
        kept: dict[tuple[Month, Application], Job] = {}
        for job in sorted(found, key=lambda job: job.digest not in self._jobs and job.digest not in self._earlier):
            if kept.setdefault((job.epoch, job.application), job) != job:
                self._leave_out(f"{self._folder}: has two jobs {job.application} of {job.epoch}: keep one of them")
        self._jobs = {job.digest: job for job in kept.values()}

    def _leave_out(self, reason: str) -> None:
        self._left_out += 1
        self._tell(f"{reason} (left out; the other jobs go on)")


def stamp_of(path: Path) -> tuple[str, int, int] | None:
    """What changes when a file does; None for one that went away meanwhile."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return None
    return path.name, about.st_mtime_ns, about.st_size


def write_jobs(jobs: Sequence[Job], folders: Sequence[Path]) -> None:
    """Put jobs into the folders of all servers that must know them. One that is there is never changed: clients may
    have been shown it, and its digest is in their keys.
    """
    for folder in folders:
        known = {(job.epoch, job.application): job for job in read_jobs(folder)}
        for job in jobs:
            earlier = known.get((job.epoch, job.application))
            if earlier is not None and earlier != job:
                raise RefusedError(f"{folder}: has another job {job.application} of {job.epoch}: a job never changes")
    for folder in folders:
        for job in jobs:
            write_private(folder / f"{job.epoch}-{job.application}.toml", job.as_toml())
