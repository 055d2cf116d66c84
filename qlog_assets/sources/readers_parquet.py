"""From a Parquet file to Arrow batches of numbered rows, with the columns a column map names and no others.

What the values mean is decided in SQL (`readers.py`), as for delimited files. Here they are put into types of which SQL
can read any value: a time that no timestamp can hold becomes a null, which costs its own row and not the file. Users
are texts from here on, numbers too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.errors import QlogError
from qlog_assets.sources.column_map import Column, ColumnMap
from qlog_assets.sources.readers_lines import Fault
from qlog_assets.sources.readers_parquet_users import holds_users, user_texts

PARQUET_MAGIC = b"PAR1"
BATCH_ROWS = 1 << 19

TICKS_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DAY_SECONDS = 86_400
LAST_SECOND = 250_000_000_000
"""From 1970, either way: years that have four digits, in any of these units."""


TEXT_TYPES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
NUMBER_TYPES = (
    pa.types.is_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_decimal128,
    pa.types.is_boolean,
    pa.types.is_null,
)


def is_parquet(path: Path) -> bool:
    """Whether a file begins and ends as Parquet does. The beginning alone may be what the first person typed."""
    try:
        with path.open("rb") as stream:
            begins = stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
            stream.seek(-len(PARQUET_MAGIC), os.SEEK_END)
            return begins and stream.read() == PARQUET_MAGIC
    except OSError:
        return False


class ParquetLog:
    """A Parquet file seen through a column map."""

    def __init__(self, path: Path, columns: ColumnMap) -> None:
        self.name = path.name
        try:
            self._file = pq.ParquetFile(path)
        except (pa.ArrowException, OSError):
            raise self._damaged() from None
        self.size = self._file.metadata.num_rows
        self.position = 0
        schema = self._file.schema_arrow
        self._sources = {meaning: self._column_name(column, schema) for meaning, column in columns.columns.items()}
        self.types = {meaning: _plain_type(schema.field(name).type, meaning) for meaning, name in self._sources.items()}
        for meaning, kind in self.types.items():
            if not _is_readable(kind, meaning):
                raise QlogError(
                    f"{self.name}: the {meaning} column is of type {_type_name(kind)}: map a column of plain values"
                )
        self.schema = pa.schema([("line", pa.int64()), ("fault", pa.uint8()), *self.types.items()])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as (line, fault, and the mapped columns); `line` is the row's number in the file, from 1."""
        first = 1
        try:
            for batch in self._file.iter_batches(BATCH_ROWS, columns=sorted(set(self._sources.values()))):
                yield self._numbered(batch, first)
                first += batch.num_rows
                self.position = first - 1
        except (pa.ArrowException, OSError):
            raise self._damaged() from None

    def close(self) -> None:
        self._file.close()

    def _numbered(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        faults = np.zeros(batch.num_rows, np.uint8)
        columns = []
        for meaning, name in self._sources.items():
            column = batch.column(name)
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            if meaning == "user" and holds_users(column.type):
                column = user_texts(column, faults)
            elif pa.types.is_string(self.types[meaning]):
                column, bad = _valid_text(column)
                faults[bad] = Fault.UNDECODABLE_BYTES
            if pa.types.is_timestamp(self.types[meaning]):
                column = _microseconds(column, self.types[meaning])
            columns.append(column)
        numbers = np.arange(first, first + batch.num_rows, dtype=np.int64)
        return pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(faults), *columns], schema=self.schema)

    def _column_name(self, column: Column, schema: pa.Schema) -> str:
        # The names in the file are not printed: a file that is not what the map says may have anything there.
        if isinstance(column, int):
            if column > len(schema.names):
                raise QlogError(
                    f"{self.name}: has {len(schema.names)} columns, and the column map asks for column {column}"
                )
            return schema.names[column - 1]
        if schema.names.count(column) != 1:
            raise QlogError(f"{self.name}: has no single column named {column!r}: correct the column map")
        return column

    def _damaged(self) -> QlogError:
        return QlogError(f"{self.name}: is not a readable Parquet file: fetch it again, or write it anew")


def _plain_type(kind: pa.DataType, meaning: str) -> pa.DataType:
    """The type a column is handed over in: dictionaries by their values, text, bytes and users as string, times in one
    unit."""
    is_time = meaning == "time"
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if any(test(kind) for test in TEXT_TYPES) or (meaning == "user" and holds_users(kind)):
        return pa.string()
    if is_time and pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if is_time and pa.types.is_date(kind):
        return pa.timestamp("us")
    return kind


def _is_readable(kind: pa.DataType, meaning: str) -> bool:
    """Whether SQL can read any value of a type as what the column means."""
    if meaning == "user":
        return pa.types.is_string(kind)
    if meaning == "time" and pa.types.is_timestamp(kind):
        return True
    return any(test(kind) for test in (pa.types.is_string, *NUMBER_TYPES))


def _type_name(kind: pa.DataType) -> str:
    """A type as Arrow calls it, without the names of fields in it: a file's names may be anything."""
    return "list or record" if pa.types.is_nested(kind) else str(kind)


def _microseconds(column: pa.Array, kind: pa.TimestampType) -> pa.Array:
    """Timestamps or dates of any unit as timestamps in microseconds, with nulls in place of those out of range."""
    source = column.type
    values = column.cast(pa.int32() if pa.types.is_date32(source) else pa.int64()).fill_null(0)
    ticks = values.to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_date32(source):
        ticks, unit = ticks * DAY_SECONDS, "s"
    else:
        unit = "ms" if pa.types.is_date64(source) else source.unit
    last = LAST_SECOND * TICKS_A_SECOND[unit]
    # In nanoseconds 64 bits end before these years do.
    good = np.ones(len(ticks), bool) if unit == "ns" else (ticks > -last) & (ticks < last)
    whole = np.where(good, ticks, 0)
    scale, per_second = TICKS_A_SECOND["us"], TICKS_A_SECOND[unit]
    micro = whole // (per_second // scale) if per_second > scale else whole * (scale // per_second)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(micro, pa.int64(), mask=missing | ~good).cast(kind)


def _valid_text(column: pa.Array) -> tuple[pa.Array, list[int]]:
    """A column as string, with nulls in place of values that are not UTF-8, and where those are."""
    binary = column.cast(pa.binary())
    text = binary.view(pa.string())
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        values, bad = binary.to_pylist(), []
        for index, value in enumerate(values):
            try:
                str(value or b"", "utf-8")
            except UnicodeDecodeError:
                values[index] = None
                bad.append(index)
        return pa.array(values, pa.binary()).view(pa.string()), bad
    return text, []
