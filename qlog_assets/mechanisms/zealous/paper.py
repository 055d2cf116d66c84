"""ZEALOUS as printed, for studies: two thresholds and float noise. Nothing made here may be published.

The sound release and modern selection are `noise.py`.
"""

from __future__ import annotations

import numpy as np

from qlog_assets.privacy.paper_noise import continuous_laplace
from qlog_assets.privacy.paper_selection import PaperReleased
from qlog_assets.privacy.randomness import RandomSource


def release_paper(
    source: RandomSource, users: np.ndarray, minimum: int, scale: float, threshold: float | None
) -> PaperReleased:
    """Delete counts below `minimum` (τ), add Laplace(scale), delete noisy counts at or below `threshold` (τ′).

    `threshold=None` is step 5 as the paper at hand prints it, without a condition: nothing is deleted, and an item held
    by exactly τ users is printed with certainty where τ - 1 users never print it (gap 1).
    """
    users = np.asarray(users, np.int64)
    candidates = np.flatnonzero(users >= max(minimum, 1))
    noisy = users[candidates] + continuous_laplace(source, scale, candidates.size)
    kept = np.ones(candidates.size, bool) if threshold is None else noisy > threshold
    return PaperReleased(candidates[kept], noisy[kept])
