"""The user column of a Parquet file as text, whatever its type: a number is written as its digits and nothing else.

Only the type of the column can refuse a file. A value that is no id costs its own row, by a fault or by a word that
stands for no value; see `user_ids.py` for what an id is.
"""

from __future__ import annotations

import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.sources.readers_lines import Fault
from qlog_assets.sources.user_ids import LARGEST_WHOLE, MISSING

LARGEST_WHOLE_32 = 2**24 - 1
"""The same for floats of 32 bits. Those of 16 bits end at 2,047: a column of that type holds no ids and is refused."""

NUMBER_TYPES = (pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_decimal, pa.types.is_null)


def holds_users(kind: pa.DataType) -> bool:
    """Whether a type other than text or bytes can hold ids."""
    return kind == pa.uuid() or any(test(kind) for test in NUMBER_TYPES)


def user_texts(column: pa.Array, faults: np.ndarray) -> pa.Array:
    """The ids of a column of such a type as text; marks in `faults` the rows whose number is no id."""
    kind = column.type
    if pa.types.is_floating(kind):
        return _from_floats(column, faults)
    if pa.types.is_decimal(kind):
        return _from_decimals(column, faults)
    if kind == pa.uuid():
        stored = column.storage.to_pylist()
        return pa.array([None if each is None else str(uuid.UUID(bytes=each)) for each in stored], pa.string())
    return column.cast(pa.string())


def _from_floats(column: pa.Array, faults: np.ndarray) -> pa.Array:
    largest = LARGEST_WHOLE_32 if pa.types.is_float32(column.type) else LARGEST_WHOLE
    values = column.to_numpy(zero_copy_only=False).astype(np.float64)
    finite = np.isfinite(values)
    whole = finite & (values == np.trunc(values))
    exact = whole & (np.abs(values) <= largest)
    faults[finite & ~whole] = Fault.FRACTIONAL_USER
    faults[whole & ~exact] = Fault.INEXACT_USER
    digits = pa.array(np.where(exact, values, 0).astype(np.int64), mask=~exact).cast(pa.string())
    no_number = ~finite & ~np.asarray(column.is_null())
    return pc.if_else(pa.array(no_number), MISSING[0], digits)


def _from_decimals(column: pa.Array, faults: np.ndarray) -> pa.Array:
    coded = column.dictionary_encode()
    texts = [_digits(value) for value in coded.dictionary.to_pylist()]
    found = pa.array(texts, pa.string()).take(coded.indices)
    faults[np.asarray(found.is_null()) & ~np.asarray(column.is_null())] = Fault.FRACTIONAL_USER
    return found


def _digits(value: Decimal) -> str | None:
    """A decimal's digits if it is whole. It is exact at any size."""
    over, under = value.as_integer_ratio()
    return str(over) if under == 1 else None
