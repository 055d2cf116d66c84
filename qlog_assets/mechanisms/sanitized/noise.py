"""The sound counterpart of the sanitized log: the same schema, synthetic users, nobody's own tuple.

Three steps: a stability histogram on distinct (query, url) pairs, a noisy histogram of how many pairs a user holds, and
sampling from the two. The last is post-processing and free. Cost: (pairs_per_user/pair_scale + 1/length_scale, delta).

Proof. A user moves at most pairs_per_user pair counts by 1 (stability histogram) and exactly one cell of the length
histogram by 1: the two add up, and what is computed from them costs nothing. ∎
No real id survives, so the objection to the paper (a true tuple of a real user costs δ ≥ 1/n) does not arise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qlog_assets.privacy.histogram import Released, stability_histogram
from qlog_assets.privacy.noise import discrete_laplace
from qlog_assets.privacy.randomness import RandomSource


@dataclass(frozen=True)
class PairCounts:
    """One row a user and (query, url) pair: how often that user clicked it. Users and pairs are numbers."""

    users: np.ndarray
    pairs: np.ndarray
    events: np.ndarray

    def keep(self, rows: np.ndarray) -> PairCounts:
        """The same with only these rows."""
        return PairCounts(self.users[rows], self.pairs[rows], self.events[rows])

    def totals(self) -> np.ndarray:
        """Events of each pair, all users together, indexed by pair."""
        return np.bincount(self.pairs, weights=self.events).astype(np.int64)


def release_pairs(
    source: RandomSource, users: np.ndarray, pairs_per_user: int, scale: Fraction, delta: Fraction
) -> Released:
    """The noisy pair histogram, from users of each pair after the limit of distinct pairs per user."""
    return stability_histogram(source, users, pairs_per_user, scale, delta)


def release_lengths(source: RandomSource, users: np.ndarray, scale: Fraction) -> np.ndarray:
    """Noisy numbers of users by how many pairs they hold (cell i: i + 1). Every cell is noised; none goes below 0."""
    users = np.asarray(users, np.int64)
    return np.maximum(users + discrete_laplace(source, scale, users.size), 0)


def synthetic_log(
    source: RandomSource, pairs: np.ndarray, weights: np.ndarray, lengths: np.ndarray, users: int
) -> PairCounts:
    """`users` synthetic users (a public number): each draws how many clicks, then so many pairs by weight.

    Where noise left the length histogram empty, every length is as likely as any other.
    """
    if np.sum(weights) == 0:
        nothing = np.empty(0, np.int64)
        return PairCounts(nothing, nothing, nothing)
    clicks = 1 + _weighted(source, lengths if np.sum(lengths) else np.ones_like(lengths), users)
    owners = np.repeat(np.arange(users), clicks)
    held = np.asarray(pairs)[_weighted(source, weights, owners.size)]
    rows, events = np.unique(np.stack([owners, held], axis=1), axis=0, return_counts=True)
    return PairCounts(rows[:, 0], rows[:, 1], events.astype(np.int64))


def _weighted(source: RandomSource, weights: np.ndarray, size: int) -> np.ndarray:
    """`size` indices, each in proportion to its whole weight, exactly."""
    ends = np.cumsum(weights)
    return np.searchsorted(ends, source.integers(int(ends[-1]), size), side="right")
