"""Long answers are taken so many rows at a time, however an engine divides them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from qlog_assets.storage.answers import even_parts

SCHEMA = pa.schema([("users", pa.int64()), ("known", pa.bool_())])


@given(st.lists(st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=9), max_size=6), st.integers(1, 8))
def test_parts_are_even_and_hold_every_row_in_order(divided: list[list[int | None]], rows: int) -> None:
    batches = (pa.record_batch([users, [user is None for user in users]], schema=SCHEMA) for users in divided)
    parts = list(even_parts(SCHEMA, batches, rows))
    whole = [user for users in divided for user in users]
    sizes = [len(part["users"]) for part in parts]
    assert sizes[:-1] == [rows] * (len(sizes) - 1) and 0 <= sizes[-1] <= rows
    assert sizes[-1] > 0 or sizes == [0]
    found = [None if masked else int(user) for part in parts for user, masked in zip(*taken_apart(part), strict=True)]
    assert found == whole
    assert [bool(known) for part in parts for known in part["known"]] == [user is None for user in whole]


def taken_apart(part: dict[str, np.ndarray]) -> tuple[list[int], list[bool]]:
    users = np.ma.asarray(part["users"])
    return users.filled(0).tolist(), np.ma.getmaskarray(users).tolist()
