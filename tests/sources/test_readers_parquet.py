"""Logs that come as Parquet: any sensible type of a column is read, and no row is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qlog_assets.errors import QlogError
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


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (pa.date64(), 1141171200000, 10**17),
        (pa.date32(), 13208, 2**31 - 1),
        (pa.timestamp("ms"), 1141171200000, 2**62),
        (pa.timestamp("ms", "Europe/Berlin"), 1141171200000, -(2**63)),
        (pa.timestamp("us"), 1141171200000000, 2**63 - 1),
        (pa.decimal128(38, 3), Decimal("1141171200.000"), Decimal("9" * 35)),
        (pa.float64(), 1141171200.0, float("inf")),
        (pa.int64(), 1141171200, 2**63 - 1),
    ],
    ids=str,
)
def test_a_time_out_of_range_costs_only_its_own_row(
    read: Callable[..., Any], kind: pa.DataType, good: Any, bad: Any
) -> None:
    result = read(
        parquet(id=["u1", "u2", "u3", "u4"], text=["q"] * 4, at=pa.array([good, bad, None, good], kind)),
        "table",
        PLAIN.with_changes(time_format="epoch_seconds"),
    )
    assert result.reasons == {2: "bad_time", 3: "bad_time"}
    assert [row[2] for row in result.accepted] == [datetime(2006, 3, 1)] * 2


@pytest.mark.parametrize("column", ["id", "text", "rank"])
def test_a_number_of_any_size_costs_at_most_its_own_row(read: Callable[..., Any], column: str) -> None:
    values: dict[str, Any] = {"id": ["u"] * 2, "text": ["q"] * 2, "at": [WHEN] * 2, "rank": [1] * 2, "url": ["a"] * 2}
    values[column] = pa.array([Decimal(7), Decimal("9" * 38)], pa.decimal128(38, 0))
    result = read(parquet(**values), "table", COLUMNS)
    assert result.reasons == ({2: "bad_rank"} if column == "rank" else {})


@pytest.mark.parametrize(
    ("meaning", "values", "kind"),
    [
        ("user", pa.array([True]), "bool"),
        ("user", pa.array([{"id": 5}]), "list or record"),
        ("user", pa.array([5], pa.time64("us")), "time64[us]"),
        ("user", pa.array([5], pa.timestamp("us")), "timestamp[us]"),
        ("user", pa.array([1.5], pa.float16()), "halffloat"),
        ("user", pa.array([5], pa.duration("s")), "duration[s]"),
        ("time", pa.array([5], pa.time64("us")), "time64[us]"),
        ("time", pa.array([Decimal(10**60)], pa.decimal256(70, 0)), "decimal256(70, 0)"),
    ],
)
def test_a_column_of_a_type_that_holds_no_such_thing_is_an_error_that_names_the_type(
    read: Callable[..., Any], meaning: str, values: pa.Array, kind: str
) -> None:
    columns = {"user": pa.array(["u"]), "query": pa.array(["q"]), "time": pa.array([WHEN])} | {meaning: values}
    with pytest.raises(QlogError, match=re.escape(f"the {meaning} column is of type {kind}")) as raised:
        read(parquet(**columns), "table", ColumnMap(user="user", query="query", time="time"))
    assert "000000" not in str(raised.value) and "\n" not in str(raised.value)


def test_bytes_of_a_fixed_width_and_a_column_without_values_are_read(read: Callable[..., Any]) -> None:
    result = read(
        parquet(
            id=pa.array([b"ab12", b"\xff\0ab"], pa.binary(4)),
            text=["q"] * 2,
            at=[WHEN] * 2,
            rank=pa.nulls(2),
            url=pa.nulls(2),
        ),
        "table",
        COLUMNS,
    )
    assert result.accepted == [("ab12", "q", WHEN, None, None)]
    assert result.reasons == {2: "undecodable_bytes"}


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
