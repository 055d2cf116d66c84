"""Numbers in print: an upper bound is never below its value, a lower bound never above it, and both are close."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qlog_assets.ledger.budget import readable, readable_left
from qlog_assets.privacy.bounds import at_least, at_most, double_at_least, exact_value, exp_at_most
from qlog_assets.privacy.guarantee import PrivacyLoss, approximate_words, factor

RATIONALS = st.one_of(
    st.fractions(Fraction(1, 10**30), Fraction(10**9)),
    st.builds(lambda digits, power: digits * Fraction(10) ** power, st.integers(1, 10**6), st.integers(-20, 6)),
)
NUMBERS = st.one_of(RATIONALS, st.floats(1e-30, 1e12), st.integers(1, 10**12))


@given(value=NUMBERS, digits=st.integers(1, 12))
def test_a_printed_bound_is_on_the_safe_side_and_within_one_unit_of_its_last_digit(
    value: Fraction | float, digits: int
) -> None:
    exact, up, down = exact_value(value), Fraction(at_most(value, digits)), Fraction(at_least(value, digits))
    assert down <= exact <= up
    # The unit of the last digit is at most the value over ten to one digit less.
    assert up - exact < exact / 10 ** (digits - 1) and exact - down < exact / 10 ** (digits - 1)
    for text in (at_most(value, digits), at_least(value, digits)):
        mantissa = text.partition("e")[0].replace(".", "").strip("0")
        assert len(mantissa) <= digits


@given(digits=st.integers(1, 9999), power=st.integers(-20, 10))
def test_a_decimal_that_the_digits_hold_is_printed_as_it_is(digits: int, power: int) -> None:
    value = digits * Fraction(10) ** power
    assert Fraction(at_most(value)) == Fraction(at_least(value)) == value


@given(value=RATIONALS)
def test_a_negative_bound_is_rounded_to_its_own_side(value: Fraction) -> None:
    assert Fraction(at_most(-value, 3)) >= -value >= Fraction(at_least(-value, 3))


def test_the_examples_that_were_printed_too_low() -> None:
    assert at_most(Fraction("1.0049e-6"), 3) == "1.01e-06"
    assert at_most(Fraction(1, 10**6), 3) == at_most(1e-06, 3) == "1e-06"
    assert at_most(exp_at_most(Fraction("2.3")), 3) == "9.98"
    assert at_most(0) == at_least(0.0) == "0"
    assert at_most(math.inf) == "inf" and at_least(-math.inf) == "-inf"


@given(epsilon=st.fractions(0, 690))
def test_the_exponential_is_an_upper_bound_and_a_close_one(epsilon: Fraction) -> None:
    with mpmath.workdps(60):
        exact = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        most = exp_at_most(epsilon)
        ratio = mpmath.mpf(most.numerator) / most.denominator / exact
        assert 1 <= ratio < 1 + mpmath.mpf(10) ** -11


@given(epsilon=st.fractions(Fraction(1, 1000), 40), delta=st.fractions(Fraction(1, 10**12), Fraction(1, 2)))
def test_the_sentence_of_a_guarantee_promises_no_more_than_is_proven(epsilon: Fraction, delta: Fraction) -> None:
    loss = PrivacyLoss(epsilon, delta)
    words = factor(loss)
    assert Fraction(words.partition("e^")[2].rstrip(")")) >= epsilon
    if epsilon < 20:
        assert float(words.removeprefix("a factor of ").partition(" ")[0]) >= math.exp(epsilon)
    assert Fraction(approximate_words(loss).rpartition("at most ")[2].rstrip(".")) >= delta


@given(value=RATIONALS)
def test_what_is_spent_rounds_up_and_what_is_left_rounds_down(value: Fraction) -> None:
    assert Fraction(readable_left(value)) <= value <= Fraction(readable(value))
    double = double_at_least(value)
    assert Fraction(double) <= value or Fraction(repr(double)) == value


@pytest.mark.parametrize(("value", "spent", "left"), [("1/3", "0.333334", "0.333333"), ("0.1", "0.1", "0.1")])
def test_a_message_rounds_to_the_safe_side(value: str, spent: str, left: str) -> None:
    assert (readable(Fraction(value)), readable_left(Fraction(value))) == (spent, left)
