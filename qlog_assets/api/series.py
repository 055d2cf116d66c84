"""One query, or one pair, over the months: its noisy counts with their errors, from public files alone.

A month in which it is not printed is told by what that means, never as zero. A month without a release is a gap. Each
point names its mechanism, variant and noise: counts of different ones are put side by side and never joined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.api.reading import count_column, is_text, key_columns, known_noise, public_home, standard_errors
from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.months import months_between
from qlog_assets.report.public_reading import (
    PublicMonth,
    PublicRelease,
    find_months,
    newest_release,
    released_folder,
    withdrawal_words,
)
from qlog_assets.report.table_noise import GAUSSIAN, TableNoise
from qlog_assets.report.unprinted import tell_unprinted

State = Literal["printed", "not printed", "no such table", "withdrawn", "no release"]
SHARE = 0.95
"""The share of all noise that `low` and `high` leave room for."""


@dataclass(frozen=True)
class Asked:
    """What is looked for: a query, a query with an address that was clicked, or one query after another."""

    query: str
    url: str | None = None
    next_query: str | None = None

    @property
    def key(self) -> dict[str, str]:
        """The columns that tell it, with what stands in them."""
        given = {"query": self.query, "url": self.url, "next_query": self.next_query}
        return {name: text for name, text in given.items() if text is not None}


@dataclass(frozen=True)
class SeriesPoint:
    """One month of one mechanism."""

    month: str
    mechanism: str
    state: State
    users: int | None = None
    """The noisy count, where it is printed."""
    standard_error: float | None = None
    low: float | None = None
    """From here to `high` the count without noise is, for 19 of 20 noises; None where the noise is not known. Of rows
    that `passed` a threshold it is fewer near that."""
    high: float | None = None
    passed: bool = False
    """Whether it is printed because this very count passed a threshold: near that, noise was mostly upwards."""
    fewer_than_about: int | None = None
    """Where it is not printed: from so many users on it is at least as likely as not that it would be."""
    condition: str = ""
    """Of what `fewer_than_about` is said alone."""
    table: str | None = None
    variant: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    release_id: str | None = None
    note: str = ""
    """What the public was told of a month without a release."""

    @property
    def made(self) -> tuple[str | None, float | None, float | None]:
        """What tells whether two months were made alike."""
        return self.variant, self.epsilon, self.delta


def ask_for(query: str, url: str | None, next_query: str | None) -> Asked:
    """What is looked for, normalised as releases are."""
    from qlog_assets.sources.normalise import normalise_text, normalise_url

    if url is not None and next_query is not None:
        raise ParameterError("a pair is a query with an address or with a next query, not with both")
    for text in (query, url, next_query):
        if text is not None and not is_text(text):
            raise ParameterError("what is looked for is not text: write it in UTF-8")
    asked = Asked(
        normalise_text(query),
        None if url is None else normalise_url(url),
        None if next_query is None else normalise_text(next_query),
    )
    if "" in asked.key.values():
        raise ParameterError("what is looked for is empty: name a query")
    return asked


def find_series(home: Path | None, asked: Asked, mechanism: str | None) -> list[SeriesPoint]:
    """Its points by mechanism and month, gaps included."""
    where = public_home(home)
    found = find_months(where)
    names = sorted({each.mechanism for each in found})
    if not names:
        raise QlogError(f"{released_folder(where)}: holds no release")
    if mechanism is not None and mechanism not in names:
        raise QlogError(f"there is no release of {mechanism!r}: there are releases of {', '.join(names)}")
    points, tables = [], set()
    for name in names if mechanism is None else [mechanism]:
        of_name = series_of([each for each in found if each.mechanism == name], asked)
        # A mechanism that never counts such things has no series.
        if mechanism is not None or any(point.state in ("printed", "not printed") for point in of_name):
            points += of_name
        tables |= {point.table for point in of_name if point.table is not None}
    if not tables:
        columns = " and ".join(asked.key)
        raise QlogError(f"no release has a table of counts by {columns}: qlog show MECHANISM MONTH tells what it has")
    return points


def series_of(months: Sequence[PublicMonth], asked: Asked) -> list[SeriesPoint]:
    """The points of one mechanism, from its first month to its last."""
    found = {each.month: each for each in months}
    return [
        point_of(found[month], asked)
        if month in found
        else SeriesPoint(month, months[0].mechanism, "no release", note="there is no release of the month")
        for month in months_between(min(found), max(found))
    ]


def point_of(found: PublicMonth, asked: Asked) -> SeriesPoint:
    release = newest_release(found)
    if release is None:
        return SeriesPoint(found.month, found.mechanism, "withdrawn", note=withdrawal_words(found.tombstones))
    told: dict[str, Any] = {
        "month": str(found.month),
        "mechanism": found.mechanism,
        "variant": release.variant,
        "epsilon": release.epsilon,
        "delta": release.delta,
        "release_id": release.release_id,
    }
    table = next((name for name in release.tables if counts_such(release, name, asked)), None)
    if table is None:
        return SeriesPoint(**told, state="no such table", note=f"its tables are {', '.join(release.tables)}")
    rows, noise = matching_rows(release.table(table), asked), known_noise(release, table)
    if rows.num_rows == 0:
        unprinted = tell_unprinted(release.facts(table), noise)
        return SeriesPoint(
            **told,
            table=table,
            state="not printed",
            fewer_than_about=None if unprinted is None else unprinted.users,
            condition="" if unprinted is None else unprinted.condition,
        )
    users = int(rows.column(count_column(release, table)).to_numpy()[0])
    errors = standard_errors(rows, noise)
    error = None if errors is None else float(errors[0])
    reach = None if error is None else reach_of(error, noise)
    return SeriesPoint(
        **told,
        table=table,
        state="printed",
        users=users,
        standard_error=error,
        low=None if reach is None else max(0.0, users - reach),
        high=None if reach is None else users + reach,
        passed=noise is not None and noise.tested,
    )


def counts_such(release: PublicRelease, table: str, asked: Asked) -> bool:
    """Whether a table counts such things: its key is what is looked for, and it has counts."""
    return key_columns(release, table) == tuple(asked.key) and count_column(release, table) is not None


def matching_rows(rows: pa.Table, asked: Asked) -> pa.Table:
    for column, text in asked.key.items():
        rows = rows.filter(pc.equal(rows.column(column), text))
    return rows


def reach_of(error: float, noise: TableNoise | None) -> float:
    """How far from 0 nineteen of twenty noises of this standard deviation stay."""
    like = TableNoise(GAUSSIAN, error) if noise is None or noise.by_row else noise
    # Rounded up to a tenth: fewer than these are never said to be enough.
    return math.ceil(10 * like.within(SHARE)) / 10


def series_facts(asked: Asked, points: Sequence[SeriesPoint]) -> dict[str, Any]:
    """A series as JSON values."""
    return {
        "query": asked.query,
        "url": asked.url,
        "next_query": asked.next_query,
        "points": [asdict(point) for point in points],
        "mixed": mixed_words(points),
        "caveats": caveat_words(points),
    }


def caveat_words(points: Sequence[SeriesPoint]) -> list[str]:
    """What must be said of ranges, where there are any that threshold and noise made together."""
    if not any(point.passed and point.low is not None for point in points):
        return []
    return [
        "19 of 20 is said of noises, not of rows: a count near the least printed one was mostly lifted there by noise, "
        "is too high on average, and leaves its range more often (docs/reading.md)"
    ]


def mixed_words(points: Sequence[SeriesPoint]) -> list[str]:
    """A sentence for each mechanism whose months were not all made alike."""
    words = []
    for name in dict.fromkeys(point.mechanism for point in points):
        alike = {
            (point.variant, point.epsilon, point.delta) for point in points if point.mechanism == name and point.variant
        }
        if len(alike) > 1:
            kinds = ", ".join(
                f"{variant} at ε = {epsilon}, δ = {delta}" for variant, epsilon, delta in sorted(alike, key=str)
            )
            words.append(f"the months of {name} were not all made alike ({kinds}): compare them by their errors")
    return words
