"""Writes a released table as Parquet and CSV, the same bytes for the same rows. Layouts, order and escaping live here.

What may be in the rows is the door's business; this module gets a table that is about to be public and neither draws,
counts nor suppresses anything. Which tables a mechanism releases is in its own folder.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from qlog_assets.errors import QlogError
from qlog_assets.storage.digests import file_checksum

# A spreadsheet takes a cell that starts with one of these for a formula and runs it. The apostrophe is among them so
# that the rule can be undone: a reader drops the first apostrophe of a cell that has one, and has the text back.
FORMULA_STARTS = "=+-@\t\r\n'"
CSV_NOTE = (
    "In the CSV file a text that begins with = + - @ ' or a control character has an apostrophe in front, so that a "
    "spreadsheet does not run it; drop one leading apostrophe to get the text back. The Parquet file has it unchanged."
)
# One row group of this many rows: a release is far smaller, and a fixed number keeps the bytes fixed.
ROW_GROUP_ROWS = 1 << 20
ROWS_AT_ONCE = 1 << 16
CSV_BLOCK_BYTES = 1 << 26

ColumnType = Literal["text", "integer", "texts"]
TYPES: dict[str, pa.DataType] = {"text": pa.string(), "integer": pa.int64(), "texts": pa.list_(pa.string())}
"""`texts` is an ordered list of texts, such as the queries of a session; in CSV it is a column per place."""

USERS_WORDS = "Noisy number of different users who {} that month, within the limits on what one user adds."
ERROR_COLUMN = "standard_error"
ERROR_WORDS = "Standard deviation of the noise in `users`, rounded up to whole users."
MONTH_COLUMN = "month"
MONTH_WORDS = (
    "The month of the release, such as 2006-03; the same in every row, so that tables of months can be joined."
)
QUERY_WORDS = "A search query, normalised: Unicode NFKC, case folded, single spaces."


class TableError(QlogError):
    """A table that is not what its layout says, and so is not written."""


@dataclass(frozen=True)
class Column:
    """One column as the manifest describes it: its type, and what it holds in words."""

    name: str
    type: ColumnType
    description: str


@dataclass(frozen=True)
class TableLayout:
    """A released table: its columns in order, and which of them is the noisy count; all others are its key.

    A table without a count, such as a synthetic log, has no threshold, and all of its columns are its key. Where the
    noise differs by row a further column tells how large it is; the last column of a public table is its month. Neither
    belongs to the key or the order.
    """

    name: str
    columns: tuple[Column, ...]
    count: str | None = "users"
    title: str = ""
    """What the datasheet calls it. Empty: its name."""
    error: str | None = None
    """The column of standard errors, of a layout that has one."""
    month: str | None = None
    """The column of the month, where it was added to what was drawn."""

    def with_errors(self) -> TableLayout:
        """The same with a column for the standard error of each count."""
        return replace(self, columns=(*self.columns, Column(ERROR_COLUMN, "integer", ERROR_WORDS)), error=ERROR_COLUMN)

    def with_month(self) -> TableLayout:
        """The same with a column for the month. It is the last: a reader by place goes on reading."""
        return replace(self, columns=(*self.columns, Column(MONTH_COLUMN, "text", MONTH_WORDS)), month=MONTH_COLUMN)

    def fitting(self, rows: pa.Table) -> TableLayout:
        """This layout, with a column of errors and one of the month if these rows have them."""
        has_errors = self.count is not None and self.error is None and ERROR_COLUMN in rows.column_names
        fitting = self.with_errors() if has_errors else self
        has_month = MONTH_COLUMN in rows.column_names and MONTH_COLUMN not in self.schema.names
        return fitting.with_month() if has_month else fitting

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.name not in (self.count, self.error, self.month))

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that hold texts or lists of texts out of the data; the month is none."""
        return tuple(column.name for column in self.columns if column.type != "integer" and column.name != self.month)

    @property
    def list_columns(self) -> tuple[str, ...]:
        """The columns that hold lists of texts."""
        return tuple(column.name for column in self.columns if column.type == "texts")

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, TYPES[column.type], nullable=False) for column in self.columns])

    @property
    def order(self) -> list[tuple[str, str]]:
        """The public order: by noisy count, largest first, then by the bytes of the key."""
        count = [] if self.count is None else [(self.count, "descending")]
        return [*count, *((key, "ascending") for key in self.keys)]


@dataclass(frozen=True)
class PublishedFile:
    """A file of a release: its name in the release's directory, checksum and size."""

    path: str
    sha256: str
    bytes: int


def add_month(rows: pa.Table, month: str) -> pa.Table:
    """The same rows with the month that they are of, unless the table has it as a column of its own."""
    if MONTH_COLUMN in rows.column_names:
        return rows
    return rows.append_column(MONTH_COLUMN, pa.array([month] * rows.num_rows, pa.string()))


def in_public_order(table: pa.Table, layout: TableLayout) -> pa.Table:
    """The rows by noisy count, largest first, then by the bytes of the key: an order that tells nothing more."""
    return table.take(pc.sort_indices(flatten_lists(table, layout), sort_keys=layout.order))


def rows_out_of_order(table: pa.Table, layout: TableLayout) -> int:
    """How many rows do not come after the row before them.

    In a table of counts a repeated key is out of order wherever it stands; without counts a row may come twice.
    """
    if table.num_rows < 2:
        return 0
    flat = flatten_lists(table, layout)
    later = np.zeros(flat.num_rows - 1, dtype=bool)
    tied = np.ones(flat.num_rows - 1, dtype=bool)
    for name, direction in layout.order:
        column = flat.column(name).combine_chunks()
        before, after = column[:-1], column[1:]
        if direction == "descending":
            before, after = after, before
        later |= tied & pc.less(before, after).to_numpy(zero_copy_only=False)
        tied &= pc.equal(before, after).to_numpy(zero_copy_only=False)
    return int(np.count_nonzero(~later & ~tied if layout.count is None else ~later))


def flatten_lists(table: pa.Table, layout: TableLayout) -> pa.Table:
    """The same rows with each list as one JSON text: what can be compared and joined."""
    for position, column in enumerate(layout.columns):
        if column.type == "texts" and column.name in table.column_names:
            lists = table.column(column.name).to_pylist()
            texts = pa.array([json.dumps(texts, ensure_ascii=False) for texts in lists], pa.string())
            table = table.set_column(position, column.name, texts)
    return table


def spread_lists(table: pa.Table, layout: TableLayout) -> pa.Table:
    """The same rows with a column for every place in a list, `<name>_1` and so on; behind a list's end they are empty.

    There are as many as the longest list has, and one where there is no row.
    """
    columns: dict[str, pa.ChunkedArray | pa.Array] = {}
    for name in table.column_names:
        column = table.column(name)
        if name not in layout.list_columns:
            columns[name] = column
            continue
        longest = pc.max(pc.list_value_length(column)).as_py() or 1
        whole = pc.list_slice(column, 0, longest, return_fixed_size_list=True)
        columns |= {f"{name}_{place + 1}": pc.fill_null(pc.list_element(whole, place), "") for place in range(longest)}
    return pa.table(columns)


def gather_lists(cells: pa.Table, layout: TableLayout) -> pa.Table:
    """The rows that `spread_lists` spread, with their lists again."""
    columns: dict[str, pa.ChunkedArray | pa.Array] = {}
    for column in layout.columns:
        if column.type != "texts":
            columns[column.name] = cells.column(column.name)
            continue
        places = [name for name in cells.column_names if re.fullmatch(rf"{column.name}_\d+", name)]
        texts = [cells.column(f"{column.name}_{place + 1}").to_pylist() for place in range(len(places))]
        lists = [[text for text in row if text] for row in zip(*texts, strict=True)]
        columns[column.name] = pa.array(lists, TYPES["texts"])
    return pa.table(columns)


def texts_of(column: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Every text of a column of texts or of lists, and the row that each is in."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_list(array.type):
        return pc.list_flatten(array), pc.list_parent_indices(array).to_numpy()
    return array, np.arange(len(array))


def write_table(table: pa.Table, layout: TableLayout, directory: Path) -> dict[str, PublishedFile]:
    """Write `<name>.parquet` and `<name>.csv`; the same rows always give the same bytes."""
    if tuple(table.column_names) != tuple(column.name for column in layout.columns):
        raise TableError(f"{layout.name}: its columns are not {', '.join(layout.schema.names)}")
    nulls = [column.null_count for column in table.columns]
    nulls += [texts_of(table.column(name))[0].null_count for name in layout.text_columns]
    if any(nulls):
        raise TableError(f"{layout.name}: a released table holds no nulls")
    if any(pc.any(pc.equal(texts_of(table.column(name))[0], "")).as_py() for name in layout.list_columns):
        raise TableError(f"{layout.name}: a list in a released table holds no empty text, which is no cell in CSV")
    # One chunk, this schema and no metadata: how a table was put together does not show in the file.
    plain = table.cast(layout.schema).replace_schema_metadata(None).combine_chunks()
    if rows_out_of_order(plain, layout):
        raise TableError(f"{layout.name}: its rows are not in public order")
    parquet, text = directory / f"{layout.name}.parquet", directory / f"{layout.name}.csv"
    pq.write_table(plain, parquet, compression="zstd", compression_level=3, row_group_size=ROW_GROUP_ROWS)
    _write_csv(spread_lists(plain, layout), text)
    return {"parquet": describe_file(parquet), "csv": describe_file(text)}


def describe_file(path: Path) -> PublishedFile:
    """The checksum and size of a file that is about to be public."""
    return PublishedFile(path.name, file_checksum(path), path.stat().st_size)


def escape_formulas(column: pa.Array) -> pa.Array:
    """The texts of a column as CSV cells: an apostrophe before what a spreadsheet would run."""
    starts = pc.utf8_slice_codeunits(column, 0, 1)
    runs = pc.is_in(starts, value_set=pa.array(list(FORMULA_STARTS)))
    return pc.if_else(runs, pc.binary_join_element_wise("'", column, ""), column)


def read_csv(path: Path, layout: TableLayout) -> pa.Table:
    """The rows of a CSV file that `write_table` wrote, with their texts unescaped and their lists gathered."""
    integers = {column.name: pa.int64() for column in layout.columns if column.type == "integer"}
    with path.open(encoding="utf-8", newline="") as stream:
        header = next(csv.reader(stream))
    rows = pa_csv.read_csv(
        path,
        read_options=pa_csv.ReadOptions(block_size=CSV_BLOCK_BYTES),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types={name: integers.get(name, pa.string()) for name in header}, strings_can_be_null=False
        ),
    )
    for position, name in enumerate(rows.column_names):
        if name not in integers:
            texts = rows.column(name)
            plain = pc.if_else(pc.starts_with(texts, "'"), pc.utf8_slice_codeunits(texts, 1), texts)
            rows = rows.set_column(position, name, plain)
    return gather_lists(rows, layout).cast(layout.schema)


def _write_csv(table: pa.Table, path: Path) -> None:
    """Comma, quotes around every text, newline, UTF-8. A quoted text stays whole where `;` separates cells, too."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(table.column_names)
        for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
            cells: list[list[Any]] = [
                (escape_formulas(column) if pa.types.is_string(column.type) else column).to_pylist()
                for column in batch.columns
            ]
            writer.writerows(zip(*cells, strict=True))
