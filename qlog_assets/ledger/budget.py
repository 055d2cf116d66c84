"""How charges add up against a budget: plain sums of ε and δ, or a zCDP filter. Exact rationals, no I/O.

The conversions and their proofs are in `privacy/composition.py`; here they meet a running total.
Both rules hold when each release is chosen after seeing the earlier ones. Tighter accounting that needs all releases
fixed beforehand does not belong here: it may be reported, never enforced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.bounds import at_least, at_most
from qlog_assets.privacy.composition import pure_rho, zcdp_epsilon, zcdp_rho
from qlog_assets.privacy.parameters import exact

Accountant = Literal["basic", "zcdp"]
Number = Fraction | float | int | str


@dataclass(frozen=True)
class Amount:
    """So much privacy loss: ε and δ for the plain sum, ρ and δ for the zCDP filter."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction, rho: Fraction | None) -> Amount:
        """What one release costs. An (ε, δ) release is δ-approximately ε²/2-zCDP, whatever ρ it states."""
        pure = pure_rho(epsilon)
        return cls(epsilon, delta, pure if rho is None else min(rho, pure))

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.epsilon + other.epsilon, self.delta + other.delta, self.rho + other.rho)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.epsilon - other.epsilon, self.delta - other.delta, self.rho - other.rho)


@dataclass(frozen=True)
class Budget:
    """What a data set may spend for ever."""

    epsilon: Fraction
    delta: Fraction
    accountant: Accountant = "basic"
    conversion_delta: Fraction | None = None
    """zcdp only: the part of delta that turns ρ into ε; releases may use the rest. Default: half of delta."""

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "conversion_delta"):
            value = getattr(self, name)
            if value is not None:
                try:
                    object.__setattr__(self, name, exact(value))
                except ValueError as error:
                    raise ParameterError(f"budget: {name}: {error}") from None
        if self.epsilon <= 0:
            raise ParameterError("budget: epsilon must be above 0")
        if not 0 <= self.delta < 1:
            raise ParameterError("budget: delta must be at least 0 and below 1")
        if self.accountant not in ("basic", "zcdp"):
            raise ParameterError(f"budget: accountant must be basic or zcdp, not {self.accountant}")
        if self.accountant == "basic" and self.conversion_delta is not None:
            raise ParameterError("budget: conversion_delta belongs to the zcdp accountant")
        if self.accountant == "zcdp":
            if self.conversion_delta is None:
                object.__setattr__(self, "conversion_delta", self.delta / 2)
            if not 0 < self._conversion_delta <= self.delta:
                raise ParameterError("budget: the zcdp accountant needs a conversion_delta above 0 and at most delta")

    @property
    def _conversion_delta(self) -> Fraction:
        return self.conversion_delta or Fraction(0)

    @property
    def limit(self) -> Amount:
        """The most that releases may add up to. For zcdp, ε is what the ρ limit and conversion_delta come to."""
        if self.accountant == "basic":
            return Amount(self.epsilon, self.delta)
        rho = _rho_limit(self.epsilon, self._conversion_delta)
        return Amount(self.epsilon, self.delta - self._conversion_delta, rho)

    def holds(self, total: Amount) -> bool:
        """Whether releases that add up to this stay within the budget."""
        limit = self.limit
        if self.accountant == "basic":
            return total.epsilon <= limit.epsilon and total.delta <= limit.delta
        return total.rho <= limit.rho and total.delta <= limit.delta

    def spent(self, total: Amount) -> Amount:
        """The total as this budget counts it: the plain sum, or what Σρ comes to in ε at conversion_delta."""
        if self.accountant == "basic":
            return Amount(total.epsilon, total.delta)
        return Amount(cost("epsilon", zcdp_epsilon(total.rho, self._conversion_delta)), total.delta, total.rho)

    def left(self, total: Amount) -> Amount:
        """What releases may still take. For zcdp the ρ decides: ε does not add up there."""
        return self.limit - self.spent(total)

    def as_json(self) -> dict[str, Any]:
        """The budget as the ledger stores it."""
        conversion = None if self.conversion_delta is None else str(self.conversion_delta)
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "accountant": self.accountant,
            "conversion_delta": conversion,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Budget:
        return cls(**values)


def cost(name: str, value: Number) -> Fraction:
    """A cost as an exact rational. A float is rounded up in its twelfth digit: it may stand for a number above it."""
    try:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError(f"{value} is not a finite number")
            number = _rounded(Fraction(value), math.ceil)
        else:
            number = exact(value)
    except ValueError as error:
        raise ParameterError(f"{name}: {error}") from None
    if number < 0:
        raise ParameterError(f"{name}: {value} is below 0")
    return number


def readable(value: Fraction) -> str:
    """A loss for a message: as a decimal where twelve digits hold it, otherwise six, rounded up."""
    text = at_most(value, 12)
    return text if Fraction(text) == value else at_most(value, 6)


def readable_left(value: Fraction) -> str:
    """What may still be spent, for a message: as a decimal where twelve digits hold it, otherwise six, rounded down."""
    text = at_least(value, 12)
    return text if Fraction(text) == value else at_least(value, 6)


@lru_cache(maxsize=64)
def _rho_limit(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Cached, because a fold compares with it after every reservation and the search for it takes milliseconds."""
    return zcdp_rho(epsilon, delta)


def _rounded(value: Fraction, towards: Callable[[Fraction], int]) -> Fraction:
    """Twelve digits of the value, towards the named side."""
    if value == 0:
        return value
    unit = Fraction(10) ** (math.floor(math.log10(abs(value))) - 11)
    return towards(value / unit) * unit
