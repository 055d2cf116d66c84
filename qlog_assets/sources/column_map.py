"""Where a log keeps user, query, time, rank and url: the column map, and the maps of the two known formats.

A map is a public description of a file's shape, written by hand in TOML. No log is opened here; the readers do that.
The maps of JSON lines and of access logs are beside this one, in `json_map.py` and `access_map.py`.
"""

from __future__ import annotations

import codecs
import datetime
import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.storage.plain_files import read_toml

Column = Annotated[int, Field(ge=1, le=10_000)] | Annotated[str, Field(min_length=1)]
"""A column by its name in the header, or by its position, counted from 1."""

TIME_FORMATS = ("iso", "epoch_seconds", "epoch_milliseconds")

COUPLING_ENCODINGS = (
    "utf-7", "hz", "iso2022", "utf-16", "utf-32", "punycode", "idna", "unicode-escape", "raw-unicode-escape",
)  # fmt: skip
"""How the names of those encodings begin in which the bytes of one line can change what other lines say: by a shift
that stays in force, by a missing byte after which nothing is aligned, or by an escape that ends or joins lines."""


WANTED = "a column map is a TOML file that says which columns hold user, query and time"
DEFAULT_DELIMITER = "\t"
USER_IDS = "user_id"
"""Who is one user where a log names its users: one user id."""


def _is_text_encoding(name: str) -> bool:
    try:
        codecs.lookup(name)
        return "a\n".encode(name).decode(name) == "a\n"
    except (LookupError, UnicodeError, ValueError, TypeError):
        return False


def _couples_lines(name: str) -> bool:
    return codecs.lookup(name).name.replace("_", "-").startswith(COUPLING_ENCODINGS)


def check_encoding(name: str) -> None:
    """Raise unless an encoding is one in which each line stands for itself."""
    if not _is_text_encoding(name):
        raise ValueError(f"encoding: {name!r} is not a text encoding: try utf-8, latin-1 or gb18030")
    if _couples_lines(name):
        raise ValueError(
            f"encoding: {name!r} is one in which the bytes of one row can change others: convert the file to utf-8"
        )


def check_time_format(time_format: str, has_date: bool = False) -> None:
    """Raise unless a time of this format, with the file's date where it has one, falls into a month."""
    if time_format in TIME_FORMATS:
        if has_date:
            raise ValueError(f"date: a time in {time_format} has a date of its own: take the date out")
        return
    if "%" not in time_format:
        raise ValueError(f"time_format: must be one of {', '.join(TIME_FORMATS)}, or strptime directives")
    directives = set(re.findall("%-?([a-zA-Z%])", time_format))
    if has_date and directives & DATE_DIRECTIVES:
        raise ValueError(f"date: time_format {time_format!r} has a date of its own: take one of them out")
    if not has_date and not (directives & YEARS and directives & MONTHS):
        raise ValueError(
            f"time_format: {time_format!r} has no year and month in it: if the file is of one day, give it as date = "
            '"2008-06-01"'
        )


YEARS, MONTHS = frozenset("YyGcx"), frozenset("mbBhjUWVcx")
"""The directives that tell a year, and those that tell a month or the day of the year."""
DATE_DIRECTIVES = YEARS | MONTHS | frozenset("dDaAwu")


class LogMap(Parameters):
    """What every map of a log has: it is read from TOML, and says who is one user."""

    SINCE_READER_3: ClassVar[frozenset[str]] = frozenset()
    """Fields that batches of earlier versions do not name: one that is left out is no other way to read a file."""

    not_queries: tuple[str, ...] = ()
    """Texts that stand for no query at all, such as `-` in the AOL log."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """The map in a TOML file."""
        try:
            return cls(**read_toml(path, WANTED, quoting=False))
        except ParameterError as error:
            raise QlogError(f"{path.name}: {error}") from None

    @property
    def one_user(self) -> str:
        """Who is one user of a log that is read with this map."""
        return USER_IDS

    @property
    def has_urls(self) -> bool:
        """Whether a log that is read with this map has urls. An access log has none of results."""
        return getattr(self, "url", None) is not None

    def as_public(self) -> dict[str, Any]:
        """The map as JSON values; a batch is known again by them."""
        return {
            name: value
            for name, value in super().as_public().items()
            if name not in self.SINCE_READER_3 or value != type(self).model_fields[name].default
        }


class ColumnMap(LogMap):
    """How to read a delimited or Parquet log. Each row is one record of one user at one time."""

    SINCE_READER_3 = frozenset({"date", "rank_and_order", "query_in_brackets", "count"})

    user: Column
    query: Column
    time: Column
    rank: Column | None = None
    """The position of the clicked result, a whole number; empty where nothing was clicked."""
    url: Column | None = None
    count: Column | None = None
    """How many records a row stands for, a whole number from 1 on: the row is taken as often. Default: each row is one
    record."""
    time_format: str = "iso"
    """`iso` (2006-03-01 07:17:12, with T, fractions or an offset if there are any), `epoch_seconds`,
    `epoch_milliseconds`, or strptime directives such as `%y%m%d%H%M%S`. A time with a zone is turned into UTC."""
    date: datetime.date | None = None
    """The day of all rows, where a row has the time of day alone: then `time_format` says how that is written."""
    encoding: str = "utf-8"
    """Any text encoding Python knows in which each line stands for itself, such as `gb18030`, `latin-1` or
    `shift_jis`. Others (`utf-16`, `iso2022_jp`) are refused: one person's broken bytes would change others' rows."""
    delimiter: str | None = None
    """What divides the fields of a row: one ASCII character. Default: found in the header among tab, comma, semicolon
    and pipe; a tab where there is no header, because rows may not decide how other rows are read."""
    quote: Literal['"', "none"] | None = None
    """Whether a field may be wrapped in double quotes. Default: yes, but not in tab-separated files, whose queries use
    quotes as people type them."""
    header: bool = True
    """Whether the first line names the columns."""
    field_count: int | None = Field(None, ge=1, le=10_000)
    """How many fields a row must have. Default: as many as the header. Needed where there is none: the first row may
    not decide for all others."""
    header_names: tuple[str, ...] = ()
    """For a known format: the header it may start with. Such a file is read right with and without it."""
    rank_and_order: bool = False
    """Whether the rank's field holds two numbers, as in SogouQ's `1 2`: the rank, and which click of the search it was.
    The first is taken."""
    query_in_brackets: bool = False
    """Whether queries are written in square brackets, as in SogouQ's `[query]`: these are then taken off."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '\r\n"\0'
        ):
            raise ValueError("delimiter: must be one ASCII character that is no quote and ends no line")
        check_encoding(self.encoding)
        check_time_format(self.time_format, self.date is not None)
        if self.rank_and_order and self.rank is None:
            raise ValueError("rank_and_order: says what the rank's field holds: name that field as rank")
        named = [name for name, column in self.columns.items() if isinstance(column, str)]
        if named and not self.header and not self.header_names:
            raise ValueError(f"{named[0]}: a file without a header has columns by position, counted from 1")
        if not self.header and self.field_count is None:
            raise ValueError("field_count: a file without a header needs it: say how many fields a row has")
        return self

    @property
    def columns(self) -> dict[str, Column]:
        """The columns that the file has, by what they hold."""
        names = ("user", "query", "time", "rank", "url", "count")
        return {name: column for name in names if (column := getattr(self, name)) is not None}

    @property
    def divider(self) -> str:
        """What divides fields: the delimiter, once it is known."""
        return self.delimiter or DEFAULT_DELIMITER

    @property
    def quoted(self) -> bool:
        return self.quote == '"' if self.quote else self.divider != "\t"


AOL = ColumnMap(
    user=1,
    query=2,
    time=3,
    rank=4,
    url=5,
    delimiter="\t",
    quote="none",
    header=False,
    header_names=("AnonID", "Query", "QueryTime", "ItemRank", "ClickURL"),
    field_count=5,
    not_queries=("-",),
)
"""The AOL log of 2006. Several clicks on one search repeat its row; the next page repeats it with a later time."""

EXCITE = ColumnMap(
    user=1,
    query=3,
    time=2,
    time_format="%y%m%d%H%M%S",
    delimiter="\t",
    quote="none",
    header=False,
    field_count=3,
)
"""The Excite log of 1997: user, yyMMddHHmmss, query."""

KNOWN_FORMATS = {"aol": AOL, "excite": EXCITE}
