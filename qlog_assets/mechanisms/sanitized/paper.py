"""Utility-maximising sanitization (Hong et al. 2012): optimal output counts, sampled user ids. The paper's side only.

Algorithm 1 and the pre-processing of section 4.2, as printed: studies only, never past the door. The optimal counts are
exact functions of the log, so end to end no (ε, δ < 1) holds; Theorem 1 covers the sampling step alone, for counts
fixed in advance (gaps G1, G2). What may be published in the same schema is made by noise.py beside this file. The
constraints are in programme.py, the objectives in objectives.py, whole numbers in rounding.py.
"""

from __future__ import annotations

import numpy as np

from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.sanitized.guarantee import user_budget
from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.mechanisms.sanitized.objectives import Goal
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.mechanisms.sanitized.programme import Programme, drop_unique_pairs
from qlog_assets.mechanisms.sanitized.rounding import Rounding, whole_counts
from qlog_assets.mechanisms.sanitized.solvers import NothingFitsError
from qlog_assets.privacy.paper_noise import continuous_laplace
from qlog_assets.privacy.randomness import RandomSource

MOST_TESTED_USERS = 5000
"""The pre-processing solves the problem once per user who is like no other: at the paper's size that takes minutes."""


def sanitize(source: RandomSource, rows: PairCounts, queries: np.ndarray, chosen: SanitizedParameters) -> PairCounts:
    """Algorithm 1: optimal counts, with the noise of section 4.2 if it is asked for, then a user for each event.

    `queries` is the query of each pair.
    """
    goal = goal_of(chosen, queries)
    limit, pairs = user_budget(float(chosen.epsilon), float(chosen.delta)), queries.size
    if chosen.count_epsilon is not None:
        change = float(chosen.largest_change)
        unstable = unstable_users(rows, pairs, limit, goal, change, chosen.rounding, chosen.solver_seconds)
        rows = rows.keep(~np.isin(rows.users, unstable))
    rows = drop_unique_pairs(rows)
    counts = best_counts(rows, pairs, limit, goal, chosen.rounding, chosen.solver_seconds)
    if chosen.count_epsilon is not None:
        noisy = noisy_counts(source, counts, float(chosen.largest_change), float(chosen.count_epsilon))
        counts = np.maximum(np.floor(noisy), 0).astype(np.int64)
    return sample_users(source, rows, counts)


def goal_of(chosen: SanitizedParameters, queries: np.ndarray) -> Goal:
    """What the parameters ask the counts to be best at."""
    return Goal(
        chosen.objective,
        float(chosen.minimum_support),
        None if chosen.asked_size is None else float(chosen.asked_size),
        chosen.infrequent_stay,
        queries if chosen.diversity_of == "queries" else None,
    )


def best_counts(
    rows: PairCounts, pairs: int, limit: float, goal: Goal, rounding: Rounding = "printed", seconds: float = 60
) -> np.ndarray:
    """The optimal whole counts of a log, whose unique pairs count nothing."""
    shared = drop_unique_pairs(rows)
    if shared.users.size == 0:
        return np.zeros(pairs, np.int64)
    return whole_counts(Programme.of(shared, pairs, limit), goal, rounding, seconds)


def sample_users(source: RandomSource, rows: PairCounts, counts: np.ndarray) -> PairCounts:
    """The output log: for each pair, counts[pair] trials over its users with probability c_ijk / c_ij, exactly.

    A pair that nobody holds has no users to draw and stays out.
    """
    order = np.lexsort((rows.users, rows.pairs))
    rows = rows.keep(order)
    ends = np.cumsum(rows.events)
    totals = rows.totals()
    starts = np.cumsum(totals) - totals
    trials = np.repeat(np.arange(totals.size), np.where(totals > 0, np.asarray(counts)[: totals.size], 0))
    tickets = np.empty(trials.size, np.int64)
    for total in np.unique(totals[trials]):  # one bound per call: pairs of equal total are drawn together
        same = totals[trials] == total
        tickets[same] = source.integers(int(total), int(same.sum()))
    chosen = np.searchsorted(ends, starts[trials] + tickets, side="right")
    drawn = np.bincount(chosen, minlength=rows.users.size)
    kept = np.flatnonzero(drawn)
    kept = kept[np.lexsort((rows.pairs[kept], rows.users[kept]))]
    return PairCounts(rows.users[kept], rows.pairs[kept], drawn[kept])


def unstable_users(
    rows: PairCounts,
    pairs: int,
    limit: float,
    goal: Goal,
    largest_change: float,
    rounding: Rounding = "printed",
    seconds: float = 60,
) -> np.ndarray:
    """Section 4.2: users whose removal moves some optimal count by more than `largest_change`.

    All are tested against the same log. Users with equal records give equal answers and are solved once. A user without
    whom no counts of the asked size are left is unstable, too.
    """
    complete = best_counts(rows, pairs, limit, goal, rounding, seconds)
    groups = equal_users(rows)
    if len(groups) > MOST_TESTED_USERS:
        raise QlogError(
            f"the pre-processing of section 4.2 solves the problem once per user, for at most {MOST_TESTED_USERS:,} "
            "different ones, and this log has more: leave count_epsilon out, or take a smaller log"
        )
    unstable: list[int] = []
    for group in groups:
        try:
            rest = best_counts(rows.keep(rows.users != group[0]), pairs, limit, goal, rounding, seconds)
        except NothingFitsError:
            unstable.extend(group)
            continue
        if np.abs(rest - complete).max(initial=0) > largest_change:
            unstable.extend(group)
    return np.sort(np.array(unstable, np.int64))


def equal_users(rows: PairCounts) -> list[list[int]]:
    """The users in groups of equal records."""
    order = np.lexsort((rows.events, rows.pairs, rows.users))
    users, starts = np.unique(rows.users[order], return_index=True)
    same: dict[tuple[bytes, bytes], list[int]] = {}
    for user, part in zip(users.tolist(), np.split(order, starts[1:]), strict=True):
        same.setdefault((rows.pairs[part].tobytes(), rows.events[part].tobytes()), []).append(user)
    return list(same.values())


def noisy_counts(source: RandomSource, counts: np.ndarray, largest_change: float, epsilon: float) -> np.ndarray:
    """Section 4.2: the optimal counts with Laplace(largest_change / epsilon). Not ε-DP: gap G3."""
    return np.asarray(counts) + continuous_laplace(source, largest_change / epsilon, np.asarray(counts).size)
