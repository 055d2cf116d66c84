"""What a mechanism may be asked to do: frozen parameter models that check themselves when they are made.

The papers' symbols appear here and nowhere else; code uses the field names. Scales and probabilities are exact
rationals read from decimals: a float is refused, because 0.1 typed by a person is one tenth and 0.1 as a double is not.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from qlog_assets.privacy.errors import ParameterError

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


class Parameters(BaseModel):
    """Base of every mechanism's parameters: frozen, no unknown keys, errors that name the key in one line."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, use_attribute_docstrings=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ParameterError(one_line(error)) from None

    def with_changes(self, **changes: Any) -> Self:
        """These parameters with some values replaced, checked again."""
        return type(self)(**{**dict(self), **changes})

    STUDY_ONLY: ClassVar[frozenset[str]] = frozenset()
    """Fields that only a `paper` variant reads: no part of a release, so changing one changes no release."""

    def as_public(self) -> dict[str, Any]:
        """The parameters as JSON values: exact numbers as decimal text, switched-off parts as null."""
        return self.model_dump(mode="json")

    def as_released(self) -> dict[str, Any]:
        """What decides a release: the public values without those that only studies read."""
        return {key: value for key, value in self.as_public().items() if key not in self.STUDY_ONLY}


def one_line(error: ValidationError) -> str:
    """The first complaints of pydantic as one line: `key: what is wrong`."""
    problems = []
    for item in error.errors(include_url=False, include_context=False)[:3]:
        key = ".".join(str(part) for part in item["loc"])
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "extra_forbidden":
            message = "unknown key"
        problems.append(f"{key}: {message}" if key else message)
    return "; ".join(problems)


class SafelogParameters(Parameters):
    """The parameters of Safelog (Zhang, Yang, Singh, Xiong 2016), both variants.

    Counts are always tested with >=. `sound` and `paper` share one model, so that a study changes the variant and
    nothing else; the fields that only `paper` reads say so.

    The defaults cost ε = 1 + 0.5 + 0.5 = 2 a month. On a log of 4 million rows they release some 260 queries a month:
    at equal ε few queries a user release most, because the noise grows with the limit.
    """

    STUDY_ONLY: ClassVar[frozenset[str]] = frozenset({"min_frequency", "query_scale", "pool_probability"})

    queries_per_user: int = Field(2, ge=1, le=10_000)
    """q_f: distinct queries kept a user and month, the first ones by (time, bytes). 2 released most of 2, 3, 5, 8, 10
    and 20 at equal ε on the demo's log."""
    clicks_per_user: int = Field(2, ge=1, le=10_000)
    """c_f: distinct (query, url) pairs kept a user and month."""
    selection_scale: Scale = Field(Fraction(2), validate_default=True)
    """b: scale of the noise on query counts; costs queries_per_user / b, by default 1: half of the month's ε."""
    click_scale: Scale | None = Field(Fraction(4), validate_default=True)
    """b_c: scale of the noise on click pairs; costs clicks_per_user / b_c. None: no clicks are released."""
    transition_scale: Scale | None = Field(Fraction(2), validate_default=True)
    """b_t: scale of the noise on transitions; costs (queries_per_user - 1) / b_t. None: no transitions are released."""
    threshold: int = Field(25, ge=1, le=10**9)
    """K: a pool query is released when its noisy count reaches K. Post-processing: keeps fakes out, costs nothing.
    At 25 and b = 2, one or two of the default pool's 583,010 queries are expected although nobody typed them."""
    click_threshold: int | None = Field(None, ge=1, le=10**9)
    """The least noisy count of a released click pair. None: the stability threshold; with a public url list, high
    enough for about one expected fake pair."""
    click_support: Literal["stability", "public_list"] = "stability"
    """Which clicked pairs may appear: those that enough users share, which takes a share of delta, or those with a url
    of a public list, which takes none. The policy's `url_list` decides it."""
    transition_threshold: int | None = Field(None, ge=1, le=10**9)
    """The least noisy count of a released transition. None: b_t·ln(n(n-1)/2), about one expected fake pair."""
    delta: Probability = Field(Fraction(1, 10**6), validate_default=True)
    """Total δ. 0 is the paper's headline: only pool queries and listed urls can appear."""
    delta_share_clicks: Share = Field(Fraction(1, 2), validate_default=True)
    """The share of delta that clicks take where they are released by stability threshold; queries take the rest."""
    min_users: int = Field(1, ge=1, le=10**6)
    """τ done soundly: a query held by fewer users does not influence the table of queries
    (shifted counts, PRIVACY 2.3 G1)."""
    min_frequency: int = Field(5, ge=1, le=10**6)
    """τ of Algorithm 1, `paper` only: queries rarer than this are dropped before the cap. Unsound (gap G1)."""
    query_scale: Scale | None = Field(Fraction(10), validate_default=True)
    """b_q, `paper` only: scale of the second noise on printed query counts."""
    pool_probability: Exact = Field(Fraction(1), gt=0, le=1, validate_default=True)
    """p_g, `paper` only: the probability that a query is in the pool."""

    @property
    def click_delta(self) -> Fraction:
        """δ_c: what clicks take. 0 where no clicks are released, or only those on listed urls."""
        spends = self.click_scale is not None and self.click_support == "stability"
        return self.delta * self.delta_share_clicks if spends else Fraction(0)

    @property
    def selection_delta(self) -> Fraction:
        """δ_q: the rest of delta, for queries outside the pool."""
        return self.delta - self.click_delta

    @property
    def transitions_per_user(self) -> int:
        """Distinct transitions kept a user: a list of q_f queries has at most q_f - 1 adjacent pairs."""
        return self.queries_per_user - 1
