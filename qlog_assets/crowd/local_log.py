"""A person's own log, whatever it is kept in: the searches of one month, as `mining` reads them.

A file that `qlog ingest` reads, a Chromium profile or a Firefox profile. Nothing is kept of it but what the caller
gets: rows that pass over the disk do so in a private scratch directory.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb
import pyarrow as pa

from qlog_assets.crowd.browser_history import SEARCHES
from qlog_assets.crowd.chromium import read_chromium
from qlog_assets.crowd.firefox import read_firefox
from qlog_assets.crowd.search_urls import SearchUrl
from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.sources.column_map import ColumnMap
from qlog_assets.sources.readers import MAPS, LogSource, MonthRange, read_batch
from qlog_assets.sources.user_ids import canonical_user
from qlog_assets.storage.engine import quoting_no_value
from qlog_assets.storage.plain_files import refuse_special
from qlog_assets.storage.scratch import remove_leftovers, temporary_directory

BROWSERS = {"chromium": read_chromium, "firefox": read_firefox}
Kind = Literal["file", "chromium", "firefox"]


@dataclass(frozen=True)
class LocalLog:
    """Where a person's searches are."""

    path: Path
    kind: Kind
    format: str | None = None
    """Of a file: as `qlog ingest` names it."""
    columns: Path | None = None
    """Of a file: its column map."""
    user: str | None = None
    """Of a file with rows of several people: whose log this is."""
    search_urls: Sequence[SearchUrl] = ()
    """Of a browser: engines beyond the common ones."""

    def __post_init__(self) -> None:
        if self.kind == "file":
            if self.format is None:
                raise QlogError("--log needs --format: say what the file is, as for qlog ingest")
            if self.search_urls:
                raise QlogError("--search-url is for a browser's history: a file's queries are in a column")
        elif self.format or self.columns or self.user:
            raise QlogError("--format, --columns and --user are for a file: a browser's history has its own columns")

    def searches(self, month: Month, beside: Path) -> pa.Table:
        """The month's searches: time (UTC), query, and url or null. `beside` is a private folder for scratch files."""
        if self.kind == "file":
            return self._read_file(month, beside)
        return BROWSERS[self.kind](self.path, month, beside, self.search_urls)

    def _read_file(self, month: Month, beside: Path) -> pa.Table:
        refuse_special(self.path, "name a file that holds your log")
        assert self.format is not None  # asked when it was made
        columns = MAPS.get(self.format, ColumnMap).load(self.columns) if self.columns else None
        # Users without names are keyed hashes: nobody can name one, so the key may be of this moment.
        source = LogSource(self.path, self.format, columns, user_key=secrets.token_bytes(32))
        remove_leftovers(beside)
        with temporary_directory(beside) as scratch, duckdb.connect(":memory:") as connection:
            connection.execute("SET autoinstall_known_extensions = false")
            connection.execute("SET temp_directory = ?", [str(scratch / "spill")])
            read_batch(connection, source, MonthRange(month, month), scratch)
            parts = sorted(str(path) for path in (scratch / "accepted").glob("*/*.parquet"))
            if not parts:
                return SEARCHES.empty_table()
            with quoting_no_value(f"{self.path.name}: cannot be read", "write it anew as text"):
                return self._rows_of_one(connection, parts)

    def _rows_of_one(self, connection: duckdb.DuckDBPyConnection, parts: list[str]) -> pa.Table:
        connection.read_parquet(parts).create_view("accepted")
        mine = connection.sql('SELECT "user", "time", query, url FROM accepted')
        if self.user is not None:
            mine = mine.filter(duckdb.ColumnExpression("user") == duckdb.ConstantExpression(canonical_user(self.user)))
        else:
            users = mine.aggregate('count(DISTINCT "user")').fetchall()[0][0]
            if users > 1:
                raise QlogError(
                    f"{self.path.name}: holds rows of {users:,} users: say with --user which of them you are"
                )
        return mine.project('"time", query, url').to_arrow_table().cast(SEARCHES)
