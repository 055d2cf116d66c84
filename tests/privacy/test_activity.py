"""What somebody loses who searched for long: no more than the windows hold, no less than the charges add up to."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.activity import activity_losses, covering_windows
from qlog_assets.privacy.composition import zcdp_epsilon

YEAR = (Fraction(12), Fraction(1, 10**5))


@pytest.mark.parametrize(
    ("months", "window", "windows"), [(1, 12, 1), (12, 12, 1), (13, 12, 2), (36, 12, 3), (36, 1, 36), (36, None, 1)]
)
def test_searches_touch_as_many_budgets_as_windows_cover_them(months: int, window: int | None, windows: int) -> None:
    assert covering_windows(months, window) == windows


@given(st.integers(1, 48), st.integers(1, 24), st.data())
@settings(max_examples=60, derandomize=True, database=None, deadline=None)
def test_no_history_that_a_window_admits_costs_more_than_is_printed(
    months: int, window: int, data: st.DataObject
) -> None:
    """Charges drawn at random, each kept only if every window still holds it: their sum is within the bound."""
    charges = [Fraction(0)] * months
    for _ in range(60):
        place = data.draw(st.integers(0, months - 1))
        asked = data.draw(st.fractions(0, 12, max_denominator=7))
        tried = [amount + (asked if number == place else 0) for number, amount in enumerate(charges)]
        if all(sum(tried[start : start + window]) <= 12 for start in range(months)):
            charges = tried
    (loss,) = activity_losses(YEAR, window, (Fraction(1), Fraction(0), None), (months,))
    assert sum(charges) <= loss.most_epsilon


def test_plain_sums_stop_at_the_budget_and_zcdp_is_less_over_many_months() -> None:
    month = (Fraction(1), Fraction(1, 10**6), Fraction(1, 20))
    one, quarter, year, three_years = activity_losses(YEAR, 12, month)
    assert [loss.epsilon for loss in (one, quarter, year, three_years)] == [1, 3, 12, 36]
    assert [loss.most_epsilon for loss in (one, quarter, year, three_years)] == [12, 12, 12, 36]
    assert [loss.most_delta for loss in (one, three_years)] == [Fraction(1, 10**5), Fraction(3, 10**5)]
    assert (one.zcdp_epsilon, one.zcdp_delta) == (1.0, Fraction(1, 10**6))
    assert three_years.zcdp_epsilon == zcdp_epsilon(Fraction(36, 20), Fraction(1, 10**6)) < 36
    assert three_years.zcdp_delta == Fraction(37, 10**6)


def test_a_release_without_rho_or_delta_is_converted_all_the_same() -> None:
    losses = activity_losses((Fraction(2), Fraction(0)), None, (Fraction(1, 10), Fraction(0), None))
    assert losses[-1].epsilon == 2, "for ever, the budget is all there is"
    assert losses[-1].zcdp_epsilon <= 2


@pytest.mark.parametrize(("months", "window"), [(0, 1), (1, 0), (-3, None)])
def test_no_time_is_no_time(months: int, window: int | None) -> None:
    with pytest.raises(ParameterError):
        covering_windows(months, window)
