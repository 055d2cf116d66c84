"""Quotes, encodings and bytes of any kind: what a line is, whatever stands in it."""

from __future__ import annotations

import codecs
import contextlib
import csv
import encodings.aliases
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.sources.access_map import AccessMap
from qlog_assets.sources.column_map import ColumnMap
from qlog_assets.sources.compressed import GZIP_MAGIC
from qlog_assets.sources.json_map import JsonMap
from qlog_assets.sources.other_files import OTHER_MAGIC, ZIP_MAGIC
from qlog_assets.sources.readers_lines import LandingFile

CSV = ColumnMap(user=1, query=2, time=3, delimiter=",", header=False, field_count=3)
GOOD = "7\tgood query\t2006-03-01 07:17:12\t\t\n"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAGIC = (GZIP_MAGIC, ZIP_MAGIC, *OTHER_MAGIC)

steady = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("encoding", ["gb18030", "latin-1", "shift_jis", "utf-8-sig", "gbk", "euc_kr", "big5"])
def test_a_file_in_another_encoding_is_read_as_its_text(read: Callable[..., Any], encoding: str) -> None:
    query = {"latin-1": "caf\xe9", "euc_kr": "서울 날씨"}.get(encoding, "東京 天氣")
    columns = ColumnMap(user="u", query="q", time="t", encoding=encoding)
    content = f"u\tq\tt\n1\t{query}\t2006-03-01 10:30:00\n2\t{query}\t2006-03-01 10:30:00"
    result = read(content.encode(encoding), "table", columns)
    assert [row[1] for row in result.accepted] == [query, query]


def test_undecodable_bytes_in_another_encoding_cost_only_their_own_line(read: Callable[..., Any]) -> None:
    good = "1\t天气\t2006-03-01 10:30:00\n".encode("gb18030")
    columns = ColumnMap(user=1, query=2, time=3, encoding="gb18030", header=False, field_count=3)
    result = read(good + b"2\t\x81\t2006-03-01 10:30:00\n" + b"3\tx\t2006-03-01\xff\n" + good, "table", columns)
    assert result.reasons == {2: "undecodable_bytes", 3: "undecodable_bytes"}
    assert result.facts.accepted == 2


def test_quoted_fields_hold_delimiters_and_quotes(read: Callable[..., Any]) -> None:
    result = read(
        'u,"a, b ""c""",2006-03-01 10:30:00\n'
        '"u","5"" pipe",2006-03-02 10:30:00\n'
        'u,5" pipe,2006-03-03 10:30:00\n'
        'u,"x"y,2006-03-04 10:30:00\n'
        "u,,2006-03-05 10:30:00\n",
        "table",
        CSV,
    )
    assert [row[1] for row in result.accepted] == ['a, b "c"', '5" pipe', '5" pipe', "xy"]
    assert result.reasons == {5: "empty_query"}
    assert result.facts.read == 5


@pytest.mark.parametrize("later", ["", 'm,"x",2006-03-01 10:30:00\n', 'm,x",2006-03-01 10:30:00\n'])
def test_a_stray_quote_costs_its_own_line_and_nobody_elses(read: Callable[..., Any], later: str) -> None:
    """Joined up to the next quote, the lines between would be one accepted query: other people's rows, gone."""
    good = "u,q,2006-03-01 10:30:00\n"
    result = read(good + 'm,"5 inch pipe,2006-03-01 10:30:00\n' + good * 100 + later + good, "table", CSV)
    assert result.reasons == {2: "unclosed_quote"}
    assert [row[1] for row in result.accepted if row[0] == "u"] == ["q"] * 102
    assert result.facts.read == 103 + bool(later)


def test_a_field_with_a_line_feed_is_no_record(read: Callable[..., Any]) -> None:
    """No search has one. Each of the lines stands for itself."""
    result = read('u,"one\ntwo",2006-03-01 10:30:00\nu,three,2006-03-01 10:30:00\n', "table", CSV)
    assert result.reasons == {1: "unclosed_quote", 2: "wrong_field_count"}
    assert [row[1] for row in result.accepted] == ["three"]


def test_a_quoted_header_that_goes_on_in_the_next_line_is_an_error(read: Callable[..., Any]) -> None:
    columns = ColumnMap(user=1, query=2, time=3, delimiter=",")
    with pytest.raises(QlogError, match="its first line opens a quote"):
        read('u,"q\nq",t\nu,three,2006-03-01 10:30:00\n', "table", columns)


def accepted_encodings() -> list[str]:
    """Every encoding of Python's that a column map takes."""
    names = sorted({*encodings.aliases.aliases.values(), "utf-8-sig", "idna", "punycode", "unicode_escape"})
    accepted = []
    for name in names:
        with contextlib.suppress(ParameterError):
            accepted.append(codecs.lookup(CSV.with_changes(encoding=name).encoding).name)
    return accepted


def test_no_bytes_of_a_line_change_another_line_in_any_encoding(tmp_path: Path) -> None:
    """A code that shifts or escapes would let one person's bytes turn the rows that follow into something else."""
    names = accepted_encodings()
    assert {"utf-8", "gb18030", "shift_jis", "euc_jp", "cp037", "big5hkscs", "johab"} <= set(names)
    shifts = [
        b"+ab",
        b"+",
        b"\x1b$B",
        b"\x1b$)C\x0e",
        b"\x0e",
        b"~{",
        b"~",
        b"\\",
        b"\\x0a",
        b"\\u000a",
        b"\\N{LINE FEED}",
    ]
    leads = [bytes([first, second]) for first in range(0x80, 0x100) for second in (0x30, 0x40, 0x81, 0xA1, 0xFE)]
    odd = [*shifts, *leads, *(bytes([byte]) for byte in range(256)), *(lead + b"\x81" for lead in leads)]
    good = "good line"
    for name in names:
        mark, end = codecs.BOM_UTF8 if name == "utf-8-sig" else b"", "\n".encode(name).removeprefix(codecs.BOM_UTF8)
        line = good.encode(name).removeprefix(codecs.BOM_UTF8) + end
        lines = [text for text in odd if end not in text]
        path = tmp_path / name
        path.write_bytes(mark + line + b"".join(text + end + line for text in lines))
        landing = LandingFile(path, name)
        read = b"".join(landing.chunks()).split(b"\n")[:-1]
        landing.close()
        assert len(read) == 2 * len(lines) + 1, name
        assert set(read[::2]) == {good.encode()}, name


@pytest.mark.parametrize(
    "encoding",
    ["utf-7", "hz", "iso2022_jp", "ISO-2022-KR", "utf-16", "UTF-16LE", "utf_32_be", "unicode_escape", "idna"],
)
def test_an_encoding_in_which_one_line_can_change_another_is_refused(encoding: str) -> None:
    with pytest.raises(ParameterError, match=r"encoding: .* in which the bytes of one row can change others"):
        CSV.with_changes(encoding=encoding)


def test_the_first_row_of_a_file_without_a_header_does_not_say_how_wide_rows_are() -> None:
    with pytest.raises(ParameterError, match="field_count: a file without a header needs it"):
        CSV.with_changes(field_count=None)


field_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), max_size=8)


@given(st.lists(st.tuples(field_text, field_text), min_size=1, max_size=12), st.booleans())
@settings(steady, max_examples=60)
def test_what_a_spreadsheet_quotes_comes_back_as_it_was(
    read: Callable[..., Any], rows: list[tuple[str, str]], quote_all: bool
) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL)
    writer.writerows(
        (f"u{index:03d}", f"q{query}", "2006-03-01 10:30:00", "7", f"h{url}") for index, (query, url) in enumerate(rows)
    )
    columns = CSV.with_changes(rank=4, url=5, field_count=5)
    result = read(stream.getvalue(), "table", columns)
    assert [(row[1], row[4]) for row in result.accepted] == [(f"q{query}", f"h{url}") for query, url in rows]


line_bytes = st.one_of(
    st.binary(max_size=30),
    st.sampled_from([GOOD.encode().rstrip(b"\n"), b"u,q,2006-03-01 10:30:00", b'u,"q', b'"', b"\xff", b"\0", b"\r"]),
    st.lists(
        st.sampled_from([b"\t", b",", b'"', b"1", b"2006-03-01 10:30:00", b"q", b"\x81", b"\xc3\xa9"]), max_size=8
    ).map(b"".join),
)
file_bytes = st.lists(line_bytes, min_size=1, max_size=12).map(b"\n".join)


@given(file_bytes, st.sampled_from(["aol", "excite", "csv", "gb18030", "latin-1", "json", "access"]))
@example(b"\n", "aol")
@example(b"\r\n\r\n", "csv")
@example(b'"\n"\n"', "csv")
@example(BYTE_ORDER_MARK + b"\n", "aol")
@example(b"\x81\n\x81", "gb18030")
@settings(steady, max_examples=150)
def test_any_bytes_are_accepted_or_rejected_and_never_lost(read: Callable[..., Any], content: bytes, kind: str) -> None:
    maps = {
        "csv": CSV,
        "gb18030": CSV.with_changes(encoding="gb18030", quote="none"),
        "latin-1": CSV.with_changes(encoding="latin-1"),
        "json": JsonMap(user="u", query="q", time="t"),
        "access": AccessMap(user="auth_user", query_parameter="q"),
    }
    assume(content.removeprefix(BYTE_ORDER_MARK) and not content.startswith(MAGIC))
    # One JSON value over many lines is refused as a whole.
    assume(kind != "json" or not content.strip().startswith((b"[", b"{")))
    formats = {"csv": "table", "gb18030": "table", "latin-1": "table"}
    result = read(content, formats.get(kind, kind), maps.get(kind))
    facts = result.facts
    assert facts.accepted + sum(facts.rejected.values()) == facts.read
    assert facts.accepted == len(result.accepted) == sum(facts.months.values())
    assert len(result.rejected) == sum(facts.rejected.values())
    assert facts.read == content.count(b"\n") + (not content.endswith(b"\n"))
    assert len(result.reasons) == len(result.rejected)


@given(st.binary(max_size=60), st.integers(1, 7), st.sampled_from(["utf-8", "gb18030", "shift_jis", "latin-1"]))
@settings(steady, max_examples=200)
def test_where_a_block_ends_makes_no_difference(tmp_path: Path, content: bytes, block: int, encoding: str) -> None:
    assume(not content.startswith(MAGIC))
    path = tmp_path / "blocks.txt"
    path.write_bytes(content)

    def text(size: int) -> bytes:
        landing = LandingFile(path, encoding)
        chunks = list(landing.chunks(size))
        landing.close()
        assert all(chunk.endswith(b"\n") for chunk in chunks)
        return b"".join(chunks)

    assert text(block) == text(1 << 20)
