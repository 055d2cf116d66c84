"""Files as people have them: a spreadsheet's CSV, JSON lines of a search engine, zstd, an access log, SogouQ.

The files in `tests/data/formats/` are made up; their shapes are real.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.sources.access_map import AccessMap
from qlog_assets.sources.column_map import AOL, ColumnMap
from qlog_assets.sources.json_map import JsonMap, json_path
from qlog_assets.sources.readers import MAPS, LogSource
from qlog_assets.sources.readers_access import decode_value, find_query, hash_user

FORMATS = Path(__file__).parents[1] / "data" / "formats"
KEY = bytes(range(32))
MAPPED = ColumnMap(user="u", query="q", time="t")
POSITIONS = ColumnMap(user=1, query=2, time=3)
SEARCHES = JsonMap(user="user", query="request.q", time="at")
VISITORS = AccessMap(user="address_and_agent", query_parameter="q", path="/search")


def fixture(name: str) -> bytes:
    return (FORMATS / name).read_bytes()


def mapped(format: str, name: str) -> Any:
    return MAPS[format].load(FORMATS / name)


# A delimiter found by itself ----------------------------------------------------------------------------------------


def test_a_spreadsheets_csv_is_read_by_the_delimiter_of_its_header(read: Callable[..., Any]) -> None:
    result = read(fixture("semicolon.csv"), "table", mapped("table", "semicolon.toml"))
    assert result.accepted == [
        ("v-17", "Tee; grün", datetime(2006, 3, 1, 7, 17), None, None),
        ("v-17", "Wetter Köln", datetime(2006, 3, 1, 7, 20), 2, "https://wetter.example/koeln"),
        ("v-18", '5" Rohr, verzinkt', datetime(2006, 3, 2, 11), 1, "https://rohre.example/"),
    ]
    assert result.reasons == {5: "empty_query", 6: "bad_time"}


@pytest.mark.parametrize("delimiter", ["\t", ",", ";", "|"])
@pytest.mark.parametrize("columns", [MAPPED, POSITIONS], ids=["names", "positions"])
def test_each_delimiter_is_found_and_counts_as_if_it_were_named(
    read: Callable[..., Any], tmp_path: Path, delimiter: str, columns: ColumnMap
) -> None:
    # What a row holds does not count: the first query has every other delimiter in it.
    others = "".join({"\t", ",", ";", "|"} - {delimiter})
    rows = [("u", "q", "t"), ("1", f"tea{others * 9}", "2006-03-01"), ("2", "cake", "2006-03-02")]
    content = "".join(delimiter.join(row) + "\n" for row in rows)
    assert [row[:2] for row in read(content, "table", columns).accepted] == [("1", f"tea{others * 9}"), ("2", "cake")]
    path = tmp_path / "log.csv"
    path.write_text(content, encoding="utf-8")
    named = columns.with_changes(delimiter=delimiter)
    assert LogSource(path, "table", columns).column_map == LogSource(path, "table", named).column_map == named


@pytest.mark.parametrize(
    ("header", "columns", "says"),
    [
        ("a,b;c,d;e", POSITIONS, "can be divided by comma or semicolon: say which"),
        ("a b c", POSITIONS, "has 1 columns and not the 3 of the column map, whether divided by tab, comma"),
        ("u,query,t", MAPPED, "no single column named 'q', whether divided by tab, comma"),
        ("u,q,t,x", MAPPED.with_changes(field_count=3), "has 4 columns and not the 3"),
        ('"u;q,t', MAPPED.with_changes(quote='"'), "opens a quote"),
    ],
)
def test_a_header_that_does_not_tell_its_delimiter_is_refused_in_one_line(
    read: Callable[..., Any], header: str, columns: ColumnMap, says: str
) -> None:
    with pytest.raises(QlogError, match=says) as raised:
        read(f"{header}\n1,2,3\n", "table", columns)
    assert "\n" not in str(raised.value) and header not in str(raised.value)


def test_rows_of_a_file_without_a_header_never_say_how_others_are_divided(read: Callable[..., Any]) -> None:
    columns = POSITIONS.with_changes(header=False, field_count=3)
    assert read("1;tea;2006-03-01\n" * 9 + "1\ttea\t2006-03-01\n", "table", columns).facts.accepted == 1


def test_a_batch_of_an_earlier_version_is_read_as_it_was(tmp_path: Path) -> None:
    """Its provenance has these keys and no others: another one would read the file, and charge its months, again."""
    assert AOL.as_public() == {
        "user": 1, "query": 2, "time": 3, "rank": 4, "url": 5, "time_format": "iso", "encoding": "utf-8",
        "delimiter": "\t", "quote": "none", "header": False, "field_count": 5, "not_queries": ["-"],
        "header_names": ["AnonID", "Query", "QueryTime", "ItemRank", "ClickURL"],
    }  # fmt: skip
    path = tmp_path / "log.tsv"
    path.write_text("u\tq\tt\n1\ttea\t2006-03-01\n", encoding="utf-8")
    assert LogSource(path, "table", MAPPED).column_map.as_public()["delimiter"] == "\t"


# JSON lines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lambda data: pa.compress(data, "zstd", asbytes=True)])
def test_nested_json_lines_are_read_by_paths(read: Callable[..., Any], compress: Callable[[bytes], bytes]) -> None:
    result = read(compress(fixture("nested.jsonl")), "json", mapped("json", "nested.toml"))
    assert result.accepted == [
        ("71", "tea pot", datetime(2006, 3, 1, 7, 17, 12), 1, "https://pots.example/1"),
        ("71", "thé vert", datetime(2006, 3, 1, 7, 20), None, None),
    ]
    assert result.reasons == {3: "empty_query", 4: "no_plain_value", 5: "empty_user", 6: "no_json_object"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("7", "no_json_object"),
        ('[{"user": 1}]', "no_json_object"),
        ('{"user": 1, "request": {"q": "tea"}, "at": "2006-03-01"} x', "no_json_object"),
        ('{"user": 1, "request": {"q": "\\ud800"}, "at": "2006-03-01"}', "no_json_object"),
        ('{"user": 1, "request": {"q": "a\\u0000b"}, "at": "2006-03-01"}', "nul_byte"),
        ('{"user": true, "request": {"q": "tea"}, "at": "2006-03-01"}', "no_plain_value"),
        ('{"user": 1, "request": {"q": ["tea"]}, "at": "2006-03-01"}', "no_plain_value"),
        ('{"user": null, "request": {"q": "tea"}, "at": "2006-03-01"}', "empty_user"),
        ('{"user": 9007199254740993.0, "request": {"q": "tea"}, "at": "2006-03-01"}', "inexact_user"),
        ('{"user": NaN, "request": {"q": "tea"}, "at": "2006-03-01"}', "missing_user"),
        ('{"user": 1, "request": "tea", "at": "2006-03-01"}', "empty_query"),
        ('{"user": 1, "request": {"q": "tea"}, "at": 2006}', "bad_time"),
        ('{"user": 1, "request.q": "tea", "at": "2006-03-01"}', "empty_query"),
        ("", "no_json_object"),
        ('{"x": ' + "[" * 50_000 + "]" * 50_000 + "}", "empty_user"),
    ],
)
def test_a_bad_json_line_costs_itself_alone(read: Callable[..., Any], line: str, reason: str) -> None:
    good = json.dumps({"user": "7", "request": {"q": "tea"}, "at": "2006-03-01"})
    result = read(f"{good}\n{line}\n{good}\n", "json", SEARCHES)
    assert (result.facts.accepted, result.reasons) == (2, {2: reason})


GOOD = '{"user": "7", "request": {"q": "tea"}, "at": "2006-03-01"}'


@pytest.mark.parametrize(
    "content",
    [
        '[\n{"user": 1}\n]\n',
        '[{"user": 1}, {"user": 2}]',
        '{\n "user": 1\n}\n',
        # The last record of these has no comma behind it, and would be read.
        f"[\n{GOOD},\n{GOOD}\n]\n",
        f"[{GOOD},\n{GOOD},\n{GOOD}\n]\n",
    ],
)
def test_one_json_value_over_the_whole_file_is_refused_with_what_to_do(read: Callable[..., Any], content: str) -> None:
    with pytest.raises(QlogError, match=r"one JSON value and not one object per line: .* jq -c"):
        read(content, "json", SEARCHES)


def test_paths_name_keys_with_dots_and_places_in_lists(read: Callable[..., Any]) -> None:
    columns = JsonMap(user='"a.b"', query="fields.query[0]", time="at.ms", time_format="epoch_milliseconds")
    line = {"a.b": "u", "a": {"b": "no"}, "fields": {"query": ["tea", "cake"]}, "at": {"ms": 1141209000000}}
    assert read(json.dumps(line), "json", columns).accepted == [("u", "tea", datetime(2006, 3, 1, 10, 30), None, None)]
    for wrong in ("", ".", "a.", "a..b", "a[x]", 'a"b', "a.*", "[0]"):
        with pytest.raises(ValueError, match="is no path"):
            json_path(wrong)
        with pytest.raises(ParameterError, match="query"):
            JsonMap(user="u", query=wrong, time="t")


# Compressed and other files -----------------------------------------------------------------------------------------


def test_a_zstd_file_is_read_like_the_file_in_it(read: Callable[..., Any]) -> None:
    packed = fixture("aol.txt.zst")
    result = read(packed)
    assert [row[:2] for row in result.accepted] == [("17", "tea pot"), ("19", "green tea")]
    assert result.reasons == {3: "empty_query"}
    # Two frames in one file, as `cat a.zst b.zst` makes it.
    assert read(packed + pa.compress(b"7\ttea\t2006-03-01\t\t\n", "zstd", asbytes=True)).facts.read == 4
    assert result.progress[-1][0] == result.progress[-1][1] == len(packed)
    for damaged in (packed[:-20], packed[:9], packed + b"\nmore", packed[:40] + b"\0\0\0" + packed[43:]):
        with pytest.raises(QlogError, match=r"log\.txt: is damaged or cut short"):
            read(damaged)


def test_a_zstd_file_larger_than_a_block_is_read_whole(read: Callable[..., Any]) -> None:
    lines = "".join(f"{row}\tquery {row}\t2006-03-01 00:00:00\t\t\n" for row in range(200_000))
    assert read(pa.compress(lines.encode(), "zstd", asbytes=True)).facts.accepted == 200_000


@pytest.mark.parametrize("typed", [b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"\x1f\x8b\x08\xff"])
def test_what_the_first_person_typed_in_latin_1_does_not_make_a_log_compressed(
    read: Callable[..., Any], typed: bytes
) -> None:
    columns = ColumnMap(query=1, user=2, time=3, header=False, field_count=3, encoding="latin-1")
    result = read(typed + b" x\t1\t2006-03-01\ntea\t2\t2006-03-01\n", "table", columns)
    assert [row[1] for row in result.accepted] == [typed.decode("latin-1") + " x", "tea"]


@pytest.mark.parametrize("format", ["table", "aol", "json"])
def test_a_workbook_is_refused_with_what_to_do(read: Callable[..., Any], format: str) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    columns = {"table": MAPPED, "json": SEARCHES}.get(format)
    whole = stream.getvalue()
    # As Excel writes it now and wrote it then, one cut short, and one whose beginning is lost.
    for workbook in (whole, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, whole[:60], whole[4:]):
        with pytest.raises(QlogError, match="is a spreadsheet and not text: save it there as CSV UTF-8"):
            read(workbook, format, columns, name="log.xlsx")


def test_excels_unicode_text_is_refused_with_what_to_do(read: Callable[..., Any]) -> None:
    with pytest.raises(QlogError, match="is UTF-16: save it as UTF-8"):
        read("\ufeffu\tq\tt\n1\ttea\t2006-03-01\n".encode("utf-16-le"), "table", MAPPED)


# Access logs --------------------------------------------------------------------------------------------------------


def test_searches_are_taken_out_of_an_access_log(keyed: Callable[..., Any]) -> None:
    agent = r"Mozilla/5.0 (X11; Linux x86_64; rv:1.9) \"Firefox\"/1.5"
    first, second = hash_user(KEY, "192.0.2.7", agent), hash_user(KEY, "192.0.2.8", "curl/7.15")
    result = keyed(fixture("access.log"), mapped("access", "access.toml"))
    assert result.accepted == [
        (second, "green tea", datetime(2006, 3, 1, 6, 30), None, None),
        (first, "tea pot!", datetime(2006, 3, 1, 7, 17, 20), None, None),
        (first, "thé vert", datetime(2006, 3, 1, 7, 18, 20), None, None),
    ]
    assert result.facts.rejected == {
        "bad_time": 1, "empty_query": 1, "no_access_line": 1, "not_a_search": 5, "undecodable_bytes": 1,
    }  # fmt: skip


def test_the_servers_own_user_names_are_users_and_nobody_is_none(keyed: Callable[..., Any]) -> None:
    columns = AccessMap(user="auth_user", query_parameter="q")
    result = keyed(fixture("access.log"), columns, key=None)
    assert {row[0] for row in result.accepted} == {"anna"}
    assert result.facts.rejected["empty_user"] == 4


def test_a_hash_follows_key_address_and_agent_and_is_a_canonical_id() -> None:
    made = hash_user(KEY, "192.0.2.7", "a b")
    assert made == hash_user(KEY, "192.0.2.7", "a b") and len(made) == 33 and made.isalnum()
    others = {hash_user(bytes(32), "192.0.2.7", "a b"), hash_user(KEY, "192.0.2.7", "a"), hash_user(KEY, "::1", "a b")}
    assert made not in others and len(others) == 3


def test_users_are_never_hashed_without_a_key(keyed: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="the data set's key"):
        keyed(fixture("access.log"), VISITORS, key=None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("tea+pot", "tea pot"),
        ("tea%2Bpot", "tea+pot"),
        ("100%", "100%"),
        ("%zz", "%zz"),
        (r"th\xc3\xa9", "thé"),
        (r"th\xe9", None),
        (r"\"tea\"", '"tea"'),
        (r"a\\x41", r"a\x41"),
        ("%F0%9F%8D%B5", "\U0001f375"),
        ("%ff", None),
    ],
)
def test_a_parameter_is_decoded_as_servers_write_it(value: str, text: str | None) -> None:
    assert decode_value(value) == text


@pytest.mark.parametrize(
    ("request_line", "value"),
    [
        ("GET /search?q=tea HTTP/1.1", "tea"),
        ("GET /search?a=1&q=tea&q=cake HTTP/1.1", "tea"),
        ("GET /search?%71=tea HTTP/1.1", "tea"),
        ("GET https://site.example/search/all?q=tea HTTP/1.1", "tea"),
        ("GET /search?q=tea pot HTTP/1.1", "tea pot"),
        ("GET /search?q HTTP/1.1", ""),
        ("GET /search?q=a=b", "a=b"),
        ("GET /search?qq=tea HTTP/1.1", None),
        ("GET /other/search?q=tea HTTP/1.1", None),
        ("HEAD /search?q=tea HTTP/1.1", None),
        ("GET /search HTTP/1.1", None),
        ("", None),
    ],
)
def test_a_request_is_a_search_if_it_gets_the_path_with_the_parameter(request_line: str, value: str | None) -> None:
    assert find_query(request_line, VISITORS) == value


def test_a_line_without_an_agent_has_no_user_to_hash(keyed: Callable[..., Any]) -> None:
    line = '192.0.2.7 - - [01/Mar/2006:08:17:12 +0100] "GET /search?q=tea HTTP/1.0" 200 -\n'
    assert keyed(line, VISITORS).facts.rejected == {"empty_user": 1}


# SogouQ and times ---------------------------------------------------------------------------------------------------


def test_a_sogou_file_is_read_with_its_date_brackets_and_double_rank(read: Callable[..., Any]) -> None:
    result = read(fixture("sogou.txt"), "table", mapped("table", "sogou.toml"))
    assert result.accepted == [
        ("2982199073774412", "绿茶 做法", datetime(2006, 3, 5, 0, 0, 3), 8, "cha.example/lvcha.html"),
        ("07594220010824798", "天气", datetime(2006, 3, 5, 0, 0, 4), 1, "tianqi.example/"),
        ("07594220010824798", "天气 [北京]", datetime(2006, 3, 5, 23, 59, 59), 2, "tianqi.example/beijing"),
    ]
    assert result.reasons == {4: "bad_time", 5: "bad_rank"}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"time_format": "%H:%M:%S"}, "has no year and month in it: if the file is of one day, give it as date"),
        ({"time_format": "%d %H:%M"}, "has no year and month"),
        ({"time_format": "%Y %H:%M"}, "has no year and month"),
        ({"time_format": "%Y-%m-%d %H:%M", "date": "2006-03-05"}, "has a date of its own"),
        ({"date": "2006-03-05"}, "a time in iso has a date of its own"),
        ({"time_format": "%H:%M", "date": "5 March"}, "date"),
        ({"rank_and_order": True}, "name that field as rank"),
    ],
)
def test_times_that_fall_into_no_month_are_refused_in_the_map(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        ColumnMap(**{"user": 1, "query": 2, "time": 3, **values})


# Rows that stand for several records --------------------------------------------------------------------------------

COUNTED = MAPPED.with_changes(count="n", time_format="%Y-%m")


def test_a_row_is_taken_as_often_as_its_count_says_and_dated_to_its_month(read: Callable[..., Any]) -> None:
    result = read("u,q,t,n\n1,tea,2006-03,3\n2,cake,2006-04,1\n1,milk,2006-13,2\n", "table", COUNTED)
    assert [row[:3] for row in result.accepted] == [("1", "tea", datetime(2006, 3, 1))] * 3 + [
        ("2", "cake", datetime(2006, 4, 1))
    ]
    assert (result.facts.read, result.facts.accepted) == (5, 4) and result.reasons == {4: "bad_time"}
    assert result.facts.months == {"2006-03": 3, "2006-04": 1} == result.by_month


@pytest.mark.parametrize("count", ["", "0", "-1", "1.5", "many", "1e3", "1000001", "99999999999999999999", "nan"])
def test_a_count_that_is_no_positive_whole_number_costs_its_own_row(read: Callable[..., Any], count: str) -> None:
    result = read(f"u,q,t,n\n1,tea,2006-03,{count}\n2,cake,2006-03,2\n", "table", COUNTED)
    assert result.reasons == {2: "bad_count"} and (result.facts.read, result.facts.accepted) == (3, 2)


def test_a_column_of_counts_that_is_not_there_is_refused(read: Callable[..., Any]) -> None:
    with pytest.raises(QlogError, match="no single column named 'n'"):
        read("u,q,t\n1,tea,2006-03\n", "table", COUNTED)


def test_counts_of_a_parquet_file_may_be_numbers_of_any_kind(read: Callable[..., Any]) -> None:
    for counts in (pa.array([2, None, 0]), pa.array([2.0, 1.5, float("nan")]), pa.array(["2", "two", ""])):
        sink = io.BytesIO()
        times = [datetime(2006, 3, 1)] * 3
        pq.write_table(pa.table({"u": [7, 8, 9], "q": ["tea"] * 3, "t": times, "n": counts}), sink)
        result = read(sink.getvalue(), "table", COUNTED)
        assert [row[0] for row in result.accepted] == ["7", "7"]
        assert result.reasons == {2: "bad_count", 3: "bad_count"}
