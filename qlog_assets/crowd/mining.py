"""From one person's searches to the artifacts of a job: a function of that person's log and of public rules alone.

Texts are normalised as every log's are, each by itself. Rows are taken in the order of (time, query, url): rows of one
second have no other order that a central log would keep, too. The person's opt-outs come first, then the choice of the
most recent artifacts: what was opted out leaves its place to an older artifact and is not seen by its absence.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import pyarrow as pa

from qlog_assets.crowd.jobs import Application, encode
from qlog_assets.sources.normalise import normalise_text, normalise_url

NO_QUERIES = ("", "-")
"""What stands for no query in a cleaned log."""
SITE = re.compile(r"(?:[^/?#]*://)?(?:[^/?#]*@)?(\[[^\]/?#]*\]|[^/?#:]*)(?::[0-9]*)?(?:[/?#].*)?", re.DOTALL)

Artifact = tuple[str, ...]
IsLeftOut = Callable[[str], bool]
"""Whether a person wants nothing to leave that has to do with a text."""


class Search(NamedTuple):
    """A row of the log, normalised."""

    time: datetime
    query: str
    url: str
    written_query: str
    """As it is in the log: opt-outs look at it, too."""
    written_url: str


def mine(searches: pa.Table, application: Application, is_left_out: IsLeftOut = lambda text: False) -> list[Artifact]:
    """The artifacts in a table of searches (time, query, url or null), the most recent first.

    Without successive duplicates, without those that no report can hold, and without those that have to do with a text
    that is left out: as it is written or normalised, or of a query that led to such a url anywhere in the table.
    """
    rows = _normalised(searches)
    private = {row.query for row in rows if row.url and any(map(is_left_out, (row.url, row.written_url)))}
    found = [
        artifact
        for artifact, texts in _sources(rows, application)
        if private.isdisjoint((*artifact, *texts)) and not any(map(is_left_out, (*artifact, *texts)))
    ]
    artifacts = [artifact for artifact, _ in itertools.groupby(found) if _can_be_sent(artifact)]
    return artifacts[::-1]


def choose(artifacts: Iterable[Artifact], limit: int, counts: Literal["users", "instances"]) -> list[Artifact]:
    """The most recent ones, at most `limit`: different ones where users are counted."""
    different = artifacts if counts == "instances" else dict.fromkeys(artifacts)
    return list(itertools.islice(different, limit))


def host_of(url: str) -> str:
    """The host of a normalised url, without the name of a user and a port; empty if there is none."""
    found = SITE.fullmatch(url)
    return found[1].rstrip(".") if found else ""


def _sources(rows: Sequence[Search], application: Application) -> Iterator[tuple[Artifact, tuple[str, ...]]]:
    """Each artifact with further texts of the rows that it comes from, the oldest first."""
    if application == "queries":
        for row in rows:
            yield (row.query,), (row.written_query,)
    elif application == "reformulations":
        # Adjacent queries, however far apart: the paper has no session gap.
        runs = [
            (query, tuple(row.written_query for row in run))
            for query, run in itertools.groupby(rows, key=lambda row: row.query)
        ]
        for (query, texts), (next_query, next_texts) in itertools.pairwise(runs):
            yield (query, next_query), texts + next_texts
    else:
        for row in rows:
            if row.url:
                shown = {"clicks": (row.query, row.url), "click_hosts": (row.query, host_of(row.url))}
                yield shown.get(application, (row.url,)), (row.query, row.written_query, row.url, row.written_url)


def _normalised(searches: pa.Table) -> list[Search]:
    columns = (searches[name].to_pylist() for name in ("time", "query", "url"))
    rows = (
        Search(time, normalise_text(query or ""), normalise_url(url or ""), query or "", url or "")
        for time, query, url in zip(*columns, strict=True)
    )
    return sorted(row for row in rows if row.query not in NO_QUERIES)


def _can_be_sent(artifact: Artifact) -> bool:
    """Whether a report can hold an artifact: a rule for each one by itself, and known to everybody."""
    try:
        encode(artifact)
    except ValueError:
        return False
    return True
