"""Calendar months as the pipeline's partition keys: `2006-03`. One small type, and how a month is written."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

from qlog_assets.errors import ParameterError

NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


class Month(str):
    """A calendar month written `YYYY-MM`; sorts in time because its text does."""

    __slots__ = ()

    def __new__(cls, text: str) -> Month:
        if not isinstance(text, str) or not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", text):
            raise ParameterError(f"{text!r} is not a month: write it as YYYY-MM, such as 2006-03")
        return super().__new__(cls, text)

    @property
    def start(self) -> datetime:
        """The month's first instant."""
        return datetime(int(self[:4]), int(self[5:]), 1)

    @property
    def end(self) -> datetime:
        """The first instant after the month."""
        return self.next().start

    @property
    def number(self) -> int:
        """Months since the year 0: what tells how far two months are apart."""
        return 12 * int(self[:4]) + int(self[5:]) - 1

    @classmethod
    def numbered(cls, number: int) -> Month:
        return cls(f"{number // 12:04d}-{number % 12 + 1:02d}")

    def next(self) -> Month:
        return Month.numbered(self.number + 1)

    @classmethod
    def containing(cls, day: date) -> Month:
        return cls(f"{day.year:04d}-{day.month:02d}")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(cls, serialization=core_schema.to_string_ser_schema())


def month_name(month: str) -> str:
    """`2006-03` as March 2006."""
    return f"{NAMES[int(month[5:]) - 1]} {month[:4]}"


def months_between(first: Month, last: Month) -> list[Month]:
    """All months from first to last, both included."""
    months = []
    while first <= last:
        months.append(first)
        first = first.next()
    return months
