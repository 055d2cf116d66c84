"""Answers of statements as numpy has them: whole columns, or so many rows at a time. No engine lives here."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

ROWS_AT_ONCE = 1 << 21
"""How many rows of a long answer are in memory at a time: 0.3 GB with what is drawn of them, measured. A seeded draw
depends on it, as noise is drawn for so many rows at once."""


def as_array(column: pa.Array) -> np.ndarray:
    """A column as numpy has it, masked where it is NULL."""
    if column.null_count == 0 or not (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
        return column.to_numpy(zero_copy_only=False)
    values = column.fill_null(False if pa.types.is_boolean(column.type) else 0).to_numpy(zero_copy_only=False)
    return np.ma.MaskedArray(values, mask=column.is_null().to_numpy(zero_copy_only=False))


def as_arrays(rows: pa.Table) -> dict[str, np.ndarray]:
    """The columns of a table as numpy has them."""
    return {name: as_array(rows[name].combine_chunks()) for name in rows.column_names}


def even_parts(schema: pa.Schema, batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[dict[str, np.ndarray]]:
    """Rows as they come, so many at a time: how they were divided before must not be seen. One part at least."""
    waiting: list[pa.RecordBatch] = []
    number, given = 0, False
    for batch in batches:
        waiting.append(batch)
        number += batch.num_rows
        while number >= rows:
            whole = pa.Table.from_batches(waiting, schema)
            yield as_arrays(whole.slice(0, rows))
            given, number = True, number - rows
            waiting = whole.slice(rows).to_batches()
    if number or not given:
        yield as_arrays(pa.Table.from_batches(waiting, schema))


def whole_runs(parts: Iterator[dict[str, np.ndarray]], by: str) -> Iterator[dict[str, np.ndarray]]:
    """Parts of rows that are sorted by a column, cut anew: all rows with one value of it are in one part.

    Rows that are not sorted are an error, and not a value in two parts: a limit of what one user may change stands on
    it. One part at least, if there was one.
    """
    last: dict[str, np.ndarray] | None = None
    for part in parts:
        rows = part if last is None else {name: np.concatenate([last[name], part[name]]) for name in part}
        values = rows[by]
        if (values[1:] < values[:-1]).any():
            raise RuntimeError(f"rows are not sorted by {by}")
        start = int(np.searchsorted(values, values[-1])) if len(values) else 0
        # A copy: a few rows do not keep the whole part in memory beside the next one.
        last = {name: column[start:].copy() for name, column in rows.items()}
        if start:
            yield {name: column[:start] for name, column in rows.items()}
    if last is not None:
        yield last
