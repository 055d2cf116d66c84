"""Spark as an engine: the statements of `sql/` in its dialect, over the same Parquet files, with the same answers.

Every machine of a cluster reads and writes the warehouse's files, so they lie on a file system that all of them have.
What is kept is written, so that a task that runs again after a machine was lost reads what was there before. Answers
come to this process as Arrow: long ones in parts, from files; of the others, what does not fit is refused.
"""

from __future__ import annotations

import contextlib
import datetime
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import array, col, count, element_at, lit, spark_partition_id

from qlog_assets.errors import QlogError
from qlog_assets.storage.answers import ROWS_AT_ONCE, as_arrays, even_parts
from qlog_assets.storage.dialects import Translated, UntranslatableError, as_text, to_spark
from qlog_assets.storage.engine import BATCH_ROWS, FILE_SHIFT, Engine
from qlog_assets.storage.numbering import PLACE
from qlog_assets.storage.partition import TableFacts
from qlog_assets.storage.scratch import make_private
from qlog_assets.storage.spark_errors import EngineLostError, quoting_nothing
from qlog_assets.storage.statements import table_of

if TYPE_CHECKING:
    import pandas
    from pyspark.sql.types import StructType

TYPES = {
    "string": "VARCHAR",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "smallint": "SMALLINT",
    "tinyint": "TINYINT",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "date": "DATE",
    "boolean": "BOOLEAN",
    "double": "DOUBLE",
    "float": "FLOAT",
    "binary": "BLOB",
}
"""Spark's types as DuckDB calls them."""
GLOB = str.maketrans({sign: f"\\{sign}" for sign in "\\[]{}*?"})
"""How Spark takes the signs of a pattern in a file name as they are."""
PART_BYTES = 8 << 20
"""How much of a compressed file one task gathers: some ten times as much in memory."""
RANGE = "row_range"
"""The column with the number of the range of rows that a task wrote in order."""


class SparkEngine(Engine):
    """One session of Spark. The caller gives it a scratch directory and removes it."""

    def __init__(self, session: SparkSession, scratch: Path) -> None:
        self.session = session
        self.scratch = scratch
        self._macros: list[str] = []
        self._kept = 0
        self._bytes: dict[str, int] = {}

    # Tables ---------------------------------------------------------------------------------------------------------

    def view(self, name: str, files: Sequence[Path]) -> None:
        with quoting_nothing(name):
            self._read(files).createOrReplaceTempView(name)
        self._bytes[name] = sum(path.stat().st_size for path in files)

    def _read(self, files: Iterable[Path], schema: StructType | None = None) -> DataFrame:
        """These files and no others: what else lies in their folder was not counted."""
        reader = self.session.read if schema is None else self.session.read.schema(schema)
        return reader.parquet(*(f"file:{str(path).translate(GLOB)}" for path in files))

    def numbered_view(self, name: str, files: Sequence[Path]) -> None:
        with quoting_nothing(name):
            numbered = [
                self._read([path]).withColumn(
                    "file_row_number", lit(place << FILE_SHIFT) + col("_metadata.row_index").cast("bigint")
                )
                for place, path in enumerate(files)
            ]
            first, *others = numbered
            for each in others:
                first = first.unionByName(each)
            first.createOrReplaceTempView(name)

    def view_as(self, name: str, table: str) -> None:
        with quoting_nothing(name):
            self.session.table(table).createOrReplaceTempView(name)

    @contextlib.contextmanager
    def table(self, name: str, data: pa.Table) -> Iterator[None]:
        folder = self._folder(name)
        pq.write_table(data, folder / "0.parquet")
        self.view(name, [folder / "0.parquet"])
        try:
            yield
        finally:
            self.drop(name)

    def drop(self, name: str) -> None:
        with quoting_nothing(name):
            self.session.catalog.dropTempView(name)

    def gather(self, name: str, by: str) -> None:
        with quoting_nothing(name):
            parts = self._parts(self._bytes.get(name, 0))
            self.session.table(name).repartition(parts, col(by)).createOrReplaceTempView(name)

    def _parts(self, size: int = 0) -> int:
        """In how many parts so many bytes are worked on: as many as the session has it, or more."""
        fewest = int(str(self.session.conf.get("spark.sql.shuffle.partitions")))
        return max(fewest, size // PART_BYTES)

    def columns(self, name: str) -> dict[str, str]:
        with quoting_nothing(name):
            return {field.name: duckdb_type(field.dataType.simpleString()) for field in self.session.table(name).schema}

    def count(self, name: str) -> int:
        with quoting_nothing(name):
            return self.session.table(name).count()

    # Statements -----------------------------------------------------------------------------------------------------

    def macro(self, name: str) -> None:
        self._macros.append(name)

    def _translated(self, name: str, parameters: dict[str, Any], events: str | None = None) -> Translated:
        times = [key for key, value in parameters.items() if isinstance(value, datetime.date)]
        return to_spark(
            name,
            self.columns,
            events=events,
            macros=self._macros,
            times=times,
            number=lambda ordered: self._number(as_text(ordered), as_arguments(parameters)),
        )

    def _select(self, name: str, parameters: dict[str, Any], events: str | None = None) -> DataFrame:
        text = self._translated(name, parameters, events).text
        return self.session.sql(text, args=as_arguments(parameters))

    def _number(self, ordered: str, arguments: dict[str, Any] | None) -> str:
        """Keep the rows that a query orders with their places in it, and say under which name.

        Each task writes one range of them. How many rows lie before a range is in the files' own footers. Ranges differ
        from run to run, places do not: what a task writes that runs again is read from the same sorted rows, and the
        ranges are decided once.
        """
        folder = self._folder("numbered")
        rows = self.session.sql(ordered, args=arguments)
        stored = store_ranges(rows.withColumn(RANGE, spark_partition_id()), folder)
        counts = {number_of_part(part): found for part, found in stored.items()}
        before = np.cumsum([0, *(counts.get(place, 0) for place in range(max(counts, default=0)))]).tolist()
        starts = element_at(array(*(lit(start).cast("bigint") for start in before)), col(RANGE) + 1)
        kept = self._read(stored, rows.withColumn(RANGE, lit(0)).schema)
        place = (col("_metadata.row_index").cast("bigint") + starts).alias(PLACE)
        name = f"numbered_{self._kept}"
        kept.select(*(col(f"`{column}`") for column in rows.columns), place).createOrReplaceTempView(name)
        return name

    def statement_view(self, name: str, *, without_rows: bool = False) -> None:
        with quoting_nothing(f"sql/{name}.sql"):
            text = self._translated(name, {}).text
            if without_rows:
                text = f"SELECT * FROM ({text}) LIMIT 0"
            self.session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {table_of(name)} AS {text}")

    def statement_table(self, name: str, table: str | None = None, **parameters: Any) -> None:
        kept = table or table_of(name)
        with quoting_nothing(f"sql/{name}.sql"):
            translated = self._translated(name, parameters)
            rows = self.session.sql(translated.text, args=as_arguments(parameters))
            # Columns of a table that lies in files already need not be written again.
            if translated.only_renames:
                rows.createOrReplaceTempView(kept)
            else:
                self._keep(kept, rows)

    def _keep(self, table: str, rows: DataFrame) -> None:
        """Write some rows and give them a name."""
        stored = store(rows, self._folder(table))
        self._read(stored, rows.schema).createOrReplaceTempView(table)
        self._bytes[table] = sum(part.stat().st_size for part in stored)

    def add_rows(self, name: str, table: str) -> None:
        with quoting_nothing(f"sql/{name}.sql"):
            there, added = self.session.table(table), self._select(name, {})
            rows = added.select(*(col(f"`{each.name}`").cast(each.dataType) for each in there.schema))
            self._keep(f"{table}_added", rows)
            there.unionByName(self.session.table(f"{table}_added")).createOrReplaceTempView(table)

    def mapped_table(self, name: str, table: str, function: Callable[[str], str]) -> int:
        def normalise(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                raw = batch.column(0)
                made = pa.array([function(text) for text in raw.to_pylist()], pa.string())
                yield pa.RecordBatch.from_arrays([raw.cast(pa.string()), made], ["raw", "normalised"])

        with quoting_nothing(f"sql/{name}.sql"), by_value(function):
            mapped = self._select(name, {}).mapInArrow(normalise, "raw string, normalised string")
            self._keep(table, mapped)
        return self.count(table)

    def mapped_rows(
        self, table: str, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], columns: str
    ) -> pa.Table:
        """What a function of Python makes of a table's rows, in as many tasks as a session has parts, or rows.

        A task that is lost runs again: whoever gives the function sees to it that this changes nothing.
        """
        with quoting_nothing(table):
            rows = self.session.table(table)
            tasks = max(1, min(self._parts(), rows.count()))
            return rows.repartition(tasks).mapInArrow(function, columns).toArrow()

    def arrow(self, name: str, **parameters: Any) -> pa.Table:
        with quoting_nothing(f"sql/{name}.sql"):
            return self._select(name, parameters).toArrow()

    def arrays(self, name: str, **parameters: Any) -> dict[str, np.ndarray]:
        return as_arrays(self.arrow(name, **parameters))

    @contextlib.contextmanager
    def parts(self, name: str, **parameters: Any) -> Iterator[Iterator[dict[str, np.ndarray]]]:
        # Written, not collected: tasks write ranges of what a statement orders, and files are read in that order here.
        folder = self._folder(table_of(name))
        try:
            with quoting_nothing(f"sql/{name}.sql"):
                files = list(store_ranges(self._select(name, parameters), folder))
            yield even_parts(pq.read_schema(files[0]), batches_of(name, files), ROWS_AT_ONCE)
        finally:
            # A file that is still open cannot be removed everywhere; its error would be told for what ended the block.
            shutil.rmtree(folder, ignore_errors=True)

    def frame(self, name: str, **parameters: Any) -> pandas.DataFrame:
        try:
            return self.arrow(name, **parameters).to_pandas()
        except UntranslatableError:
            raise
        except QlogError as error:
            if isinstance(error, EngineLostError):
                raise
            raise QlogError(
                f"{table_of(name)}: its tables are not as this version writes them: make them again"
            ) from None

    def write(
        self, name: str, path: Path, *, events: str | None = None, digest: bool = False, **parameters: Any
    ) -> TableFacts:
        folder = path.with_suffix("")
        make_private(folder)
        with quoting_nothing(f"sql/{name}.sql"):
            parts = list(store(self._select(name, parameters, events), folder))
        files = [folder / f"{number:05d}.parquet" for number in range(len(parts))]
        for part, file in zip(parts, files, strict=True):
            part.rename(file)
        for left in folder.iterdir():
            if left not in files:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        return self.facts(path.parent, files, digest=digest)

    def _folder(self, name: str) -> Path:
        """A fresh private directory for a table that is kept."""
        self._kept += 1
        folder = self.scratch / f"{self._kept:04d}-{name}"
        make_private(folder)
        return folder


def store(rows: DataFrame, folder: Path) -> dict[Path, int]:
    """Write rows to a folder; the files in it, with how many rows each has.

    A machine that does not see the folder writes to a disk of its own, and Spark takes no notice: what the tasks have
    written is compared with what lies there.
    """
    written = Observation()
    rows.observe(written, count(lit(1)).alias("rows")).write.mode("append").parquet(f"file:{folder}")
    parts = sorted(folder.glob("part-*.parquet"), key=number_of_part)
    stored = {part: int(pq.read_metadata(part).num_rows) for part in parts}
    if sum(stored.values()) != written.get["rows"]:
        raise EngineLostError(
            "spark: rows that were written are not there: every machine of the cluster must mount the file system of "
            "QLOG_HOME under the same path"
        )
    return stored


def store_ranges(rows: DataFrame, folder: Path) -> dict[Path, int]:
    """The same for rows whose order matters: each task writes its range of them to one file."""
    stored = store(rows, folder)
    if len({number_of_part(part) for part in stored}) < len(stored):
        raise QlogError("spark: wrote a range of rows in several files: set spark.sql.files.maxRecordsPerFile to 0")
    return stored


def batches_of(name: str, files: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """The rows of files that were just written, in order. One that cannot be read is the machine's fault."""
    for file in files:
        try:
            with pq.ParquetFile(file) as rows:
                yield from rows.iter_batches(BATCH_ROWS)
        except (OSError, pa.ArrowInvalid):
            raise EngineLostError(f"sql/{name}.sql: spark: what it wrote cannot be read: try it again") from None


def number_of_part(part: Path) -> int:
    """Which task wrote a file: tasks have ranges of what is sorted, in order."""
    return int(part.name.split("-")[1])


def as_arguments(parameters: dict[str, Any]) -> dict[str, Any] | None:
    """Parameters as Spark takes them: times as texts, because Python's are shifted by the zone of the machine."""
    return {key: str(value) if isinstance(value, datetime.date) else value for key, value in parameters.items()} or None


@contextlib.contextmanager
def by_value(function: Callable[[str], str]) -> Iterator[None]:
    """Send a function's code to the workers, which need not have qlog installed."""
    import sys

    module = sys.modules[function.__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def duckdb_type(spark: str) -> str:
    """What DuckDB calls a type of Spark's."""
    if spark.startswith("array<"):
        return duckdb_type(spark[len("array<") : -1]) + "[]"
    return TYPES.get(spark, spark.upper())
