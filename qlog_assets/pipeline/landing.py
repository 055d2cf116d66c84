"""Landing files: how a log gets into the landing zone, and which batch a file is. A landing file is never changed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from qlog_assets.errors import QlogError
from qlog_assets.sources.readers import FORMATS, MAPS, NEEDS_MAP, LogSource
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.plain_files import refuse_special
from qlog_assets.storage.scratch import temporary_directory
from qlog_assets.storage.warehouse import Warehouse


@dataclass(frozen=True)
class Batch:
    """One landing file: its name as a partition key, and where it lies."""

    key: str
    source: LogSource
    checksum: str


def land(
    warehouse: Warehouse,
    paths: Sequence[Path],
    format: str,
    columns: Path | None = None,
    brought: list[Path] | None = None,
) -> list[Path]:
    """Put logs into the landing zone, unless they lie there already; returns where they lie.

    Everything is looked at before anything is copied: a misspelt name among many leaves nothing half done. `brought` is
    filled with the files that were copied here by this very call: nobody else's are ever taken away again.
    """
    refuse_unusable(warehouse, paths, format, columns)
    folder = warehouse.landing / format
    folder.mkdir(parents=True, exist_ok=True)
    landed: list[Path] = []
    brought = [] if brought is None else brought
    try:
        for path in paths:
            target = landing_place(folder, path)
            if not target.exists() and bring(path, target):
                brought.append(target)
            if columns is not None:
                copy_whole(columns, column_map_beside(target))
            landed.append(target)
    except BaseException:
        for target in brought:
            target.unlink(missing_ok=True)
            column_map_beside(target).unlink(missing_ok=True)
        raise
    return landed


def refuse_unusable(warehouse: Warehouse, paths: Sequence[Path], format: str, columns: Path | None) -> None:
    """Raise where a file is missing, the format is unknown, or it is not told where a log keeps user and query."""
    if format not in FORMATS:
        raise QlogError(f"{format!r} is not a format: choose one of {', '.join(FORMATS)}")
    if columns is not None and format not in MAPS:
        raise QlogError(f"--columns: the format {format} has its own columns: use --format table with a column map")
    if columns is not None:
        MAPS[format].load(columns)
    for path in paths:
        refuse_special(path, "give the path of a log")
        refuse_name(path)
        lies_there = path.resolve().parent == (warehouse.landing / format).resolve()
        if format in MAPS and columns is None:
            if not lies_there:
                raise QlogError(f"{path}: a {format} {NEEDS_MAP}, in a file that --columns names")
            MAPS[format].load(column_map_beside(path))


def refuse_name(path: Path) -> None:
    """Raise where a log keeps a name in the landing zone that DuckDB and the ledger cannot write down."""
    try:
        path.name.encode("utf-8")
    except UnicodeEncodeError:
        raise QlogError(f"{path}: its name is no UTF-8: give the file another name") from None
    if path.name.startswith("."):
        raise QlogError(f"{path}: hidden files are not looked at in the landing zone: give the file another name")


def landing_place(folder: Path, path: Path) -> Path:
    """Where a log belongs in the landing zone: under its own name, unless another log has that name."""
    if path.resolve().parent == folder.resolve():
        return path.resolve()
    target = folder / path.name
    if target.exists() and file_checksum(target) != file_checksum(path):
        target = folder / f"{file_checksum(path)[:8]}-{path.name}"
    return target


def bring(source: Path, target: Path) -> bool:
    """Copy a log to a name that is free; whether this very call did it and not another process meanwhile."""
    with temporary_directory(target.parent) as scratch:
        shutil.copyfile(source, scratch / target.name)
        try:
            os.link(scratch / target.name, target)
        except FileExistsError:
            return False
    return True


def copy_whole(source: Path, target: Path) -> None:
    """Copy a file so that a sensor sees all of it or none."""
    with temporary_directory(target.parent) as scratch:
        shutil.copyfile(source, scratch / target.name)
        os.replace(scratch / target.name, target)


def column_map_beside(path: Path) -> Path:
    """Where the column map of a file lies, if its format needs one."""
    return path.with_name(path.name + ".columns.toml")


def landed_files(warehouse: Warehouse) -> list[tuple[Path, str]]:
    """The files in the landing zone with their formats, in a fixed order."""
    found = []
    for format in FORMATS:
        for path in sorted((warehouse.landing / format).glob("*")):
            if path.is_file() and not path.name.startswith(".") and not path.name.endswith(".columns.toml"):
                found.append((path, format))
    return found


def misplaced_files(warehouse: Warehouse) -> list[Path]:
    """What lies in the landing zone in no format's folder, where nobody looks for logs."""
    places = [path for path in sorted(warehouse.landing.glob("*")) if not path.name.startswith(".")]
    strays = [path for path in places if path.is_file()]
    for folder in (path for path in places if path.is_dir() and path.name not in FORMATS):
        strays += [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    return strays


def file_name(warehouse: Warehouse, key: str) -> str | None:
    """The name of a batch's landing file, told by its key alone; None where no such file is left."""
    named = [path for path, format in landed_files(warehouse) if is_named_for(key, path, format)]
    return named[0].name if named else None


def is_named_for(key: str, path: Path, format: str) -> bool:
    """Whether a batch key has a landing file's name and format. Its content may be another one by now."""
    return re.fullmatch(rf"{re.escape(name_part(path))}-{format}-[0-9a-f]{{12}}", key) is not None


def batch_of(path: Path, format: str) -> Batch:
    """The batch that a landing file is: named for the file, told apart by its content."""
    checksum = landing_checksum(path)
    return Batch(batch_key(path, format), source_of(path, format), checksum)


def source_of(path: Path, format: str) -> LogSource:
    """A landing file with the column map that lies beside it. The file itself is not read for it."""
    return LogSource(path, format, MAPS[format].load(column_map_beside(path)) if format in MAPS else None)


def batch_key(path: Path, format: str) -> str:
    """The name of a batch. The format is part of it: one file may lie in the landing zone as two, once by mistake."""
    return f"{name_part(path)}-{format}-{landing_checksum(path)[:12]}"


def landing_checksum(path: Path) -> str:
    """The checksum of a landing file, computed once as long as the file is the same: it is never changed, and may be
    large."""
    state = path.stat()
    return _checksum_of(path, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@lru_cache(maxsize=4096)
def _checksum_of(path: Path, *state: int) -> str:
    return file_checksum(path)


def name_part(path: Path) -> str:
    """The readable part of a batch key."""
    return re.sub(r"[^A-Za-z0-9]+", "-", path.name).strip("-").lower()[:40] or "log"


def find_batch(warehouse: Warehouse, key: str) -> Batch:
    """The landing file of a batch key."""
    for path, format in landed_files(warehouse):
        if key.startswith(f"{name_part(path)}-") and (batch := batch_of(path, format)).key == key:
            return batch
    raise QlogError(f"no landing file belongs to the batch {key}: run qlog ingest with its file again")
