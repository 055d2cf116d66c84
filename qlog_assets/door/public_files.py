"""How a release gets under `released/` and how it goes: for the door alone.

Looking at what lies there is `report/public_zone.py`; why a release may be there is the ledger's to know.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from qlog_assets.ledger import Charge
from qlog_assets.report.public_zone import LATEST, pointed_at, release_path, tombstone_path, tombstone_text
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
    """Make `latest` beside a release name it, in one step; a link of an earlier version becomes a file."""
    pointer = target.with_name(LATEST)
    if not pointer.is_symlink() and pointed_at(pointer) == target.name:
        return
    write_public(warehouse, pointer, f"{target.name}\n")


def write_public(warehouse: Warehouse, path: Path, text: str) -> None:
    """Write a small public file in one step: a reader sees all of the old one or all of the new one."""
    # Made in the private zone: one half-made in public would be a file that the ledger does not know.
    with temporary_directory(warehouse.staging) as scratch:
        made = scratch / path.name
        made.write_text(text, encoding="utf-8", newline="\n")
        made.chmod(0o644)
        sync(made)
        os.replace(made, path)
    sync(path.parent)


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
    write_public(warehouse, path, tombstone_text(charge))
