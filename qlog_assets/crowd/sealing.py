"""Sealed epochs: the immutable files of accepted reports that the aggregation reads, and how the collector makes them.

A sealed epoch is `reports.parquet`, sorted so that nothing of the order of arrival is left, and `epoch.json`, which
says what the reports are about and who stated what. It is written whole or not at all, and only after the randomness
server has stated that the epoch's key is deleted: from then on nobody can test a guess against what is in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from qlog_assets.crowd.cast import CollectorSettings, PartyFolder
from qlog_assets.crowd.inbox import empty_log, waiting_messages, writing
from qlog_assets.crowd.issuing import ISSUED_HEADER, Issued, issued_proof
from qlog_assets.crowd.jobs import Job, parse_job
from qlog_assets.crowd.kept_jobs import KeptJobs
from qlog_assets.errors import QlogError, RefusedError
from qlog_assets.months import Month
from qlog_assets.storage.private_files import seal as make_private_tree
from qlog_assets.storage.scratch import make_private, sync, sync_directory, temporary_directory

REPORTS_FILE, EPOCH_FILE = "reports.parquet", "epoch.json"
SCHEMA = pa.schema(
    [
        ("job", pa.binary(32)),
        ("tag", pa.binary(32)),
        ("ciphertext", pa.binary(528)),
        ("x", pa.binary(16)),
        ("y", pa.binary(16)),
        ("serial", pa.binary(32)),
    ]
)
SORTED_BY = ("job", "tag", "x")
FORMAT = 1
ELSEWHERE = "seal into another warehouse (QLOG_HOME)"
ASK_SECONDS = 30.0
ROWS_AT_ONCE = 50_000
"""As Python's objects a report takes several times the bytes that it has in a table."""


@dataclass(frozen=True)
class SealedEpoch:
    """A sealed epoch on the disk."""

    month: Month
    jobs: tuple[Job, ...]
    accepted: int
    rejected: dict[str, int]
    """Reports that were not accepted, by the reason."""
    issued: dict[str, Issued]
    """By the job's digest in hexadecimal digits."""
    key_deleted_at: str
    reports_path: Path

    @staticmethod
    def read(directory: Path) -> SealedEpoch:
        path = directory / EPOCH_FILE
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            if facts["format"] != FORMAT:
                raise QlogError(f"{path}: is of another version of qlog: use the one that sealed it")
            sealed = SealedEpoch(
                Month(facts["month"]),
                tuple(parse_job(text) for text in facts["jobs"]),
                int(facts["accepted"]),
                {str(reason): int(reports) for reason, reports in facts["rejected"].items()},
                {str(job): Issued(**stated) for job, stated in facts["issued"].items()},
                str(facts["key_deleted_at"]),
                directory / REPORTS_FILE,
            )
        except OSError as error:
            advice = "`qlog crowd seal` makes it"
            raise QlogError(f"{path}: cannot be read ({error.strerror}): {advice}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise QlogError(f"{path}: is no description of a sealed epoch: seal the epoch again") from None
        refuse_other_number(sealed.reports_path, sealed.accepted, sealed.rows())
        return sealed

    def rows(self) -> int:
        """How many reports the file holds."""
        try:
            return int(pq.read_metadata(self.reports_path).num_rows)
        except (OSError, pa.ArrowInvalid) as error:
            raise QlogError(f"{self.reports_path}: cannot be read ({type(error).__name__})") from None

    def reports(self, job: Job) -> pa.Table:
        """The reports of a job, with the columns of SCHEMA."""
        try:
            return pq.read_table(self.reports_path, schema=SCHEMA, filters=[("job", "==", job.digest)])
        except (OSError, pa.ArrowInvalid) as error:
            raise QlogError(f"{self.reports_path}: cannot be read ({type(error).__name__})") from None

    def digest(self) -> str:
        """SHA-256 over both files."""
        hashed = hashlib.sha256()
        for name in (EPOCH_FILE, REPORTS_FILE):
            data = hashlib.sha256()
            with (self.reports_path.parent / name).open("rb") as stream:
                while part := stream.read(1 << 20):
                    data.update(part)
            hashed.update(data.digest())
        return hashed.hexdigest()


def epoch_directory(home: Path, month: Month) -> Path:
    """Where a warehouse keeps a sealed epoch."""
    return home / "crowd" / month


def refuse_other_number(where: object, accepted: int, stored: int) -> None:
    """Raise unless there are as many reports as were accepted: those that are missing may be nowhere else."""
    if accepted != stored:
        raise RefusedError(
            f"{where}: {accepted:,} reports were accepted and {stored:,} are stored: they may be sealed in another "
            "place: take the sealed epoch from there, or from a backup"
        )


def write_sealed(
    directory: Path,
    month: Month,
    jobs: Sequence[Job],
    reports: pa.Table,
    accepted: int,
    rejected: Mapping[str, int],
    issued: Mapping[str, Issued],
    key_deleted_at: str,
) -> SealedEpoch:
    """Write a sealed epoch whole, readable by its owner alone. One that is there is never written over."""
    if directory.exists():
        raise RefusedError(f"{directory}: this epoch is sealed already")
    refuse_other_number(month, accepted, len(reports))
    if not set(pc.unique(reports["job"]).to_pylist()) <= {job.digest for job in jobs}:
        raise RefusedError(f"{month}: some reports are of a job that is not sealed with them")
    table = reports.select(SCHEMA.names).cast(SCHEMA)
    table = table.take(pc.sort_indices(table, [(name, "ascending") for name in SORTED_BY]))
    facts = {
        "format": FORMAT,
        "month": month,
        "jobs": [job.as_toml() for job in jobs],
        "accepted": accepted,
        "rejected": dict(sorted(rejected.items())),
        "issued": {job: asdict(stated) for job, stated in sorted(issued.items())},
        "key_deleted_at": key_deleted_at,
    }
    make_private(directory.parent)
    with temporary_directory(directory.parent) as scratch:
        made = scratch / "sealed"
        made.mkdir()
        pq.write_table(table, made / REPORTS_FILE, compression="none", store_schema=False)
        (made / EPOCH_FILE).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        make_private_tree(made)
        sync_directory(made)
        os.rename(made, directory)
    sync(directory.parent)
    return SealedEpoch.read(directory)


# The collector's side -------------------------------------------------------------------------------------------------


def seal_epoch(
    home: PartyFolder[CollectorSettings],
    month: Month,
    directory: Path,
    clock: Callable[[], float] = time.time,
) -> SealedEpoch:
    """Seal an epoch of a collector, which may be running. Refused while a report may still be on its way.

    A seal that was interrupted is finished by the next one: the epoch takes no more reports from the first step on,
    and the collector forgets its reports only when these very reports are in the sealed files: they are nowhere else.
    """
    from qlog_assets.crowd.opening import open_collector

    with closing(open_collector(home.folder)) as connection:
        jobs = KeptJobs(connection, home.jobs).of_epoch(month)
    if not jobs:
        raise QlogError(f"{month}: the collector has no job of this epoch: `qlog crowd jobs` makes one")
    check_drained(jobs, home.settings.drain_seconds, clock())
    deleted_at, issued = ask_statements(home, month, jobs)
    with closing(open_collector(home.folder)) as connection:
        if directory.exists() and not is_closed(connection, month):
            raise RefusedError(f"{directory}: another collector sealed an epoch there: {ELSEWHERE}")
        close_epoch(connection, month, clock())
        accepted, rejected = read_counts(connection, month)
        if directory.exists():
            sealed = SealedEpoch.read(directory)
        else:
            reports = read_reports(connection, jobs)
            sealed = write_sealed(directory, month, jobs, reports, accepted, rejected, issued, deleted_at)
        refuse_other_reports(connection, sealed, jobs, accepted)
        forget_reports(connection, jobs)
    return sealed


def check_drained(jobs: Sequence[Job], drain_seconds: float, now: float) -> None:
    ready = max(job.closes for job in jobs) + timedelta(seconds=drain_seconds)
    if datetime.fromtimestamp(now, UTC) < ready:
        raise RefusedError(f"{jobs[0].epoch}: reports may be on their way until {ready:%Y-%m-%d %H:%M:%S} UTC: wait")


def ask_statements(
    home: PartyFolder[CollectorSettings], month: Month, jobs: Sequence[Job]
) -> tuple[str, dict[str, Issued]]:
    """What the randomness server states: when the epoch's key was deleted, and what it issued for each job."""
    import httpx

    url, seed = home.cast.randomness.url, home.token_seed()

    def ask(path: str, proof: str = "") -> dict[str, Any]:
        answer: dict[str, Any] = client.get(url + path, headers={ISSUED_HEADER: proof}).raise_for_status().json()
        return answer

    try:
        with httpx.Client(verify=home.trust(), timeout=ASK_SECONDS, trust_env=False) as client:
            stated = ask(f"/epochs/{month}")
            check_deleted(month, stated)
            answers = {
                job.digest.hex(): ask(f"/issued/{job.digest.hex()}", issued_proof(seed, job.digest)) for job in jobs
            }
    except (httpx.HTTPError, ValueError) as error:
        reason = f"the randomness server does not answer ({type(error).__name__})"
        raise QlogError(f"{month}: {reason}: is it running, with the collector's jobs?") from None
    try:
        return stated["deleted_at"], {job: Issued(**answer) for job, answer in answers.items()}
    except TypeError:
        raise QlogError(f"{month}: the randomness server states something else than was asked for") from None


def check_deleted(month: Month, stated: dict[str, Any]) -> None:
    if stated.get("state") != "deleted" or not isinstance(stated.get("deleted_at"), str):
        advice = "`qlog crowd close-epoch` deletes it"
        raise RefusedError(f"{month}: the randomness server still has the epoch's key: {advice}")


def close_epoch(connection: sqlite3.Connection, month: Month, now: float) -> None:
    """From here on, reports of the epoch are refused and counted. Nothing may wait that could be one."""
    with writing(connection):
        waiting = waiting_messages(connection)
        if is_closed(connection, month):
            return
        if waiting:
            raise RefusedError(f"{month}: {waiting:,} reports wait to be opened: run the collector until none does")
        at = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
        connection.execute("INSERT INTO sealed VALUES (?, ?)", (month, at))
        # What came since the last epoch and could not be read has no epoch of its own.
        connection.execute(
            "INSERT INTO rejected SELECT ?, reason, reports FROM rejected WHERE epoch = '' "
            "ON CONFLICT DO UPDATE SET reports = reports + excluded.reports",
            (month,),
        )
        connection.execute("DELETE FROM rejected WHERE epoch = ''")


def is_closed(connection: sqlite3.Connection, month: Month) -> bool:
    """Whether this collector began to seal the epoch."""
    return connection.execute("SELECT 1 FROM sealed WHERE epoch = ?", (month,)).fetchone() is not None


def refuse_other_reports(
    connection: sqlite3.Connection, sealed: SealedEpoch, jobs: Sequence[Job], accepted: int
) -> None:
    """Raise unless the sealed files hold what the collector is about to forget, report by report."""
    where = sealed.reports_path.parent
    if sealed.month != jobs[0].epoch or {job.digest for job in sealed.jobs} != {job.digest for job in jobs}:
        raise RefusedError(f"{where}: holds other jobs than this collector's: {ELSEWHERE}")
    for job in jobs:
        stored = read_reports(connection, [job]).sort_by("serial")
        if len(stored) and not stored.equals(sealed.reports(job).sort_by("serial")):
            raise RefusedError(f"{where}: holds other reports than this collector's: {ELSEWHERE}")
    if sealed.accepted != accepted:
        raise RefusedError(f"{where}: holds other reports than this collector accepted: {ELSEWHERE}")


def read_counts(connection: sqlite3.Connection, month: Month) -> tuple[int, dict[str, int]]:
    accepted = connection.execute("SELECT reports FROM accepted WHERE epoch = ?", (month,)).fetchone()
    rejected = connection.execute("SELECT reason, reports FROM rejected WHERE epoch = ?", (month,)).fetchall()
    return (accepted[0] if accepted else 0), dict(rejected)


def read_reports(connection: sqlite3.Connection, jobs: Sequence[Job]) -> pa.Table:
    names = ", ".join(SCHEMA.names)
    marks = ", ".join("?" for _ in jobs)
    cursor = connection.execute(f"SELECT {names} FROM reports WHERE job IN ({marks})", [job.digest for job in jobs])
    batches = []
    while rows := cursor.fetchmany(ROWS_AT_ONCE):
        columns = zip(*rows, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
        batches.append(pa.record_batch(arrays, schema=SCHEMA))
    return pa.Table.from_batches(batches, schema=SCHEMA)


def forget_reports(connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
    """The collector's own copy, which the sealed files replace. Deleted rows are overwritten, in the log too."""
    with writing(connection):
        for job in jobs:
            connection.execute("DELETE FROM reports WHERE job = ?", (job.digest,))
    if not empty_log(connection):
        reason = "the reports are sealed, and another process keeps them in the log of collector.db"
        raise QlogError(f"{jobs[0].epoch}: {reason}: end it, and seal the epoch again")
