"""Utility-maximising sanitization (Hong et al. 2012): optimal output counts, sampled user ids. The paper's side only.

The optimisation problems O-, F- and D-UMP, the SPE heuristic, the sampling and the pre-processing of section 4.2, as
printed: studies only, never past the door. The optimal counts are exact functions of the log, so end to end no
(ε, δ < 1) holds; Theorem 1 covers the sampling step alone, for counts fixed in advance (gaps G1, G2). What may be
published in the same schema is made by noise.py beside this file.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.privacy.paper_noise import continuous_laplace
from qlog_assets.privacy.randomness import RandomSource

SOLVER_TOLERANCE = 1e-7  # HiGHS leaves constraints unmet by this much; a whole number it approaches is meant


def drop_unique_pairs(rows: PairCounts) -> PairCounts:
    """Without the pairs that one user alone holds (condition 1 of Theorem 1). Itself a leak: gap G4."""
    holders = np.bincount(rows.pairs)
    return rows.keep(holders[rows.pairs] >= 2)


def constraints(rows: PairCounts, pairs: int) -> csr_array:
    """The matrix of ln t: a row per user, a column per pair, ln(c_ij / (c_ij - c_ijk)). Unique pairs must be gone."""
    if rows.pairs.size and np.bincount(rows.pairs)[rows.pairs].min() < 2:
        raise ParameterError("a pair held by one user alone has no finite constraint: drop_unique_pairs comes first")
    _, numbers = np.unique(rows.users, return_inverse=True)
    loss = -np.log1p(-rows.events / rows.totals()[rows.pairs])
    return csr_array((loss, (numbers, rows.pairs)), shape=(int(numbers.max(initial=-1)) + 1, pairs))


def largest_output(matrix: csr_array, limit: float) -> np.ndarray:
    """O-UMP relaxed: counts x that make Σx largest under matrix·x ≤ limit. Pairs nobody holds get 0."""
    held = np.flatnonzero(matrix.sum(axis=0))
    best = np.zeros(matrix.shape[1])
    if held.size:
        best[held] = _solve(-np.ones(held.size), matrix[:, held], np.full(matrix.shape[0], limit))
    return best


def closest_support(
    matrix: csr_array, limit: float, totals: np.ndarray, minimum_support: float, output_size: float
) -> np.ndarray:
    """F-UMP relaxed: Σx = output_size and the supports of frequent pairs as close as possible to those of the log."""
    pairs = matrix.shape[1]
    support = np.asarray(totals) / max(int(np.sum(totals)), 1)
    frequent = np.flatnonzero(support >= minimum_support)
    picks = csr_array(
        (np.full(frequent.size, 1 / output_size), (np.arange(frequent.size), frequent)), shape=(frequent.size, pairs)
    )
    distance = eye_array(frequent.size, format="csr")
    above = hstack(
        [vstack([matrix, picks, -picks]), vstack([csr_array((matrix.shape[0], frequent.size)), -distance, -distance])]
    )
    bound = np.concatenate([np.full(matrix.shape[0], limit), support[frequent], -support[frequent]])
    total = np.concatenate([np.ones(pairs), np.zeros(frequent.size)])[None, :]
    cost = np.concatenate([np.zeros(pairs), np.ones(frequent.size)])
    # A pair that nobody holds has no constraint and must not fill the output.
    tops: list[tuple[float, float | None]] = [(0, None if held else 0) for held in matrix.sum(axis=0)]
    return _solve(cost, above.tocsr(), bound, total, output_size, tops + [(0, None)] * frequent.size)[:pairs]


def most_pairs(matrix: csr_array, limit: float) -> np.ndarray:
    """D-UMP relaxed to 0 ≤ y ≤ 1: how many different pairs fit, one trial each."""
    held = matrix.sum(axis=0) > 0
    tops: list[tuple[float, float | None]] = [(0, float(one)) for one in held]
    return _solve(-np.ones(matrix.shape[1]), matrix, np.full(matrix.shape[0], limit), bounds=tops)


def _solve(
    cost: np.ndarray,
    above: csr_array,
    bound: np.ndarray,
    total: np.ndarray | None = None,
    output_size: float | None = None,
    bounds: list[tuple[float, float | None]] | None = None,
) -> np.ndarray:
    equals = None if output_size is None else [output_size]
    found = linprog(cost, above, bound, total, equals, bounds=bounds or (0, None), method="highs")
    if not found.success:
        raise ParameterError("no counts satisfy the constraints: the output size is above the largest one")
    return np.asarray(found.x)


def whole(counts: np.ndarray) -> np.ndarray:
    """Relaxed counts rounded down; one within the solver's tolerance of a whole number is that number."""
    return np.floor(np.asarray(counts) + SOLVER_TOLERANCE).astype(np.int64)


def eliminate_sensitive(matrix: csr_array, limit: float, test_first: bool = True) -> np.ndarray:
    """SPE: drop the pair with the largest ln t until every constraint holds; a boolean per pair.

    The order of elimination never depends on what went before, so the pairs that stay are the longest feasible run of
    the ascending order: one cumulative sum a user finds it. As printed (test_first=False) the first pair is dropped
    even where nothing is violated.
    """
    entries = matrix.tocoo()
    largest = np.full(matrix.shape[1], -np.inf)
    np.maximum.at(largest, entries.col, entries.data)
    order = np.lexsort((np.arange(largest.size), largest))
    rank = np.empty(largest.size, np.int64)
    rank[order] = np.arange(largest.size)
    by_user = np.lexsort((rank[entries.col], entries.row))
    owner, column_rank, spent = entries.row[by_user], rank[entries.col[by_user]], np.cumsum(entries.data[by_user])
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]]) if owner.size else np.empty(0, np.int64)
    before = np.r_[0.0, spent][starts]
    spent = spent - np.repeat(before, np.diff(np.r_[starts, owner.size]))
    violated = column_rank[spent > limit * (1 + 1e-12)]
    stay = int(violated.min()) if violated.size else largest.size
    stay = min(stay, largest.size if test_first else largest.size - 1)
    return (rank < stay) & np.isfinite(largest)


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


def unstable_users(rows: PairCounts, limit: float, largest_change: float) -> np.ndarray:
    """Section 4.2: users whose removal moves some optimal count of O-UMP by more than `largest_change`.

    All are tested against the same log. Users with equal records give equal answers and are solved once.
    """
    pairs = int(rows.pairs.max(initial=-1)) + 1
    complete = whole(largest_output(constraints(drop_unique_pairs(rows), pairs), limit))
    order = np.lexsort((rows.events, rows.pairs, rows.users))
    users, starts = np.unique(rows.users[order], return_index=True)
    same: dict[tuple[bytes, bytes], list[int]] = {}
    for user, part in zip(users.tolist(), np.split(order, starts[1:]), strict=True):
        same.setdefault((rows.pairs[part].tobytes(), rows.events[part].tobytes()), []).append(user)
    unstable: list[int] = []
    for group in same.values():
        rest = drop_unique_pairs(rows.keep(rows.users != group[0]))
        change = np.abs(whole(largest_output(constraints(rest, pairs), limit)) - complete)
        if change.max(initial=0) > largest_change:
            unstable.extend(group)
    return np.sort(np.array(unstable, np.int64))


def noisy_counts(source: RandomSource, counts: np.ndarray, largest_change: float, epsilon: float) -> np.ndarray:
    """Section 4.2: the optimal counts with Laplace(largest_change / epsilon). Not ε-DP: gap G3."""
    return np.asarray(counts) + continuous_laplace(source, largest_change / epsilon, np.asarray(counts).size)
