"""The statements of `sql/`, by name, and the versions that follow from their text."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING

from qlog_assets.settings import resource_dir

if TYPE_CHECKING:
    pass


@cache
def statement(name: str) -> str:
    """The text of `sql/<name>.sql`."""
    return (resource_dir("sql") / f"{name}.sql").read_text(encoding="utf-8").strip().rstrip(";")


def statement_version(*names: str) -> str:
    """A short digest of statements: the part of an asset's code version that follows its SQL."""
    return hashlib.sha256("\n".join(statement(name) for name in names).encode()).hexdigest()[:10]
