"""The built-in check: with equal parameters, CrowdLogging and ZEALOUS are one law in their variant `sound`.

Both are the stability histogram of user counts. With one kind of item, the same limit per user, ε and δ, and as many
key shares as users that an item needs (one of each is the plain case), they must have the same threshold and the same
noise, and from the same random bits they must print the same items with the same counts. The last says it all: a
function of counts and random bits that is the same has the same law. Nothing here is statistical, so nothing is a false
alarm.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from qlog_assets.mechanisms.crowd import noise as crowd
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.mechanisms.zealous import noise as zealous
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.studies.study import Row

LIMITS = (1, 2, 10)
"""Items per user that are checked."""
LEAST_USERS = (1, 5)
"""Shares that decryption needs, and users that an item needs."""
DRAWS = 5


def check_same_law(users: np.ndarray, epsilon: Fraction, delta: Fraction, seed: int) -> list[Row]:
    """A row per limit and least number of users: both thresholds and deviations, and whether all draws are the same."""
    rows = []
    for limit in LIMITS:
        for least in LEAST_USERS:
            shared = {"epsilon": epsilon, "delta": delta}
            by_crowd = CrowdParameters(artifacts_per_user=limit, jobs=("queries",), share_threshold=least, **shared)
            by_zealous = ZealousParameters(items_per_user=limit, kinds=("queries",), min_users=least, **shared)
            same = True
            for draw in range(DRAWS):
                one = crowd.draw_counts(SeededRandom(seed + draw), users, "sound", by_crowd)
                two = zealous.draw_counts(SeededRandom(seed + draw), users, "sound", by_zealous)
                same &= np.array_equal(one.artifacts, two.items) and np.array_equal(one.users, two.users)
            rows.append(
                {
                    "items_per_user": limit,
                    "least_users": least,
                    "crowd_threshold": one.threshold,
                    "zealous_threshold": two.threshold,
                    "draws": DRAWS,
                    "printed": len(one.artifacts),
                    "same_noise": one.noise == two.noise,
                    "same_draws": bool(same),
                }
            )
    return rows


def is_same(rows: list[Row]) -> bool:
    return any(row["printed"] for row in rows) and all(
        row["same_draws"] and row["same_noise"] and row["crowd_threshold"] == row["zealous_threshold"] for row in rows
    )
