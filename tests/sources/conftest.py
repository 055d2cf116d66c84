"""Reads a file as a user's ingest would, and looks at what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from qlog_assets.months import Month
from qlog_assets.sources.access_map import AccessMap
from qlog_assets.sources.column_map import ColumnMap
from qlog_assets.sources.readers import BatchFacts, LogSource, MonthRange, read_batch

SPRING = MonthRange(Month("2006-03"), Month("2006-05"))


class Reading:
    """One file read: the facts, and the tables as they were written."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, source: LogSource, months: MonthRange, out: Path) -> None:
        self.progress: list[tuple[int, int]] = []
        self.facts: BatchFacts = read_batch(
            connection, source, months, out, progress=lambda done, size: self.progress.append((done, size))
        )
        rows = f"read_parquet('{out}/accepted/*/*.parquet', filename = true)"
        self.accepted: list[tuple] = []
        self.by_month: dict[str, int] = {}
        if self.facts.accepted:
            self.accepted = connection.execute(
                f"""SELECT "user", query, "time", rank, url FROM {rows} ORDER BY "time", "user", query, rank"""
            ).fetchall()
            self.by_month = dict(
                connection.execute(
                    f"""SELECT split_part(filename, '/', -2), count(*) FROM {rows}
                        WHERE strftime("time", '%Y-%m') = split_part(filename, '/', -2) GROUP BY ALL ORDER BY ALL"""
                ).fetchall()
            )
        self.rejected = connection.execute(
            f"SELECT * FROM read_parquet('{out}/rejected/part-0.parquet') ORDER BY line"
        ).fetchall()

    @property
    def reasons(self) -> dict[int, str]:
        return {line: reason for _, line, reason in self.rejected}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 2, "preserve_insertion_order": False}) as connection:
        yield connection


@pytest.fixture
def read(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> Callable[..., Reading]:
    count = iter(range(10**6))

    def reading(
        content: str | bytes,
        format: str = "aol",
        columns: ColumnMap | None = None,
        months: MonthRange = SPRING,
        name: str = "log.txt",
    ) -> Reading:
        directory = tmp_path / str(next(count))
        directory.mkdir()
        path = directory / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return Reading(connection, LogSource(path, format, columns), months, directory / "out")

    return reading


@pytest.fixture
def keyed(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> Callable[..., Reading]:
    """Reads an access log with a key."""
    count = iter(range(10**6))

    def reading(content: str | bytes, columns: AccessMap, key: bytes | None = bytes(range(32))) -> Reading:
        directory = tmp_path / f"keyed{next(count)}"
        directory.mkdir()
        path = directory / "access.log"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return Reading(connection, LogSource(path, "access", columns, key), SPRING, directory / "out")

    return reading
