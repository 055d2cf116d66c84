"""Landing files into `raw_log`: which file is which batch, and which batches make up a month.

Reading a file's rows is `sources/readers`; this module only decides what is read, once, and what a month consists of.
A batch is one landing file with its content. A landing file is never changed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from qlog_assets.engine import Engine
from qlog_assets.months import Month
from qlog_assets.privacy.errors import QlogError
from qlog_assets.scratch import temporary_directory
from qlog_assets.settings import Policy
from qlog_assets.sources.column_map import ColumnMap
from qlog_assets.sources.readers import LogSource, MonthRange, read_batch
from qlog_assets.sources.readers_sql import OUTSIDE_POLICY
from qlog_assets.warehouse import Partition, TableFacts, Warehouse, WarehouseError, describe, file_checksum, is_intact

FORMATS = ("aol", "excite", "table")
READER_VERSION = "2"
LAST_MONTH = Month("9999-11")
"""Stands for a policy without a last month."""


@dataclass(frozen=True)
class Batch:
    """One landing file: its name as a partition key, and where it lies."""

    key: str
    source: LogSource
    checksum: str


def land(warehouse: Warehouse, paths: Sequence[Path], format: str, columns: Path | None = None) -> list[Path]:
    """Put logs into the landing zone, unless they lie there already; returns where they lie.

    Everything is looked at before anything is copied: a misspelt name among many leaves nothing half done.
    """
    refuse_unusable(warehouse, paths, format, columns)
    folder = warehouse.landing / format
    folder.mkdir(parents=True, exist_ok=True)
    landed = []
    for path in paths:
        target = landing_place(folder, path)
        if not target.exists():
            copy_whole(path, target)
        if columns is not None:
            copy_whole(columns, column_map_beside(target))
        landed.append(target)
    return landed


def refuse_unusable(warehouse: Warehouse, paths: Sequence[Path], format: str, columns: Path | None) -> None:
    """Raise where a file is missing, the format is unknown, or a table's columns are not told."""
    if format not in FORMATS:
        raise QlogError(f"{format!r} is not a format: choose one of {', '.join(FORMATS)}")
    if columns is not None and format != "table":
        raise QlogError(f"--columns: the format {format} has its own columns: use --format table with a column map")
    if columns is not None:
        ColumnMap.load(columns)
    for path in paths:
        if not path.is_file():
            raise QlogError(f"{path}: no such file: give the path of a log")
        lies_there = path.resolve().parent == (warehouse.landing / format).resolve()
        if format == "table" and columns is None:
            if not lies_there:
                raise QlogError(f"{path}: a table needs a column map: say with --columns which file holds it")
            ColumnMap.load(column_map_beside(path))


def landing_place(folder: Path, path: Path) -> Path:
    """Where a log belongs in the landing zone: under its own name, unless another log has that name."""
    if path.resolve().parent == folder.resolve():
        return path.resolve()
    target = folder / path.name
    if target.exists() and file_checksum(target) != file_checksum(path):
        target = folder / f"{file_checksum(path)[:8]}-{path.name}"
    return target


def copy_whole(source: Path, target: Path) -> None:
    """Copy a file so that a sensor sees all of it or none."""
    with temporary_directory(target.parent) as scratch:
        shutil.copyfile(source, scratch / target.name)
        os.replace(scratch / target.name, target)


def column_map_beside(path: Path) -> Path:
    """Where the column map of a `table` file lies."""
    return path.with_name(path.name + ".columns.toml")


def landed_files(warehouse: Warehouse) -> list[tuple[Path, str]]:
    """The files in the landing zone with their formats, in a fixed order."""
    found = []
    for format in FORMATS:
        for path in sorted((warehouse.landing / format).glob("*")):
            if path.is_file() and not path.name.startswith(".") and not path.name.endswith(".columns.toml"):
                found.append((path, format))
    return found


def batch_of(path: Path, format: str) -> Batch:
    """The batch that a landing file is: named for the file, told apart by its content."""
    checksum = landing_checksum(path)
    columns = ColumnMap.load(column_map_beside(path)) if format == "table" else None
    # The format is part of the key: one file may lie in the landing zone as two, once by mistake.
    return Batch(f"{name_part(path)}-{format}-{checksum[:12]}", LogSource(path, format, columns), checksum)


def landing_checksum(path: Path) -> str:
    """The checksum of a landing file, computed once as long as the file is the same: it is never changed, and may be
    large."""
    state = path.stat()
    return _checksum_of(path, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@lru_cache(maxsize=4096)
def _checksum_of(path: Path, *state: int) -> str:
    return file_checksum(path)


def name_part(path: Path) -> str:
    """The readable part of a batch key."""
    return re.sub(r"[^A-Za-z0-9]+", "-", path.name).strip("-").lower()[:40] or "log"


def find_batch(warehouse: Warehouse, key: str) -> Batch:
    """The landing file of a batch key."""
    for path, format in landed_files(warehouse):
        if key.startswith(f"{name_part(path)}-") and (batch := batch_of(path, format)).key == key:
            return batch
    raise QlogError(f"no landing file belongs to the batch {key}: run qlog ingest with its file again")


def month_range(policy: Policy) -> MonthRange:
    return MonthRange(policy.first, policy.last or LAST_MONTH)


def reading(batch: Batch, policy: Policy) -> dict[str, Any]:
    """How a landing file is read: what decides which of its rows are accepted."""
    months = month_range(policy)
    return {
        "format": batch.source.format,
        "columns": batch.source.column_map.as_public(),
        "first": str(months.first),
        "last": str(months.last),
    }


def is_ingested(known: Sequence[Partition], batch: Batch, policy: Policy) -> bool:
    """Whether a file's rows are in already: this very content, under whatever name, all of it, read in this very way
    and fit to be used."""
    return any(
        part.provenance.upstream["landing"] == batch.checksum
        and part.provenance.parameters == reading(batch, policy)
        and is_complete(part)
        and within_share(part, policy)
        and is_intact(part.path)
        for part in known
    )


def ingest_batch(
    warehouse: Warehouse, engine: Engine, batch: Batch, policy: Policy, run_id: str | None = None
) -> tuple[Partition, bool]:
    """Read a landing file once and write all its months, with every row accepted or rejected for a reason.

    A batch of which months were forgotten is read anew.
    """
    months = month_range(policy)
    provenance = describe(
        "rejected_log",
        batch.key,
        code_version=READER_VERSION,
        parameters=reading(batch, policy),
        upstream={"landing": batch.checksum},
        run_id=run_id,
    )

    measured: dict[str, int] = {}

    def write(directory: Path) -> dict[str, TableFacts]:
        read = read_batch(engine.connection, batch.source, months, directory)
        measured["read"] = read.read
        measured["outside"] = read.rejected.get(OUTSIDE_POLICY, 0)
        tables = {"rejected": engine.facts(directory, sorted((directory / "rejected").glob("*.parquet")))}
        for month in read.months:
            tables[month] = engine.facts(directory, sorted((directory / "accepted" / month).glob("*.parquet")))
        return tables

    return warehouse.write_partition(provenance, write, measured=measured, sound=is_complete)


def batches(warehouse: Warehouse) -> list[Partition]:
    """Everything that was ingested, by batch key."""
    folder = warehouse.private / "rejected_log"
    return [warehouse.current("rejected_log", pointer.parent.name) for pointer in sorted(folder.glob("*/current"))]


def readable_batches(warehouse: Warehouse) -> list[Partition]:
    """The same without those whose provenance was damaged: ingesting their files again is what mends them."""
    found = []
    for pointer in sorted((warehouse.private / "rejected_log").glob("*/current")):
        with contextlib.suppress(WarehouseError):
            found.append(warehouse.current("rejected_log", pointer.parent.name))
    return found


def batch_counts(partition: Partition) -> dict[str, int]:
    """Rows read, accepted and rejected of a batch."""
    tables = partition.provenance.tables
    rejected = tables["rejected"].rows
    accepted = sum(facts.rows for name, facts in tables.items() if name != "rejected")
    return {"read": partition.provenance.measured["read"], "accepted": accepted, "rejected": rejected}


def is_complete(partition: Partition) -> bool:
    """Whether a batch still holds every row that was read: forgetting a month takes its rows out."""
    numbers = batch_counts(partition)
    return numbers["accepted"] + numbers["rejected"] == numbers["read"]


def within_share(partition: Partition, policy: Policy) -> bool:
    """Whether few enough rows of a batch are bad for the rest to be used. A row of a month that the policy does not
    take in is a good row, though it is rejected."""
    numbers = batch_counts(partition)
    # A batch of the first reader did not count them apart: all its rejected rows are then taken for bad ones.
    bad = numbers["rejected"] - partition.provenance.measured.get("outside", 0)
    return Fraction(bad, max(numbers["read"], 1)) <= policy.ingest.max_rejected_share


def batches_holding(warehouse: Warehouse, month: Month) -> list[Partition]:
    """The batches that have rows of a month."""
    return [batch for batch in batches(warehouse) if month in batch.provenance.tables]


def is_usable(warehouse: Warehouse, month: Month, policy: Policy) -> bool:
    """Whether raw_log of a month can be assembled, or is refused because of a batch that is over the share."""
    return all(within_share(batch, policy) for batch in batches_holding(warehouse, month))


def over_share(warehouse: Warehouse, batch: Partition, policy: Policy) -> QlogError:
    """The refusal of a batch: what is wrong with it and the two ways on. Nobody but the operator leaves rows out."""
    checksum = batch.provenance.upstream["landing"]
    landed = [path for path, _ in landed_files(warehouse) if landing_checksum(path) == checksum]
    places = [str(path.relative_to(warehouse.home)) for path in (*landed, batch.path.parent)]
    limit = f"ingest.max_rejected_share = {float(policy.ingest.max_rejected_share):g}"
    return QlogError(
        f"{', '.join(path.name for path in landed) or batch.provenance.month}: more of its rows were rejected than "
        f"{limit} allows: raise that limit, or delete {' and '.join(places)} and ingest a corrected file"
    )


def assemble_raw_log(
    warehouse: Warehouse, month: Month, policy: Policy, run_id: str | None = None
) -> tuple[Partition, bool]:
    """raw_log of a month: the accepted rows of every batch that has any. Files are linked, not written again.

    A batch over the share of rejected rows is an error, never passed over: which rows of the others are used may not
    hang on one user's bad row.
    """
    contents: dict[str, Partition] = {}
    for batch in batches_holding(warehouse, month):
        if not within_share(batch, policy):
            raise over_share(warehouse, batch, policy)
        # A copy of a file under another name holds the same searches, not further ones.
        contents.setdefault(batch.provenance.upstream["landing"], batch)
    parts = list(contents.values())
    if not parts:
        raise QlogError(f"no rows of {month} were ingested: run qlog ingest with a file that holds that month")
    provenance = describe(
        "raw_log",
        month,
        code_version="1",
        parameters={},
        upstream={f"rejected_log:{part.provenance.month}": part for part in parts},
        run_id=run_id,
    )

    def write(directory: Path) -> dict[str, TableFacts]:
        files: dict[str, str] = {}
        for number, part in enumerate(parts):
            part.verify(month)
            for path, checksum in part.provenance.tables[month].files.items():
                name = f"{number:04d}-{Path(path).name}"
                link_or_copy(part.path / path, directory / name)
                files[name] = checksum
        return {"log": TableFacts(sum(part.rows(month) for part in parts), files)}

    return warehouse.write_partition(provenance, write)


def link_or_copy(source: Path, target: Path) -> None:
    """Another name for the same bytes where the file system allows it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
