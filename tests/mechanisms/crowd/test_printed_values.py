"""CrowdLogging's printed numbers: those our formulas reproduce, and, one test each, those that do not hold.

A test of the second kind asserts our number and names the paper's in its docstring. No noise is drawn here.
"""

from __future__ import annotations

import math

import pytest

from qlog_assets.mechanisms.crowd.guarantee import artifact_threshold, largest_allowed, user_threshold
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.mechanisms.register import guarantee
from qlog_assets.privacy.korolova import (
    log_selection_ratio,
    selection_delta,
)
from qlog_assets.privacy.parameters import AOL_USERS

LN_10 = math.log(10)


AOL_DELTA = 1 / (AOL_USERS + 1)


CROWD_THRESHOLDS = {
    1: (6.52, 6.52),
    2: (13.64, 12.64),
    3: (20.98, 18.98),
    4: (28.48, 25.48),
    5: (36.08, 32.08),
    10: (75.2, 66.2),
    15: (115.4, 101.4),
    20: (156.4, 137.4),
    25: (197.9, 173.9),
}


@pytest.mark.parametrize(("artifacts", "expected"), CROWD_THRESHOLDS.items())
def test_crowdlogging_thresholds_for_the_aol_log(artifacts: int, expected: tuple[float, float]) -> None:
    digits = 2 if artifacts <= 5 else 1
    least = (artifact_threshold(artifacts, LN_10, AOL_DELTA), user_threshold(artifacts, LN_10, AOL_DELTA))
    assert (round(least[0], digits), round(least[1], digits)) == expected


CROWD_ALLOWED = [
    (range(1, 7), (0, 0)),
    (range(7, 13), (1, 1)),
    (range(13, 14), (1, 2)),
    (range(14, 19), (2, 2)),
    (range(19, 21), (2, 3)),
    (range(21, 26), (3, 3)),
    (range(26, 29), (3, 4)),
    (range(29, 33), (4, 4)),
    (range(50, 51), (6, 7)),
    (range(100, 101), (13, 14)),
    (range(150, 151), (19, 21)),
    (range(160, 161), (20, 23)),
    (range(200, 201), (25, 28)),
]


@pytest.mark.parametrize(("thresholds", "expected"), CROWD_ALLOWED)
def test_crowdlogging_allowed_artifacts_for_the_aol_log(thresholds: range, expected: tuple[int, int]) -> None:
    for threshold in thresholds:
        parameters = CrowdParameters(threshold=threshold)
        found = tuple(
            int(guarantee("crowd", variant, parameters).figures["artifacts_allowed"]) for variant in ("dp_a", "dp_u")
        )
        assert found == expected


def test_crowdlogging_threshold_and_delta_are_inverse_of_each_other() -> None:
    for artifacts in (1, 3, 10, 30):
        scale = artifacts / LN_10
        k_a, k_u = artifact_threshold(artifacts, LN_10, AOL_DELTA), user_threshold(artifacts, LN_10, AOL_DELTA)
        assert selection_delta(artifacts, artifacts, scale, k_a) == pytest.approx(AOL_DELTA, rel=1e-9)
        assert selection_delta(artifacts, 1, scale, k_u) == pytest.approx(AOL_DELTA, rel=1e-9)
        # The paper assumes that e^(1/b) is the larger of α's two terms; it is, at these thresholds.
        assert log_selection_ratio(math.ceil(k_u), scale) == pytest.approx(1 / scale)


def test_crowdlogging_misspelling_example_lies_in_the_range_of_d_3() -> None:
    """Section 4.1: 'oggle' to 'google' by 22 users is released for the k that correspond to d = 3."""
    assert 3 in (largest_allowed(22, LN_10, AOL_DELTA, count_users=users) for users in (True, False))


def test_crowdlogging_allows_nothing_up_to_k_6() -> None:
    """Section 4.1: 'for 1 <= k <= 7 both policies are allowed only one query per user'; it is none up to k = 6."""
    for variant in ("dp_a", "dp_u"):
        for threshold in range(1, 7):
            promise = guarantee("crowd", variant, CrowdParameters(threshold=threshold))
            assert promise.figures["artifacts_per_user"] == 0
            assert promise.claimed is None
        assert guarantee("crowd", variant, CrowdParameters(threshold=7)).figures["artifacts_per_user"] == 1


def test_crowdlogging_with_one_artifact_forced_is_not_private_at_its_delta() -> None:
    """`paper_min_d1` redraws the paper's figures; at k = 3 its δ is then not 1/(n+1) but thousands of times that."""
    promise = guarantee("crowd", "dp_u", CrowdParameters(threshold=3, paper_min_d1=True))
    assert promise.figures["artifacts_per_user"] == 1
    assert promise.figures["delta_at_threshold"] == pytest.approx(0.005, rel=1e-6)
    assert promise.figures["delta_at_threshold"] > 3000 * AOL_DELTA
    assert "paper_min_d1" in promise.gaps[0]


def test_crowdlogging_epsilon_without_its_count_term() -> None:
    """The simulation states ε = ln 10; the theorem's d/b_a for printed counts makes it 2·ln 10 = 4.605 at b_a = b."""
    for variant in ("dp_a", "dp_u"):
        promise = guarantee("crowd", variant, CrowdParameters(threshold=7))
        assert promise.claimed is not None
        assert float(promise.claimed.epsilon) == pytest.approx(LN_10)
        assert promise.figures["epsilon_with_counts"] == pytest.approx(4.605, abs=1e-3)
        assert promise.proven is None


def test_crowdlogging_pilot_epsilon_is_a_delta() -> None:
    """Section 5 prints 'n = 16 and ε = 1/(n+1)'. Read literally k_u(1) = 37 exceeds all 16 users; as δ it is 1.93."""
    assert user_threshold(1, 1 / 17, 1 / 17) == pytest.approx(37.4, abs=0.05)
    assert user_threshold(1, LN_10, 1 / 17) == pytest.approx(1.93, abs=0.005)
