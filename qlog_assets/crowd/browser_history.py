"""What the histories of browsers have in common: copying the locked file, and finding searches and clicks in visits.

A row is a search, or a click on one of its results with the search's own time, as in the AOL log: a click is the page
at the end of the redirects that began on a result page. Pages that were reached from there are no clicks. Which tables
a browser keeps is `chromium.py`'s and `firefox.py`'s business.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from qlog_assets.crowd.search_urls import SearchUrl, find_query
from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.storage.plain_files import refuse_special
from qlog_assets.storage.scratch import remove_leftovers, temporary_directory

SEARCHES = pa.schema([("time", pa.timestamp("us")), ("query", pa.string()), ("url", pa.string())])
"""A person's searches: UTC, the query as it was typed, and the url that was clicked or null."""
BESIDE = ("-journal", "-wal")
"""What SQLite keeps beside a database that is being written: without it a copy would lack the last changes."""
WEB = ("http://", "https://")
COPIES = 5
"""How often a file is copied that changes while it is copied."""


@dataclass(frozen=True)
class Visit:
    """A page that was shown."""

    number: int
    time: datetime
    url: str
    came_from: int
    """The visit with the link, or the one that redirected here; 0 if there is none."""
    is_redirect: bool = False
    """Whether `came_from` led here by itself."""
    is_revisit: bool = False
    """Whether a page was shown again: by reloading it, or by going back to it."""
    term: str | None = field(default=None, repr=False)
    """The query, where the browser itself knows that the page is a search."""


def find_searches(visits: Sequence[Visit], engines: Sequence[SearchUrl], month: Month) -> pa.Table:
    """The searches of a month with their clicks, in the order of time."""
    known = {visit.number: visit for visit in visits}
    queries = {
        visit.number: query
        for visit in visits
        if (query := find_query(visit.url, engines) or visit.term) is not None and query.strip()
    }
    searches = _original_searches(sorted(visits, key=lambda visit: visit.time), queries)
    redirected = {visit.came_from for visit in visits if visit.is_redirect}
    rows: list[tuple[datetime, str, str | None]] = [
        (visit.time, queries[number], None) for number, visit in searches.items() if visit.number == number
    ]
    for visit in visits:
        is_shown = visit.number not in redirected and not visit.is_revisit and visit.url.startswith(WEB)
        origin = _result_page_before(visit, known, queries) if is_shown else None
        if origin is not None and visit.number not in queries:
            rows.append((searches[origin].time, queries[origin], visit.url))
    rows = sorted((row for row in rows if month.start <= row[0] < month.end), key=lambda row: row[0])
    return pa.Table.from_pylist([dict(zip(SEARCHES.names, row, strict=True)) for row in rows], schema=SEARCHES)


def _original_searches(visits: Sequence[Visit], queries: Mapping[int, str]) -> dict[int, Visit]:
    """The search that each visit of a result page belongs to: itself, or the one whose page was shown again."""
    latest: dict[str, Visit] = {}
    found = {}
    for visit in visits:
        if visit.number in queries:
            if not visit.is_revisit or visit.url not in latest:
                latest[visit.url] = visit
            found[visit.number] = latest[visit.url]
    return found


def _result_page_before(visit: Visit, known: Mapping[int, Visit], queries: Mapping[int, str]) -> int | None:
    """The visit of a result page that led to a visit, by a link and whatever redirects."""
    seen = {visit.number}
    while visit.came_from in known and visit.came_from not in seen:
        if visit.came_from in queries:
            return visit.came_from
        if not visit.is_redirect:
            return None
        visit = known[visit.came_from]
        seen.add(visit.number)
    return None


@contextlib.contextmanager
def open_copy(path: Path, browser: str, beside: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a copy of a browser's database: the browser locks its own, and must not be kept waiting.

    The copy lies in a private scratch directory in `beside` for the time of the block.
    """
    refuse_special(path, f"name a profile of {browser} that has this file")
    remove_leftovers(beside)
    with temporary_directory(beside) as scratch:
        copy = _copy_whole(path, scratch, browser)
        connection = sqlite3.connect(copy)
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            with contextlib.closing(connection):
                if connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
                    raise _damaged(path, browser)
                yield connection
        except sqlite3.Error:
            # Not its own words: they may quote a value.
            raise _damaged(path, browser) from None


def _copy_whole(path: Path, scratch: Path, browser: str) -> Path:
    """A copy during which the browser wrote nothing."""
    for _ in range(COPIES):
        before = _stamps(path)
        for name in before:
            with contextlib.suppress(FileNotFoundError):  # a journal that ended meanwhile: then the stamps differ
                shutil.copyfile(path.with_name(name), scratch / name)
        if _stamps(path) == before:
            return scratch / path.name
        for name in before:
            (scratch / name).unlink(missing_ok=True)
    raise QlogError(f"{path}: changed {COPIES} times while it was copied: close {browser} and run it again")


def _stamps(path: Path) -> dict[str, tuple[int, int]]:
    """Size and time of a database's files."""
    found = {}
    for ending in ("", *BESIDE):
        with contextlib.suppress(FileNotFoundError):
            facts = path.with_name(path.name + ending).stat()
            found[path.name + ending] = (facts.st_size, facts.st_mtime_ns)
    return found


def _damaged(path: Path, browser: str) -> QlogError:
    return QlogError(
        f"{path}: is no history as {browser} writes it: name another profile, or close {browser} and try again"
    )


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """The columns of a table, none if it is not there: versions of a browser differ."""
    return {str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}
