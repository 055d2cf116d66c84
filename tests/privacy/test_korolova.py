"""The bound on noisy selection that three papers share: how loose it is, and what replaces it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.privacy.histogram import stability_threshold
from qlog_assets.privacy.korolova import (
    tight_selection_delta,
)
from qlog_assets.privacy.parameters import AOL_USERS


def test_tight_selection_delta_is_the_maximum_over_all_splits() -> None:
    def brute(items: int, cap: int, scale: float, threshold: int) -> float:
        best = [0.0] * (items + 1)
        for total in range(1, items + 1):
            best[total] = max(
                best[total - part] + 0.5 * math.exp((part - threshold) / scale)
                for part in range(1, min(cap, total) + 1)
            )
        return min(1.0, best[items])

    for items in (1, 4, 7, 11):
        for cap in (1, 2, 3, 5, 11):
            for scale in (0.5, 1.0, 2.5, 4.0, 10.0):
                found = tight_selection_delta(items, min(cap, items), scale, 20)
                assert found == pytest.approx(brute(items, min(cap, items), scale, 20))


def test_stability_threshold_replaces_the_papers_at_the_same_loss() -> None:
    """k_u(10) is 66.2 for the AOL log; the exact threshold of the sound release, counts included, is 67."""
    assert stability_threshold(10, CrowdParameters().noise_scale, Fraction(1, AOL_USERS + 1)) == 67
