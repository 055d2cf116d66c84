"""Long answers are taken so many rows at a time, however an engine divides them, or all rows of a user at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qlog_assets.storage.answers import even_parts, whole_runs

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


@given(st.lists(st.integers(0, 9), max_size=40).map(sorted), st.integers(1, 8))
def test_no_user_is_in_two_parts_and_every_row_is_in_one(users: list[int], rows: int) -> None:
    ids, places = np.array(users, dtype=np.int64), np.arange(len(users))
    starts = range(0, max(len(users), 1), rows)
    parts = list(
        whole_runs(
            ({"user_id": ids[start : start + rows], "place": places[start : start + rows]} for start in starts),
            by="user_id",
        )
    )
    assert parts and np.array_equal(np.concatenate([part["user_id"] for part in parts]), ids)
    assert np.array_equal(np.concatenate([part["place"] for part in parts]), places)
    found = [user for part in parts for user in set(part["user_id"].tolist())]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("divided", [[[1, 0]], [[0, 1], [0]], [[0, 0], [1, 1], [1, 0]]])
def test_rows_that_are_not_sorted_are_refused_before_a_user_is_seen_twice(divided: list[list[int]]) -> None:
    seen: list[int] = []
    with pytest.raises(RuntimeError, match="not sorted by user_id"):
        for part in whole_runs(({"user_id": np.array(users)} for users in divided), by="user_id"):
            seen += set(part["user_id"].tolist())
    assert len(seen) == len(set(seen))
