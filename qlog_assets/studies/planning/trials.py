"""What a trial tells: what a table would hold of made-up users, held against the truth. Trials are in `tried/`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from qlog_assets.privacy.limits import Rows, count_users, first_distinct
from qlog_assets.studies.planning.population import Pool, Population


@dataclass(frozen=True)
class Outcome:
    """What one table would hold."""

    rows: float
    noise_rows: float
    """Rows of what nobody did."""
    error: float | None
    """What noise does to counts: the median of |printed - counted| / counted, over rows of what somebody did."""
    heard: float | None
    """What the limits leave: the median of counted / true, the users that count among all that did it."""

    def as_json(self) -> dict[str, float | None]:
        return {"rows": self.rows, "noise_rows": self.noise_rows, "error": self.error, "heard": self.heard}

    @property
    def real_rows(self) -> float:
        return self.rows - self.noise_rows


Outcomes = dict[str, Outcome]
Trial = Callable[[Population, str, Any, int, Pool], Outcomes]
"""From made-up users, variant, parameters, seed and pool to the tables of one release."""


def outcome(printed: np.ndarray, counted: np.ndarray, truth: np.ndarray, invented: int = 0) -> Outcome:
    """A table of rows that `counted` users made within the limits and `truth` in all, and of rows that nobody made."""
    if not len(printed):
        return Outcome(invented, invented, None, None)
    errors = np.abs(printed - counted) / counted
    return Outcome(
        len(printed) + invented, invented, float(np.median(errors)), float(np.median(np.minimum(counted / truth, 1)))
    )


@lru_cache(maxsize=64)
def capped_counts(people: Population, kind: str, limit: int) -> np.ndarray:
    """How many users hold each item of a kind, each with their first so many distinct ones."""
    return count_users(*first_distinct(*people.rows[kind], limit), people.domain(kind))


@lru_cache(maxsize=8)
def chosen_items(people: Population, kind: str, limit: int, seed: int) -> Rows:
    """A few items of each user, whichever they are: a release chooses them by a hash."""
    users, items = people.rows[kind]
    order = np.random.default_rng(seed).permutation(len(users))
    return first_distinct(users[order], items[order], limit)


def average(told: list[Outcomes]) -> Outcomes:
    """The mean over draws, table by table."""

    def mean(table: str, name: str) -> float | None:
        values = [getattr(each[table], name) for each in told if getattr(each[table], name) is not None]
        return float(np.mean(values)) if values else None

    return {
        table: Outcome(
            mean(table, "rows") or 0.0, mean(table, "noise_rows") or 0.0, mean(table, "error"), mean(table, "heard")
        )
        for table in told[0]
    }
