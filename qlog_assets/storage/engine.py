"""DuckDB: opens it with the machine's limits and runs the statements of `sql/` over Parquet files.

No statement text lives here, and no arithmetic. One engine is one in-memory database over files: a second process can
always open its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from qlog_assets.errors import QlogError
from qlog_assets.settings import Settings
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.partition import TableFacts
from qlog_assets.storage.scratch import temporary_directory
from qlog_assets.storage.statements import statement, table_of
from qlog_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    import pandas

# Zstandard at its lowest level: on the synthetic log, files a third smaller than Snappy's at the same speed. Version 2
# writes times as differences, which are read in a fifth less time. Larger or smaller row groups are slower to write.
PARQUET = "FORMAT parquet, PARQUET_VERSION V2, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 122880"


MACHINE_ERRORS = (
    OSError,
    MemoryError,
    duckdb.IOException,
    duckdb.OutOfMemoryException,
    duckdb.InterruptException,
)
"""A full disk, too little memory, an impatient user: what fails for want of something that is no fault of the work."""


@contextlib.contextmanager
def quoting_no_value(trouble: str, advice: str) -> Iterator[None]:
    """Say in one line that DuckDB cannot take what files hold: its own words may quote the value it stumbled over.

    Dagster keeps the words of an error that ends a step, and shows them to whoever may see the UI.
    """
    try:
        yield
    except MACHINE_ERRORS:
        # They say nothing about the files.
        raise
    except duckdb.Error as error:
        raise QlogError(f"{trouble} ({type(error).__name__}): {advice}") from None


@contextlib.contextmanager
def open_database(warehouse: Warehouse, connection: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """A fresh in-memory DuckDB, held to the machine's limits and closed at the end of the block."""
    # A spill directory of its own: engines that share one write over each other's files (duckdb issue 15173).
    with contextlib.closing(connection), temporary_directory(warehouse.spill) as spill:
        for name, value in database_limits(warehouse.settings, spill).items():
            connection.execute(f"SET {name} = ?", [value])
        yield connection


def database_limits(settings: Settings, spill: Path) -> dict[str, Any]:
    """DuckDB's configuration: how much memory, where it spills and how far, how many threads."""
    return {
        "memory_limit": f"{settings.memory_limit_mb}MB",
        "temp_directory": str(spill),
        "max_temp_directory_size": f"{settings.spill_limit_gb}GB",
        "threads": settings.threads,
        "preserve_insertion_order": False,
        # Nothing is ever fetched: what is not on this machine is an error, not a download.
        "autoinstall_known_extensions": False,
        # A file is read as it lies on the disk: whoever computed its checksum did so too.
        "enable_external_file_cache": False,
    }


OpenEngine = Callable[[], contextlib.AbstractContextManager["Engine"]]
"""Gives an engine for the time of a block."""


class Engine:
    """One in-memory DuckDB over Parquet files. The caller closes the connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._running = "a statement"
        connection.execute("SET enable_progress_bar = false")

    @classmethod
    @contextlib.contextmanager
    def open(cls, warehouse: Warehouse) -> Iterator[Engine]:
        """An engine with the warehouse's limits, closed at the end of the block."""
        with open_database(warehouse, duckdb.connect(":memory:")) as connection, cls.lent(connection) as engine:
            yield engine

    @classmethod
    @contextlib.contextmanager
    def lent(cls, connection: duckdb.DuckDBPyConnection) -> Iterator[Engine]:
        """An engine on a connection of somebody else's, whose errors quote no value of the log."""
        engine = cls(connection)
        try:
            yield engine
        except duckdb.Error:
            advice = "make the tables it reads again; if that does not help, it is a fault of qlog's"
            with quoting_no_value(f"{engine._running} failed", advice):
                raise

    def _statement(self, name: str) -> str:
        """The text of a statement that is run now: an error tells its name and nothing else of it."""
        self._running = f"sql/{name}.sql"
        return statement(name)

    def view(self, name: str, files: Sequence[Path]) -> None:
        """Name some Parquet files, so that statements can read them as a table."""
        listed = ", ".join("'" + str(path).replace("'", "''") + "'" for path in files)
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM read_parquet([{listed}])")

    def statement_view(self, name: str, *, without_rows: bool = False) -> None:
        """Name what a statement selects, to be computed where it is read; or only what its columns are."""
        text = f"SELECT * FROM ({statement(name)}) LIMIT 0" if without_rows else statement(name)
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {table_of(name)} AS {text}")

    def statement_table(self, name: str, table: str | None = None, **parameters: Any) -> None:
        """Compute what a statement selects and keep it, for statements that read it again."""
        kept = table or table_of(name)
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {kept} AS {self._statement(name)}", parameters)

    def numbered_view(self, name: str, files: Sequence[Path]) -> None:
        """Name one Parquet file with the column file_row_number, for statements that go back to rows by number."""
        (path,) = files
        escaped = str(path).replace("'", "''")
        self.connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM read_parquet('{escaped}', file_row_number = true)"
        )

    @contextlib.contextmanager
    def table(self, name: str, data: pa.Table) -> Iterator[None]:
        """Name an Arrow table for the time of a block."""
        self.connection.register(name, data)
        try:
            yield
        finally:
            self.connection.unregister(name)

    def run(self, name: str, **parameters: Any) -> duckdb.DuckDBPyConnection:
        """Run `sql/<name>.sql` with typed parameters."""
        return self.connection.execute(self._statement(name), parameters)

    def arrow(self, name: str, **parameters: Any) -> pa.Table:
        # Not by `run`: DuckDB would copy the rows once more and say so on standard error.
        return self.connection.sql(self._statement(name), params=parameters or None).to_arrow_table()

    def frame(self, name: str, **parameters: Any) -> pandas.DataFrame:
        """A small answer, such as a row of counts, for the expectations.

        Files that were written by hand or by another version may lack a column or hold it in another type.
        """
        with quoting_no_value(f"{table_of(name)}: its tables are not as this version writes them", "make them again"):
            return self.run(name, **parameters).df()

    def arrays(self, name: str, **parameters: Any) -> dict[str, np.ndarray]:
        return self.run(name, **parameters).fetchnumpy()

    def row(self, name: str, **parameters: Any) -> dict[str, Any]:
        """The single row a statement answers, by column name."""
        result = self.run(name, **parameters)
        columns = [column[0] for column in result.description]
        # To the end: DuckDB refuses to take a table's name away while an answer is half read.
        (row,) = result.fetchall()
        return dict(zip(columns, row, strict=True))

    def write(
        self, name: str, path: Path, *, events: str | None = None, digest: bool = False, **parameters: Any
    ) -> TableFacts:
        """Write what a statement selects to a Parquet file, with a digest of its content if asked for.

        A statement that reads a table `events` gets it from the statement that `events` names.
        """
        escaped = str(path).replace("'", "''")
        text = self._statement(name)
        if events is not None:
            text = f"WITH events AS ({statement(events)})\n{text}"
        self.connection.execute(f"COPY ({text}) TO '{escaped}' ({PARQUET})", parameters)
        return self.facts(path.parent, [path], digest=digest)

    def facts(self, root: Path, files: Sequence[Path], *, digest: bool = False) -> TableFacts:
        """The facts of a table that was just written to some files below `root`."""
        self.view("written", files)
        rows = int(self.connection.execute("SELECT count(*) FROM written").fetchall()[0][0])
        content = str(self.row("storage/digest_rows")["digest"]) if digest else None
        return TableFacts(rows, {str(path.relative_to(root)): file_checksum(path) for path in files}, content)
