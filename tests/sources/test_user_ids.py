"""User ids: one person has one id, whichever file, type and white space the rows came in."""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qlog_assets.sources.column_map import ColumnMap
from qlog_assets.sources.normalise import WHITESPACE
from qlog_assets.sources.readers_parquet_users import user_texts
from qlog_assets.sources.user_ids import (
    INVISIBLE,
    LARGEST_WHOLE,
    MISSING,
    canonical_user,
    canonical_user_sql,
    is_plain_sql,
    reason_against,
    reason_against_sql,
)

WHEN = datetime(2006, 3, 1, 10, 30)
TABLE = ColumnMap(user="user", query="query", time="time", delimiter=",")

AROUND = st.text(st.sampled_from(WHITESPACE + INVISIBLE), max_size=3)
NUMBERS = st.integers(-(10**18), 10**18).map(str) | st.sampled_from(["0", "-0", "007", "+7", str(LARGEST_WHOLE + 1)])
POINTS = st.sampled_from(["", ".", ".0", ".000", ".5", ".0.0", "e3"])
WORDS = st.sampled_from(
    [*MISSING, "nan", "-inf", "+NaN", "Infinity", "NULL", "nancy", "i\u0307nf", "\u0130nf", "a@b.c", "x9"]
)
EXPONENTS = st.from_regex(r"-?[0-9](\.[0-9]{0,18})?[eE][+-]?[0-9]{1,4}", fullmatch=True)
IDS = st.builds(lambda *parts: "".join(parts), AROUND, NUMBERS, POINTS, AROUND) | WORDS | EXPONENTS
# What a later Unicode than Python's composes is not the question here.
ASSIGNED = st.text(st.characters(exclude_categories=["Cs", "Cn"], exclude_characters="\0"), max_size=12)
TEXTS = IDS | ASSIGNED | st.builds(lambda before, text, after: before + text + after, AROUND, ASSIGNED, AROUND)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("7", "7"),
        ("7.0", "7"),
        ("7.00", "7"),
        ("7.", "7"),
        ("1.2345678E7", "12345678"),
        ("1e+05", "100000"),
        ("3e8", "3e8"),
        ("-7.0", "-7"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("\ufeff 7.0\u00a0\u3000", "7"),
        ("7\u200b", "7"),
        (f"{LARGEST_WHOLE}.0", str(LARGEST_WHOLE)),
        ("e\u0301va", "\u00e9va"),
        # Texts that no number type writes so are ids as they stand.
        ("007", "007"),
        ("+7", "+7"),
        ("7.5", "7.5"),
        ("12e5", "12e5"),
        ("10.0.0.1", "10.0.0.1"),
        ("9007199254740993", "9007199254740993"),
    ],
)
def test_an_id_has_one_form(read: Callable[..., Any], written: str, canonical: str) -> None:
    assert canonical_user(written) == canonical
    assert reason_against(canonical) is None
    # A tab separates fields, so it cannot stand around an id here.
    (row,) = read(f"{written}\ttea\t2006-03-01 10:30:00\t\t\n").accepted
    assert row[0] == canonical


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "empty_user"),
        ("\u00a0\ufeff", "empty_user"),
        ("nan", "missing_user"),
        ("NaN", "missing_user"),
        ("-inf", "missing_user"),
        ("NULL", "missing_user"),
        ("<NA>", "missing_user"),
        ("\\N", "missing_user"),
        (f"{LARGEST_WHOLE + 1}.0", "inexact_user"),
        ("9" * 5000 + ".0", "inexact_user"),
    ],
)
def test_what_is_no_id_is_rejected_for_a_reason(read: Callable[..., Any], written: str, reason: str) -> None:
    assert reason_against(canonical_user(written)) == reason
    result = read(f"{written}\ttea\t2006-03-01 10:30:00\t\t\n8\ttea\t2006-03-01 10:30:00\t\t\n")
    assert result.reasons == {1: reason} and len(result.accepted) == 1


@given(TEXTS)
def test_making_an_id_canonical_twice_is_making_it_once(text: str) -> None:
    once = canonical_user(text)
    assert canonical_user(once) == once
    assert unicodedata.is_normalized("NFC", once) and once == once.strip()


@given(st.lists(TEXTS, min_size=1, max_size=50))
def test_sql_and_reference_agree_on_any_text(connection: duckdb.DuckDBPyConnection, texts: list[str]) -> None:
    connection.register("ids", pa.table({"number": range(len(texts)), "raw": pa.array(texts, pa.string())}))
    found = connection.execute(
        f"""SELECT raw, id, {reason_against_sql("id")}, plain
            FROM (SELECT *, {canonical_user_sql("raw")} AS id, {is_plain_sql("raw")} AS plain FROM ids)
            ORDER BY number"""
    ).fetchall()
    connection.unregister("ids")
    for text, (raw, made, reason, plain) in zip(texts, found, strict=True):
        canonical = canonical_user(text)
        assert (raw, made, reason) == (text, canonical, reason_against(canonical))
        # The short way around is only taken where the long one changes nothing.
        assert not plain or (canonical == text and reason is None)


def test_sql_and_reference_agree_on_every_character_at_either_end(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE ids AS
           SELECT unnest([chr(n) || '7', '7.0' || chr(n), 'e' || chr(n)]) AS raw
           FROM (SELECT range::INTEGER AS n FROM range(1, 131072)) WHERE n NOT BETWEEN 55296 AND 57343"""
    )
    found = connection.execute(f"SELECT raw, {canonical_user_sql('raw')} FROM ids").fetchall()
    connection.execute("DROP TABLE ids")
    known = [(raw, made) for raw, made in found if not {unicodedata.category(each) for each in raw} & {"Cn"}]
    assert len(known) > 200_000
    assert [(raw, made) for raw, made in known if canonical_user(raw) != made] == []


# One person in files of every kind ------------------------------------------------------------------------------------


def parquet(users: pa.Array, **options: Any) -> bytes:
    stream = BytesIO()
    rows = len(users)
    pq.write_table(pa.table({"user": users, "query": ["tea"] * rows, "time": [WHEN] * rows}), stream, **options)
    return stream.getvalue()


def users_of(result: Any) -> list[str]:
    return sorted({row[0] for row in result.accepted})


SAME = {
    "int64": pa.array([7, -3]),
    "uint16 and a dictionary": pa.array([7], pa.uint16()).dictionary_encode(),
    "float64": pa.array([7.0, -3.0]),
    "float32": pa.array([7.0, -3.0], pa.float32()),
    "dictionary of floats": pa.array([7.0, -3.0]).dictionary_encode(),
    "decimal": pa.array([Decimal("7.00"), Decimal("-3.00")]),
    "decimal without a scale": pa.array([Decimal(7), Decimal(-3)], pa.decimal128(5, 0)),
    "decimal256": pa.array([Decimal("7.0"), Decimal("-3.0")], pa.decimal256(70, 1)),
    "text": pa.array(["7.0", " -3"]),
    "large text": pa.array(["7\n", "-3.00"], pa.large_string()),
    "bytes": pa.array([b"7", b"-3"]),
    "bytes of one width": pa.array([b"7 ", b"-3"], pa.binary(2)),
}


@pytest.mark.parametrize("kind", SAME)
def test_a_person_has_the_same_id_in_every_type_of_parquet(read: Callable[..., Any], kind: str) -> None:
    result = read(parquet(SAME[kind]), "table", TABLE)
    assert result.reasons == {}
    assert users_of(result) in (["-3", "7"], ["7"])


def test_a_uuid_is_its_text(read: Callable[..., Any]) -> None:
    who = uuid.UUID("12345678-1234-5678-1234-567812345678")
    result = read(parquet(pa.array([who.bytes, None], pa.uuid())), "table", TABLE)
    assert users_of(result) == [str(who)] and result.reasons == {2: "empty_user"}


@pytest.mark.parametrize(
    ("users", "reasons"),
    [
        (
            pa.array([7.0, 7.5, float("nan"), float("inf"), None, -0.0, 2.0**53, -(2.0**60)]),
            {
                2: "fractional_user",
                3: "missing_user",
                4: "missing_user",
                5: "empty_user",
                7: "inexact_user",
                8: "inexact_user",
            },
        ),
        (pa.array([7.0, 2.0**24, 2.0**24 - 1], pa.float32()), {2: "inexact_user"}),
        (pa.array([Decimal("7.00"), Decimal("7.25"), None]), {2: "fractional_user", 3: "empty_user"}),
        (pa.array([7, None]), {2: "empty_user"}),
        (pa.nulls(2), {1: "empty_user", 2: "empty_user"}),
    ],
    ids=["float64", "float32", "decimal", "int64", "null"],
)
def test_a_number_that_is_no_id_costs_its_own_row(
    read: Callable[..., Any], users: pa.Array, reasons: dict[int, str]
) -> None:
    assert read(parquet(users), "table", TABLE).reasons == reasons


@given(st.integers(-LARGEST_WHOLE, LARGEST_WHOLE))
def test_a_whole_number_is_one_id_as_integer_float_decimal_and_text(number: int) -> None:
    columns = (pa.array([number]), pa.array([float(number)]), pa.array([Decimal(number)], pa.decimal128(20, 2)))
    faults = np.zeros(1, np.uint8)
    found = {canonical_user(user_texts(column, faults)[0].as_py()) for column in columns}
    assert found | {canonical_user(repr(float(number)))} == {str(number)}
    assert not faults.any()
