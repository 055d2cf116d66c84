"""What lies under `released/` beside the releases: how it gets there and stays true. For the door alone.

It is a function of the ledger and of public manifests, made anew after everything that the door shows, takes back or
records. One process at a time writes it, and reads the ledger when its turn has come: whoever writes last knows all.
"""

from __future__ import annotations

from qlog_assets.door.public_files import point_latest
from qlog_assets.report.public_zone import LATEST, latest_release
from qlog_assets.storage.scratch import BusyError, hold_lock
from qlog_assets.storage.warehouse import Warehouse


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
