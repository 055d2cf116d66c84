"""Which files a policy may name: regular files beside it or in directories it lists, and never part of the warehouse.

A policy's pools and url lists are read and their texts may be published in clear. So a name is followed to the file
itself, through `..` and symbolic links, and it is the file's own place that counts. A second name of a file (a hard
link) cannot be told from the first one: whoever may link a private file into a listed directory could as well copy it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from qlog_assets.errors import QlogError
from qlog_assets.storage.warehouse import Warehouse

OF_THE_SYSTEM = (Path("/proc"), Path("/sys"), Path("/dev"))
"""What lies there looks like files and is the machine's own state."""
IN_MEMORY = Path("/dev/shm")
"""An ordinary directory for files, wherever it lies."""


def refuse_unfit_file(warehouse: Warehouse, key: str, path: Path, directories: Sequence[Path]) -> None:
    """Raise unless the file that a key of the policy names may be read as public material."""
    named = f"{key}: {path if str(path).isprintable() else repr(str(path))}"
    real = find_file(named, path)
    zone = zone_of(warehouse, real)
    if zone is not None:
        raise QlogError(f"{named}: lies in the warehouse's {zone}: public lists are kept outside its zones")
    system = next((folder for folder in OF_THE_SYSTEM if is_below(real, folder)), None)
    if system is not None and not is_below(real, IN_MEMORY):
        raise QlogError(f"{named}: lies in {system}, where the machine keeps its own state: name a regular file")
    if not any(is_below(real, folder) for folder in directories):
        raise QlogError(
            f"{named}: lies neither beside the policy file nor in one of the policy's public_directories: "
            "move it there, or list its directory"
        )
    if not stat.S_ISREG(real.stat().st_mode):
        raise QlogError(f"{named}: is no regular file: name the file that holds the public list")


def find_file(named: str, path: Path) -> Path:
    """The file itself, at the end of all links."""
    try:
        return path.resolve(strict=True)
    except FileNotFoundError:
        raise QlogError(f"{named}: no such file: name the file that holds the public list") from None
    except (OSError, RuntimeError, ValueError):  # Not to be looked at, a loop of links, a name that no file can have.
        raise QlogError(f"{named}: cannot be read: name a file that you may read") from None


def zone_of(warehouse: Warehouse, real: Path) -> str | None:
    """What part of the warehouse a file is, in words; None if it is no part of it."""
    for zone in (warehouse.landing, warehouse.private, warehouse.crowd, warehouse.released, warehouse.dagster):
        if is_below(real, zone):
            return f"zone {zone.name}/"
    return "ledger" if any(is_same(real, file) for file in ledger_files(warehouse)) else None


def ledger_files(warehouse: Warehouse) -> Iterable[Path]:
    """The files of the ledger's database and what SQLite keeps beside them, whether or not they are there."""
    urls = {warehouse.ledger_url, f"sqlite:///{warehouse.home / 'ledger.db'}"}
    for url in urls:
        try:
            parsed = make_url(url)
        except ArgumentError:  # Opening the ledger says what is wrong with it.
            continue
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            yield from (Path(parsed.database + suffix) for suffix in ("", "-wal", "-shm", "-journal"))


def is_below(real: Path, folder: Path) -> bool:
    """Whether a file lies in a folder or below it, by whichever name the folder is known."""
    return any(is_same(parent, folder) for parent in (real, *real.parents))


def is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # What is not there, or cannot be looked at, is compared by name.
        return one == Path(os.path.realpath(other))
