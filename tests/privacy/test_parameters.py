"""Parameter models: what is typed is what is used, exactly, and nonsense is refused in one line that names the key."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.privacy.parameters import decimal_text, exact

RATIONALS = st.builds(
    lambda numerator, twos, fives: Fraction(numerator, 2**twos * 5**fives),
    st.integers(-(10**40), 10**40),
    st.integers(0, 40),
    st.integers(0, 15),
)


@given(RATIONALS)
def test_the_text_of_a_decimal_reads_back_as_the_same_number(value: Fraction) -> None:
    assert exact(decimal_text(value)) == value


@given(st.fractions())
def test_a_fraction_without_a_decimal_reads_back_as_the_same_number(value: Fraction) -> None:
    text = decimal_text(value)
    if len(text) < 200:
        assert exact(text) == value


@pytest.mark.parametrize("text", ["NaN", "inf", "-Infinity", "1e999999999", "1/0", "", "ten", "1/2/3", "9" * 400])
def test_what_is_no_decimal_number_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="is not a decimal number"):
        exact(text)


def test_a_float_is_refused_because_it_is_not_what_was_typed() -> None:
    with pytest.raises(ValueError, match="not exact"):
        exact(0.1)
    assert exact(Decimal("0.1")) == Fraction(1, 10)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("queries_per_user", 0),
        ("clicks_per_user", -1),
        ("selection_scale", "0"),
        ("selection_scale", "-2"),
        ("selection_scale", "nan"),
        ("click_scale", "0"),
        ("threshold", 0),
        ("delta", "1"),
        ("delta", "-1e-6"),
        ("delta", "NaN"),
        ("delta_share_clicks", "1"),
        ("min_users", 0),
        ("query_scale", "0"),
        ("no_such_key", 1),
    ],
)
def test_a_bad_parameter_is_an_error_that_names_its_key(key: str, value: object) -> None:
    with pytest.raises(ParameterError, match=key):
        SafelogParameters(**{key: value})


def test_parameters_that_only_studies_read_are_no_part_of_a_release() -> None:
    plain, study = (
        SafelogParameters(),
        SafelogParameters(min_frequency=7, query_scale="3", paper_click_support="observed_gt_K"),
    )
    assert plain.as_released() == study.as_released()
    assert plain.as_public() != study.as_public()


def test_the_shares_of_delta_add_up_to_delta() -> None:
    chosen = SafelogParameters(delta="1e-6", delta_share_clicks="0.3")
    assert chosen.click_delta + chosen.selection_delta == chosen.delta == Fraction(1, 10**6)
    assert SafelogParameters(click_scale=None).selection_delta == SafelogParameters().delta
