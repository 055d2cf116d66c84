"""What commands do with landing batches: list them, withdraw one, say what a file would give without keeping it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from qlog_assets.api.runs import Bar, JobRun, Tell, run
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Book, Ledger, MissingLedgerError
from qlog_assets.pipeline.batches import (
    batch_counts,
    count_reasons,
    identity_of,
    left_out,
    months_of,
    name_of,
    note_no_search,
    readable_batches,
    rejected_share,
    state_of,
    warn_of_urls,
)
from qlog_assets.pipeline.decided_months import COMMANDS, describe_effect, forgotten_months
from qlog_assets.pipeline.landing import Batch, column_map_beside, refuse_unusable
from qlog_assets.pipeline.user_key import refuse_other_users
from qlog_assets.pipeline.withdrawal import find_key, known_batch
from qlog_assets.policy import Policy
from qlog_assets.sources.readers import MAPS, LogSource, read_batch
from qlog_assets.sources.readers_sql import NOTHING_AGAINST
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.engine import Engine, open_duckdb
from qlog_assets.storage.scratch import system_scratch, temporary_directory
from qlog_assets.storage.warehouse import Warehouse

SHOWN_OF_MAP = ("delimiter", "encoding", "header", "quote", "time_format")
"""What a person gets wrong most often in how a file is read."""


def read_book(warehouse: Warehouse, policy: Policy) -> Book | None:
    """The book for questions; None where no ledger is yet."""
    try:
        return Book(Ledger.read(warehouse.ledger_url), policy.dataset)
    except MissingLedgerError:
        return None


def list_batches(warehouse: Warehouse, policy: Policy) -> dict[str, Any]:
    """Every batch: its file, what became of its rows, its months, and whether it is in use."""
    book = read_book(warehouse.make(), policy)
    withdrawals = {} if book is None else book.withdrawals()
    listed = []
    with Engine.open(warehouse) as engine:
        for batch in readable_batches(warehouse):
            record = withdrawals.get(identity_of(batch.provenance))
            state = state_of(batch)
            if record is not None:
                state = "withdrawn"
            elif rejected_share(batch) > policy.admission.max_rejected_share:
                state += ", too many rejected"
            listed.append(
                {
                    "batch": batch.provenance.month,
                    "file": name_of(warehouse, batch),
                    **batch_counts(batch),
                    "reasons": count_reasons(engine, batch),
                    "months": {month: batch.rows(month) for month in sorted(months_of(batch))},
                    "left_out": left_out(batch),
                    "state": state,
                    "withdrawn": None
                    if record is None
                    else {"reason": record.reason, "who": record.who, "at": record.at, "run_id": record.run_id},
                }
            )
    return {"batches": listed}


def withdraw(warehouse: Warehouse, policy: Policy, word: str, reason: str, tell: Tell) -> dict[str, Any]:
    """Withdraw a batch, named by its key or its file, as a Dagster run; says what that does to released months."""
    from qlog_assets.orchestration.batch_pages import WITHDRAW_JOB, WITHDRAW_STEP
    from qlog_assets.orchestration.resources import BATCHES

    if not reason.strip():
        raise QlogError("--reason: a reason is needed: it is what an auditor will read")
    key = find_key(warehouse.make(), word)
    before = read_book(warehouse, policy)
    batch = known_batch(warehouse, key)
    identity = identity_of(batch.provenance)
    known = before is not None and identity in before.withdrawals()
    config = {"ops": {WITHDRAW_STEP: {"config": {"reason": reason}}}}
    run(warehouse, JobRun(WITHDRAW_JOB, key, config, new_in=BATCHES.name), tell)
    book = Book(Ledger.read(warehouse.ledger_url), policy.dataset)
    record = book.withdrawals()[identity]
    months = sorted(months_of(batch))
    return {
        "batch": key,
        "file": name_of(warehouse, batch),
        "recorded": not known,
        "reason": record.reason,
        "who": record.who,
        "at": record.at,
        "run_id": record.run_id,
        "months": {month: warehouse.has_current("raw_log", month) for month in months},
        "notes": describe_effect(book, months, COMMANDS),
    }


def check_files(
    warehouse: Warehouse,
    policy: Policy,
    paths: Sequence[Path],
    format: str,
    columns: Path | None,
    tell: Tell,
    bar: Bar,
) -> dict[str, Any]:
    """What files would give: counts only. Nothing is kept: no copy, no batch, no event, and the scratch is removed, by
    the next command if this one is killed."""
    refuse_unusable(warehouse, paths, format, columns)
    book = read_book(warehouse, policy)
    files, sources = [], []
    with place_to_read(warehouse) as place:
        for path in paths:
            tell(f"reading {path.name}")
            own = columns or column_map_beside(path)
            # A key of its own: whoever is told apart by it is forgotten with the answer.
            columns_of_file = MAPS[format].load(own) if format in MAPS else None
            source = LogSource(path, format, columns_of_file, user_key=secrets.token_bytes(32))
            refuse_other_users(path.name, source.column_map.one_user, policy.unit.one_user)
            with open_duckdb(place) as engine, temporary_directory(place.staging) as scratch:
                share_done = partial(_tell_share, bar, path.name)
                facts = read_batch(engine.connection, source, policy.admission.months, scratch, progress=share_done)
            bad = sum(count for reason, count in facts.rejected.items() if reason not in NOTHING_AGAINST)
            share = Fraction(bad, max(facts.read, 1))
            written = source.column_map.as_public()
            batch = Batch("", source, file_checksum(path))
            sources.append(source)
            files.append(
                {
                    "file": path.name,
                    "format": format,
                    "read_as": {name: written[name] for name in SHOWN_OF_MAP if written.get(name) is not None},
                    "read": facts.read,
                    "accepted": facts.accepted,
                    "rejected": facts.rejected,
                    "rejected_share": float(share),
                    "months": facts.months,
                    "notes": [
                        *note_no_search(written, facts.read, facts.rejected),
                        *foresee(warehouse, policy, book, batch, share, facts.months),
                    ],
                }
            )
    return {"files": files, "warnings": warn_of_urls(sources, policy.has_urls)}


@contextmanager
def place_to_read(warehouse: Warehouse) -> Iterator[Warehouse]:
    """Where files are read of which nothing is kept: in the warehouse, or outside where there is none yet."""
    if warehouse.locks.is_dir():
        yield warehouse.make()
        return
    with system_scratch() as folder:
        yield Warehouse(warehouse.settings.for_scratch(folder))


def _tell_share(bar: Bar, name: str, done: int, size: int) -> None:
    bar(done, size, f"reading {name}")


def foresee(
    warehouse: Warehouse, policy: Policy, book: Book | None, batch: Batch, share: Fraction, months: dict[str, int]
) -> list[str]:
    """What ingesting a file would say besides its counts."""
    notes = []
    limit = policy.admission.max_rejected_share
    if share > limit:
        notes.append(
            f"more of its rows would be rejected than ingest.max_rejected_share = {float(limit):g}: is it the right "
            "format?"
        )
    if any(identity_of(known.provenance) == identity_of(batch) for known in readable_batches(warehouse)):
        notes.append("the same file was ingested before")
    if book is None:
        return notes
    if (record := book.withdrawals().get(identity_of(batch))) is not None:
        notes.append(f"the same file {record.words}")
    for month, day in sorted(forgotten_months(warehouse, book).items()):
        if month in months:
            notes.append(f"{month} was forgotten on {day}: its rows would be left out, unless you say --yes")
    for charge in book.ledger.charges(book.dataset):
        if charge.live and charge.month in months:
            notes.append(f"{charge.month} has the release {charge.release_id}, which would stay as it is")
    return notes
