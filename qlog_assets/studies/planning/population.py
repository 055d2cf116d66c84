"""Made-up users and what they did in a month, as arrays: imagined from a description, or read from a synthetic twin.

This stands for the log where parameters are chosen. Nobody in it exists, and no warehouse is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from qlog_assets.privacy.limits import SESSION_GAP_MINUTES, Rows, count_users
from qlog_assets.sources.pool_files import DEFAULT_ROWS
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.planning.description import Description

ACTIVITY_SPREAD = 1.0
"""σ of the lognormal number of searches per user: the median user makes 0.6 of the mean."""
RANKS = np.array([0.45, 0.16, 0.1, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02, 0.02])
"""Which of ten results is clicked: the first in nearly half of all cases."""
RELATED = 3
"""A search that follows another one is for one of so many related queries, which are about as popular."""
SHIFT = 5
"""Levels the very top of the popularity: no catalogue has one query that everybody types."""


@dataclass(frozen=True)
class Pool:
    """A public list of queries as far as a plan knows it: how many entries, and which of the log's queries it has."""

    size: int
    holds: np.ndarray


@dataclass(frozen=True, eq=False)
class Population:
    """A month of made-up users. Items are numbered per kind; rows are in each user's order of time."""

    users: int
    rows: Mapping[str, Rows]
    """(users, items) of queries, pairs of queries, clicks and keywords."""
    parts: Mapping[str, tuple[np.ndarray, ...]]
    """Of which queries an item of pairs or clicks is made, by number."""
    pool: Pool
    titles: Pool | None = None
    """A list that the owner could name as the pool instead, where the description has one."""

    @cached_property
    def truth(self) -> dict[str, np.ndarray]:
        """How many users hold each item, nobody being limited."""
        return {kind: count_users(*rows, self.domain(kind)) for kind, rows in self.rows.items()}

    def domain(self, kind: str) -> int:
        items = self.rows[kind][1]
        return len(self.parts[kind][0]) if kind in self.parts else int(items.max()) + 1 if len(items) else 0


def imagine(described: Description, seed: int) -> Population:
    """Users who search as a description says."""
    random = np.random.default_rng(seed)
    wanted = random.lognormal(
        np.log(described.queries_per_user) - ACTIVITY_SPREAD**2 / 2, ACTIVITY_SPREAD, described.users
    )
    users = np.repeat(np.arange(described.users), np.maximum(1, np.rint(wanted)).astype(np.int64))
    queries = sample_ranks(random, described.distinct_queries, described.exponent, len(users))
    follows = np.zeros(len(users), bool)
    follows[1:] = (users[1:] == users[:-1]) & (random.random(len(users) - 1) < described.follow_rate)
    follows[1:] &= ~follows[:-1]  # the query before is one of its own accord
    places = np.flatnonzero(follows)
    related = queries[places - 1] + random.integers(1, RELATED + 1, len(places))
    queries[places] = np.minimum(related, described.distinct_queries - 1)
    clicked = np.flatnonzero(random.random(len(users)) < described.click_rate)
    clicks = queries[clicked] * len(RANKS) + random.choice(len(RANKS), len(clicked), p=RANKS / RANKS.sum())
    listed, titled = (
        random.random(described.distinct_queries) < share for share in (described.listed_share, described.titles_share)
    )
    words = sample_ranks(random, max(described.distinct_queries // 4, 1), 1.0, 2 * described.distinct_queries)
    return gather(
        described.users,
        (users, queries),
        (users[places], queries[places - 1], queries[places]),
        (users[clicked], clicks, clicks // len(RANKS)),
        (np.repeat(users, 2), words.reshape(-1, 2)[queries].ravel()),
        Pool(DEFAULT_ROWS, listed),
        Pool(described.titles, titled) if described.titles else None,
    )


def sample_ranks(random: np.random.Generator, distinct: int, exponent: float, size: int) -> np.ndarray:
    """Numbers of queries, the popular ones first."""
    weights = np.cumsum((np.arange(distinct) + 1.0 + SHIFT) ** -exponent)
    return np.searchsorted(weights, random.random(size) * weights[-1], side="right").astype(np.int64)


def gather(
    users: int,
    queries: Rows,
    pairs: tuple[np.ndarray, np.ndarray, np.ndarray],
    clicks: tuple[np.ndarray, np.ndarray, np.ndarray],
    keywords: Rows,
    pool: Pool,
    titles: Pool | None = None,
) -> Population:
    """A population of rows: pairs as (user, query, next query), clicks as (user, click, query of the click)."""
    owners, before, after = pairs
    moved = before != after
    owners, before, after = owners[moved], before[moved], after[moved]
    distinct_queries = len(pool.holds)
    _, first, pair_items = np.unique(before * distinct_queries + after, return_index=True, return_inverse=True)
    clickers, clicked, clicked_queries = clicks
    _, first_click, click_items = np.unique(clicked, return_index=True, return_inverse=True)
    return Population(
        users,
        {"queries": queries, "pairs": (owners, pair_items), "clicks": (clickers, click_items), "keywords": keywords},
        {
            "queries": (np.arange(distinct_queries),),
            "pairs": (before[first], after[first]),
            "clicks": (clicked_queries[first_click],),
        },
        pool,
        titles,
    )


def read_twin(engine: Engine, pool_texts: set[str]) -> Population:
    """The users of a synthetic twin whose cleaned log an engine has."""
    table = engine.arrow("studies/twin_rows")
    users, queries, urls = (encoded(table[name]) for name in ("user", "query", "url"))
    seconds = table["seconds"].to_numpy()
    texts = queries[1]
    near = np.zeros(len(seconds), bool)
    near[1:] = (users[0][1:] == users[0][:-1]) & (np.diff(seconds) <= 60 * SESSION_GAP_MINUTES)
    places = np.flatnonzero(near)
    clicked = np.flatnonzero(table["url"].is_valid().to_numpy())
    words = [text.split(" ") for text in texts]
    numbers = np.array([len(each) for each in words])
    word_numbers = encoded(pa.array([word for each in words for word in each]))[0]
    starts = np.r_[0, np.cumsum(numbers)]
    lengths = numbers[queries[0]]
    offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return gather(
        len(users[1]),
        (users[0], queries[0]),
        (users[0][places], queries[0][places - 1], queries[0][places]),
        (users[0][clicked], queries[0][clicked] * (len(urls[1]) + 1) + urls[0][clicked], queries[0][clicked]),
        (np.repeat(users[0], lengths), word_numbers[np.repeat(starts[queries[0]], lengths) + offsets]),
        Pool(DEFAULT_ROWS, np.array([text in pool_texts for text in texts])),
    )


def encoded(column: pa.ChunkedArray | pa.Array) -> tuple[np.ndarray, list[str]]:
    """A column of texts as numbers, and the texts by number. What is null gets the number 0."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    coded = values.dictionary_encode()
    return coded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()
