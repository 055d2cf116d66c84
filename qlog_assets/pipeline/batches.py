"""Batches: one landing file read once, every row accepted by month or rejected for a reason.

Reading a file's rows is `sources/readers`; this module only decides what is read, once, and what of it may be used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import Field

from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.pipeline.landing import Batch, batch_of, column_map_beside, landed_files, landing_checksum
from qlog_assets.privacy.parameters import Parameters, Share
from qlog_assets.sources.readers import MonthRange, read_batch
from qlog_assets.sources.readers_sql import OUTSIDE_POLICY
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts, WarehouseError, describe, is_intact
from qlog_assets.storage.private_files import remove_whole
from qlog_assets.storage.warehouse import Warehouse

LANDING_BATCH = "landing_batch"
EARLIER_NAME = "rejected_log"
"""What the same partitions were called up to version 0.1: warehouses of that time keep them."""
READER_VERSION = "2"
REJECTED = "rejected"
"""The table of rejected rows; every other table of a batch is named for the month of its accepted rows."""


class IngestPolicy(Parameters):
    """What a landing file must be like."""

    max_rejected_share: Share = Field(Fraction(1, 5), validate_default=True)
    """A file with more of its rows rejected fails a blocking check, and its months are refused; rows outside the
    policy's months do not count. Real logs reach 12 % (Excite: empty queries)."""


@dataclass(frozen=True)
class Admission:
    """What the policy lets in: rows of these months, and files with no more bad rows than this."""

    months: MonthRange
    max_rejected_share: Fraction


def describe_reading(batch: Batch, admission: Admission) -> dict[str, Any]:
    """How a landing file is read: what decides which of its rows are accepted."""
    return {
        "format": batch.source.format,
        "columns": batch.source.column_map.as_public(),
        "first": str(admission.months.first),
        "last": str(admission.months.last),
    }


def is_ingested(known: Sequence[Partition], batch: Batch, admission: Admission) -> bool:
    """Whether a file's rows are in already: this very content, under whatever name, all of it, read in this very way
    and fit to be used."""
    return any(
        part.provenance.upstream["landing"] == batch.checksum
        and part.provenance.parameters == describe_reading(batch, admission)
        and is_complete(part)
        and within_share(part, admission)
        and is_intact(part.path)
        for part in known
    )


def ingest_batch(
    warehouse: Warehouse, engine: Engine, batch: Batch, admission: Admission, run_id: str | None = None
) -> tuple[Partition, bool]:
    """Read a landing file once and write all its months, with every row accepted or rejected for a reason.

    A batch of which months were forgotten is read anew.
    """
    provenance = describe(
        LANDING_BATCH,
        batch.key,
        code_version=READER_VERSION,
        parameters=describe_reading(batch, admission),
        upstream={"landing": batch.checksum},
        run_id=run_id,
    )

    measured: dict[str, int] = {}

    def write(directory: Path) -> dict[str, TableFacts]:
        read = read_batch(engine.connection, batch.source, admission.months, directory)
        measured["read"] = read.read
        measured["outside"] = read.rejected.get(OUTSIDE_POLICY, 0)
        tables = {REJECTED: engine.facts(directory, sorted((directory / "rejected").glob("*.parquet")))}
        for month in read.months:
            tables[month] = engine.facts(directory, sorted((directory / "accepted" / month).glob("*.parquet")))
        return tables

    written = warehouse.write_partition(provenance, write, measured=measured, usable=is_complete)
    # What an earlier version read of the same file counts no more, damaged or read in another way as it may be.
    remove_whole(warehouse.private / EARLIER_NAME / batch.key)
    return written


@contextlib.contextmanager
def discarding_unread(warehouse: Warehouse, brought: Sequence[Path], format: str) -> Iterator[None]:
    """Take files out of the landing zone again that a block brought there and did not ingest, where the block fails."""
    try:
        yield
    except BaseException:
        discard_unread(warehouse, brought, format)
        raise


def discard_unread(warehouse: Warehouse, brought: Sequence[Path], format: str) -> None:
    for path in brought:
        with contextlib.suppress(QlogError):  # a column map that cannot be read: then nothing was ingested by it
            if warehouse.has_current(LANDING_BATCH, batch_of(path, format).key):
                continue
        path.unlink(missing_ok=True)
        column_map_beside(path).unlink(missing_ok=True)


def batches(warehouse: Warehouse) -> list[Partition]:
    """Everything that was ingested, by batch key."""
    return [warehouse.current(asset, key) for asset, key in _batch_keys(warehouse)]


def readable_batches(warehouse: Warehouse) -> list[Partition]:
    """The same without those whose provenance was damaged: ingesting their files again is what mends them."""
    found = []
    for asset, key in _batch_keys(warehouse):
        with contextlib.suppress(WarehouseError):
            found.append(warehouse.current(asset, key))
    return found


def _batch_keys(warehouse: Warehouse) -> list[tuple[str, str]]:
    """The batches there are, with the asset that each is a partition of."""
    folders = (warehouse.private / asset for asset in (LANDING_BATCH, EARLIER_NAME))
    return [(folder.name, pointer.parent.name) for folder in folders for pointer in sorted(folder.glob("*/current"))]


def months_of(batch: Partition) -> set[str]:
    """The months of which a batch holds rows."""
    return set(batch.provenance.tables) - {REJECTED}


def batch_counts(partition: Partition) -> dict[str, int]:
    """Rows read, accepted and rejected of a batch."""
    tables = partition.provenance.tables
    rejected = tables[REJECTED].rows
    accepted = sum(facts.rows for name, facts in tables.items() if name != REJECTED)
    return {"read": partition.provenance.measured["read"], "accepted": accepted, "rejected": rejected}


def is_complete(partition: Partition) -> bool:
    """Whether a batch still holds every row that was read: forgetting a month takes its rows out."""
    numbers = batch_counts(partition)
    return numbers["accepted"] + numbers["rejected"] == numbers["read"]


def within_share(partition: Partition, admission: Admission) -> bool:
    """Whether few enough rows of a batch are bad for the rest to be used. A row of a month that the policy does not
    take in is a good row, though it is rejected."""
    numbers = batch_counts(partition)
    # A batch of the first reader did not count them apart: all its rejected rows are then taken for bad ones.
    bad = numbers["rejected"] - partition.provenance.measured.get("outside", 0)
    return Fraction(bad, max(numbers["read"], 1)) <= admission.max_rejected_share


def batches_holding(warehouse: Warehouse, month: Month) -> list[Partition]:
    """The batches that have rows of a month."""
    return [batch for batch in batches(warehouse) if month in batch.provenance.tables]


def is_usable(warehouse: Warehouse, month: Month, admission: Admission) -> bool:
    """Whether raw_log of a month can be assembled, or is refused because of a batch that is over the share."""
    return all(within_share(batch, admission) for batch in batches_holding(warehouse, month))


def over_share(warehouse: Warehouse, batch: Partition, admission: Admission) -> QlogError:
    """The refusal of a batch: what is wrong with it and the two ways on. Nobody but the operator leaves rows out."""
    checksum = batch.provenance.upstream["landing"]
    landed = [path for path, _ in landed_files(warehouse) if landing_checksum(path) == checksum]
    places = [str(path.relative_to(warehouse.home)) for path in (*landed, batch.path.parent)]
    limit = f"ingest.max_rejected_share = {float(admission.max_rejected_share):g}"
    return QlogError(
        f"{', '.join(path.name for path in landed) or batch.provenance.month}: more of its rows were rejected than "
        f"{limit} allows: raise that limit, or delete {' and '.join(places)} and ingest a corrected file"
    )


def inspect_batch(engine: Engine, partition: Partition, max_rejected_share: Fraction) -> CheckResult:
    """Whether every row of a batch is accounted for, and not too many of them were rejected."""
    engine.view("rejected_rows", partition.files(REJECTED))
    rows = batch_counts(partition)
    counts = engine.frame("log/check_landing_batch", rows_read=rows["read"], rows_accepted=rows["accepted"])
    limits = {"max_rejected_share": float(max_rejected_share)}
    return run_suite("log/landing_batch", {"counts": counts}, parameters=limits)


def count_reasons(engine: Engine, partition: Partition) -> dict[str, int]:
    """How many rows of a batch were rejected for each reason."""
    engine.view("rejected_rows", partition.files(REJECTED))
    return dict(engine.run("log/rejected_reasons").fetchall())
