"""What each party of a trial holds, read from its own store: for the page that shows who saw what.

Of a trial with made-up people alone. A server's store is opened for reading, as a thief of it would.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from qlog_assets.crowd.running import RunningCast

SAMPLE = 5
"""How many rows of a store are shown."""
SHOWN_BYTES = 12


@dataclass(frozen=True)
class RelayView:
    """Messages that wait in a relay: to whom they go on, and what they look like."""

    name: str
    waiting: int
    sample: list[tuple[str, int, str]]
    """Next party, bytes, and the first of them."""


@dataclass(frozen=True)
class CollectorView:
    """The collector's reports before the month is sealed."""

    reports: int
    tags: int
    by_reports: list[tuple[int, int]]
    """How many tags came so many times."""
    sample: list[tuple[str, str, str]]
    """Tag, ciphertext and share, the beginning of each."""


@dataclass(frozen=True)
class IssuerView:
    """What the randomness server knows: who took part, and blinded requests."""

    accounts: int
    sample: list[tuple[str, str]]
    """Account, and the digest of its blinded request."""
    evaluations: int


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        yield connection


def _begin(data: bytes) -> str:
    return data[:SHOWN_BYTES].hex(" ") + " …"


def view_relay(running: RunningCast, name: str) -> RelayView:
    from qlog_assets.crowd.relay import DATABASE

    with _reading(running.folder(name) / DATABASE) as store:
        (waiting,) = store.execute("SELECT count(*) FROM waiting").fetchone()
        rows = store.execute("SELECT onward, size, message FROM waiting LIMIT ?", (SAMPLE,)).fetchall()
    return RelayView(name, waiting, [(onward, size, _begin(message)) for onward, size, message in rows])


def view_collector(running: RunningCast) -> CollectorView:
    from qlog_assets.crowd.opening import DATABASE

    with _reading(running.folder("collector") / DATABASE) as store:
        counts = Counter(reports for (reports,) in store.execute("SELECT count(*) FROM reports GROUP BY tag"))
        rows = store.execute("SELECT tag, ciphertext, y FROM reports ORDER BY tag LIMIT ?", (SAMPLE,)).fetchall()
    reports = sum(times * tags for times, tags in counts.items())
    sample = [(_begin(tag), _begin(ciphertext), _begin(share)) for tag, ciphertext, share in rows]
    return CollectorView(reports, counts.total(), sorted(counts.items()), sample)


def view_issuer(running: RunningCast) -> IssuerView:
    from qlog_assets.crowd.randomness import DATABASE

    with _reading(running.folder("randomness") / DATABASE) as store:
        (accounts,) = store.execute("SELECT count(DISTINCT account) FROM issued").fetchone()
        (evaluations,) = store.execute("SELECT count(*) FROM spent").fetchone()
        rows = store.execute("SELECT account, request FROM issued ORDER BY account LIMIT ?", (SAMPLE,)).fetchall()
    return IssuerView(accounts, [(account, _begin(request)) for account, request in rows], evaluations)
