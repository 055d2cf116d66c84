"""Forgetting: deletes the private data of months whose releases are published. Releases, ledger and audits stay.

What is deleted is recorded in the ledger first, so that an audit can say what can no longer be counted again, and so
that a run that was killed, or that left the landing files alone, can be followed by one that finishes the work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from qlog_assets.door import door
from qlog_assets.door.draws import discard_draw
from qlog_assets.door.preconditions import lock_months
from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.ledger import Book, Charge, Ledger, Skip
from qlog_assets.ledger.book import key_of
from qlog_assets.mechanisms.register import releasable
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import EARLIER_NAME, LANDING_BATCH, batches, in_use, left_out, months_of
from qlog_assets.pipeline.landing import batch_key, column_map_beside, landed_files, landing_checksum, source_of
from qlog_assets.policy import Policy
from qlog_assets.report.public_zone import find_damage, release_path
from qlog_assets.sources.readers import refuse_unreadable
from qlog_assets.storage.dagster_home import SETTINGS, open_existing
from qlog_assets.storage.partition import Partition, WarehouseError
from qlog_assets.storage.private_files import remove_whole
from qlog_assets.storage.scratch import PREFIX, remove_leftovers
from qlog_assets.storage.stored import check_stores
from qlog_assets.storage.warehouse import Warehouse

Bar = Callable[[int, int, str], None]
"""Hears how many parts are done, of how many, and which one is next."""
SEALED_EPOCHS = "crowd"
"""Where a warehouse keeps the sealed reports of people's own machines, by month: `crowd.sealing.epoch_directory`."""
FORGET_POINTS = (
    "forgetting_recorded",
    "partitions_forgotten",
    "draws_forgotten",
    "batches_forgotten",
    "landing_forgotten",
)


@dataclass(frozen=True)
class LandingFile:
    """A file in the landing zone, the months of its rows, and those of them that are still held."""

    path: Path
    months: frozenset[str]
    held: frozenset[str]


def forget_before(
    warehouse: Warehouse,
    policy: Policy,
    ledger: Ledger,
    before: Month,
    delete_landing: bool,
    bar: Bar = lambda done, of, step: None,
) -> dict[str, Any]:
    """Delete the private partitions and draws of published months before a month; say which landing files hold them.

    A month with nothing published, unless every mechanism skipped it, or with a release that is not finished, keeps its
    data and is named with the reason. `bar` hears how far it is.
    """
    hash_landing_files(warehouse, bar)
    older = sorted(month for month in held_months(warehouse, ledger, policy) if month < before)
    with lock_months(warehouse, older, undone="nothing was forgotten"):
        charges = ledger.charges(policy.dataset)
        unused = withdrawn_months(warehouse, ledger, policy)
        released = {Month(charge.month) for charge in charges if charge.counted}
        skips = ledger.skips(policy.dataset)
        reasons = {str(month): reason_to_keep(warehouse, charges, skips, month, unused) for month in older}
        kept = {month: reason for month, reason in reasons.items() if reason is not None}
        months = [month for month in older if month not in kept]
        files = landing_files(warehouse, ledger, policy, before, months)
        deleted = [file for file in files if not file.held] if delete_landing else []
        unread = failed_files(warehouse, before)
        stores: set[str] = set()
        deleted += unread if delete_landing else []
        if months or deleted:
            facts = {
                "months": [str(month) for month in months],
                # Of files that were withdrawn: nothing was released of them, and a corrected file is welcome.
                "never_released": sorted(str(month) for month in set(months) & unused - released),
                "landing": delete_landing,
                # Which months a file held is known from its batch, which is about to go.
                "files": {landing_checksum(file.path): sorted(file.months) for file in (*files, *unread)},
            }
            check_stores(partition_folders(warehouse, months))
            ledger.record("forgotten", policy.dataset, facts)
            door.on_point("forgetting_recorded")
            stores = forget_private(warehouse, months, [charge for charge in charges if charge.month in months], bar)
        for file in deleted:
            file.path.unlink(missing_ok=True)
            column_map_beside(file.path).unlink(missing_ok=True)
        door.on_point("landing_forgotten")
    return {
        "months": [str(month) for month in months],
        "kept": kept,
        "landing": sorted(file.path.name for file in files),
        "landing_deleted": sorted(file.path.name for file in deleted),
        "unread": sorted(file.path.name for file in unread),
        "stores": sorted(stores),
    }


def hash_landing_files(warehouse: Warehouse, bar: Bar) -> None:
    """Hash the landing files, each once per process: where they are large, nothing else takes as long."""
    sizes = {path: path.stat().st_size for path, _ in landed_files(warehouse)}
    done = 0
    for path, size in sizes.items():
        bar(done, sum(sizes.values()), f"looking at {path.name}")
        landing_checksum(path)
        done += size


def partition_folders(warehouse: Warehouse, months: list[Month]) -> list[Path]:
    """The folders of everything made of some months, and of the batches with rows of them."""
    found = [folder for folder in batch_folders(warehouse) if months_in(readings(folder)) & set(months)]
    return found + [folder for month in months for folder in warehouse.private.glob(f"*/{month}")]


def batch_folders(warehouse: Warehouse) -> list[Path]:
    """The folder of every batch, with all readings of its file."""
    return [
        folder
        for asset in (LANDING_BATCH, EARLIER_NAME)
        for folder in sorted((warehouse.private / asset).glob("*"))
        if folder.is_dir() and not folder.name.startswith(PREFIX)
    ]


def readings(folder: Path) -> list[Partition]:
    """Every reading of a batch that has rows on the disk or in a store.

    A file that was read again under other settings has several, and those before the current one are for audits alone.
    What a killed process left may have nothing that points at it.
    """
    found = []
    for path in reading_paths(folder):
        try:
            found.append(Partition.read(path))
        except WarehouseError as error:
            # Nobody knows which months it holds. One that is not current is never made again.
            raise WarehouseError(f"{error}; where that does not help, delete {path}") from None
    return found


def reading_paths(folder: Path) -> list[Path]:
    found = sorted(path.parent for path in folder.glob("*/provenance.json"))
    return [path for path in found if not path.name.startswith(PREFIX)]


def months_in(found: Iterable[Partition]) -> set[str]:
    """The months of which any of some readings holds rows."""
    return {month for reading in found for month in months_of(reading)}


def all_readings(warehouse: Warehouse) -> list[Partition]:
    """Everything that was ever ingested and is still there, in use or not."""
    return [reading for folder in batch_folders(warehouse) for reading in readings(folder)]


def forget_private(warehouse: Warehouse, months: list[Month], charges: list[Charge], bar: Bar) -> set[str]:
    """Remove every partition, study, draw, ingested row and sealed report of some months; returns the stores that
    something was deleted from."""
    stores: set[str] = set()
    for number, month in enumerate(months):
        bar(number, len(months), f"deleting {month}")
        remove_whole(warehouse.home / SEALED_EPOCHS / month)
        for folder in sorted(warehouse.private.glob(f"*/{month}")):
            with warehouse.writing(folder.parent.name, month):
                stores |= warehouse.remove_partitions(folder)
    for path in sorted(warehouse.studies.glob("*/study.json")):
        if json.loads(path.read_text(encoding="utf-8")).get("month") in months:
            remove_whole(path.parent)
    forget_study_runs(warehouse, months)
    door.on_point("partitions_forgotten")
    for charge in charges:
        discard_draw(warehouse, charge.fingerprint)
    door.on_point("draws_forgotten")
    for folder in batch_folders(warehouse):
        # An ingest of the same file waits, and what it wrote until now is found here, also if it was killed.
        with warehouse.writing(folder.parent.name, folder.name):
            remove_leftovers(folder, warehouse.discard)
            stores |= forget_readings(warehouse, folder, set(months))
    door.on_point("batches_forgotten")
    return stores


def forget_readings(warehouse: Warehouse, folder: Path, months: set[str]) -> set[str]:
    """Remove some months from all readings of a batch; returns the stores that something was deleted from.

    A batch may span months: what it holds of others stays, and its rejected rows go with the last of them.
    """
    found = readings(folder)
    held = months_in(found)
    if held and held <= months:
        return warehouse.remove_partitions(folder)
    stores = (warehouse.drop_tables(each, sorted(months)) for each in found if months_of(each) & months)
    return {store for some in stores for store in some}


def forget_study_runs(warehouse: Warehouse, months: list[Month]) -> None:
    """Delete from Dagster's history the runs of studies and simulations: what they found was measured on the log."""
    if not (warehouse.dagster / SETTINGS).exists():
        return
    import dagster as dg

    with open_existing(warehouse.dagster) as instance:
        for month in months:
            for run in instance.get_runs(dg.RunsFilter(tags={"dagster/partition": month})):
                if run.job_name.endswith(("_study", "_simulation")):
                    instance.delete_run(run.run_id)


def reason_to_keep(
    warehouse: Warehouse, charges: list[Charge], skips: list[Skip], month: Month, unused: set[Month]
) -> str | None:
    """Why a month's data may not go yet: something of it is still to be made. Of unused months nothing is, nor of those
    that every mechanism skipped: that is a decision as a release is one, and their rows stay away when they come again.
    """
    own = [charge for charge in charges if charge.month == month and charge.state != "abandoned"]
    if not own and month not in unused:
        skipping = {skip.mechanism for skip in skips if skip.month == month}
        # What is not made from the log waits for what was collected of the month, and for no rows.
        waiting = [
            each.name
            for each in releasable()
            if each.name not in skipping and (each.reads_log or each.was_collected(warehouse, month))
        ]
        if waiting:
            but = f", and it is skipped by {', '.join(sorted(skipping))} but not by {', '.join(waiting)}"
            return f"nothing of it was released{but if skipping else ''}"
    for charge in own:
        if charge.state in ("reserved", "drawn"):
            return f"{charge.release_id} is {charge.state} and not published"
        if charge.state == "published" and (
            found := find_damage(release_path(warehouse, charge), charge.manifest_digest)
        ):
            return f"the public files of {charge.release_id} are not whole: {found[0]}"
    return None


def withdrawn_months(warehouse: Warehouse, ledger: Ledger, policy: Policy) -> set[Month]:
    """The months of which only withdrawn batches have rows, or readings under another policy, whose months this one
    does not take in: no release will be made of those."""
    withdrawals, taken_in = Book(ledger, policy.dataset).withdrawals(), policy.admission.months
    found = all_readings(warehouse)
    used = months_in(in_use(batches(warehouse), withdrawals))
    used |= {name for name in months_in(in_use(found, withdrawals)) if taken_in.first <= name <= taken_in.last}
    return {Month(name) for name in months_in(found) - used}


def held_months(warehouse: Warehouse, ledger: Ledger, policy: Policy) -> set[Month]:
    """The months of which anything private is left: a partition, ingested rows, sealed reports, a draw."""
    folders = (*warehouse.private.glob("*/*"), *(warehouse.home / SEALED_EPOCHS).glob("*"))
    found = {month for path in folders if (month := as_month(path.name)) and path.is_dir()}
    found |= {Month(name) for name in months_in(all_readings(warehouse))}
    for charge in ledger.charges(policy.dataset):
        if (warehouse.draws / charge.fingerprint).exists():
            found.add(Month(charge.month))
    return found


def returned_notes(warehouse: Warehouse, ledger: Ledger, dataset: str | None) -> list[str]:
    """A sentence for each forgotten month of which rows are there that were ingested before, and not since: left by an
    earlier version, or put back from a backup."""
    names = [each.name for each in ledger.datasets()] if dataset is None else [dataset]
    entries = {key: made for name in names for key, made in ledger.made(name).items()}
    held: set[str] = set()
    for path in (path for folder in batch_folders(warehouse) for path in reading_paths(folder)):
        # One whose provenance was damaged is a finding of the releases made from it.
        with suppress(WarehouseError):
            reading = Partition.read(path)
            entry = entries.get(key_of(reading))
            held |= months_of(reading) & entry.forgotten if entry else set()
    return [
        f"{month} was forgotten, and rows of it are there that were ingested before: "
        f"qlog forget --before {month.next()} deletes them"
        for month in sorted(filter(None, map(as_month, held)))
    ]


def landing_files(
    warehouse: Warehouse, ledger: Ledger, policy: Policy, before: Month, months: list[Month]
) -> list[LandingFile]:
    """The landing files with rows of months that are forgotten now or were before."""
    known: dict[str, set[str]] = {}
    gone = {str(month) for month in months}
    for event in ledger.events():
        if event.kind == "forgotten" and event.dataset == policy.dataset:
            gone |= {month for month in event.facts["months"] if month < before}
            for checksum, held in event.facts["files"].items():
                known.setdefault(checksum, set()).update(held)
    still_there: dict[str, set[str]] = {}
    for reading in all_readings(warehouse):
        checksum = reading.provenance.upstream["landing"]
        known.setdefault(checksum, set()).update(months_of(reading) | set(left_out(reading)))
        # A file that was ingested again holds again what was forgotten before, in whichever of its readings.
        still_there.setdefault(checksum, set()).update(months_of(reading) - set(months))
    found = []
    for path, _ in landed_files(warehouse):
        checksum = landing_checksum(path)
        own = known.get(checksum, set())
        if own & gone:
            held = (own - gone) | still_there.get(checksum, set())
            found.append(LandingFile(path, frozenset(own), frozenset(held)))
    return found


def failed_files(warehouse: Warehouse, before: Month) -> list[LandingFile]:
    """The landing files whose ingest failed, or would be refused at once, and that were last written before a month.

    Nobody knows which months are in them. But what was last written before a month has no row of it, or of a later one.
    A readable file that was never asked for is none of them: somebody may still want to ingest it.
    """
    read = {reading.provenance.upstream["landing"] for reading in all_readings(warehouse)}
    unread = [
        (path, format)
        for path, format in landed_files(warehouse)
        if Month.containing(datetime.fromtimestamp(path.stat().st_mtime, UTC)) < before
        and landing_checksum(path) not in read
    ]
    failed = failed_ingests(warehouse) if unread else set()
    return [
        LandingFile(path, frozenset(), frozenset())
        for path, format in unread
        if batch_key(path, format) in failed or is_refused(path, format)
    ]


def failed_ingests(warehouse: Warehouse) -> set[str | None]:
    """The batches of which a run of ingest failed."""
    if not (warehouse.dagster / SETTINGS).exists():
        return set()
    import dagster as dg

    ended_badly = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
    with open_existing(warehouse.dagster) as instance:
        runs = instance.get_runs(dg.RunsFilter(job_name="ingest", statuses=ended_badly))
    return {run.tags.get("dagster/partition") for run in runs}


def is_refused(path: Path, format: str) -> bool:
    """Whether a look at a landing file is enough to refuse it, as ingest does before any run starts. One without a
    column map that can be read is not looked at: its rows may be good, and it waits for a map."""
    try:
        source = source_of(path, format)
    except QlogError:
        return False
    try:
        refuse_unreadable(source)
    except QlogError:
        return True
    return False


def as_month(text: str) -> Month | None:
    try:
        return Month(text)
    except ParameterError:
        return None
