"""Personal data is told however it is written, and ordinary queries are left alone."""

from __future__ import annotations

import re
import time
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qlog_assets.checks.personal_data import (
    EMAIL_PATTERNS,
    PHONE_PATTERNS,
    REGEX_PATTERNS,
    SSN_PATTERNS,
    card_mask,
    folded,
    outside,
    passes_check_digit,
    pattern_mask,
    personal_data_mask,
    suppression_mask,
)

email_mask = partial(pattern_mask, patterns=EMAIL_PATTERNS)
phone_mask = partial(pattern_mask, patterns=PHONE_PATTERNS)
ssn_mask = partial(pattern_mask, patterns=SSN_PATTERNS)

ORDINARY = [
    "2006 calendar",
    "area code 212",
    "area code 212 555",
    "zip code 10012",
    "10012-1234",
    "90210 homes for sale",
    "weather 03/15/2006",
    "march 15 2006",
    "2006-03-15",
    "2005 2006 2007",
    "1999 2000 2001",
    "world cup 2006 2010",
    "boeing 747-400",
    "boeing 737 800",
    "windows 2000 98 95 xp",
    "ford f-150 2004",
    "form 1040 2005",
    "form 941-2006",
    "top 100 songs of 1985",
    "lyrics 99 luftballons",
    "24 season 5 episode 12",
    "route 66",
    "911",
    "411",
    "1 800 flowers",
    "192.168.1.1",
    "windows nt 5.1.2600",
    "iso 9001 14001",
    "isbn 0306406152",
    "isbn 030640615x",
    "3.14159265358979",
    "1 2 3 4 5 6 7 8 9 10",
    "4 8 15 16 23 42",
    "$1,000,000",
    "look at me",
    "at&t",
    "dot com",
    "google.com",
    "www.yahoo.com",
    "http://www.myspace.com",
    "c# c++ .net",
    "meet @ noon",
    "@ sign",
    "50% off",
    "東京 天気",
    "größe 42",
    "",
    "-",
]
EMAILS = [
    "jsmith@mail.example",
    "j@x.example",
    "who is john.smith+x@sub.mail.example",
    "jsmith@aol",
    "jsmith @ mail.example",
    "jsmith@ mail . example",
    "john smith@aol.com password",
    "mailto:JSMITH@MAIL.EXAMPLE",
    "http://x.example/?u=jsmith%40mail.example",
    "jsmith (at) mail.example",
    "jsmith[at]mail[dot]example",
    "jsmith at mail dot com",
    "jörg@köln.example",
]
PHONES = [
    "212-555-0123",
    "(212) 555-0123",
    "212.555.0123",
    "2125550123",
    "212 555 0123",
    "1-212-555-0123",
    "+1 (212) 555-0123",
    "who called from 212/555/0123 last night",
    "tel:2125550123x55",
    "212–555–0123",
    "+44 20 7946 0958",
    "+4930123456",
    "+86 138 0013 8000",
    "13800138000",
    "138-0013-8000",
    "020 7946 0958",
    "(020) 7946 0958",
    "0171 1234567",
]
SSNS = ["078-05-1120", "078 05 1120", "078.05.1120", "078051120", "ssn 078-05-1120 lookup", "ssn:078051120"]
CARDS = [
    "4111111111111111",
    "4111 1111 1111 1111",
    "4111-1111-1111-1111",
    "4111.1111.1111.1111",
    "4111 -1111 -1111 -1111",
    "visa 4111111111111111 01/09",
    "2006 4111 1111 1111 1111 0109 123",
    "378282246310005",
    "3782 822463 10005",
    "5555555555554444",
    "2223003122003222",
    "6011111111111117",
    "4222222222222",
]

gaps = st.sampled_from(["", " ", "-", ".", "–"])
words = st.lists(st.sampled_from(["who", "is", "the", "owner", "of", "my", "visa", "call"]), max_size=3)


def valid_card(first: str, middle: str) -> str:
    """A number of the wanted length whose last digit is the check digit."""
    return next(number for last in "0123456789" if passes_check_digit(number := first + middle + last))


def test_ordinary_queries_are_left_alone() -> None:
    mask = personal_data_mask(ORDINARY)
    assert [text for text, personal in zip(ORDINARY, mask, strict=True) if personal] == []


@pytest.mark.parametrize(
    ("mask", "texts"), [(email_mask, EMAILS), (phone_mask, PHONES), (ssn_mask, SSNS), (card_mask, CARDS)]
)
def test_each_kind_is_told_in_all_its_spellings(mask: object, texts: list[str]) -> None:
    assert callable(mask)
    assert [text for text, found in zip(texts, mask(texts), strict=True) if not found] == []
    assert personal_data_mask(texts).all()


@given(
    number=st.tuples(st.integers(200, 999), st.integers(200, 999), st.integers(0, 9999)),
    separators=st.tuples(gaps, gaps, gaps),
    country=st.sampled_from(["", "1", "+1"]),
    around=st.tuples(words, words),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_no_phone_number_is_missed_for_its_format(
    number: tuple[int, int, int],
    separators: tuple[str, str, str],
    country: str,
    around: tuple[list[str], list[str]],
) -> None:
    prefix = f"{country}{separators[0]}" if country else ""
    phone = f"{prefix}{number[0]}{separators[1]}{number[1]}{separators[2]}{number[2]:04d}"
    assert phone_mask([" ".join([*around[0], phone, *around[1]])]).all()


@given(
    first=st.sampled_from("23456"),
    middle=st.text("0123456789", min_size=11, max_size=17),
    gap=gaps,
    size=st.integers(1, 6),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_no_card_number_is_missed_for_its_groups(first: str, middle: str, gap: str, size: int) -> None:
    number = valid_card(first, middle)
    grouped = gap.join(number[start : start + size] for start in range(0, len(number), size))
    assert card_mask([grouped, f"my card {grouped} please", f"12 {grouped}"]).all()


@given(number=st.text("0123456789", min_size=13, max_size=19))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_long_number_with_a_wrong_check_digit_is_no_card(number: str) -> None:
    wrong = number[:-1] + str((int(number[-1]) + 1) % 10)
    assert not card_mask([number if not passes_check_digit(number) else wrong]).any()


@given(st.text("0123456789", min_size=1, max_size=18))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_exactly_one_last_digit_passes_the_check(body: str) -> None:
    assert sum(passes_check_digit(body + last) for last in "0123456789") == 1


@given(
    serial=st.tuples(st.integers(0, 999), st.integers(0, 99), st.integers(0, 9999)),
    gap=st.sampled_from(["", " ", "-", ".", "–"]),
    around=st.tuples(words, words),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_no_social_security_number_is_missed(
    serial: tuple[int, int, int], gap: str, around: tuple[list[str], list[str]]
) -> None:
    number = f"{serial[0]:03d}{gap}{serial[1]:02d}{gap}{serial[2]:04d}"
    assert ssn_mask([" ".join([*around[0], number, *around[1]])]).all()


@given(st.text("abc 019@.-()+%/", max_size=40))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_both_engines_read_the_patterns_alike(text: str) -> None:
    """Suppression runs RE2 and the expectation Python's `re`: if they differed, a release could be refused for ever."""
    lowered = folded([text])
    by_python = any(re.search(pattern, lowered[0].as_py()) for pattern in REGEX_PATTERNS)
    by_arrow = bool((email_mask([text]) | phone_mask([text]) | ssn_mask([text]))[0])
    assert by_python == by_arrow


@pytest.mark.parametrize(
    "unit", ["1", "1 ", "a@", "a@b.", "2-", "+1(", " at ", "a at b dot ", "%40a", "(0", "0 ", "4111 "]
)
def test_no_text_makes_a_pattern_slow(unit: str) -> None:
    """All patterns in Python's backtracking engine on 20,000 characters: measured 0.19 s at most, allowed 2 s."""
    text = unit * (20_000 // len(unit))
    start = time.perf_counter()
    for pattern in REGEX_PATTERNS:
        re.search(pattern, text)
    personal_data_mask([text])
    assert time.perf_counter() - start < 2


def test_a_row_is_suppressed_for_any_of_its_texts_unless_it_was_public() -> None:
    queries = pa.chunked_array([["weather", "212-555-0123"], ["jsmith@mail.example", "4111111111111111"]])
    following = pa.array(["jsmith@mail.example", "maps", "maps", "maps"])
    assert suppression_mask([queries], None).tolist() == [False, True, True, True]
    assert suppression_mask([queries, following], None).tolist() == [True, True, True, True]
    public = pa.array(["212-555-0123", "jsmith@mail.example"])
    assert suppression_mask([queries, following], public).tolist() == [False, False, False, True]


def test_an_empty_table_suppresses_nothing() -> None:
    assert suppression_mask([pa.array([], pa.string())], pa.array(["x"])).tolist() == []


def test_outside_tells_what_no_list_holds() -> None:
    assert outside(["a", "b"], pa.chunked_array([["a"], ["c"]])).tolist() == [False, True]
    assert outside(np.array(["a", "b"], dtype=object), None).tolist() == [True, True]
