"""Safelog's printed numbers: those our formulas reproduce, and, one test each, those that do not hold.

A test of the second kind asserts our number and names the paper's in its docstring. No noise is drawn here.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from qlog_assets.mechanisms.register import guarantee
from qlog_assets.mechanisms.safelog.parameters import PaperParameters, SafelogParameters
from qlog_assets.privacy.korolova import (
    log_selection_ratio,
    log_tight_selection_ratio,
    turning_point,
)


def safelog(**changes: object) -> SafelogParameters:
    """Table 3's setting: K = b = b_q = b_c = 10, no transitions."""
    table = {"threshold": 10, "selection_scale": 10, "query_scale": 10, "click_scale": 10, "transition_scale": None}
    return SafelogParameters(**(table | changes))


@pytest.mark.parametrize(("limit", "printed"), [(10, 4.27), (50, 21.36), (100, 42.73), (150, 64.09), (200, 85.45)])
def test_safelog_table_3(limit: int, printed: float) -> None:
    claimed = guarantee("safelog", "paper", safelog(queries_per_user=limit, clicks_per_user=limit)).claimed
    assert claimed is not None
    assert round(float(claimed.epsilon), 2) == printed
    assert claimed.delta == 0


def test_safelog_29_99_is_30_00() -> None:
    """Figure 3 prints ε = 29.99 for K = 500, b = 10; q_f = c_f = 100 and b_q = b_c = 10 give 30.00."""
    claimed = guarantee("safelog", "paper", safelog(threshold=500, queries_per_user=100, clicks_per_user=100)).claimed
    assert claimed is not None
    assert float(claimed.epsilon) == pytest.approx(30.00, abs=1e-9)
    # Many other settings give exactly 29.99, so the paper's cannot be told from its text.
    for limit in (75, 90):
        probability = Fraction(math.exp(0.3 - 29.99 / limit))
        other = safelog(threshold=500, queries_per_user=limit, clicks_per_user=limit)
        found = guarantee("safelog", "paper", PaperParameters(**other.said, pool_probability=probability)).claimed
        assert found is not None
        assert float(found.epsilon) == pytest.approx(29.99, abs=1e-6)


def test_safelog_table_3_leaves_the_transitions_out() -> None:
    """Theorem 1 has (q_f - 1)/b_t; Table 3 prints 4.27 and 85.45 without it. With b_t = 10: 5.17 and 105.35."""
    for limit, expected in ((10, 5.17), (200, 105.35)):
        parameters = safelog(queries_per_user=limit, clicks_per_user=limit, transition_scale=10)
        claimed = guarantee("safelog", "paper", parameters).claimed
        assert claimed is not None
        assert round(float(claimed.epsilon), 2) == expected


def test_safelog_as_printed_has_no_finite_guarantee() -> None:
    """Theorem 1 claims pure ε for Algorithm 1; filter, observed clicks and the pool leave nothing finite."""
    promise = guarantee("safelog", "paper", safelog())
    assert promise.proven is None
    assert not promise.publishable
    assert [gap[:2] for gap in promise.gaps[:3]] == ["G1", "G2", "G3"]


@pytest.mark.parametrize(("limit", "plain", "with_transitions"), [(10, 3.0, 3.9), (200, 60.0, 79.9)])
def test_safelog_table_3_repaired_costs_less_than_printed(limit: int, plain: float, with_transitions: float) -> None:
    """Table 3 prints 4.27 to 85.45; the sound release at its scales (and one more noise, as printed) costs 3 to 60."""
    parameters = safelog(queries_per_user=limit, clicks_per_user=limit)
    tight = guarantee("safelog", "paper", parameters).figures["epsilon_with_tight_alpha"]
    assert tight == pytest.approx(plain)
    three_tables = guarantee("safelog", "paper", parameters.with_changes(transition_scale=10))
    assert three_tables.figures["epsilon_with_tight_alpha"] == pytest.approx(with_transitions)
    one_noise = guarantee("safelog", "sound", parameters).proven
    assert one_noise is not None
    assert float(one_noise.epsilon) == pytest.approx(plain * 2 / 3)


TURNING_POINTS = {10: 6.88, 30: 14.43, 50: 20.74, 100: 34.57, 500: 121.4}


@pytest.mark.parametrize(("threshold", "scale"), TURNING_POINTS.items())
def test_safelog_turning_points_in_b_are_an_artefact(threshold: int, scale: float) -> None:
    """Figure 5 recommends the b where ε is least. The paper's formula does turn there; the tight bound never does."""
    found = turning_point(threshold)
    assert found == pytest.approx(scale, rel=1e-3)
    x = math.exp(1 / found)
    assert 2 * x ** (threshold - 2) * (x - 1) == pytest.approx(1)
    grid = [found * factor for factor in (0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0)]
    printed = [log_selection_ratio(threshold, scale) for scale in grid]
    assert printed[:4] == sorted(printed[:4], reverse=True)
    assert printed[3:] == sorted(printed[3:])
    for scale_of_noise in grid:
        assert log_tight_selection_ratio(threshold, scale_of_noise) == pytest.approx(1 / scale_of_noise)


def test_safelog_turning_points_move_with_the_pool_probability() -> None:
    """At p_g = 0.95 they are 7.98, 18.1, 27.5, 49.9 and 224.6; at p_g <= ½ there are none."""
    found = [turning_point(threshold, 0.95) for threshold in TURNING_POINTS]
    assert found == pytest.approx([7.98, 18.1, 27.5, 49.9, 224.6], rel=2e-3)
    assert turning_point(100, 0.5) is None
