"""What every mechanism's parameters are made of: the base model, exact numbers, and lists typed as words.

Scales and probabilities are exact rationals read from decimals: a float is refused, because 0.1 typed by a person is
one tenth and 0.1 as a double is not. The models themselves are in the mechanisms' folders.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, PlainSerializer

from qlog_assets.errors import ParameterError
from qlog_assets.settings import FrozenModel

# Nobody means a scale or a probability beyond these powers of ten, and one of a billion digits would take for ever.
LARGEST_POWER = 60


def exact(value: Any) -> Fraction:
    """A rational from an int, a Fraction, a Decimal or a string such as ``10``, ``0.5``, ``1e-6`` or ``3/2``."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool | float):
        raise ValueError(f"{value!r} is not exact: write it as a string, such as '{value}'")
    text = str(value).strip()
    parts = text.split("/") if len(text) <= 4 * LARGEST_POWER else []
    try:
        numbers = [Decimal(part) for part in parts]
    except InvalidOperation:
        numbers = []
    usable = all(number.is_finite() and abs(number.adjusted()) <= LARGEST_POWER for number in numbers)
    if len(numbers) not in (1, 2) or not usable or (len(numbers) == 2 and numbers[1] == 0):
        raise ValueError(f"{text[:40]!r} is not a decimal number")
    return Fraction(numbers[0]) / Fraction(numbers[1]) if len(numbers) == 2 else Fraction(numbers[0])


def decimal_text(value: Fraction) -> str:
    """The shortest exact text of a rational: a decimal where it has one, otherwise ``p/q``."""
    denominator = value.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    if denominator != 1:
        return f"{value.numerator}/{value.denominator}"
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    # By hand, because Decimal's own arithmetic rounds to 28 digits and two scales could then share one text.
    sign, whole = "-" if value < 0 else "", str(abs(int(value * 10**digits)))
    if digits == 0:
        return sign + whole
    if abs(value) >= Fraction(1, 10**4):
        whole = whole.rjust(digits + 1, "0")
        return f"{sign}{whole[:-digits]}.{whole[-digits:]}"
    mantissa = whole[0] + ("." + whole[1:] if len(whole) > 1 else "")
    return f"{sign}{mantissa}E-{digits - len(whole) + 1}"


Exact = Annotated[Fraction, BeforeValidator(exact), PlainSerializer(decimal_text, return_type=str)]
Scale = Annotated[Exact, Field(gt=0, le=10**6)]
Probability = Annotated[Exact, Field(ge=0, lt=1)]
Share = Annotated[Exact, Field(gt=0, lt=1)]


class Parameters(FrozenModel):
    """Base of every mechanism's parameters."""

    STUDY_ONLY: ClassVar[frozenset[str]] = frozenset()
    """Fields that only a `paper` variant reads: no part of a release, so changing one changes no release."""

    @property
    def said(self) -> dict[str, Any]:
        """The values that somebody gave; the others are defaults, which may depend on these."""
        return {name: value for name, value in self if name in self.model_fields_set}

    def refuse_said(self, names: Collection[str], reader: str) -> None:
        """Raise where somebody gave a value that is not read: it must not look as if it had been heard."""
        unread = sorted(self.model_fields_set & set(names))
        if unread:
            raise ParameterError(f"{unread[0]}: is read by {reader} alone: choose it, or leave {unread[0]} out")

    def with_changes(self, **changes: Any) -> Self:
        """These parameters with some values replaced, checked again."""
        return type(self)(**{**self.said, **changes})

    def as_public(self) -> dict[str, Any]:
        """The parameters as JSON values: exact numbers as decimal text, switched-off parts as null."""
        return self.model_dump(mode="json")

    def as_released(self) -> dict[str, Any]:
        """What decides a release: the public values without those that only studies read."""
        return {key: value for key, value in self.as_public().items() if key not in self.STUDY_ONLY}


Epsilon = Annotated[Exact, Field(gt=0, le=1000)]
"""A total ε. Far above anything worth signing; the bound catches a misplaced decimal point."""


AOL_USERS = 657_426
"""Users of the AOL log, the n and U of the papers' examples; for a release use a published bound of your own."""


def parse_list(value: object) -> object:
    """A list that a person typed, such as `queries,clicks`; anything else as it is."""
    return tuple(word.strip() for word in value.split(",")) if isinstance(value, str) else value


Listed, Joined = BeforeValidator(parse_list), PlainSerializer(",".join, return_type=str, when_used="json")
"""A list is typed, and printed in manifests, as words with commas between them."""


def refuse_repeats(names: tuple[str, ...], what: str) -> None:
    """Refuse an empty list, and one that names something twice: each entry is a table with its share of the budget."""
    if not names or len(set(names)) != len(names):
        raise ValueError(f"{what} must name at least one, each once")
