"""The statements of `sql/`, by folder and name such as `safelog/query_counts`, and the versions they make."""

from __future__ import annotations

from functools import cache

from qlog_assets.settings import shipped_file
from qlog_assets.storage.digests import text_digest


@cache
def statement(name: str) -> str:
    """The text of `sql/<name>.sql`."""
    return shipped_file("sql", f"{name}.sql").read_text(encoding="utf-8").strip().rstrip(";")


def statement_version(*names: str) -> str:
    """A short digest of statements: the part of a stage's code version that follows its SQL."""
    return text_digest("\n".join(statement(name) for name in names))[:10]


def table_of(name: str) -> str:
    """What a statement's answer is called as a table: the statement's name without its folder."""
    return name.rpartition("/")[2]
