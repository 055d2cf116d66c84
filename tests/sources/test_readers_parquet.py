"""Logs that come as Parquet: any sensible type of a column is read, and no row is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qlog_assets.privacy.errors import QlogError
from qlog_assets.sources.column_map import ColumnMap
from qlog_assets.sources.readers_parquet import BATCH_ROWS

COLUMNS = ColumnMap(user="id", query="text", time="at", rank="rank", url="url")
PLAIN = ColumnMap(user="id", query="text", time="at")
WHEN = datetime(2006, 3, 1, 10, 30)


def parquet(**columns: Any) -> bytes:
    stream = BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def test_numbers_as_users_and_floats_as_ranks_are_read(read: Callable[..., Any]) -> None:
    result = read(
        parquet(
            id=pa.array([17, 18, None, 20, 21]),
            text=["tea", "tea", "tea", None, "tea"],
            at=pa.array([WHEN] * 5, pa.timestamp("ns")),
            rank=pa.array([3.0, float("nan"), 1.0, 1.0, 2.5]),
            url=["http://a.example", None, None, None, "http://a.example"],
            unused=[[1], [2], [3], [4], [5]],
        ),
        "table",
        COLUMNS,
    )
    assert result.accepted == [("17", "tea", WHEN, 3, "http://a.example"), ("18", "tea", WHEN, None, None)]
    assert result.reasons == {3: "empty_user", 4: "empty_query", 5: "bad_rank"}
    assert result.facts.read == 5


@pytest.mark.parametrize(
    "times",
    [
        pa.array([WHEN], pa.timestamp("us")),
        pa.array([WHEN], pa.timestamp("ms")),
        pa.array(
            [WHEN.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=2)))], pa.timestamp("us", "Europe/Berlin")
        ),
        pa.array(["2006-03-01 10:30:00"]),
        pa.array(["2006-03-01T12:30:00+02:00"], pa.large_string()),
        pa.array([b"2006-03-01 10:30:00"]),
        pa.array(["2006-03-01 10:30:00"]).dictionary_encode(),
    ],
    ids=["microseconds", "milliseconds", "zone", "text", "text with offset", "bytes", "dictionary"],
)
def test_every_type_of_time_gives_the_same_instant(read: Callable[..., Any], times: pa.Array) -> None:
    result = read(parquet(id=["u"], text=["q"], at=times), "table", PLAIN)
    assert result.accepted == [("u", "q", WHEN, None, None)]


def test_dates_and_epochs_are_times_too(read: Callable[..., Any]) -> None:
    dated = read(parquet(id=["u"], text=["q"], at=[date(2006, 3, 1)]), "table", PLAIN)
    assert dated.accepted[0][2] == datetime(2006, 3, 1)
    counted = read(
        parquet(id=["u"], text=["q"], at=[1141209000]), "table", PLAIN.with_changes(time_format="epoch_seconds")
    )
    assert counted.accepted[0][2] == WHEN


def test_values_that_are_no_text_cost_only_their_own_row(read: Callable[..., Any]) -> None:
    result = read(
        parquet(
            id=pa.array([b"u1", b"u\xff", b"u3", b"u4", b"u5"]),
            text=pa.array([b"tea", b"tea", b"caf\xe9", "café".encode(), b"nul\0"]),
            at=pa.array([WHEN] * 5),
        ),
        "table",
        PLAIN,
    )
    assert result.reasons == {2: "undecodable_bytes", 3: "undecodable_bytes", 5: "nul_byte"}
    assert [row[1] for row in result.accepted] == ["tea", "café"]


def test_rows_keep_their_numbers_across_batches(read: Callable[..., Any]) -> None:
    rows = BATCH_ROWS + 10
    queries = ["q"] * rows
    queries[BATCH_ROWS + 3] = " "
    result = read(
        parquet(id=pa.array(range(rows)), text=queries, at=pa.array([WHEN] * rows)),
        "table",
        PLAIN.with_changes(user=1, query=2),
    )
    assert result.reasons == {BATCH_ROWS + 4: "empty_query"}
    assert result.facts.read == rows
    assert result.progress[-1] == (rows, rows)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (ColumnMap(user="who", query="text", time="at"), "no single column named 'who'"),
        (ColumnMap(user=1, query=2, time=9), "asks for column 9"),
        (ColumnMap(user="nested", query="text", time="at"), "map a column of plain values"),
    ],
)
def test_a_map_that_does_not_fit_is_an_error(read: Callable[..., Any], columns: ColumnMap, says: str) -> None:
    with pytest.raises(QlogError, match=says):
        read(parquet(id=["u"], text=["q"], at=[WHEN], nested=[[1]]), "table", columns)


def test_an_empty_or_damaged_parquet_file_is_an_error(read: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(QlogError, match="has no rows"):
        read(
            parquet(id=pa.array([], pa.string()), text=pa.array([], pa.string()), at=pa.array([], pa.string())),
            "table",
            PLAIN,
        )
    whole = parquet(id=["u"] * 1000, text=[f"q{row}" for row in range(1000)], at=[WHEN] * 1000)
    with pytest.raises(QlogError, match="not a readable Parquet file"):
        read(whole[:-10], "table", PLAIN)
    with pytest.raises(QlogError, match="not a readable Parquet file"):
        read(whole[:4] + b"\xff" * 300 + whole[304:], "table", PLAIN)
