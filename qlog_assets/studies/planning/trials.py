"""What a mechanism would release of made-up users: drawn with its own noise, seeded, and held against the truth.

One function per mechanism, from a population, parameters and a seed to what each table would hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from qlog_assets.mechanisms.crowd import noise as crowd
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.mechanisms.safelog import noise as safelog
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.mechanisms.sanitized import noise as sanitized
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.mechanisms.zealous import noise as zealous
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.limits import Rows, count_users, first_distinct
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.privacy.zero_domain import encode_pairs
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


def try_safelog(people: Population, variant: str, chosen: SafelogParameters, seed: int, pool: Pool) -> Outcomes:
    source = SeededRandom(seed)
    counts = capped_counts(people, "queries", chosen.queries_per_user)
    typed = np.flatnonzero(counts)
    held = pool.holds[typed]
    untouched = max(pool.size - int(held.sum()), 0)
    drawn = safelog.draw_queries(source, counts[typed], held, untouched, chosen)
    released = typed[drawn.support.indices]
    # Which of the list's queries that nobody typed were drawn does not matter, only how many queries there are now.
    number = len(released) + len(drawn.cells)
    told = {
        "queries": outcome(drawn.support.users, counts[released], people.truth["queries"][released], len(drawn.cells))
    }
    places = np.full(len(people.truth["queries"]), -1)
    places[released] = np.arange(len(released))
    if chosen.click_scale is not None:
        users = capped_counts(people, "clicks", chosen.clicks_per_user)
        clicks = np.flatnonzero((users > 0) & (places[people.parts["clicks"][0]] >= 0))
        kept = safelog.draw_clicks(source, users[clicks], chosen)
        clicks = clicks[kept.indices]
        told["clicks"] = outcome(kept.users, users[clicks], people.truth["clicks"][clicks])
    if chosen.transition_scale is not None:
        users = capped_counts(people, "pairs", chosen.transitions_per_user)
        before, after = people.parts["pairs"]
        pairs = np.flatnonzero((users > 0) & (places[before] >= 0) & (places[after] >= 0))
        cells = encode_pairs(places[before[pairs]], places[after[pairs]], number)
        moved = safelog.draw_transitions(source, cells, users[pairs], number, chosen)
        pairs = pairs[moved.support.indices]
        told["transitions"] = outcome(moved.support.users, users[pairs], people.truth["pairs"][pairs], len(moved.cells))
    return told


@lru_cache(maxsize=64)
def capped_counts(people: Population, kind: str, limit: int) -> np.ndarray:
    """How many users hold each item of a kind, each with their first so many distinct ones."""
    return count_users(*first_distinct(*people.rows[kind], limit), people.domain(kind))


def try_zealous(people: Population, variant: str, chosen: ZealousParameters, seed: int, pool: Pool) -> Outcomes:
    told: Outcomes = {}
    for kind in chosen.kinds:
        users, items = chosen_items(people, kind, chosen.items_per_user, seed)
        source, counted = SeededRandom(seed), count_users(users, items, people.domain(kind))
        if zealous.takes_rows(variant, chosen):
            drawn = zealous.draw_rows(source, users, items, chosen)
        else:
            drawn = zealous.draw_counts(source, counted, variant, chosen)
        told[kind] = outcome(drawn.users, counted[drawn.items], people.truth[kind][drawn.items])
    return told


@lru_cache(maxsize=8)
def chosen_items(people: Population, kind: str, limit: int, seed: int) -> Rows:
    """A few items of each user, whichever they are: a release chooses them by a hash."""
    users, items = people.rows[kind]
    order = np.random.default_rng(seed).permutation(len(users))
    return first_distinct(users[order], items[order], limit)


def try_crowd(people: Population, variant: str, chosen: CrowdParameters, seed: int, pool: Pool) -> Outcomes:
    told: Outcomes = {}
    for job in chosen.jobs:
        kind = {"reformulations": "pairs"}.get(job, job)
        counts = capped_counts(people, kind, chosen.artifacts_per_user)
        drawn = crowd.release(
            SeededRandom(seed),
            counts,
            chosen.artifacts_per_user,
            chosen.noise_scale,
            chosen.job_delta,
            chosen.share_threshold,
        )
        told[job] = outcome(drawn.users, counts[drawn.indices], people.truth[kind][drawn.indices])
    return told


def try_sanitized(people: Population, variant: str, chosen: SanitizedParameters, seed: int, pool: Pool) -> Outcomes:
    """The clicked pairs that made-up users can have: the log that is made up from them costs nothing."""
    users, items = chosen_items(people, "clicks", chosen.pairs_per_user, seed)
    counts = count_users(users, items, people.domain("clicks"))
    if sanitized.takes_rows(chosen):
        drawn = sanitized.draw_rows(SeededRandom(seed), users, items, chosen)
    else:
        drawn = sanitized.draw_counts(SeededRandom(seed), counts, chosen)
    return {"pairs": outcome(drawn.users, counts[drawn.indices], people.truth["clicks"][drawn.indices])}


TRIALS: Mapping[str, Trial] = {
    "safelog": try_safelog,
    "zealous": try_zealous,
    "crowd": try_crowd,
    "sanitized": try_sanitized,
}
"""The mechanisms that a plan can draw."""


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
