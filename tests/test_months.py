"""Months as partition keys: one spelling, in order, with an end that belongs to the next."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from qlog_assets.errors import ParameterError
from qlog_assets.months import Month, months_between


@pytest.mark.parametrize(
    "text", ["2006-3", "2006-00", "2006-13", "06-03", "2006-03-01", " 2006-03", "2006/03", "٢٠٠٦-٠٣", ""]
)
def test_only_one_spelling_of_a_month_is_taken(text: str) -> None:
    with pytest.raises(ParameterError, match="is not a month"):
        Month(text)


def test_what_is_no_text_is_no_month() -> None:
    with pytest.raises(ParameterError, match="is not a month"):
        Month(200603)  # type: ignore[arg-type]


def test_a_month_ends_where_the_next_begins() -> None:
    assert Month("2006-02").end == datetime(2006, 3, 1) == Month("2006-03").start
    assert Month("2006-12").next() == Month("2007-01")
    assert Month("9998-12").end == datetime(9999, 1, 1)


def test_months_sort_in_time_and_both_ends_are_included() -> None:
    assert months_between(Month("2005-11"), Month("2006-02")) == ["2005-11", "2005-12", "2006-01", "2006-02"]
    assert months_between(Month("2006-03"), Month("2006-03")) == ["2006-03"]
    assert months_between(Month("2006-03"), Month("2006-02")) == []


def test_a_day_lies_in_its_month() -> None:
    assert Month.containing(date(2006, 3, 31)) == Month("2006-03")
