"""ZEALOUS (Götz et al. 2009): frequent keywords, queries, query pairs or clicks with two thresholds. Pure, on counts.

Each kind of item is its own histogram and its own charge. The limit of m distinct items a user comes before (counts.py,
or SQL at scale) and must read only that user's records: keeping the globally most popular items is unsound, one user's
popularity re-routes everyone's choice (gap 2). `paper` functions never pass the door.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from qlog_assets.mechanisms.counts import count_users, first_distinct
from qlog_assets.mechanisms.two_draws import PaperReleased
from qlog_assets.privacy.histogram import Released, stability_histogram
from qlog_assets.privacy.paper_noise import continuous_laplace
from qlog_assets.privacy.parameters_others import ZealousParameters
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.selection import Selected, gaussian_counts, truncated_geometric_counts
from qlog_assets.privacy.weighted import sips, weighted_gaussian


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


def release(
    source: RandomSource, users: np.ndarray, items_per_user: int, scale: Fraction, delta: Fraction, min_users: int = 1
) -> Released:
    """`sound`: the stability histogram, integer noise, one draw; costs (items_per_user/scale, delta)."""
    return stability_histogram(source, users, items_per_user, scale, delta, min_users=min_users)


def release_modern(
    source: RandomSource, users: np.ndarray, items: np.ndarray, domain: int, parameters: ZealousParameters
) -> Selected:
    """`modern`, one kind of item: the selection that the parameters name, with counts, for the kind's share of (ε, δ).

    Takes rows, not counts: the weighted methods choose among a user's items themselves, each user for herself; the
    others count each user's first items.
    """
    per_user, share = parameters.items_per_user, (parameters.kind_epsilon, parameters.kind_delta)
    if parameters.method in ("weighted_gaussian", "sips"):
        choose = weighted_gaussian if parameters.method == "weighted_gaussian" else sips
        return choose(source, users, items, per_user, *share, parameters.set_share, parameters.counted_items_per_user)
    count = gaussian_counts if parameters.method == "gaussian_counts" else truncated_geometric_counts
    return count(source, count_users(*first_distinct(users, items, per_user), domain), per_user, *share)
