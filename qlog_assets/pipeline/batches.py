"""Batches: one landing file read once, every row accepted by month or rejected for a reason.

Reading a file's rows is `sources/readers`; this module only decides what is read, once, and what is said about it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.errors import QlogError
from qlog_assets.ledger import BatchWithdrawal, Book, Ledger, MissingLedgerError
from qlog_assets.months import Month
from qlog_assets.pipeline.entered import write_entered
from qlog_assets.pipeline.landing import (
    Batch,
    batch_of,
    column_map_beside,
    file_name,
)
from qlog_assets.pipeline.user_key import key_facts, refuse_other_users, with_user_key
from qlog_assets.privacy.parameters import Parameters, Share
from qlog_assets.sources.readers import LogSource, MonthRange, read_batch
from qlog_assets.sources.readers_lines import NOT_A_SEARCH
from qlog_assets.sources.readers_sql import NOTHING_AGAINST
from qlog_assets.storage.digests import line_digest
from qlog_assets.storage.engine import DuckDBEngine, Engine
from qlog_assets.storage.partition import Partition, Provenance, TableFacts, WarehouseError, describe, is_intact
from qlog_assets.storage.private_files import remove_whole
from qlog_assets.storage.stored import drop_copies
from qlog_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    import pandas

LANDING_BATCH = "landing_batch"
EARLIER_NAME = "rejected_log"
"""What the same partitions were called up to version 0.1: warehouses of that time keep them."""
READER_VERSION = "3"
"""Raised when a file would be read into other rows. What an earlier reader read stays as it is, see `is_ingested`."""
REASONS_SHOWN = 5
REJECTED_SUITE = "log/rejected_rows"
REJECTED = "rejected"
"""The table of rejected rows; every other table of a batch is named for the month of its accepted rows."""
FORGOTTEN = "forgotten "
"""Before a month, in what was measured: its good rows were left out, because the month was forgotten."""


class IngestPolicy(Parameters):
    """What a landing file must be like."""

    max_rejected_share: Share = Field(Fraction(1, 5), validate_default=True)
    """A file with more of its rows rejected is warned about and used all the same: whether a month is released may not
    hang on one user's bad row. Rows outside the policy's months do not count, nor do requests of an access log that
    are no searches. Real logs reach 12 % (Excite: empty queries)."""


@dataclass(frozen=True)
class Admission:
    """What the policy lets in: rows of these months. A file with more bad rows than this share is warned about."""

    months: MonthRange
    max_rejected_share: Fraction
    one_user: str | None = None
    """Who is one user, as the policy says. None: whoever it is, as when a batch is only read again to compare."""


def describe_reading(batch: Batch, admission: Admission) -> dict[str, Any]:
    """How a landing file is read: what decides which of its rows are accepted."""
    return {
        "format": batch.source.format,
        "columns": batch.source.column_map.as_public(),
        "first": str(admission.months.first),
        "last": str(admission.months.last),
    }


def identity_of(made: Provenance | Batch) -> tuple[str, str]:
    """What is withdrawn with a batch: the content of its landing file, under whatever name, read in this very way.

    The policy's months are not part of it: another month in the policy does not make a bad file a good one.
    """
    if isinstance(made, Batch):
        read: dict[str, Any] = {"format": made.source.format, "columns": made.source.column_map.as_public()}
        return made.checksum, line_digest(read)
    read = {name: made.parameters.get(name) for name in ("format", "columns")}
    return made.upstream["landing"], line_digest(read)


def in_use(found: Sequence[Partition], withdrawals: Mapping[tuple[str, str], BatchWithdrawal]) -> list[Partition]:
    """Those of the batches that were not withdrawn."""
    return [batch for batch in found if identity_of(batch.provenance) not in withdrawals]


def is_ingested(
    warehouse: Warehouse,
    known: Sequence[Partition],
    batch: Batch,
    admission: Admission,
    bring_back: bool = False,
) -> bool:
    """Whether a file's rows are in already: this very content, under whatever name, all of it, read in this very way.

    Good rows of forgotten months that were left out count as in, unless they are to be brought back.

    What an earlier reader made of the file counts as long as a month of it was ever charged for: what was released
    keeps its inputs, and would be refused if they changed. Otherwise the file is read again, by today's rules. For the
    months in between, in one file with a released one, `inspect_user_ids` warns where it matters; the operator reads
    the file again by materializing its landing_batch.
    """
    found = any(
        part.provenance.upstream["landing"] == batch.checksum
        and part.provenance.parameters == describe_reading(batch, admission)
        and is_complete(part)
        and not (bring_back and left_out(part))
        and is_intact(part.path)
        and (part.provenance.code_version == READER_VERSION or bool(months_of(part) & charged_months(warehouse)))
        for part in known
    )
    # The next file's batch is as large, and a landing zone is looked at by a server.
    drop_copies()
    return found


def charged_months(warehouse: Warehouse) -> set[str]:
    """The months of which anything was ever drawn or asked for, whatever became of it."""
    try:
        return {charge.month for charge in Ledger.read(warehouse.ledger_url).charges()}
    except MissingLedgerError:
        return set()


def ingest_batch(
    warehouse: Warehouse,
    engine: DuckDBEngine,
    batch: Batch,
    admission: Admission,
    run_id: str | None = None,
    book: Book | None = None,
    leaving_out: Callable[[], Collection[str]] = tuple,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Partition, bool]:
    """Read a landing file once and write all its months, with every row accepted or rejected for a reason.

    A batch of which months were forgotten is read anew. Good rows of the months to be left out are counted and not
    kept. They never stop the file: one user's row with an old date must not keep everybody else's rows out. Which
    months these are is asked when nobody else writes the batch: it may have waited for somebody who forgets them.
    """
    if admission.one_user is not None:
        refuse_other_users(batch.source.path.name, batch.source.column_map.one_user, admission.one_user)
    batch = with_user_key(warehouse, batch, readable_batches(warehouse))
    provenance = describe(
        LANDING_BATCH,
        batch.key,
        code_version=READER_VERSION,
        parameters=describe_reading(batch, admission),
        upstream={"landing": batch.checksum} | key_facts(batch),
        run_id=run_id,
    )

    measured: dict[str, int] = {}

    def write(directory: Path) -> dict[str, TableFacts]:
        gone = leaving_out()
        read = read_batch(engine.connection, batch.source, admission.months, directory, progress)
        measured["read"] = read.read
        measured["outside"] = sum(read.rejected.get(reason, 0) for reason in NOTHING_AGAINST)
        tables = {REJECTED: engine.facts(directory, sorted((directory / "rejected").glob("*.parquet")))}
        for month in read.months:
            if month in gone:
                measured[FORGOTTEN + month] = read.months[month]
                remove_whole(directory / "accepted" / month)
                continue
            tables[month] = engine.facts(directory, sorted((directory / "accepted" / month).glob("*.parquet")))
        return tables

    def usable(partition: Partition) -> bool:
        return is_complete(partition) and set(left_out(partition)) <= set(leaving_out())

    written = write_entered(warehouse, provenance, write, book, measured=measured, usable=usable)
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


def count_rows(rows: int) -> str:
    """A number of rows in words."""
    return f"{rows:,} row" + ("" if rows == 1 else "s")


def left_out(partition: Partition) -> dict[str, int]:
    """Good rows of a batch that were not kept, by month: those months were forgotten before it was read."""
    measured = partition.provenance.measured
    return {name.removeprefix(FORGOTTEN): rows for name, rows in measured.items() if name.startswith(FORGOTTEN)}


def is_complete(partition: Partition) -> bool:
    """Whether a batch still holds every row that was kept: forgetting a month takes its rows out."""
    numbers = batch_counts(partition)
    return numbers["accepted"] + numbers["rejected"] + sum(left_out(partition).values()) == numbers["read"]


def state_of(partition: Partition) -> str:
    """What a batch that was not withdrawn gives to its months, in words."""
    if not months_of(partition):
        return "no rows to use"
    return "in use" if is_complete(partition) else "in use, months forgotten"


def rejected_share(partition: Partition) -> Fraction:
    """The share of a batch's rows that are bad. A row of a month that the policy does not take in is a good row, though
    it is rejected; so is a request of a web server that is no search."""
    numbers = batch_counts(partition)
    # A batch of the first reader did not count them apart: all its rejected rows are then taken for bad ones.
    bad = numbers["rejected"] - partition.provenance.measured.get("outside", 0)
    return Fraction(bad, max(numbers["read"], 1))


def batches_holding(warehouse: Warehouse, month: Month) -> list[Partition]:
    """The batches that have rows of a month."""
    return [batch for batch in batches(warehouse) if month in batch.provenance.tables]


def inspect_batch(warehouse: Warehouse, engine: Engine, partition: Partition) -> CheckResult:
    """Whether every row of a batch is accounted for: accepted, or rejected for a plain reason."""
    result = run_suite("log/landing_batch", {"counts": _batch_frame(engine, partition)})
    if result.passed:
        return result
    rows = batch_counts(partition)
    return replace(
        result,
        reason=f"{name_of(warehouse, partition)}: {rows['read']:,} rows were read, {rows['accepted']:,} accepted and "
        f"{rows['rejected']:,} rejected: some are unaccounted for, or a reason is none: a fault of qlog's own: "
        f"withdraw the batch {partition.provenance.month} and report it ({result.reason})",
    )


def inspect_rejected(
    warehouse: Warehouse,
    engine: Engine,
    partition: Partition | None,
    max_rejected_share: Fraction,
    others: Sequence[Partition] = (),
) -> CheckResult:
    """Whether no more rows of a batch were rejected than the policy expects. Nothing may stop where it fails.

    A bad file among the others, which are all that are in use, keeps it failing: it is seen until it is withdrawn.
    """
    chosen = [batch for batch in others if rejected_share(batch) > max_rejected_share]
    if partition is not None:
        chosen = [partition, *(batch for batch in chosen if batch.path != partition.path)]
    warnings = [warn_of_rejected(warehouse, engine, batch, max_rejected_share) for batch in chosen]
    said = [warning for warning in warnings if warning is not None]
    if not chosen:
        return CheckResult(True, REJECTED_SUITE, 0, (), "no file is in use of which too many rows were rejected")
    limits = {"max_rejected_share": float(max_rejected_share)}
    worst = _batch_frame(engine, max(chosen, key=rejected_share))
    result = run_suite(REJECTED_SUITE, {"counts": worst}, parameters=limits)
    # The share that a suite compares is a float, and the policy's is exact: both must hold.
    return replace(result, passed=result.passed and not said, reason="; ".join(said) or result.reason)


def warn_of_rejected(
    warehouse: Warehouse, engine: Engine, partition: Partition, max_rejected_share: Fraction
) -> str | None:
    """What the operator should know of a file before a month of it is released, if too much of it was rejected.

    Private, and only a warning: a refusal here would tell everybody on which side of the limit one user's row is.
    """
    share = rejected_share(partition)
    if share <= max_rejected_share:
        return None
    bad = {reason: rows for reason, rows in count_reasons(engine, partition).items() if reason not in NOTHING_AGAINST}
    reasons = sorted(bad.items(), key=lambda item: (-item[1], item[0]))
    counted = ", ".join(f"{reason} {count:,}" for reason, count in reasons[:REASONS_SHOWN])
    used = "its other rows are used all the same" if months_of(partition) else "none of its rows is used"
    read = count_rows(batch_counts(partition)["read"])
    return (
        f"{name_of(warehouse, partition)}: {float(100 * share):.3g} % of its {read} "
        f"were rejected ({counted}), more than ingest.max_rejected_share = {float(max_rejected_share):g}: {used}; "
        "if it is not the log it should be, withdraw it before a month of it is released "
        f"(qlog ingest withdraw {partition.provenance.month} --reason WHY, or the job withdraw_batch), and ingest a "
        "corrected file"
    )


def warn_of_urls(sources: Sequence[LogSource], has_urls: bool) -> list[str]:
    """What the operator should know, once, where columns of files and the policy's `has_urls` do not fit. No row is
    read."""
    odd = [source.path.name for source in sources if source.column_map.has_urls != has_urls]
    if not odd:
        return []
    named, their = (f"{odd[0]} has", "its") if len(odd) == 1 else (f"{odd[0]} and {len(odd) - 1} more have", "their")
    if has_urls:
        return [
            f"{named} no column of urls: where no file of the log has one, write has_urls = false into the policy, "
            "or releases pay for tables of clicks that cannot hold a row"
        ]
    return [f"{named} a column of urls, and the policy says has_urls = false: none of {their} clicks are released"]


def note_no_search(columns: Mapping[str, Any], read: int, reasons: Mapping[str, int]) -> list[str]:
    """What the operator should know of an access log in which no line at all is a search. Nothing stops for it."""
    if reasons.get(NOT_A_SEARCH, 0) < max(read, 1):
        return []
    under = f" under the path {columns['path']}" if columns.get("path") else ""
    return [
        f"no line is a good GET request with the url parameter {columns['query_parameter']!r}{under}: are "
        "query_parameter and path of the column map right?"
    ]


def name_of(warehouse: Warehouse, partition: Partition) -> str:
    """How a batch is called before people: by its landing file, or by its key where the file is gone."""
    return file_name(warehouse, partition.provenance.month) or partition.provenance.month


def _batch_frame(engine: Engine, partition: Partition) -> pandas.DataFrame:
    engine.view("rejected_rows", partition.files(REJECTED))
    rows = batch_counts(partition)
    kept_or_left_out = rows["accepted"] + sum(left_out(partition).values())
    return engine.frame("log/check_landing_batch", rows_read=rows["read"], rows_accepted=kept_or_left_out)


def count_reasons(engine: Engine, partition: Partition) -> dict[str, int]:
    """How many rows of a batch were rejected for each reason."""
    engine.view("rejected_rows", partition.files(REJECTED))
    found = engine.arrow("log/rejected_reasons")
    return dict(zip(found["reason"].to_pylist(), found["rows"].to_pylist(), strict=True))
