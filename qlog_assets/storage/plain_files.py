"""Files that a person names: opened only if they are ordinary files, and small TOML files read whole.

A name may lead to a pipe that nobody writes, a device that never ends, or a file of the kernel's that is made as it is
read. None of these is waited for.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qlog_assets.errors import QlogError

KERNEL_FILES = ("/proc", "/sys")
"""Where the kernel makes files as they are read: their sizes say nothing, and some never end."""
LARGEST_TOML_BYTES = 4 << 20
"""Of a file that a person wrote by hand."""
KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def refuse_special(path: Path, wanted: str) -> None:
    """Raise unless a name leads to an ordinary file that may be read; `wanted` says what to give instead."""
    os.close(open_plain(path, wanted))


def open_plain(path: Path, wanted: str) -> int:
    """A descriptor of an ordinary file, opened without waiting for anything."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if kind := kind_of(path):  # a socket cannot be opened, and its error does not say so
            raise QlogError(f"{path}: is {kind}: {wanted}") from None
        raise unreadable(path, error, wanted) from None
    facts = os.fstat(descriptor)
    kind = KINDS.get(stat.S_IFMT(facts.st_mode))
    if kind is None and facts.st_dev in kernel_devices():
        kind = "made by the kernel as it is read"
    if kind is not None:
        os.close(descriptor)
        raise QlogError(f"{path}: is {kind}: {wanted}")
    return descriptor


def unreadable(path: Path, error: OSError, wanted: str) -> QlogError:
    """What is said of a file that the operating system does not give."""
    if isinstance(error, FileNotFoundError):
        return QlogError(f"{path}: no such file: {wanted}")
    return QlogError(f"{path}: cannot be read ({error.strerror}): {wanted}")


def kind_of(path: Path) -> str | None:
    """What a name leads to, where that is no ordinary file."""
    try:
        return KINDS.get(stat.S_IFMT(os.stat(path).st_mode))
    except OSError:
        return None


def is_absent(path: Path) -> bool:
    """Whether there is nothing of a name. A link to nothing is something, and so is what may not be looked at."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def kernel_devices() -> set[int]:
    """The file systems that the kernel makes up."""
    return {os.stat(place).st_dev for place in KERNEL_FILES if os.path.isdir(place)}


def read_toml(
    path: Path, wanted: str, parse_float: Callable[[str], Any] = float, *, quoting: bool = True
) -> dict[str, Any]:
    """The values in a TOML file. Whatever is wrong with it is one line that begins with its name.

    Not `quoting`: of a file that stands beside logs and may be one by mistake, nothing is repeated.
    """
    try:
        with os.fdopen(open_plain(path, wanted), "rb") as stream:
            content = stream.read(LARGEST_TOML_BYTES + 1)
    except OSError as error:
        raise unreadable(path, error, wanted) from None
    if len(content) > LARGEST_TOML_BYTES:
        raise QlogError(f"{path}: is larger than {LARGEST_TOML_BYTES >> 20} MB, and no file that was written by hand")
    try:
        return tomllib.loads(content.decode("utf-8"), parse_float=parse_float)
    except RecursionError:
        raise QlogError(f"{path}: not a readable TOML file: its values are nested too deep") from None
    except ValueError as error:
        # What a line that is no TOML, bytes that are no UTF-8 and a number of thousands of digits have in common.
        if not quoting:
            raise QlogError(f"{path}: not a readable TOML file: {wanted}") from None
        where, reason = find_in_toml(error, content)
        raise QlogError(f"{path}{where}: not a TOML file: {reason}") from None


def find_in_toml(error: ValueError, content: bytes) -> tuple[str, str]:
    """At which line a text is no TOML, as words behind the file's name, and why."""
    if isinstance(error, UnicodeDecodeError):
        line = content.count(b"\n", 0, error.start) + 1
        return f", line {line}", "bytes that are no UTF-8: write the file as UTF-8"
    reason, _, place = str(error).rpartition(" (at ")
    if found := re.fullmatch(r"line (\d+), column (\d+)\)", place):
        return f", line {found[1]}", f"{reason} (column {found[2]}): correct that line"
    if place == "end of document)":
        return f", line {len(content.splitlines())}", f"{reason} (at the end of the file): correct that line"
    return "", str(error)  # Python's own complaint about a number of thousands of digits has no place
