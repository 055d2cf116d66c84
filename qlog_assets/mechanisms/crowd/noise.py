"""What analysts may be given of CrowdLogging: noisy user counts, one draw, nothing else. Pure; encryption is elsewhere.

The paper's four policies are `paper.py`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from qlog_assets.privacy.histogram import Released, stability_histogram
from qlog_assets.privacy.randomness import RandomSource


def release(
    source: RandomSource, users: np.ndarray, per_user: int, scale: Fraction, delta: Fraction, min_shares: int = 1
) -> Released:
    """`sound`: the stability histogram on users of at most `per_user` distinct artifacts; (per_user/scale, delta).

    `min_shares` is the number of key shares that decryption needs. It cuts on the true count, so it is accounted for as
    a minimum of users: counts are shifted before the noise, never cut after it (gap G5).
    """
    return stability_histogram(source, users, per_user, scale, delta, min_users=min_shares)
