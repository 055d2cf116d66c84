"""From relaxed counts to whole ones: rounding down, filling what is left, eliminating, or searching for a while.

Whatever is returned here is allowed by every user's constraint.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from qlog_assets.mechanisms.sanitized.elimination import eliminate_sensitive
from qlog_assets.mechanisms.sanitized.objectives import (
    Goal,
    asked_size,
    closest_support,
    frequent,
    most_events,
    relaxed,
)
from qlog_assets.mechanisms.sanitized.programme import ROUNDING_ERROR, Programme
from qlog_assets.mechanisms.sanitized.solvers import LinearProgramme, solve, solve_whole

Rounding = Literal["printed", "tested_first", "fill", "mip"]
SOLVER_TOLERANCE = 1e-6
"""A whole number that a solver comes so near to is meant."""
ROUNDS = 30
SHARE_PER_ROUND = 0.1
"""Of the pairs that a round leaves between two whole numbers, how many are tried before the problem is solved again: at
the paper's size all at once keep 497 events, three tenths 504, a tenth 510, a fiftieth 504."""


def whole_counts(programme: Programme, goal: Goal, rounding: Rounding = "fill", seconds: float = 60) -> np.ndarray:
    """The counts that users are sampled for.

    `printed`: rounded down, and for diversity Algorithm 2 to the letter. `tested_first`: the same, but Algorithm 2
    drops nothing where nothing is violated. `fill`: rounded down, then filled. `mip`: HiGHS for so many seconds.
    """
    if goal.objective == "frequent_pairs" and goal.size is None:
        goal = replace(goal, size=asked_size(programme, goal))
    if rounding == "mip":
        counts = search(programme, goal, seconds)
    elif rounding == "fill":
        counts = fill_support(programme, goal) if goal.objective == "frequent_pairs" else fill_rounds(programme, goal)
    elif goal.objective == "diversity":
        counts = eliminate_sensitive(programme, test_first=rounding == "tested_first").astype(np.int64)
    else:
        counts = round_down(programme, relaxed(programme, goal))
    return trim_infrequent(programme, goal, counts)


def round_down(programme: Programme, counts: np.ndarray, base: np.ndarray | None = None) -> np.ndarray:
    """Counts rounded down, those just below a whole number up, unless a user's constraint says no.

    `base` are whole counts that are there already.
    """
    base = np.zeros(programme.pairs, np.int64) if base is None else base
    down = base + np.floor(counts).astype(np.int64)
    near = base + np.floor(counts + SOLVER_TOLERANCE).astype(np.int64)
    over = programme.left(near) < -ROUNDING_ERROR * programme.limit
    refused = np.zeros(programme.pairs, bool)
    refused[programme.owner[over[programme.losses.indices]]] = True
    return np.where(refused, down, near)


def fill(
    programme: Programme,
    counts: np.ndarray,
    order: np.ndarray,
    tops: np.ndarray,
    most: float = np.inf,
    queries: np.ndarray | None = None,
) -> np.ndarray:
    """Give each pair in order as many events as still fit: up to its top, `most` in all, and one per query if given."""
    counts, left = counts.copy(), programme.left(counts)
    losses, users, starts = programme.losses.data, programme.losses.indices, programme.losses.indptr
    room = most - counts.sum()
    taken = set() if queries is None else set(queries[counts > 0].tolist())
    for pair in order.tolist():
        if room < 1:
            break
        if queries is not None and queries[pair] in taken:
            continue
        cells = slice(starts[pair], starts[pair + 1])
        fits = (left[users[cells]] / losses[cells]).min() + ROUNDING_ERROR
        more = int(min(fits, tops[pair] - counts[pair], room))
        if more > 0:
            counts[pair] += more
            room -= more
            left[users[cells]] -= more * losses[cells]
            if queries is not None:
                taken.add(queries[pair])
    return counts


def fill_rounds(programme: Programme, goal: Goal) -> np.ndarray:
    """Output size and diversity: round down, fill the pairs nearest to the next number, solve again for what is left.

    Pairs without room for one event are left out of every round: their fractions would be lost anyway.
    """
    counts = np.zeros(programme.pairs, np.int64)
    tops = most_events(programme, goal, 0).tops
    queries = goal.queries if goal.objective == "diversity" else None
    for _ in range(ROUNDS):
        left = programme.left(counts)
        open_ = programme.fitting(left) & (counts < tops)
        if queries is not None:
            open_ &= ~np.isin(queries, queries[counts > 0])
        columns = np.flatnonzero(open_)
        if columns.size == 0:
            return counts
        found = np.zeros(programme.pairs)
        found[columns] = solve(most_events(programme, goal, left).restricted(columns))
        found = programme.scale_into(found, left)
        before = counts
        counts = round_down(programme, found, before)
        part = found - (counts - before)
        nearest = columns[np.argsort(-part[columns], kind="stable")]
        nearest = nearest[part[nearest] > SOLVER_TOLERANCE]
        tried = nearest[: int(np.ceil(nearest.size * SHARE_PER_ROUND))]
        counts = fill(programme, counts, tried, tops, queries=queries)
        if counts.sum() == before.sum():
            break
    gentle = np.argsort(programme.steepest, kind="stable")
    return fill(programme, counts, gentle[programme.held[gentle]], tops, queries=queries)


def fill_support(programme: Programme, goal: Goal) -> np.ndarray:
    """Supports of frequent pairs: round down, then up again where it fits, frequent pairs first, then to the size."""
    best = relaxed(programme, goal)
    size = asked_size(programme, goal)
    counts = round_down(programme, best)
    is_frequent = frequent(programme, goal.minimum_support)
    tops = np.ceil(best - SOLVER_TOLERANCE)
    order = np.lexsort((-(best - counts), ~is_frequent))
    counts = fill(programme, counts, order[tops[order] > counts[order]], tops, most=size)
    others = np.flatnonzero(~is_frequent & programme.held)
    others = others[np.lexsort((programme.steepest[others], -best[others]))]
    caps = np.full(programme.pairs, goal.minimum_support * size if goal.infrequent_stay else np.inf)
    return fill(programme, counts, others, caps, most=size)


def trim_infrequent(programme: Programme, goal: Goal, counts: np.ndarray) -> np.ndarray:
    """Where infrequent pairs must stay infrequent: cut to below the minimum support of the size that came out."""
    if goal.objective != "frequent_pairs" or not goal.infrequent_stay:
        return counts
    rare = ~frequent(programme, goal.minimum_support)
    while True:
        most = int(np.ceil(goal.minimum_support * counts.sum())) - 1
        cut = np.where(rare, np.minimum(counts, max(most, 0)), counts)
        if (cut == counts).all():
            return counts
        counts = cut


def search(programme: Programme, goal: Goal, seconds: float) -> np.ndarray:
    """The best whole counts that HiGHS finds in time. Pairs without room for one event are left out."""
    fits = programme.fitting(np.full(programme.users, programme.limit))
    asked: LinearProgramme
    if goal.objective == "frequent_pairs":
        asked = closest_support(programme, goal)
    else:
        asked = most_events(programme, goal, programme.limit)
    kept = np.r_[np.flatnonzero(fits), np.arange(programme.pairs, asked.gain.size)]
    counts = np.zeros(asked.gain.size)
    counts[kept] = solve_whole(asked.restricted(kept), kept < programme.pairs, seconds)
    return repair(programme, np.maximum(np.round(counts[: programme.pairs]), 0).astype(np.int64))


def repair(programme: Programme, counts: np.ndarray) -> np.ndarray:
    """Allowed counts: an event less of the steepest pair of each user whom the solver's tolerance let past."""
    counts = counts.copy()
    while (over := np.flatnonzero(programme.left(counts) < -ROUNDING_ERROR * programme.limit)).size:
        cells = (programme.losses.indices == over[0]) & (counts[programme.owner] > 0)
        steepest = int(np.argmax(np.where(cells, programme.losses.data, -1)))
        counts[programme.owner[steepest]] -= 1
    return counts
