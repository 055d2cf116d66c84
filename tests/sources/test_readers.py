"""Reading landing files: no row is lost, none is made up, and one bad line spoils nothing but itself."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.months import Month
from qlog_assets.sources import readers
from qlog_assets.sources.column_map import ColumnMap
from qlog_assets.sources.readers import BatchFacts, LogSource, MonthRange, read_batch
from qlog_assets.sources.readers_lines import BLOCK_BYTES, LONGEST_LINE
from qlog_assets.sources.readers_sql import LONGEST_QUERY

SPRING = MonthRange(Month("2006-03"), Month("2006-05"))
HEADER = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
GOOD = "7\tgood query\t2006-03-01 07:17:12\t\t\n"
CSV = ColumnMap(user=1, query=2, time=3, delimiter=",", header=False, field_count=3)


def test_an_aol_file_is_read_as_it_stands(read: Callable[..., Any]) -> None:
    result = read(
        HEADER
        + "142\trentdirect.com\t2006-03-01 07:17:12\t\t\n"
        + "142\t\"quoted\" and 'odd' \\t \t2006-04-02 00:00:00\t1\thttp://www.example.com\n"
        + "142\t\"quoted\" and 'odd' \\t \t2006-04-02 00:00:00\t12\thttp://other.example\n"
        + "9\tnext page\t2006-05-31 23:59:59\t\t\n"
    )
    odd = "\"quoted\" and 'odd' \\t "
    assert result.accepted == [
        ("142", "rentdirect.com", datetime(2006, 3, 1, 7, 17, 12), None, None),
        ("142", odd, datetime(2006, 4, 2), 1, "http://www.example.com"),
        ("142", odd, datetime(2006, 4, 2), 12, "http://other.example"),
        ("9", "next page", datetime(2006, 5, 31, 23, 59, 59), None, None),
    ]
    assert result.facts == BatchFacts(4, 4, {}, {"2006-03": 1, "2006-04": 2, "2006-05": 1})
    assert result.by_month == result.facts.months
    assert result.rejected == []
    assert result.progress[-1][0] == result.progress[-1][1]


def test_the_written_tables_have_the_columns_later_stages_expect(
    read: Callable[..., Any], connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    read(HEADER + GOOD + "broken\n")
    described = {
        table: connection.execute(f"DESCRIBE FROM read_parquet('{tmp_path}/0/out/{table}')").fetchall()
        for table in ("accepted/*/*.parquet", "rejected/*.parquet")
    }
    assert [row[:2] for row in described["accepted/*/*.parquet"]] == [
        ("user", "VARCHAR"),
        ("query", "VARCHAR"),
        ("time", "TIMESTAMP"),
        ("rank", "INTEGER"),
        ("url", "VARCHAR"),
    ]
    assert [row[:2] for row in described["rejected/*.parquet"]] == [
        ("file", "VARCHAR"),
        ("line", "BIGINT"),
        ("reason", "VARCHAR"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1\tq\t2006-03-01 07:17:12\t\t\t", "wrong_field_count"),
        ("1\tq\t2006-03-01 07:17:12", "wrong_field_count"),
        ("", "wrong_field_count"),
        ("\tq\t2006-03-01 07:17:12\t\t", "empty_user"),
        (" \u3000\tq\t2006-03-01 07:17:12\t\t", "empty_user"),
        ("1\t\t2006-03-01 07:17:12\t\t", "empty_query"),
        ("1\t \u00a0\v\u2028\t2006-03-01 07:17:12\t\t", "empty_query"),
        ("1\t-\t2006-03-01 07:17:12\t\t", "empty_query"),
        ("1\t - \t2006-03-01 07:17:12\t\t", "empty_query"),
        ("1\t" + "é" * (LONGEST_QUERY + 1) + "\t2006-03-01 07:17:12\t\t", "overlong_query"),
        ("1\tq\t2006-02-30 07:17:12\t\t", "bad_time"),
        ("1\tq\tyesterday\t\t", "bad_time"),
        ("1\tq\tinfinity\t\t", "bad_time"),
        ("1\tq\t\t\t", "bad_time"),
        ("1\tq\t2006-03-01 07:17:12\tfirst\thttp://a.example", "bad_rank"),
        ("1\tq\t2006-03-01 07:17:12\t3.5\thttp://a.example", "bad_rank"),
        ("1\tq\t2006-03-01 07:17:12\t-1\thttp://a.example", "bad_rank"),
        ("1\tq\t2006-03-01 07:17:12\t99999999999\thttp://a.example", "bad_rank"),
        ("1\tq\t2006-02-28 23:59:59\t\t", "month_outside_policy"),
        ("1\tq\t2006-06-01 00:00:00\t\t", "month_outside_policy"),
        ("1\tq\0\t2006-03-01 07:17:12\t\t", "nul_byte"),
        ("1\t" + "x" * (LONGEST_LINE + 1) + "\t2006-03-01 07:17:12\t\t", "overlong_line"),
    ],
)
def test_a_bad_line_is_rejected_with_its_number_and_reason(read: Callable[..., Any], line: str, reason: str) -> None:
    result = read(HEADER + GOOD + line + "\n" + GOOD)
    assert result.facts == BatchFacts(3, 2, {reason: 1}, {"2006-03": 2})
    assert result.rejected == [("log.txt", 3, reason)]


@pytest.mark.parametrize(
    "line",
    [
        "1\t" + "é" * 4000 + "\t2006-03-01 07:17:12\t\t",
        "1\t--\t2006-03-01 07:17:12\t\t",
        "1\t-minus sign first\t2006-03-01 07:17:12\t\t",
        "1\t 日本 \t2006-03-01 07:17:12\t\t",
        "é\tq\t2006-03-01 07:17:12\t10\thttp://a.example",
        "1\tq\t2006-03-01 00:00:00\t0\thttp://a.example",
        "1\tq\t2006-05-31 23:59:59\t500\t",
    ],
)
def test_an_unusual_line_is_still_accepted(read: Callable[..., Any], line: str) -> None:
    assert read(HEADER + line + "\n").facts.rejected == {}


def test_bytes_that_are_no_text_cost_only_their_own_line(read: Callable[..., Any]) -> None:
    bad = b"2\tcaf\xe9\t2006-03-01 07:17:12\t\t\n"
    good = "3\tcafé \U0001f600\t2006-03-02 07:17:12\t\t\n".encode()
    surrogate = b"4\t\xed\xa0\x80\t2006-03-01 07:17:12\t\t\n"
    result = read(HEADER.encode() + GOOD.encode() + bad + good + surrogate + GOOD.encode())
    assert result.reasons == {3: "undecodable_bytes", 5: "undecodable_bytes"}
    assert ("3", "café \U0001f600", datetime(2006, 3, 2, 7, 17, 12), None, None) in result.accepted


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (HEADER + GOOD + GOOD, 2),
        (GOOD + GOOD, 2),
        (HEADER + GOOD + GOOD.rstrip("\n"), 2),
        ((HEADER + GOOD + GOOD).replace("\n", "\r\n"), 2),
        ((HEADER + GOOD + GOOD).replace("\n", "\r\n").rstrip("\n"), 2),
        ("\ufeff" + HEADER + GOOD, 1),
        ("\ufeff" + GOOD, 1),
    ],
    ids=["plain", "no header", "no last line feed", "crlf", "crlf cut short", "mark", "mark, no header"],
)
def test_line_ends_and_marks_do_not_change_what_is_read(read: Callable[..., Any], content: str, rows: int) -> None:
    result = read(content)
    assert result.facts == BatchFacts(rows, rows, {}, {"2006-03": rows})
    assert result.accepted == [("7", "good query", datetime(2006, 3, 1, 7, 17, 12), None, None)] * rows


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c", "\x1e", "\r"])
def test_no_other_character_ends_a_line(read: Callable[..., Any], separator: str) -> None:
    result = read(HEADER + f"1\tone{separator}query\t2006-03-01 07:17:12\t\t\n")
    assert result.accepted[0][1] == f"one{separator}query"


def test_a_gzip_file_is_read_like_the_file_in_it(read: Callable[..., Any]) -> None:
    content = (HEADER + GOOD * 3 + "broken\n").encode()
    plain, zipped = read(content), read(gzip.compress(content), name="log.gz")
    assert plain.facts == zipped.facts
    assert plain.accepted == zipped.accepted
    # Two members in one file, as `cat a.gz b.gz` makes it.
    assert read(gzip.compress(content) + gzip.compress(GOOD.encode())).facts.read == 5


def test_an_excite_file_is_read_with_its_times_and_empty_queries(read: Callable[..., Any]) -> None:
    lines = [
        "2A9EABFB35F5B954\t970916105432\t+md foods +proteins",
        "BED75271605EBD0C\t970916001949\tyahoo chat",
        "BED75271605EBD0C\t970916001954\t",
        "BED75271605EBD0C\t97091600195\tshort time",
        "BED75271605EBD0C\t971316001954\tmonth 13",
        "BED75271605EBD0C\t970916001954",
    ]
    result = read("\n".join(lines), "excite", months=MonthRange(Month("1996-01"), Month("1999-12")))
    assert result.facts.read == 6
    assert result.accepted[0] == ("BED75271605EBD0C", "yahoo chat", datetime(1997, 9, 16, 0, 19, 49), None, None)
    assert result.reasons == {3: "empty_query", 4: "bad_time", 5: "bad_time", 6: "wrong_field_count"}


def test_a_table_is_read_by_column_names_in_any_order(read: Callable[..., Any]) -> None:
    columns = ColumnMap(
        user="visitor", query="q", time="when", rank="pos", url="link", delimiter=";", time_format="%d.%m.%Y %H:%M"
    )
    content = "link;pos;q;x;when;visitor\nhttp://a.example;2;tea; ;03.04.2006 10:20;v1\n;;tea;;04.04.2006 10:20; v2 \n"
    result = read(content, "table", columns)
    assert result.accepted == [
        ("v1", "tea", datetime(2006, 4, 3, 10, 20), 2, "http://a.example"),
        ("v2", "tea", datetime(2006, 4, 4, 10, 20), None, None),
    ]


@pytest.mark.parametrize(
    ("time_format", "text"),
    [
        ("iso", "2006-03-01 10:30:00"),
        ("iso", "2006-03-01T10:30:00"),
        ("iso", "2006-03-01T10:30:00Z"),
        ("iso", "2006-03-01T12:30:00+02:00"),
        ("iso", "2006-03-01 05:30:00.000000-0500"),
        ("epoch_seconds", "1141209000"),
        ("epoch_milliseconds", "1141209000000"),
        ("%y%m%d%H%M%S", "060301103000"),
        ("%Y-%m-%d %H:%M:%S %z", "2006-03-01 11:30:00 +0100"),
    ],
)
def test_every_way_to_write_a_time_gives_the_same_instant(
    read: Callable[..., Any], time_format: str, text: str
) -> None:
    columns = CSV.with_changes(time_format=time_format)
    assert read(f"u,q,{text}\n", "table", columns).accepted == [("u", "q", datetime(2006, 3, 1, 10, 30), None, None)]


@pytest.mark.parametrize("text", ["", "nan", "1e300", "-inf", "12:00", "99999999999999999999"])
@pytest.mark.parametrize("time_format", ["epoch_seconds", "epoch_milliseconds"])
def test_a_number_that_is_no_time_is_rejected(read: Callable[..., Any], time_format: str, text: str) -> None:
    result = read(f"u,q,{text}\n", "table", CSV.with_changes(time_format=time_format))
    assert result.facts.rejected == {"bad_time": 1}


def test_a_file_of_many_rounds_is_read_whole(read: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "ROUND_BYTES", BLOCK_BYTES)
    filler = "x" * 200
    lines = [
        f"{row}\tquery {row} {filler}\t2006-{3 + row % 4:02d}-01 00:00:00\t\t\n"
        for row in range(3 * BLOCK_BYTES // 240)
    ]
    result = read(HEADER + "".join(lines))
    assert len(result.progress) > 2
    assert result.facts.read == len(lines)
    assert {row[0] for row in result.accepted} == {str(row) for row in range(len(lines)) if row % 4 != 3}
    assert result.facts.months == result.by_month
    assert list(result.reasons) == [row + 2 for row in range(len(lines)) if row % 4 == 3]


def test_a_line_longer_than_memory_should_hold_is_passed_over(read: Callable[..., Any]) -> None:
    result = read(HEADER + GOOD + "x" * (3 * BLOCK_BYTES) + "\n" + GOOD + "y" * (2 * BLOCK_BYTES))
    assert result.reasons == {3: "overlong_line", 5: "overlong_line"}
    assert result.facts.accepted == 2


def test_the_landing_file_is_left_as_it_was(read: Callable[..., Any], tmp_path: Path) -> None:
    read(HEADER + GOOD)
    assert (tmp_path / "0" / "log.txt").read_text() == HEADER + GOOD


PRIVATE = "jane doe 4111111111111111"


@pytest.mark.parametrize(
    ("content", "format", "columns", "says"),
    [
        ("", "aol", None, "has no rows"),
        (HEADER, "aol", None, "has no rows"),
        ("\ufeff", "excite", None, "has no rows"),
        ("u,q,t\n", "table", CSV.with_changes(header=True), "has no rows"),
        (b"PK\x03\x04" + PRIVATE.encode(), "aol", None, "compressed with zip"),
        (b"BZh9" + PRIVATE.encode(), "aol", None, "compressed with bzip2"),
        (gzip.compress((HEADER + PRIVATE * 1000).encode())[:-20], "aol", None, "damaged or cut short"),
        (f"{PRIVATE}\tx\ty\n", "table", ColumnMap(user="u", query="q", time="t"), "no single column named 'u'"),
        (
            f"{PRIVATE}\tx\ty\n",
            "table",
            ColumnMap(user=1, query=2, time=9, field_count=3, header=False),
            "asks for column 9",
        ),
        (f'"{PRIVATE}\n', "table", CSV.with_changes(header=True), "opens a quote"),
        (f"u,q,{PRIVATE}\n", "table", CSV.with_changes(time_format="%Y-%m %Q"), "directive that is not known"),
        (b"PAR1" + PRIVATE.encode(), "table", CSV, "not a readable Parquet file"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_without_its_content(
    read: Callable[..., Any], content: str | bytes, format: str, columns: ColumnMap | None, says: str
) -> None:
    with pytest.raises(QlogError, match=says) as raised:
        read(content, format, columns)
    assert "\n" not in str(raised.value)
    assert "jane" not in str(raised.value) and "4111" not in str(raised.value)


@pytest.mark.parametrize("typed", ["BZh91AY&SY", "PK\x03\x04", "PAR1"])
def test_what_the_first_person_typed_does_not_make_a_log_another_kind_of_file(
    read: Callable[..., Any], typed: str
) -> None:
    columns = ColumnMap(query=1, user=2, time=3, header=False, field_count=3)
    result = read(f"{typed}\t1\t2006-03-01\ntea\t2\t2006-03-01\n", "table", columns)
    assert [row[:2] for row in result.accepted] == [("1", typed), ("2", "tea")]


def test_a_fault_of_the_engine_is_told_by_its_kind_alone(tmp_path: Path) -> None:
    """DuckDB's messages quote the value they stumble over."""
    path = tmp_path / "log.txt"
    path.write_text(GOOD, encoding="utf-8")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TEMP VIEW ingest_rows AS SELECT '{PRIVATE}' AS x")
        with pytest.raises(QlogError, match=r"^log.txt: cannot be read \(CatalogException\)") as raised:
            read_batch(connection, LogSource(path, "aol"), SPRING, tmp_path / "out")
    assert raised.value.__cause__ is None and raised.value.__suppress_context__


def test_a_missing_file_a_directory_and_an_unknown_format_say_what_to_do(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    with pytest.raises(QlogError, match="no such file"):
        read_batch(connection, LogSource(tmp_path / "absent.txt", "aol"), SPRING, tmp_path / "out")
    with pytest.raises(QlogError, match="cannot be read"):
        read_batch(connection, LogSource(tmp_path, "aol"), SPRING, tmp_path / "out")
    with pytest.raises(QlogError, match="choose one of aol, excite, table, json, access"):
        LogSource(tmp_path, "msn")
    with pytest.raises(QlogError, match="needs a column map"):
        LogSource(tmp_path, "table")
    with pytest.raises(QlogError, match="has its own columns"):
        LogSource(tmp_path, "aol", CSV)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"encoding": "klingon"}, "encoding"),
        ({"encoding": "base64"}, "encoding"),
        ({"delimiter": ""}, "delimiter"),
        ({"delimiter": "||"}, "delimiter"),
        ({"delimiter": "\n"}, "delimiter"),
        ({"time_format": "european"}, "time_format"),
        ({"header": False}, "by position"),
        ({"user": 0}, "user"),
        ({"colour": "red"}, "unknown key"),
    ],
)
def test_a_column_map_that_cannot_work_is_refused_when_it_is_made(values: dict[str, object], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        ColumnMap(**{"user": "u", "query": "q", "time": "t", **values})


def test_a_column_map_is_read_from_toml(read: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "map.toml"
    path.write_text('user = "who"\nquery = 2\ntime = 3\ndelimiter = ","\nencoding = "gb18030"\n')
    content = "who,what,when\nu,天气,2006-03-01 10:30:00\n".encode("gb18030")
    assert read(content, "table", ColumnMap.load(path)).accepted[0][:2] == ("u", "天气")
    for text, says in (
        ("user = ", "not a readable TOML"),
        ('user = "who"', "query"),
        ("user = 1\nquery = 2\ntime = 3\ncolour = 4", "unknown key"),
    ):
        path.write_text(text)
        with pytest.raises(QlogError, match=says):
            ColumnMap.load(path)
    with pytest.raises(QlogError, match="no such file: a column map is"):
        ColumnMap.load(tmp_path / "absent.toml")
