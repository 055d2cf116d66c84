"""Secret keys of a warehouse: one small file each in `private/`, which nobody but its owner can read."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path

from qlog_assets.storage.scratch import make_private, temporary_directory

KEY_BYTES = 32


def find_key(path: Path) -> bytes | None:
    """The key in a file, if there is one that nobody else can read: what others know is no secret."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as stream:
        about = os.fstat(descriptor)
        text = stream.read(2 * KEY_BYTES)
    if about.st_mode & 0o077 or about.st_uid != os.getuid() or not re.fullmatch(f"[0-9a-f]{{{2 * KEY_BYTES}}}", text):
        return None
    return bytes.fromhex(text)


def make_key(path: Path) -> None:
    """Put a fresh key there, unless a file has the name already: of two that make one at once, the first one counts."""
    make_private(path.parent)
    with temporary_directory(path.parent) as scratch:
        fresh = scratch / path.name
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
