"""Samples of a log's users that keep equally much under different limits per user, as Table 3 of the paper wants it.

What is kept is counted as Algorithm 1 does: queries rarer than a minimum go first, over the users of the sample, then
each user's first so many queries, and as many clicks, are left. A sample is the first users in an order by a hash.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from qlog_assets.pipeline.cleaned_log import view_cleaned, view_searches
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition


@dataclass(frozen=True)
class Kept:
    """How many users a sample has, and what is kept of them."""

    users: int
    queries: int
    clicks: int

    @property
    def total(self) -> int:
        return self.queries + self.clicks


@dataclass(frozen=True)
class UserHistories:
    """How often each user typed each query, and clicked after it; users by their place in the order."""

    users: int
    searches: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Users, queries and events, sorted by user."""
    clicks: tuple[np.ndarray, np.ndarray, np.ndarray]
    queries: int
    """How many different queries there are."""

    @classmethod
    def of_log(cls, engine: Engine, cleaned: Partition) -> UserHistories:
        """Of a log, whose users are then in order in the engine."""
        view_cleaned(engine, cleaned, transitions=False)
        engine.view("whole_log", cleaned.files("log"))
        engine.statement_table("studies/users_in_order")
        tables = [engine.arrow(name) for name in ("studies/searches_of_users", "studies/clicks_of_users")]
        texts = pa.chunked_array([chunk for each in tables for chunk in each["query"].cast(pa.string()).chunks])
        encoded = texts.combine_chunks().dictionary_encode()
        query_ids = np.split(encoded.indices.to_numpy().astype(np.int64), [tables[0].num_rows])
        searches, clicks = (
            (each["place"].to_numpy().astype(np.int64), ids, each["events"].to_numpy())
            for each, ids in zip(tables, query_ids, strict=True)
        )
        return cls(int(searches[0].max(initial=-1)) + 1, searches, clicks, len(encoded.dictionary))

    def keep(self, users: int, limit: int, min_frequency: int) -> Kept:
        """What is kept of the first so many users under a limit for queries and for clicks."""
        counted = [
            tuple(column[: np.searchsorted(each[0], users)] for column in each) for each in (self.searches, self.clicks)
        ]
        (_, typed, times), _ = counted
        frequent = np.bincount(typed, times, self.queries) >= min_frequency
        kept = [
            int(np.minimum(np.bincount(who[frequent[what]], much[frequent[what]], users), limit).sum())
            for who, what, much in counted
        ]
        return Kept(users, *kept)

    def sample(self, total: int, limit: int, min_frequency: int) -> Kept:
        """The fewest users of whom at least `total` queries and clicks are kept; all of them where that is too much."""
        low, high = 0, self.users
        while low < high:
            middle = (low + high) // 2
            enough = self.keep(middle, limit, min_frequency).total >= total
            low, high = (low, middle) if enough else (middle + 1, high)
        return self.keep(low, limit, min_frequency)


def view_first_users(engine: Engine, users: int) -> None:
    """Make the rows of the first so many users what statements read as the cleaned log."""
    engine.statement_table("studies/log_of_first_users", "part_of_log", users=users)
    engine.statement_view("studies/cleaned_log")
    view_searches(engine)
