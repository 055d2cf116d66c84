"""Batches: one landing file read once, every row accepted or rejected for a reason."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.pipeline.landing import Batch, landed_files, landing_checksum
from qlog_assets.policy import Policy
from qlog_assets.sources.readers import MonthRange, read_batch
from qlog_assets.sources.readers_sql import OUTSIDE_POLICY
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts, WarehouseError, describe, is_intact
from qlog_assets.storage.warehouse import Warehouse

READER_VERSION = "2"


LAST_MONTH = Month("9999-11")
"""Stands for a policy without a last month."""


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
