"""Small private files replaced whole, directories sealed and removed whole."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from qlog_assets.storage.scratch import temporary_directory


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
