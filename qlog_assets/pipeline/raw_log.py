"""raw_log: which batches make up a month."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.errors import QlogError
from qlog_assets.ledger.book import Book
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import batches_holding, in_use
from qlog_assets.pipeline.entered import write_entered
from qlog_assets.sources.user_ids import canonical_user_sql, is_plain_sql, reason_against_sql
from qlog_assets.storage.engine import DuckDBEngine, Engine
from qlog_assets.storage.partition import Partition, Provenance, TableFacts, describe
from qlog_assets.storage.private_files import link_or_copy
from qlog_assets.storage.warehouse import Warehouse

RAW_LOG_VERSION = "1"


def assemble_raw_log(
    warehouse: Warehouse, month: Month, run_id: str | None = None, book: Book | None = None
) -> tuple[Partition, bool]:
    """raw_log of a month: the accepted rows of every batch that has any. Files are linked, not written again."""
    parts = parts_of_month(warehouse, month, book)
    provenance = describe_raw_log(month, parts, run_id)

    def write(directory: Path) -> dict[str, TableFacts]:
        files: dict[str, str] = {}
        for number, part in enumerate(parts):
            part.verify(month)
            for path, checksum in part.provenance.tables[month].files.items():
                name = f"{number:04d}-{Path(path).name}"
                link_or_copy(part.file(path, checksum), directory / name)
                files[name] = checksum
        return {"log": TableFacts(sum(part.rows(month) for part in parts), files)}

    return write_entered(warehouse, provenance, write, book)


def parts_of_month(warehouse: Warehouse, month: Month, book: Book | None = None) -> list[Partition]:
    """The batches that make up a month, each content once; an error where there is none.

    However many rows of a batch were rejected: which rows of the others are used may not hang on one user's bad row. A
    batch that is not what the ledger says was read is an error; one that the ledger does not know was read by an
    earlier version, and its landing file may be gone.
    """
    contents: dict[str, Partition] = {}
    holding = batches_holding(warehouse, month)
    used = holding if book is None else in_use(holding, book.withdrawals())
    for batch in used:
        if book is not None and book.contradicts(batch):
            raise QlogError(
                f"{batch.provenance.asset} {batch.provenance.month} is not what the ledger says was read: it was "
                "changed afterwards: run qlog ingest with its file again"
            )
        # A copy of a file under another name holds the same searches, not further ones.
        contents.setdefault(batch.provenance.upstream["landing"], batch)
    if not contents and holding:
        raise QlogError(
            f"every file with rows of {month} was withdrawn: ingest another one (qlog ingest list shows them)"
        )
    if not contents:
        raise QlogError(f"no rows of {month} were ingested: run qlog ingest with a file that holds that month")
    return list(contents.values())


def describe_raw_log(month: Month, parts: Sequence[Partition], run_id: str | None = None) -> Provenance:
    """The provenance of a month that is made up of these batches."""
    return describe(
        "raw_log",
        month,
        code_version=RAW_LOG_VERSION,
        parameters={},
        upstream={f"{part.provenance.asset}:{part.provenance.month}": part for part in parts},
        run_id=run_id,
    )


def renew_raw_log(warehouse: Warehouse, month: Month, run_id: str | None, book: Book) -> Partition | None:
    """raw_log of a month after a batch was withdrawn; None where no batch in use has rows of it any more.

    Then nothing is current: what was made before stays, for audits, and nobody makes anything new of it.
    """
    if in_use(batches_holding(warehouse, month), book.withdrawals()):
        return assemble_raw_log(warehouse, month, run_id, book)[0]
    with warehouse.writing("raw_log", month):
        (warehouse.private / "raw_log" / month / "current").unlink(missing_ok=True)
    return None


def inspect_raw_log(engine: Engine, partition: Partition) -> CheckResult:
    """Schema, month boundaries, and no row without user or query."""
    month = Month(partition.provenance.month)
    engine.view("raw_log", partition.files("log"))
    counts = engine.frame("log/check_raw_log", month_start=month.start, month_end=month.end)
    return run_suite("log/raw_log", {"counts": counts})


def inspect_user_ids(engine: DuckDBEngine, partition: Partition) -> CheckResult:
    """Whether every user id is in the one form that the reader gives it. Nothing may stop where it fails."""
    engine.view("raw_log", partition.files("log"))
    counts = engine.connection.execute(
        f"""SELECT count(*) FILTER (WHERE id <> "user" OR {reason_against_sql("id")} IS NOT NULL)
                   AS rows_with_another_id
            FROM (SELECT "user", {canonical_user_sql('"user"')} AS id
                  FROM raw_log WHERE NOT {is_plain_sql('"user"')})"""
    ).df()
    result = run_suite("log/user_ids", {"counts": counts})
    if result.passed:
        return result
    batches = ", ".join(sorted(name.partition(":")[2] for name in partition.provenance.upstream))
    return replace(
        result,
        reason=f"{int(counts['rows_with_another_id'][0]):,} rows of {partition.provenance.month} have a user id that "
        "the reader of this version writes otherwise or rejects, so one person may have two: an earlier version read "
        f"them; to have their files read again, materialize landing_batch for {batches}; a month that was released is "
        "then refused without --again if its rows change",
    )
