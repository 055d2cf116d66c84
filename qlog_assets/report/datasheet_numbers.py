"""How the datasheet prints numbers, by version of the public words. Text only; the page itself is `datasheet.py`.

The first version rounded to the nearest, so that a bound could be printed below the number that holds. Since the second
what bounds a loss is rounded up, and what it is one in is rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from qlog_assets.privacy.bounds import LARGEST_EXPONENT, Number, at_most, exact_value, exp_at_most


class Numbers:
    """The numbers of a page in today's words."""

    def loss(self, guarantee: Mapping[str, Any], name: str, times: int = 1) -> str:
        """`epsilon` or `delta` of a guarantee, or a multiple of it."""
        return self.plain(times * _exact(guarantee, name))

    def plain(self, value: Number) -> str:
        """A loss as people write it: 1, 0.05, 0.000001."""
        few = at_most(value, 3 if 0 < value < 1e-12 else 6)
        return few if 0 < value < 1e-12 else f"{Decimal(few).normalize():f}"

    def odds(self, guarantee: Mapping[str, Any]) -> str:
        """δ as one in so many."""
        return f"one in {math.floor(1 / _exact(guarantee, 'delta')):,}"

    def belief(self, guarantee: Mapping[str, Any]) -> str:
        """How sure, in percent, somebody can be who found both cases equally likely before."""
        most = exp_at_most(min(_exact(guarantee, "epsilon"), Fraction(LARGEST_EXPONENT)))
        percent = 100 * most / (1 + most)
        return f"{at_most(percent, 3 if percent < 99 else 5)} %"

    def doubled_delta(self, guarantee: Mapping[str, Any]) -> str:
        """δ for two identifiers: group privacy gives them (2ε, 2·e^ε·δ), specification 1.6."""
        epsilon, delta = _exact(guarantee, "epsilon"), _exact(guarantee, "delta")
        most = 2 * exp_at_most(epsilon) * delta if epsilon < LARGEST_EXPONENT else Fraction(delta > 0)
        return self.plain(min(Fraction(1), most))

    def within(self, value: float) -> str:
        """A width that some share of the noise keeps within."""
        return f"{math.ceil(10 * value) / 10:.1f}" if value < 10 else f"{math.ceil(value):,}"

    def invented(self, expected: float) -> str:
        """At most how many rows are expected to be there by noise alone."""
        if expected == 0:
            return "none"
        return "below 0.1" if expected < 0.1 else f"{math.ceil(10 * expected) / 10:.1f}"

    def relative(self, value: float) -> str:
        """A standard error as a share of what it is the error of, rounded up."""
        return f"{math.ceil(1000 * value) / 10:.1f} %" if value < 0.1 else f"{math.ceil(100 * value):,} %"

    def chance(self, value: float) -> str:
        """A probability that a person reads: never 0 or 1, which no noise makes."""
        if value < 0.001:
            return "below 0.1 %"
        if value > 0.999:
            return "above 99.9 %"
        return f"{100 * value:.1f} %" if value < 0.1 or value > 0.99 else f"{100 * value:.0f} %"


class FirstNumbers(Numbers):
    """The numbers of a page in the first words. Never edited."""

    def loss(self, guarantee: Mapping[str, Any], name: str, times: int = 1) -> str:
        return self.plain(times * guarantee[name])

    def plain(self, value: Number) -> str:
        if 0 < value < 1e-12:
            return f"{value:.3g}"
        return f"{Decimal(f'{value:.6g}').normalize():f}"

    def odds(self, guarantee: Mapping[str, Any]) -> str:
        return f"one in {round(1 / guarantee['delta']):,}"

    def belief(self, guarantee: Mapping[str, Any]) -> str:
        epsilon = guarantee["epsilon"]
        value = 100 * math.exp(epsilon) / (1 + math.exp(epsilon)) if epsilon < LARGEST_EXPONENT else 100.0
        return f"{value:.0f} %" if value < 99 else f"{min(value, 99.999):.3f} %"

    def doubled_delta(self, guarantee: Mapping[str, Any]) -> str:
        return self.plain(min(1.0, 2 * math.exp(min(guarantee["epsilon"], LARGEST_EXPONENT)) * guarantee["delta"]))

    def within(self, value: float) -> str:
        return f"{value:.1f}" if value < 10 else f"{round(value):,}"

    def invented(self, expected: float) -> str:
        return "none" if expected == 0 else f"{expected:.1f}" if expected >= 0.05 else "below 0.1"


def numbers_of(words: int) -> Numbers:
    """How a page in these words prints its numbers."""
    return FirstNumbers() if words < 2 else Numbers()


def _exact(guarantee: Mapping[str, Any], name: str) -> Fraction:
    """ε or δ as the manifest has it exactly; a double stands for the decimal that it is printed as."""
    exact = guarantee.get(f"{name}_exact")
    return exact_value(guarantee[name]) if exact is None else Fraction(exact)
