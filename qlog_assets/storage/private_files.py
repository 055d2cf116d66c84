"""Small private files replaced whole, directories sealed and removed whole."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from qlog_assets.errors import QlogError
from qlog_assets.storage.scratch import PREFIX, temporary_directory

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def write_private(path: Path, text: str) -> None:
    """Replace a small private file whole."""
    with temporary_directory(path.parent) as scratch:
        with (scratch / path.name).open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        (scratch / path.name).chmod(0o600)
        os.replace(scratch / path.name, path)


def seal(directory: Path) -> None:
    """Make a private directory and its files readable by the owner alone."""
    os.chmod(directory, 0o700)
    for path in directory.rglob("*"):
        os.chmod(path, 0o700 if path.is_dir() else 0o600)


def tighten(path: Path) -> bool:
    """Take away what others may do with a private file or directory; returns whether they could do anything."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) or not mode & OTHERS:
            return False
        path.chmod(stat.S_IMODE(mode) & ~OTHERS)
    except FileNotFoundError:  # another process removed it meanwhile
        return False
    except PermissionError:
        raise QlogError(f"{path}: others may read it, and it belongs to somebody else: have them close it") from None
    return True


def tighten_tree(folder: Path) -> list[Path]:
    """The same for everything in a private directory, but for what is still being made; returns what was open."""
    found = [folder] if tighten(folder) else []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(PREFIX)]
        found += [path for name in (*folders, *files) if tighten(path := Path(parent) / name)]
    return found


def remove_whole(path: Path) -> None:
    """Remove a directory so that a reader sees all of it or none."""
    if path.exists():
        with temporary_directory(path.parent) as scratch:
            path.rename(scratch / "removed")


def link_or_copy(source: Path, target: Path) -> None:
    """Another name for the same bytes where the file system allows it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
