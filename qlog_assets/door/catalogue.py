"""What lies under `released/` beside the releases: how it gets there and stays true. For the door alone.

It is a function of the ledger and of public manifests, made anew after everything that the door shows, takes back or
records. One process at a time writes it, and reads the ledger when its turn has come: whoever writes last knows all.
"""

from __future__ import annotations

from collections.abc import Mapping

from qlog_assets.door.inputs import DoorError
from qlog_assets.door.public_files import point_latest, write_public
from qlog_assets.ledger import Ledger
from qlog_assets.report.catalogue import Catalogue, read_catalogue
from qlog_assets.report.page_record import next_record, read_record, record_path, record_text
from qlog_assets.report.public_pages import render_pages
from qlog_assets.report.public_zone import LATEST, latest_release
from qlog_assets.storage.private_files import write_private
from qlog_assets.storage.scratch import BusyError, hold_lock
from qlog_assets.storage.warehouse import Warehouse

LOCK = "catalogue.lock"


def write_catalogue(warehouse: Warehouse, ledger: Ledger, dataset: str, wait_seconds: float) -> None:
    """Write the index and the data package anew, where they do not say what is public now."""
    later = "its index is not written yet: run it again, at no new charge"
    with hold_lock(warehouse.locks / LOCK, wait_seconds, f"another process writes the index of released/; {later}"):
        replace_links(warehouse)
        catalogue = read_catalogue(warehouse, ledger, dataset)
        pages = render_pages(catalogue, warehouse.released)
        try:
            record_pages(warehouse, catalogue, pages)
            for name, text in pages.items():
                path = warehouse.released / name
                if path.is_symlink() or not path.is_file() or path.read_bytes() != text.encode():
                    write_public(warehouse, path, text)
        except OSError as error:
            raise DoorError(
                f"all is done but {' and '.join(pages)} in released/, which could not be written "
                f"({error.strerror or error}): make room and run it again, at no new charge"
            ) from error


def record_pages(warehouse: Warehouse, catalogue: Catalogue, pages: Mapping[str, str]) -> None:
    """Record what is about to be written, before anybody can see it: what is not recorded is nobody's."""
    path = record_path(warehouse)
    known = read_record(path)
    record = next_record(known, catalogue, pages, warehouse.released)
    if record != known:
        write_private(path, record_text(record))


def replace_links(warehouse: Warehouse) -> None:
    """Make files of the pointers that an earlier version made as links.

    A month whose door another process holds is left alone: it writes its pointer itself, or the next one does.
    """
    for pointer in sorted(warehouse.released.glob(f"*/*/{LATEST}")):
        mechanism, month = pointer.parts[-3:-1]
        if not pointer.is_symlink():
            continue
        try:
            with hold_lock(warehouse.locks / f"{mechanism}-{month}.lock", 0, "another process is at the door"):
                target = latest_release(warehouse, mechanism, month)
                if target is not None and pointer.is_symlink():
                    point_latest(warehouse, target)
        except BusyError:
            continue
