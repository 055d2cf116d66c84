"""The normalisation is one function on two paths: the reference and the SQL that stands in for it on ASCII strings."""

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Callable, Iterator

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qlog_assets.sources.normalise import (
    WHITESPACE,
    WHITESPACE_CLASS,
    install_macros,
    normalise_text,
    normalise_url,
)
from qlog_assets.storage.engine import DuckDBEngine

steady = settings(derandomize=True, database=None, deadline=None)

ascii_text = st.text(st.characters(max_codepoint=127), max_size=40)
spaced_text = st.text(st.sampled_from("aB\tZ \n\v\f\r\x1c\x1d\x1e\x1f\x00\x08\x0e\x7f-/"), max_size=12)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
url_text = st.text(st.sampled_from("hHtTpP:/?#.wW@ \té"), max_size=16)


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    with duckdb.connect() as connection:
        engine = DuckDBEngine(connection)
        install_macros(engine)
        yield engine


@pytest.fixture(scope="module")
def connection(engine: DuckDBEngine) -> duckdb.DuckDBPyConnection:
    return engine.connection


def in_sql(connection: duckdb.DuckDBPyConnection, macro: str, texts: list[str]) -> list[str]:
    connection.register("given", pa.table({"id": range(len(texts)), "raw": pa.array(texts, pa.string())}))
    return [row[0] for row in connection.execute(f"SELECT {macro}(raw) FROM given ORDER BY id").fetchall()]


@pytest.mark.parametrize(
    ("raw", "normalised"),
    [
        ("  New   YORK\tTimes ", "new york times"),
        ("ｇｏｏｇｌｅ　ｍａｐｓ", "google maps"),
        ("STRASSE Straße", "strasse strasse"),
        ("ﬁnance", "finance"),
        ("İstanbul", "i̇stanbul"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("a\u2028b\u00a0c", "a b c"),
        ("\x85", ""),
        ("", ""),
    ],
)
def test_a_query_is_folded_and_its_white_space_collapsed(raw: str, normalised: str) -> None:
    assert normalise_text(raw) == normalised


def test_every_character_and_any_mix_of_difficult_ones_is_normalised_once_and_for_all() -> None:
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    assert [text for text in characters if normalise_text(once := normalise_text(text)) != once] == []
    difficult = [text for text in characters if normalise_text(text) != text or unicodedata.combining(text)]
    draw = random.Random(7)
    mixes = ["".join(draw.choices(difficult, k=draw.randint(2, 5))) for _ in range(20_000)]
    assert [text for text in mixes if normalise_text(once := normalise_text(text)) != once] == []


@given(any_text)
@example("\u0345\u03b1\u0301")
@example("\u1fb3\u0301")
@example("\u1e9e\u0307\u0323")
@steady
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = normalise_text(text)
    assert normalise_text(once) == once
    assert once == " ".join(once.split())


def test_the_white_space_constants_are_what_python_calls_white_space(connection: duckdb.DuckDBPyConnection) -> None:
    spaces = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
    assert sorted(WHITESPACE) == spaces
    characters = [chr(code) for code in range(1, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    connection.register("characters", pa.table({"text": characters}))
    matched = connection.execute(
        f"SELECT text FROM characters WHERE regexp_full_match(text, '{WHITESPACE_CLASS}') ORDER BY text"
    ).fetchall()
    assert [row[0] for row in matched] == spaces


@given(st.lists(st.one_of(ascii_text, spaced_text), min_size=1, max_size=30))
@settings(steady, max_examples=100)
def test_sql_and_reference_agree_on_ascii_queries(connection: duckdb.DuckDBPyConnection, texts: list[str]) -> None:
    assert in_sql(connection, "normalise_ascii", texts) == [normalise_text(text) for text in texts]


def test_sql_and_reference_agree_on_every_ascii_character_in_every_place(connection: duckdb.DuckDBPyConnection) -> None:
    texts = [text for code in range(128) for c in [chr(code)] for text in (c, c + "a", "a" + c, "a" + c + "b", c * 3)]
    assert in_sql(connection, "normalise_ascii", texts) == [normalise_text(text) for text in texts]


@given(st.lists(st.one_of(ascii_text, spaced_text, url_text.filter(str.isascii)), min_size=1, max_size=30))
@settings(steady, max_examples=100)
def test_sql_and_reference_agree_on_ascii_urls(connection: duckdb.DuckDBPyConnection, urls: list[str]) -> None:
    assert in_sql(connection, "normalise_url_ascii", urls) == [normalise_url(url) for url in urls]


@pytest.mark.parametrize(
    ("raw", "normalised"),
    [
        ("HTTP://WWW.Example.COM/", "http://www.example.com"),
        ("http://Example.com/Path/Page?Q=A#F", "http://example.com/Path/Page?Q=A#F"),
        ("Example.com//", "example.com"),
        (" http://a.example/x/ \t", "http://a.example/x"),
        ("http://a.example?U=/", "http://a.example?U="),
        ("http://MÜNCHEN.example/Ä", "http://münchen.example/Ä"),
        ("/", ""),
    ],
)
def test_a_url_keeps_its_path_and_loses_the_case_of_its_host(raw: str, normalised: str) -> None:
    assert normalise_url(raw) == normalised


@given(st.one_of(url_text, any_text))
@steady
def test_normalising_a_url_twice_is_normalising_it_once(url: str) -> None:
    once = normalise_url(url)
    assert normalise_url(once) == once


@given(st.lists(any_text, min_size=1, max_size=40), st.sampled_from([normalise_text, normalise_url]))
@settings(steady, max_examples=50)
def test_macro_and_table_together_are_the_reference_on_any_text(
    engine: DuckDBEngine, texts: list[str], reference: Callable[[str], str]
) -> None:
    macro = "normalise_ascii" if reference is normalise_text else "normalise_url_ascii"
    log = pa.table({"id": range(len(texts)), "query": pa.array(texts, pa.string())})
    with engine.table("raw_beyond_ascii", log):
        mapped = engine.mapped_table("log/queries_beyond_ascii", "other_queries", reference)
        assert mapped == len({text for text in texts if not text.isascii()})
        rows = engine.connection.execute(
            f"""SELECT CASE WHEN strlen(log.query) = length(log.query) THEN {macro}(log.query) ELSE other.normalised END
                FROM raw_beyond_ascii AS log LEFT JOIN other_queries AS other ON other.raw = log.query
                ORDER BY log.id"""
        ).fetchall()
    assert [row[0] for row in rows] == [reference(text) for text in texts]


def test_more_distinct_strings_than_one_batch_are_all_mapped(
    engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qlog_assets.storage.engine.BATCH_ROWS", 700)
    many = pa.table({"query": [f"É{number % 5000}" for number in range(20_000)]})
    with engine.table("raw_beyond_ascii", many):
        assert engine.mapped_table("log/queries_beyond_ascii", "mapped", normalise_text) == 5000
    wrong = engine.connection.execute("SELECT count(*) FROM mapped WHERE normalised <> 'é' || substr(raw, 2)")
    assert wrong.fetchall() == [(0,)]
