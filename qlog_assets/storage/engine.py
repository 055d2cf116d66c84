"""What runs the statements of `sql/` over Parquet files: the protocol of an engine, and DuckDB, which is the default.

No statement text lives here, and no arithmetic. One engine is one in-memory DuckDB over files, held to the machine's
limits: a second process can always open its own. `spark_engine` is the other engine; whoever is handed an `Engine`
need not know which it is.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import duckdb
import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from qlog_assets.errors import QlogError
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.settings import Settings
from qlog_assets.storage.answers import ROWS_AT_ONCE, even_parts
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


STATEMENT_ADVICE = "make the tables it reads again; if that does not help, it is a fault of qlog's"
"""What is said where a statement fails."""
FILE_SHIFT = 40
"""How many bits of a row's number count rows of one file."""

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


def batches_of(name: str, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The rows of a statement. What fails behind the first, such as want of memory, comes as `OSError` in DuckDB's own
    words, which may quote a value."""
    try:
        yield from reader
    except OSError:
        raise OSError(f"sql/{name}.sql could not be read to its end") from None


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
BATCH_ROWS = 100_000
"""How many texts pass through Python at once."""


class EnginePolicy(Parameters):
    """What counts: stages, their checks and the tables of a draw. Read from the policy file alone: no run may change
    it. Landing files, public lists, studies and audits are read by DuckDB whatever it says."""

    kind: Literal["duckdb", "spark"] = "duckdb"
    """`duckdb`: inside each run's own process. `spark`: on a cluster, or with several cores; needs the extra `spark`
    and Java. Both give the same tables."""
    master: str | None = Field(None, min_length=1, repr=False, exclude=True)
    """With spark: `local[N]` for N cores of this machine, the URL of a cluster (`spark://HOST:7077`), or the address of
    a Spark Connect server (`sc://HOST:15002`). None: this machine, with as many cores as QLOG_THREADS says."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.master is not None and self.kind != "spark":
            raise ValueError('master: is of no use without kind = "spark": leave it out, or set kind')
        return self

    def as_public(self) -> dict[str, Any]:
        """Which engine. The master's address stays private: it may hold a token."""
        return {"kind": self.kind, "master": None if self.master is None else "named"}


class Engine(Protocol):
    """Tables by name, and the statements of `sql/` over them. Names are the engine's own and gone with it."""

    @staticmethod
    def open(warehouse: Warehouse, chosen: EnginePolicy | None = None) -> contextlib.AbstractContextManager[Engine]:
        """An engine with the warehouse's limits, closed at the end of the block: the chosen one, or DuckDB."""
        if chosen is None or chosen.kind == "duckdb":
            return open_duckdb(warehouse)
        # Spark is an extra, and costs a second to import.
        from qlog_assets.storage.spark_session import open_spark

        return open_spark(warehouse, chosen.master)

    # Tables ---------------------------------------------------------------------------------------------------------

    @abstractmethod
    def view(self, name: str, files: Sequence[Path]) -> None:
        """Name some Parquet files, so that statements can read them as a table."""

    @abstractmethod
    def numbered_view(self, name: str, files: Sequence[Path]) -> None:
        """The same with the column file_row_number, for statements that go back to rows by number."""

    @abstractmethod
    def view_as(self, name: str, table: str) -> None:
        """Give a table that the engine has another name."""

    @abstractmethod
    def table(self, name: str, data: pa.Table) -> contextlib.AbstractContextManager[None]:
        """Name an Arrow table for the time of a block."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Forget a view, or a table that was kept."""

    @abstractmethod
    def columns(self, name: str) -> dict[str, str]:
        """The columns of a table with their types, as DuckDB calls them."""

    def gather(self, name: str, by: str) -> None:
        """Have a statement that reads a table find the rows with one value of a column in one place.

        It says the same as before. An engine that is one machine has them there anyway; one that is many moves them
        once, where a statement that groups twice would move them twice.
        """
        return

    # Statements -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def macro(self, name: str) -> None:
        """Make the function of `sql/<name>.sql` known to statements."""

    @abstractmethod
    def statement_view(self, name: str, *, without_rows: bool = False) -> None:
        """Name what a statement selects, to be computed where it is read; or only what its columns are."""

    @abstractmethod
    def statement_table(self, name: str, table: str | None = None, **parameters: Any) -> None:
        """Compute what a statement selects and keep it, for statements that read it again."""

    @abstractmethod
    def add_rows(self, name: str, table: str) -> None:
        """Add what a statement selects to a table that was kept, by the names of its columns."""

    @abstractmethod
    def mapped_table(self, name: str, table: str, function: Callable[[str], str]) -> int:
        """Keep the texts that a statement selects as `raw`, each with what a function makes of it; returns how many.

        The table has the columns raw and normalised. The function looks at one text at a time.
        """

    @abstractmethod
    def arrow(self, name: str, **parameters: Any) -> pa.Table:
        """What `sql/<name>.sql` answers with typed parameters."""

    @abstractmethod
    def arrays(self, name: str, **parameters: Any) -> dict[str, np.ndarray]:
        """The same by column, masked where it is NULL."""

    @abstractmethod
    def parts(self, name: str, **parameters: Any) -> contextlib.AbstractContextManager[Iterator[dict[str, np.ndarray]]]:
        """The same for an answer that need not fit into memory: ROWS_AT_ONCE rows at a time, in the statement's order.

        There is one part at least. The answer is open inside the block alone, whatever ends it, and no other statement
        runs there. The statement sorts its rows: then all of it was computed before the first part, and what fails
        between two parts is the machine's doing and no value's. A draw is under way by then.
        """

    @abstractmethod
    def frame(self, name: str, **parameters: Any) -> pandas.DataFrame:
        """A small answer, such as a row of counts, for the expectations.

        Files that were written by hand or by another version may lack a column or hold it in another type.
        """

    def row(self, name: str, **parameters: Any) -> dict[str, Any]:
        """The single row a statement answers, by column name."""
        (row,) = self.arrow(name, **parameters).to_pylist()
        return dict(row)

    @abstractmethod
    def write(
        self, name: str, path: Path, *, events: str | None = None, digest: bool = False, **parameters: Any
    ) -> TableFacts:
        """Write what a statement selects to a Parquet file, with a digest of its content if asked for.

        A statement that reads a table `events` gets it from the statement that `events` names. An engine that writes
        several files puts them below a folder that is named like the file.
        """

    @abstractmethod
    def count(self, name: str) -> int:
        """How many rows a table has."""

    def facts(self, root: Path, files: Sequence[Path], *, digest: bool = False) -> TableFacts:
        """The facts of a table that was just written to some files below `root`."""
        self.view("written", files)
        content = str(self.row("storage/digest_rows")["digest"]) if digest else None
        return TableFacts(
            self.count("written"), {str(path.relative_to(root)): file_checksum(path) for path in files}, content
        )


@contextlib.contextmanager
def open_duckdb(warehouse: Warehouse) -> Iterator[DuckDBEngine]:
    """DuckDB with the warehouse's limits, closed at the end of the block."""
    with open_database(warehouse, duckdb.connect(":memory:")) as connection, DuckDBEngine.lent(connection) as engine:
        yield engine


class DuckDBEngine(Engine):
    """One in-memory DuckDB over Parquet files. The caller closes the connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._running = "a statement"
        connection.execute("SET enable_progress_bar = false")

    @classmethod
    @contextlib.contextmanager
    def lent(cls, connection: duckdb.DuckDBPyConnection) -> Iterator[Self]:
        """An engine on a connection of somebody else's, whose errors quote no value of the log."""
        engine = cls(connection)
        try:
            yield engine
        except duckdb.Error:
            with quoting_no_value(f"{engine._running} failed", STATEMENT_ADVICE):
                raise

    def _statement(self, name: str) -> str:
        """The text of a statement that is run now: an error tells its name and nothing else of it."""
        self._running = f"sql/{name}.sql"
        return statement(name)

    def view(self, name: str, files: Sequence[Path]) -> None:
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM read_parquet({quoted(files)})")

    def numbered_view(self, name: str, files: Sequence[Path]) -> None:
        # An engine that is many machines writes several files: a row's number has that of its file in front.
        self.connection.execute(
            f"""CREATE OR REPLACE TEMP VIEW {name} AS
                SELECT * REPLACE ((file_index::BIGINT << {FILE_SHIFT}) + file_row_number AS file_row_number)
                FROM read_parquet({quoted(files)}, file_row_number = true)"""
        )

    def view_as(self, name: str, table: str) -> None:
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM {table}")

    @contextlib.contextmanager
    def table(self, name: str, data: pa.Table) -> Iterator[None]:
        self.connection.register(name, data)
        try:
            yield
        finally:
            self.connection.unregister(name)

    def drop(self, name: str) -> None:
        kind = self.connection.execute("SELECT 1 FROM duckdb_views() WHERE view_name = $name", {"name": name})
        self.connection.execute(f"DROP {'VIEW' if kind.fetchall() else 'TABLE'} {name}")

    def columns(self, name: str) -> dict[str, str]:
        return {column[0]: column[1] for column in self.connection.execute(f"DESCRIBE {name}").fetchall()}

    def macro(self, name: str) -> None:
        self.connection.execute(self._statement(name))

    def statement_view(self, name: str, *, without_rows: bool = False) -> None:
        text = f"SELECT * FROM ({statement(name)}) LIMIT 0" if without_rows else statement(name)
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {table_of(name)} AS {text}")

    def statement_table(self, name: str, table: str | None = None, **parameters: Any) -> None:
        kept = table or table_of(name)
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {kept} AS {self._statement(name)}", parameters)

    def add_rows(self, name: str, table: str) -> None:
        self.connection.execute(f"INSERT INTO {table} BY NAME {self._statement(name)}")

    def mapped_table(self, name: str, table: str, function: Callable[[str], str]) -> int:
        # In batches, so that a log in which every query is distinct does not pass through memory at once.
        self.statement_table(name, f"{table}_raw")
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} (raw VARCHAR, normalised VARCHAR)")
        rows = self.count(f"{table}_raw")
        for start in range(0, rows, BATCH_ROWS):
            page = f"SELECT raw FROM {table}_raw WHERE rowid >= {start} AND rowid < {start + BATCH_ROWS}"
            raw = self.connection.sql(page).to_arrow_table()["raw"]
            normalised = pa.array([function(text) for text in raw.to_pylist()], pa.string())
            with self.table("mapped_batch", pa.table({"raw": raw, "normalised": normalised})):
                self.connection.execute(f"INSERT INTO {table} SELECT raw, normalised FROM mapped_batch")
        self.drop(f"{table}_raw")
        return rows

    def run(self, name: str, **parameters: Any) -> duckdb.DuckDBPyConnection:
        """Run `sql/<name>.sql` with typed parameters."""
        return self.connection.execute(self._statement(name), parameters)

    def arrow(self, name: str, **parameters: Any) -> pa.Table:
        # Not by `run`: DuckDB would copy the rows once more and say so on standard error.
        return self.connection.sql(self._statement(name), params=parameters or None).to_arrow_table()

    def arrays(self, name: str, **parameters: Any) -> dict[str, np.ndarray]:
        return self.run(name, **parameters).fetchnumpy()

    @contextlib.contextmanager
    def parts(self, name: str, **parameters: Any) -> Iterator[Iterator[dict[str, np.ndarray]]]:
        answer = self.connection.sql(self._statement(name), params=parameters or None)
        # Closed even where an error's frames still know it: DuckDB lets go of no table while an answer is open, and
        # would say that in place of the error.
        with answer.to_arrow_reader(BATCH_ROWS) as reader:
            yield even_parts(reader.schema, batches_of(name, reader), ROWS_AT_ONCE)

    def frame(self, name: str, **parameters: Any) -> pandas.DataFrame:
        with quoting_no_value(f"{table_of(name)}: its tables are not as this version writes them", "make them again"):
            return self.run(name, **parameters).df()

    def row(self, name: str, **parameters: Any) -> dict[str, Any]:
        result = self.run(name, **parameters)
        columns = [column[0] for column in result.description]
        # To the end: DuckDB refuses to take a table's name away while an answer is half read.
        (row,) = result.fetchall()
        return dict(zip(columns, row, strict=True))

    def write(
        self, name: str, path: Path, *, events: str | None = None, digest: bool = False, **parameters: Any
    ) -> TableFacts:
        escaped = str(path).replace("'", "''")
        text = self._statement(name)
        if events is not None:
            text = f"WITH events AS ({statement(events)})\n{text}"
        self.connection.execute(f"COPY ({text}) TO '{escaped}' ({PARQUET})", parameters)
        return self.facts(path.parent, [path], digest=digest)

    def count(self, name: str) -> int:
        return int(self.connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0])


def quoted(files: Sequence[Path]) -> str:
    """Files as DuckDB's text has them."""
    return "[" + ", ".join("'" + str(path).replace("'", "''") + "'" for path in files) + "]"
