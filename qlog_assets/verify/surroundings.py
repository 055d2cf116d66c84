"""What lies around the releases: who may read and write it, pins, pointers and pages, draws, the ledger's seat belts.

Each function answers with findings, one sentence each; none of them prints a fingerprint or a value of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from qlog_assets.door.preconditions import pinned_dataset
from qlog_assets.ledger import Charge, Ledger
from qlog_assets.report.catalogue import read_catalogue
from qlog_assets.report.page_record import read_record, record_path
from qlog_assets.report.public_pages import compare_pages
from qlog_assets.report.public_zone import latest_path, pointed_at, release_path
from qlog_assets.storage.scratch import PREFIX
from qlog_assets.storage.warehouse import Warehouse

OTHERS = 0o077
"""What a private file's mode may not have: anything for the group or for everybody."""
OTHERS_WRITE = 0o022


def find_around(warehouse: Warehouse, ledger: Ledger, charges: Sequence[Charge]) -> list[str]:
    """Everything about one warehouse; the charges are those of its own releases."""
    return [
        *dropped_guards(ledger),
        *loose_modes(warehouse),
        *wrong_pin(warehouse, charges),
        *wrong_pointers(warehouse, charges),
        *stray_draws(warehouse, ledger.charges()),
    ]


def audit_catalogue(warehouse: Warehouse, ledger: Ledger, dataset: str | None) -> tuple[list[str], list[str]]:
    """Findings and notes on the index and the data package, of the data set whose releases lie here."""
    pin, known = pinned_dataset(warehouse), [each.name for each in ledger.datasets()]
    name = dataset or (pin.read_text(encoding="utf-8", errors="replace").strip() if pin.is_file() else None)
    if name is None and len(known) == 1:
        name = known[0]
    if name not in known:
        return [], []
    # What was charged for and has no pin is a copy without the private zone, where it is recorded who wrote a page.
    has_private = pin.is_file() or (warehouse.private.is_dir() and not ledger.charges(name))
    record = read_record(record_path(warehouse)) if has_private else None
    return compare_pages(read_catalogue(warehouse, ledger, name), warehouse.released, record)


def dropped_guards(ledger: Ledger) -> list[str]:
    """The triggers that keep an honest mistake from changing the ledger's rows."""
    return [
        f"ledger: its trigger {name} is gone, switched off or changed: rows can be changed without an error"
        for name in ledger.missing_guards()
    ]


def loose_modes(warehouse: Warehouse) -> list[str]:
    """Private files that others may read, and public ones that others may write; one sentence per place."""
    sentences = []
    zones = [
        path for path in (warehouse.private, warehouse.landing, warehouse.dagster, warehouse.crowd) if path.is_dir()
    ]
    ledger = warehouse.home / "ledger.db"
    for path in [*zones, *([ledger] if ledger.is_file() else [])]:
        if path.stat().st_mode & OTHERS:
            sentences.append(f"{path.name}: others than its owner may enter or read it: chmod go-rwx {path.name}")
    loose = [path for path in sealed(warehouse) if path.lstat().st_mode & OTHERS]
    if loose:
        where = loose[0].relative_to(warehouse.home)
        sentences.append(
            f"{len(loose)} private file(s) have a mode for others, such as {where}: chmod -R go-rwx private"
        )
    public = [warehouse.released, *warehouse.released.rglob("*")] if warehouse.released.is_dir() else []
    open_to_all = [path for path in public if not path.is_symlink() and path.stat().st_mode & OTHERS_WRITE]
    if open_to_all:
        where = open_to_all[0].relative_to(warehouse.home)
        sentences.append(
            f"{len(open_to_all)} public file(s) may be written by others, such as {where}: chmod -R go-w released"
        )
    return sentences


def sealed(warehouse: Warehouse) -> Iterator[Path]:
    """What was shut when it was written: partitions and draws with everything in them."""
    for folder in sorted({path.parent for path in warehouse.private.glob("*/*/*/provenance.json")}):
        yield folder
        yield from sorted(folder.rglob("*"))
    for folder in drawn_folders(warehouse):
        yield folder
        yield from sorted(folder.rglob("*"))


def drawn_folders(warehouse: Warehouse) -> list[Path]:
    """The stored draws; what a killed process left half-made is none."""
    there = sorted(warehouse.draws.iterdir()) if warehouse.draws.is_dir() else []
    return [path for path in there if not path.name.startswith(PREFIX)]


def wrong_pin(warehouse: Warehouse, charges: Sequence[Charge]) -> list[str]:
    """The name of the data set, which stands between a log and a second budget for the same people."""
    names = sorted({charge.dataset for charge in charges if release_path(warehouse, charge).exists()})
    if not names:
        return []
    pin = pinned_dataset(warehouse)
    if not pin.is_file():
        return [f"private/dataset is gone: it held the name {names[0]}; without it a second budget could be opened"]
    if pin.read_text(encoding="utf-8", errors="replace").strip() not in names:
        return [f"private/dataset does not name {names[0]}, the data set that was charged: write that name into it"]
    return []


def wrong_pointers(warehouse: Warehouse, charges: Sequence[Charge]) -> list[str]:
    """Months whose `latest` is not their newest release."""
    newest: dict[tuple[str, str], Charge] = {}
    for charge in charges:
        if charge.state == "published" and release_path(warehouse, charge).is_dir():
            key = charge.mechanism, charge.month
            if key not in newest or newest[key].draw_number < charge.draw_number:
                newest[key] = charge
    sentences = []
    for (mechanism, month), charge in newest.items():
        pointer = latest_path(warehouse, mechanism, month)
        name = f"released/{mechanism}/{month}/{pointer.name}"
        pointed = pointed_at(pointer)
        if pointed is None:
            sentences.append(f"{name} does not point at {charge.release_id}: run the release again")
        elif pointed != charge.release_id:
            sentences.append(f"{name} points past {charge.release_id}, the newest release: run the release again")
    return sentences


def stray_draws(warehouse: Warehouse, charges: Sequence[Charge]) -> list[str]:
    """Stored draws that nobody was charged for: noise that may have been looked at and thrown away."""
    known = {charge.fingerprint for charge in charges if charge.state in ("reserved", "drawn", "published")}
    # A withdrawal that was interrupted leaves its draw; the next one removes it.
    known |= {charge.fingerprint for charge in charges if charge.state == "withdrawn"}
    stray = [path for path in drawn_folders(warehouse) if path.name not in known]
    if not stray:
        return []
    return [
        f"private/draws holds {len(stray)} draw(s) that no charge accounts for: the ledger that charged for them was "
        "lost or put back, or they were put there: restore the ledger, or remove them"
    ]
