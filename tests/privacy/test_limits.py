"""Per-user limits and counters: the reference that SQL and the audits rely on, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from qlog_assets.privacy import limits as counts


def random_rows(seed: int, users: int = 40, items: int = 12, rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.integers(users, size=rows), generator.integers(items, size=rows)


def kept_by_hand(users: np.ndarray, items: np.ndarray, limit: int, distinct: bool) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    held: dict[int, list[int]] = {}
    for user, item in zip(users.tolist(), items.tolist(), strict=True):
        mine = held.setdefault(user, [])
        if len(mine) < limit and not (distinct and item in mine):
            mine.append(item)
            kept.append((user, item))
    return kept


def as_pairs(rows: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, int]]:
    return list(zip(rows[0].tolist(), rows[1].tolist(), strict=True))


@pytest.mark.parametrize("limit", [1, 2, 5, 1000])
def test_first_keeps_each_users_first_items_in_the_order_of_time(limit: int) -> None:
    users, items = random_rows(1)
    assert as_pairs(counts.first_events(users, items, limit)) == kept_by_hand(users, items, limit, distinct=False)
    assert as_pairs(counts.first_distinct(users, items, limit)) == kept_by_hand(users, items, limit, distinct=True)


@pytest.mark.parametrize("limit", [1, 3])
def test_last_keeps_each_users_most_recent_items_in_the_order_of_time(limit: int) -> None:
    users, items = random_rows(2)
    for function, distinct in ((counts.last_events, False), (counts.last_distinct, True)):
        expected = kept_by_hand(users[::-1], items[::-1], limit, distinct)[::-1]
        assert as_pairs(function(users, items, limit)) == expected


def test_users_are_counted_once_and_events_every_time() -> None:
    users, items = np.array([0, 0, 1, 2]), np.array([1, 1, 1, 0])
    assert counts.count_users(users, items, 3).tolist() == [1, 2, 0]
    assert counts.count_events(items, 3).tolist() == [1, 3, 0]


def test_an_empty_log_gives_empty_rows_and_zero_counts() -> None:
    nothing = np.empty(0, np.int64)
    for function in (counts.first_events, counts.first_distinct, counts.last_events, counts.last_distinct):
        assert as_pairs(function(nothing, nothing, 3)) == []
    assert counts.count_users(nothing, nothing, 2).tolist() == [0, 0]
