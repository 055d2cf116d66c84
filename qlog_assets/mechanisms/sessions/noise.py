"""Session logs (Zhang and Yang 2017): frequent query sequences and clicks. Segmentation, items, and the sound release.

An item is an ordered subsequence of two or more queries of one session, not necessarily adjacent ones. Pure functions
on integer arrays; reading logs, texts of queries and budgets are elsewhere. What the paper prints is `paper.py`.

Sensitivity. A user keeps at most `sessions_per_user` sessions of at most `queries_per_session` queries, so holds at
most SessionParameters.items_per_user items. With `repeats` an item may be held several times ((a, a) six times by the
session a, a, a, a): L1 is the same, but one count moves by more than 1, and a threshold made for counts of 1 no longer
keeps δ (gap G2). The sound release counts users of distinct items: L1 ≤ items_per_user and L∞ = 1, which is all that
the stability histogram asks.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

from qlog_assets.privacy.histogram import Released, stability_histogram
from qlog_assets.privacy.limits import SESSION_GAP_MINUTES, position_within
from qlog_assets.privacy.randomness import RandomSource

NO_QUERY = -1  # pads sessions and items to one width


def segment(users: np.ndarray, seconds: np.ndarray, gap: int = 60 * SESSION_GAP_MINUTES) -> np.ndarray:
    """A session number a row: new where the user changes or more than `gap` seconds pass. Rows by user and time."""
    users, seconds = np.asarray(users), np.asarray(seconds)
    if users.size == 0:
        return np.empty(0, np.int64)
    starts = np.r_[True, (users[1:] != users[:-1]) | (seconds[1:] - seconds[:-1] > gap)]
    return np.cumsum(starts) - 1


def limit_sessions(
    users: np.ndarray, sessions: np.ndarray, queries: np.ndarray, sessions_per_user: int, queries_per_session: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first sessions of each user that have two queries or more, each cut to its first queries.

    Returns the owner of each kept session and a matrix of its queries, padded with NO_QUERY. Rows by (user, time).
    """
    users, sessions, queries = (np.asarray(column, np.int64) for column in (users, sessions, queries))
    _, first, numbers, lengths = np.unique(sessions, return_index=True, return_inverse=True, return_counts=True)
    owners = users[first]
    several = lengths >= 2
    kept = several.copy()
    kept[several] = position_within(owners[several]) < sessions_per_user
    column = position_within(sessions)
    cells = kept[numbers] & (column < queries_per_session)
    new_number = np.cumsum(kept) - 1
    matrix = np.full((int(kept.sum()), queries_per_session), NO_QUERY, np.int64)
    matrix[new_number[numbers[cells]], column[cells]] = queries[cells]
    return owners[kept], matrix


def session_items(
    owners: np.ndarray, matrix: np.ndarray, repeats: bool = False, pairs_only: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(user, item) rows: every subsequence of every kept session; each user and item once unless `repeats`.

    Items are rows of queries as wide as the session matrix, padded with NO_QUERY.
    """
    width = matrix.shape[1]
    lengths = (matrix != NO_QUERY).sum(axis=1)
    users, items = [np.empty(0, np.int64)], [np.empty((0, width), np.int64)]
    for size in range(2, 3 if pairs_only else width + 1):
        for positions in combinations(range(width), size):
            long_enough = lengths > positions[-1]
            part = np.full((int(long_enough.sum()), width), NO_QUERY, np.int64)
            part[:, :size] = matrix[long_enough][:, positions]
            users.append(owners[long_enough])
            items.append(part)
    rows = np.column_stack([np.concatenate(users), np.concatenate(items)])
    if not repeats:
        rows = np.unique(rows, axis=0)
    return rows[:, 0], rows[:, 1:]


def count_items(items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct items and how many rows each has: users after distinct rows, events after repeated ones."""
    distinct_items, counts = np.unique(items, axis=0, return_counts=True)
    return distinct_items, counts.astype(np.int64)


def release_items(
    source: RandomSource, users: np.ndarray, per_user: int, scale: Fraction, delta: Fraction, at_least: int = 0
) -> Released:
    """`sound`, for sessions and for clicks: the stability histogram on distinct items; costs (per_user/scale, delta).

    Sessions and clicks come from the same users, so releasing both costs the sum of the two (gap G1).
    """
    return stability_histogram(source, users, per_user, scale, delta, at_least=at_least)
