"""How a release gets under `released/` and how it goes: for the door alone.

Looking at what lies there is `report/public_zone.py`; why a release may be there is the ledger's to know.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from qlog_assets.ledger import Charge
from qlog_assets.report.public_zone import LATEST, release_path, tombstone_path, tombstone_text
from qlog_assets.storage.scratch import sync, temporary_directory
from qlog_assets.storage.warehouse import Warehouse


def move_into_place(staged: Path, target: Path) -> None:
    """Show a staged release under its name: a reader sees all of it or none."""
    make_public(target.parent)
    staged.chmod(0o755)
    os.rename(staged, target)
    sync(target.parent)


def make_public(folder: Path) -> None:
    """Make `released/<mechanism>/<month>` readable by everybody, whatever the umask says."""
    for directory in (folder.parent, folder):
        if not directory.exists():
            directory.mkdir(exist_ok=True)
            directory.chmod(0o755)
            sync(directory.parent)


def point_latest(warehouse: Warehouse, target: Path) -> None:
    """Make `latest` beside a release point at it, in one step."""
    pointer = target.with_name(LATEST)
    if pointer.is_symlink() and os.readlink(pointer) == target.name:
        return
    # Made in the private zone: a pointer half-made in public would be a file that the ledger does not know.
    with temporary_directory(warehouse.staging) as scratch:
        (scratch / LATEST).symlink_to(target.name)
        os.replace(scratch / LATEST, pointer)
    sync(target.parent)


def take_away(warehouse: Warehouse, charge: Charge, others: Sequence[Charge]) -> None:
    """Remove a release's files. `latest` goes to the newest of the others first, or away: it never dangles."""
    target = release_path(warehouse, charge)
    if others:
        point_latest(warehouse, release_path(warehouse, others[-1]))
    else:
        target.with_name(LATEST).unlink(missing_ok=True)
    for path in (target, warehouse.staging / charge.release_id):
        if path.is_symlink() or path.exists():
            with temporary_directory(warehouse.staging) as scratch:
                os.rename(path, scratch / "withdrawn")


def write_tombstone(warehouse: Warehouse, charge: Charge) -> None:
    path = tombstone_path(warehouse, charge)
    make_public(path.parent)
    with temporary_directory(warehouse.staging) as scratch:
        stone = scratch / path.name
        stone.write_text(tombstone_text(charge), encoding="utf-8")
        stone.chmod(0o644)
        sync(stone)
        os.replace(stone, path)
    sync(path.parent)
