"""The paper's optimisation problem as numbers: which counts are allowed. No solver, no objective.

A count x for each (query, url) pair is allowed if every user's Σ x_ij·ln t_ijk stays within B, t_ijk = c_ij / (c_ij -
c_ijk). Summed over users this gives Σx ≤ n·B, because Σ_k ln t_ijk ≥ Σ_k c_ijk/c_ij = 1: whatever a solver or a table
says, no allowed output is larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.sanitized.noise import PairCounts

ROUNDING_ERROR = 1e-9
"""What a sum of doubles may differ by, relative to B. No user is let past B by more."""


def drop_unique_pairs(rows: PairCounts) -> PairCounts:
    """Without the pairs that one user alone holds (condition 1 of Theorem 1). Itself a leak: gap G4."""
    holders = np.bincount(rows.pairs)
    return rows.keep(holders[rows.pairs] >= 2)


@dataclass(frozen=True)
class Programme:
    """The constraints of one log: a row of `losses` per user, a column per pair, ln t in the cells."""

    losses: csc_array
    limit: float
    """B: what each user's constraint allows."""
    events: np.ndarray
    """c_ij: the events of each pair in the log."""

    @classmethod
    def of(cls, rows: PairCounts, pairs: int, limit: float) -> Programme:
        """The constraints of a log of which `drop_unique_pairs` took the unique pairs; pairs are 0..pairs - 1."""
        if rows.pairs.size and np.bincount(rows.pairs)[rows.pairs].min() < 2:
            raise ParameterError(
                "a pair held by one user alone has no finite constraint: drop_unique_pairs comes first"
            )
        totals = np.zeros(pairs, np.int64)
        np.add.at(totals, rows.pairs, rows.events)
        _, users = np.unique(rows.users, return_inverse=True)
        losses = -np.log1p(-rows.events / totals[rows.pairs])
        shape = (int(users.max(initial=-1)) + 1, pairs)
        return cls(
            csc_array((losses, (users.astype(np.int32), rows.pairs.astype(np.int32))), shape=shape), limit, totals
        )

    @property
    def users(self) -> int:
        return int(self.losses.shape[0])

    @property
    def pairs(self) -> int:
        return int(self.losses.shape[1])

    @property
    def largest_size(self) -> float:
        """n·B: no allowed output has more events."""
        return self.users * self.limit

    @cached_property
    def owner(self) -> np.ndarray:
        """The pair of each cell of `losses.data`."""
        return np.repeat(np.arange(self.pairs, dtype=np.int32), np.diff(self.losses.indptr))

    @cached_property
    def steepest(self) -> np.ndarray:
        """The largest ln t of each pair; 0 for one that nobody holds."""
        found = np.zeros(self.pairs)
        np.maximum.at(found, self.owner, self.losses.data)
        return found

    @property
    def held(self) -> np.ndarray:
        """Which pairs anybody holds: the others have no constraint and no user to draw, and stay at 0."""
        return np.diff(self.losses.indptr) > 0

    def left(self, counts: np.ndarray) -> np.ndarray:
        """What each user's constraint still allows beside these counts."""
        return self.limit - self.losses @ counts

    def allows(self, counts: np.ndarray) -> bool:
        """Whether every user's constraint holds, but for the rounding error of the sum."""
        return bool((self.left(counts) >= -ROUNDING_ERROR * self.limit).all()) and bool((np.asarray(counts) >= 0).all())

    def fitting(self, left: np.ndarray) -> np.ndarray:
        """Which pairs have room for one more event where users have so much left."""
        short = self.losses.data > left[self.losses.indices] + ROUNDING_ERROR * self.limit
        fits = self.held
        fits[self.owner[short]] = False
        return fits

    def scale_into(self, counts: np.ndarray, left: np.ndarray | None = None) -> np.ndarray:
        """Counts that a solver left a little outside, made allowed: each is divided by its worst user's excess.

        What is left of a user's sum is at most 1/excess of it, because all of that user's counts are divided by as
        much or more. `left` is what users have; None: all of B.
        """
        left = np.full(self.users, self.limit) if left is None else left
        counts = np.where(self.held, np.maximum(counts, 0), 0)
        spent = self.losses @ counts
        excess = np.maximum(np.divide(spent, left, out=np.full(self.users, np.inf), where=left > 0), 1)
        excess[spent == 0] = 1
        divisor = np.ones(self.pairs)
        np.maximum.at(divisor, self.owner, excess[self.losses.indices])
        return counts / divisor
