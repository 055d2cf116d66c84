"""raw_log: which batches make up a month."""

from __future__ import annotations

from pathlib import Path

from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.errors import QlogError
from qlog_assets.ledger.book import Book
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import Admission, batches_holding, over_share, within_share
from qlog_assets.pipeline.entered import write_entered
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts, describe
from qlog_assets.storage.private_files import link_or_copy
from qlog_assets.storage.warehouse import Warehouse

RAW_LOG_VERSION = "1"


def assemble_raw_log(
    warehouse: Warehouse,
    month: Month,
    admission: Admission,
    run_id: str | None = None,
    book: Book | None = None,
) -> tuple[Partition, bool]:
    """raw_log of a month: the accepted rows of every batch that has any. Files are linked, not written again.

    A batch over the share of rejected rows is an error, never passed over: which rows of the others are used may not
    hang on one user's bad row. So is a batch that is not what the ledger says was read; one that the ledger does not
    know was read by an earlier version, and its landing file may be gone.
    """
    contents: dict[str, Partition] = {}
    for batch in batches_holding(warehouse, month):
        if not within_share(batch, admission):
            raise over_share(warehouse, batch, admission)
        if book is not None and book.contradicts(batch):
            raise QlogError(
                f"{batch.provenance.asset} {batch.provenance.month} is not what the ledger says was read: it was "
                "changed afterwards: run qlog ingest with its file again"
            )
        # A copy of a file under another name holds the same searches, not further ones.
        contents.setdefault(batch.provenance.upstream["landing"], batch)
    parts = list(contents.values())
    if not parts:
        raise QlogError(f"no rows of {month} were ingested: run qlog ingest with a file that holds that month")
    provenance = describe(
        "raw_log",
        month,
        code_version=RAW_LOG_VERSION,
        parameters={},
        upstream={f"{part.provenance.asset}:{part.provenance.month}": part for part in parts},
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

    return write_entered(warehouse, provenance, write, book)


def inspect_raw_log(engine: Engine, partition: Partition) -> CheckResult:
    """Schema, month boundaries, and no row without user or query."""
    month = Month(partition.provenance.month)
    engine.view("raw_log", partition.files("log"))
    counts = engine.frame("log/check_raw_log", month_start=month.start, month_end=month.end)
    return run_suite("log/raw_log", {"counts": counts})
