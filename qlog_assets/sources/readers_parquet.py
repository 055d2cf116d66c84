"""From a Parquet file to Arrow batches of numbered rows, with the columns a column map names and no others.

What the values mean is decided in SQL (`readers.py`), as for delimited files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.privacy.errors import QlogError
from qlog_assets.sources.column_map import Column, ColumnMap
from qlog_assets.sources.readers_lines import Fault

PARQUET_MAGIC = b"PAR1"
BATCH_ROWS = 1 << 19


def is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
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
        self.types = {meaning: _plain_type(schema.field(name).type) for meaning, name in self._sources.items()}
        for meaning, kind in self.types.items():
            if pa.types.is_nested(kind):
                raise QlogError(
                    f"{self.name}: the {meaning} column holds lists or records: map a column of plain values"
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
            if pa.types.is_string(self.types[meaning]):
                column, bad = _valid_text(column)
                faults[bad] = Fault.UNDECODABLE_BYTES
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


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type a column is handed over in: dictionaries by their values, any text or bytes as string."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
        return pa.string()
    if any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)):
        return pa.string()
    return kind


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
