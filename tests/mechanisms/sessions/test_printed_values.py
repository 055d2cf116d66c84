"""The session paper's printed numbers: those our formulas reproduce, and, one test each, those that do not hold.

A test of the second kind asserts our number and names the paper's in its docstring. No noise is drawn here.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest
from support.cli import qlog

from qlog_assets.mechanisms.register import guarantee
from qlog_assets.mechanisms.sessions.parameters import SessionParameters

SESSION_TABLE_4 = [
    # b, K, l_s, l_q, printed ε, printed δ
    (1, 10, 1, 3, 8.00, 4.95e-3),
    (1, 20, 1, 3, 8.00, 2.25e-7),
    (1, 30, 1, 3, 8.00, 1.02e-11),
    (3, 20, 1, 3, 2.67, 9.66e-3),
    (3, 30, 1, 3, 2.67, 3.44e-4),
    (1, 20, 1, 4, 22.00, 6.79e-4),
    (2, 30, 1, 4, 11.00, 4.12e-4),
    (1, 20, 2, 3, 16.00, 2.46e-5),
    (2, 30, 2, 3, 8.00, 6.68e-5),
]


def session_row(scale: int, threshold: int, sessions: int, queries: int) -> SessionParameters:
    return SessionParameters(
        session_scale=scale,
        threshold=threshold,
        sessions_per_user=sessions,
        queries_per_session=queries,
        click_scale=None,
    )


@pytest.mark.parametrize("row", SESSION_TABLE_4)
def test_session_table_4(row: tuple[int, int, int, int, float, float]) -> None:
    """All 18 values. δ to one unit of the last printed digit, which only the truncated 4.95e-3 (4.957e-3) needs."""
    *setting, epsilon, delta = row
    claimed = guarantee("sessions", "paper", session_row(*setting)).claimed
    assert claimed is not None
    assert round(float(claimed.epsilon), 2) == epsilon
    unit = 10.0 ** (math.floor(math.log10(delta)) - 2)
    assert abs(float(claimed.delta) - delta) < unit


@pytest.mark.slow
def test_the_command_prints_every_row_of_table_4(tmp_path: Path) -> None:
    names = ("session_scale", "threshold", "sessions_per_user", "queries_per_session")
    for *setting, epsilon, delta in SESSION_TABLE_4:
        chosen = [f"--set={name}={value}" for name, value in zip(names, setting, strict=True)]
        answer = qlog(
            tmp_path, "guarantee", "sessions", "--variant", "paper", *chosen, "--set=click_scale=none", "--json"
        )
        claimed = answer.json["claimed"]
        assert round(claimed["epsilon"], 2) == epsilon and claimed["delta"] == pytest.approx(delta, rel=2e-3)


def test_session_and_click_budgets_add_up() -> None:
    """Table 5 prints DP_S, sessions and clicks of the same users, as (8, 2.25e-7); together they cost (16, 4.50e-7)."""
    promise = guarantee("sessions", "paper", SessionParameters())
    assert promise.claimed is not None
    assert promise.proven is not None
    assert float(promise.claimed.epsilon) == pytest.approx(8)
    assert float(promise.claimed.delta) == pytest.approx(2.25e-7, rel=1e-3)
    assert float(promise.proven.epsilon) == pytest.approx(16)
    assert float(promise.proven.delta) == pytest.approx(4.50e-7, rel=1e-3)


def test_doubling_the_session_limit_multiplies_delta_by_109() -> None:
    """Section 5.4: 'if we double l (or l_s) … a doubled δ value'. Table 4 itself shows a factor of 109."""
    single = guarantee("sessions", "paper", session_row(1, 20, 1, 3)).claimed
    double = guarantee("sessions", "paper", session_row(1, 20, 2, 3)).claimed
    assert single is not None
    assert double is not None
    assert float(double.delta) / float(single.delta) == pytest.approx(109.2, abs=0.05)


def test_session_delta_is_loose_where_items_are_distinct() -> None:
    """Table 4's δ against the tight one with repeated items, and with each item once a session (specification 4.2)."""
    tight = [1.24e-3, 5.63e-8, 2.55e-12, 3.55e-3, 1.27e-4, 6.17e-5, 3.74e-5, 3.07e-6, 8.35e-6]
    distinct = [2.47e-4, 1.12e-8, 5.09e-13, 3.55e-3, 1.27e-4, 3.08e-8, 2.77e-6, 3.05e-8, 2.02e-6]
    for row, with_repeats, without in zip(SESSION_TABLE_4, tight, distinct, strict=True):
        figures = guarantee("sessions", "paper", session_row(*row[:4])).figures
        assert figures["session_delta_tight"] == pytest.approx(with_repeats, rel=5e-3)
        assert figures["session_delta_distinct"] == pytest.approx(without, rel=5e-3)


def test_one_noise_halves_the_session_epsilon_at_a_lower_threshold() -> None:
    """The paper spends ε = 8 at K = 20 for two draws; one draw costs 4 and its threshold is 18 at the same δ."""
    parameters = SessionParameters(items="subsequences", click_scale=None, delta=Fraction("2.25e-7"), threshold=1)
    promise = guarantee("sessions", "sound", parameters)
    assert promise.proven is not None
    assert promise.proven.epsilon == 4
    assert promise.thresholds["sessions"] == 18
