"""One way to write a value and one way to digest it. Checksums of files, too."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def canonical_json(value: Any) -> str:
    """One text for one value: sorted keys, UTF-8, a newline at the end."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=1) + "\n"


def digest_of(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def file_checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
