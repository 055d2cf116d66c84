"""Who contributes what: per-user limits and counters over rows of (user, item), as the SQL does them at scale.

Rows are integer arrays in the order of time (ties broken upstream by rank and bytes). Every limit reads only the
records of the user it limits (rule 7); anything that looks across users before the noise belongs nowhere.
"""

from __future__ import annotations

import numpy as np

SESSION_GAP_MINUTES = 30
"""A user's searches further apart belong to different sessions. 30 minutes is what the session literature uses."""

Rows = tuple[np.ndarray, np.ndarray]
"""(users, items): one row per event, or one row per user and item after a limit."""


def position_within(groups: np.ndarray) -> np.ndarray:
    """0, 1, 2, … for each row among the rows of its group, in the order given."""
    groups = np.asarray(groups)
    order = np.argsort(groups, kind="stable")
    ranked = groups[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if ranked.size else np.empty(0, np.int64)
    lengths = np.diff(np.r_[starts, ranked.size])
    positions = np.empty(groups.size, np.int64)
    positions[order] = np.arange(groups.size) - np.repeat(starts, lengths)
    return positions


def distinct(users: np.ndarray, items: np.ndarray) -> Rows:
    """The first row of each (user, item), in the order of time."""
    users, items = np.asarray(users, np.int64), np.asarray(items, np.int64)
    order = np.lexsort((items, users))  # stable: the first row of each pair in time is the first of its run
    new = np.ones(users.size, bool)
    new[1:] = (np.diff(users[order]) != 0) | (np.diff(items[order]) != 0)
    first = np.sort(order[new])
    return users[first], items[first]


def first_events(users: np.ndarray, items: np.ndarray, limit: int) -> Rows:
    """The first `limit` rows of each user, repeats included."""
    kept = position_within(users) < limit
    return np.asarray(users, np.int64)[kept], np.asarray(items, np.int64)[kept]


def first_distinct(users: np.ndarray, items: np.ndarray, limit: int) -> Rows:
    """The first `limit` distinct items of each user: one user moves `limit` counts by 1 each, no more."""
    return first_events(*distinct(users, items), limit)


def last_events(users: np.ndarray, items: np.ndarray, limit: int) -> Rows:
    """The most recent `limit` rows of each user, repeats included, in the order of time."""
    late_users, late_items = first_events(np.asarray(users)[::-1], np.asarray(items)[::-1], limit)
    return late_users[::-1], late_items[::-1]


def last_distinct(users: np.ndarray, items: np.ndarray, limit: int) -> Rows:
    """The most recent `limit` distinct items of each user."""
    late_users, late_items = first_distinct(np.asarray(users)[::-1], np.asarray(items)[::-1], limit)
    return late_users[::-1], late_items[::-1]


def count_users(users: np.ndarray, items: np.ndarray, domain: int) -> np.ndarray:
    """How many different users hold each item of [0, domain)."""
    return np.bincount(distinct(users, items)[1], minlength=domain).astype(np.int64)


def count_events(items: np.ndarray, domain: int) -> np.ndarray:
    """How many rows each item of [0, domain) has, however few users they come from."""
    return np.bincount(np.asarray(items, np.int64), minlength=domain).astype(np.int64)
