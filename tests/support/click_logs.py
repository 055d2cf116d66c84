"""Small logs of clicks to optimise on."""

from __future__ import annotations

import math

import numpy as np

from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.mechanisms.sanitized.programme import Programme, drop_unique_pairs

LIMIT = math.log(2)
"""B of the paper's e^ε = 2 and δ = 0.5."""


def random_counts(seed: int, users: int = 80, pairs: int = 40, clicks: int = 900) -> PairCounts:
    """Clicks with popular and rare pairs, one row per user and pair, unique pairs included."""
    generator = np.random.default_rng(seed)
    drawn = np.stack([generator.integers(users, size=clicks), generator.zipf(1.5, size=clicks) % pairs], axis=1)
    rows, events = np.unique(drawn, axis=0, return_counts=True)
    return PairCounts(rows[:, 0], rows[:, 1], events)


def shared(users: int) -> PairCounts:
    """So many users who all clicked pair 0 once."""
    return PairCounts(np.arange(users), np.zeros(users, np.int64), np.ones(users, np.int64))


def programme_of(rows: PairCounts, pairs: int = 40, limit: float = LIMIT) -> Programme:
    return Programme.of(drop_unique_pairs(rows), pairs, limit)
