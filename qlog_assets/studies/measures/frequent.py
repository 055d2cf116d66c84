"""How well a release tells frequent items: inaccuracy with slack, precision and recall, released shares, count error.

Pure functions on arrays over all items of a log. What they measure on a private log is private.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Truth:
    """Every item of a log by number: how many users hold it and how many events it has."""

    users: np.ndarray
    events: np.ndarray


@dataclass(frozen=True)
class FrequentItems:
    """How one release compares with the truth. What only printed items have is None where nothing is printed."""

    released: int
    inaccuracy: int
    """Items of at least τ + ζ users that are missing, and items of at most τ - ζ users that are printed."""
    precision: float | None
    """The share of printed items that are frequent, f ≥ τ."""
    recall: float
    """The share of frequent items that are printed."""
    impressions_share: float
    """The share of all events that belong to printed items."""
    distinct_share: float
    count_error: float | None
    """The median of |printed count - true users| over printed items."""
    relative_error: float | None


def compare(truth: Truth, items: np.ndarray, counts: np.ndarray, frequent: int, slack: int) -> FrequentItems:
    """Measure printed items with their counts; `frequent` is τ in users, `slack` is ζ."""
    users = truth.users
    printed = np.zeros(len(users), dtype=bool)
    printed[items] = True
    errors = np.abs(np.asarray(counts, dtype=float) - users[items])
    is_frequent = users >= frequent
    both = int((printed & is_frequent).sum())
    wrong = (~printed & (users >= frequent + slack)) | (printed & (users <= frequent - slack))
    return FrequentItems(
        released=len(items),
        inaccuracy=int(wrong.sum()),
        precision=share(both, len(items)) if len(items) else None,
        recall=share(both, int(is_frequent.sum())),
        impressions_share=share(int(truth.events[items].sum()), int(truth.events.sum())),
        distinct_share=share(len(items), len(users)),
        count_error=float(np.median(errors)) if len(items) else None,
        relative_error=float(np.median(errors / users[items])) if len(items) else None,
    )


def share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
