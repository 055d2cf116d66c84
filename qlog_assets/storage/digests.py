"""How a value is written so that it can be digested, and the checksum of a file: every digest is made here.

There are two canonical texts, because both are fixed by what exists: partitions, draws and manifests are written for
people to read, with one key per line; events of the ledger are one line of ASCII, with exact fractions. Changing either
would change the shape of every partition or the hash of every event.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any


def canonical_json(value: Any) -> str:
    """The one readable text of a value: sorted keys, UTF-8, a newline at the end."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=1) + "\n"


def digest_of(value: Any) -> str:
    """SHA-256 of the readable text, in hexadecimal."""
    return text_digest(canonical_json(value))


def canonical_line(value: Any) -> str:
    """The one text of a value on one line: sorted keys, no spaces, ASCII, exact fractions as `p/q`."""

    def exact_text(item: object) -> str:
        if isinstance(item, Fraction):
            return str(item)
        raise TypeError(f"{type(item).__name__} has no canonical text")

    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=exact_text)


def line_digest(value: Any) -> str:
    """SHA-256 of the text on one line, in hexadecimal."""
    return text_digest(canonical_line(value))


def text_digest(text: str) -> str:
    return bytes_digest(text.encode())


def bytes_digest(content: bytes) -> str:
    """SHA-256 of bytes, in hexadecimal: that of a file's is its checksum."""
    return hashlib.sha256(content).hexdigest()


def file_checksum(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
