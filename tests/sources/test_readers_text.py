"""Quotes, encodings and bytes of any kind: what a line is, whatever stands in it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from qlog_assets.sources.column_map import ColumnMap
from qlog_assets.sources.readers_lines import GZIP_MAGIC, LONGEST_LINE, OTHER_MAGIC, LandingFile

CSV = ColumnMap(user=1, query=2, time=3, delimiter=",", header=False, field_count=3)
GOOD = "7\tgood query\t2006-03-01 07:17:12\t\t\n"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAGIC = (GZIP_MAGIC, *OTHER_MAGIC, b"PAR1")

steady = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-16-le", "latin-1", "shift_jis", "utf-8-sig", "gbk"])
def test_a_file_in_another_encoding_is_read_as_its_text(read: Callable[..., Any], encoding: str) -> None:
    query = "caf\xe9" if encoding == "latin-1" else "東京 天気"
    columns = ColumnMap(user="u", query="q", time="t", encoding=encoding)
    content = f"u\tq\tt\n1\t{query}\t2006-03-01 10:30:00\n2\t{query}\t2006-03-01 10:30:00"
    result = read(content.encode(encoding), "table", columns)
    assert [row[1] for row in result.accepted] == [query, query]


def test_undecodable_bytes_in_another_encoding_cost_only_their_own_line(read: Callable[..., Any]) -> None:
    good = "1\t天气\t2006-03-01 10:30:00\n".encode("gb18030")
    columns = ColumnMap(user=1, query=2, time=3, encoding="gb18030", header=False)
    result = read(good + b"2\t\x81\t2006-03-01 10:30:00\n" + b"3\tx\t2006-03-01\xff\n" + good, "table", columns)
    assert result.reasons == {2: "undecodable_bytes", 3: "undecodable_bytes"}
    assert result.facts.accepted == 2


def test_quoted_fields_hold_delimiters_quotes_and_line_feeds(read: Callable[..., Any]) -> None:
    result = read(
        'u,"a, b ""c""\nd",2006-03-01 10:30:00\n'
        '"u","5"" pipe",2006-03-02 10:30:00\n'
        'u,5" pipe,2006-03-03 10:30:00\n'
        'u,"x"y,2006-03-04 10:30:00\n'
        "u,,2006-03-05 10:30:00\n",
        "table",
        CSV,
    )
    assert [row[1] for row in result.accepted] == ['a, b "c"\nd', '5" pipe', '5" pipe', "xy"]
    assert result.reasons == {6: "empty_query"}
    assert result.facts.read == 5


def test_a_quote_that_is_never_closed_costs_its_own_line_only(read: Callable[..., Any]) -> None:
    good = "u,q,2006-03-01 10:30:00\n"
    result = read(good + 'u,"open,2006-03-01 10:30:00\n' + good * 3, "table", CSV)
    assert result.reasons == {2: "unclosed_quote"}
    assert result.facts.accepted == 4
    rows = 2 * LONGEST_LINE // len(good)
    result = read(good + 'u,"open,2006-03-01 10:30:00\n' + good * rows, "table", CSV)
    assert result.reasons == {2: "unclosed_quote"}
    assert result.facts.accepted == rows + 1


field_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=8)


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


@given(file_bytes, st.sampled_from(["aol", "excite", "csv", "gb18030", "latin-1"]))
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
    }
    assume(content.removeprefix(BYTE_ORDER_MARK) and not content.startswith(MAGIC))
    result = read(content, "table" if kind in maps else kind, maps.get(kind))
    facts = result.facts
    assert facts.accepted + sum(facts.rejected.values()) == facts.read
    assert facts.accepted == len(result.accepted) == sum(facts.months.values())
    assert len(result.rejected) == sum(facts.rejected.values())
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    if kind in ("csv", "latin-1"):
        assert facts.read <= lines
    else:
        assert facts.read == lines
    assert len(result.reasons) == len(result.rejected)


@given(st.binary(max_size=60), st.integers(1, 7), st.sampled_from(["utf-8", "gb18030", "utf-16-le", "latin-1"]))
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
