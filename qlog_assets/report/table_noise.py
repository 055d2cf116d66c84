"""What is known in public of the noise on a table's counts: its law and size, and how likely a row is to be missing.

A draw says it of each table, manifest and datasheet repeat it. Nothing here may come from the log: every number is a
function of parameters, of noisy numbers that were paid for (such as how far counts were stretched), and of the sizes of
public lists. Floats, because these are words about a draw and decide nothing in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Literal

from qlog_assets.report.account import survival

Law = Literal["two-sided geometric", "discrete Gaussian"]
GEOMETRIC: Law = "two-sided geometric"
GAUSSIAN: Law = "discrete Gaussian"


@dataclass(frozen=True)
class Look:
    """One test of weights, in users who all hold equally many items: how many of them reach the threshold if the noise
    is zero, and the standard deviation of the noise."""

    users: float
    deviation: float


@dataclass(frozen=True)
class Reach:
    """What an item needs to be chosen by weights if each of its users holds `items` items: to pass any look, or every
    one of them where the first only steers the second.

    How many items users hold is private. So this is said of the extremes alone: users who hold nothing else, whose
    weights are the largest, and users who hold as many as anybody may.
    """

    items: int
    looks: tuple[Look, ...]
    every: bool = False
    """Whether every look must be passed, and not just one."""
    listed: bool = False
    """Whether it is said of items of a public list, which need less."""

    def chance_missing(self, users: int) -> float:
        """The chance that an item of so many such users is not named; the looks' noises are independent."""
        failing = [_normal_below((look.users - users) / look.deviation) for look in self.looks]
        return 1 - math.prod(1 - chance for chance in failing) if self.every else math.prod(failing)

    @property
    def even_users(self) -> int:
        """How many such users make it at least as likely as not that the item is named, about."""
        start = (max if self.every else min)(math.ceil(look.users) for look in self.looks)
        return least_users(self.chance_missing, 0.5, start=start)


@dataclass(frozen=True)
class TableNoise:
    """The noise on the counts of one table."""

    law: Law
    scale: float
    """In users: b where P[z] is proportional to e^(-|z|/b), σ where it is proportional to e^(-z²/2σ²). Of rows that
    differ (`by_row`) the least one."""
    by_row: bool = False
    """Whether the scale differs by row; the column of errors then tells each one's standard deviation."""
    tested: bool = True
    """Whether a row is printed because of the very count that is printed: then noise and threshold alone say how likely
    a row is to be missing. False where items were chosen before they were counted."""
    tested_from: float | None = None
    """What the tested count had to reach, where it was finer than whole users. None: the table's threshold."""
    largest: int | None = None
    """The largest noise there can be, where it was cut off."""
    min_users: int = 1
    """Counts of fewer users were taken for counts of one less than this."""
    among: str = ""
    """Which items can be rows at all, where those are not all: in words that end a sentence."""
    reaches: tuple[Reach, ...] = ()
    """Bounds on the chance that an item is missing where weights were tested: users of nothing else first."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError("noise has a scale above 0")

    @property
    def deviation(self) -> float:
        """The standard deviation of a row's noise in users, the least one where rows differ.

        Noise that was cut off has a little less.
        """
        return self.scale if self.law == GAUSSIAN else geometric_deviation(self.scale)

    def within(self, share: float) -> float:
        """How far from 0 at least this share of all noise stays: of geometric noise the least whole number.

        Gaussian noise is drawn in small parts of a user, where the normal law is as good as its own.
        """
        if self.law == GAUSSIAN:
            return self.nearly_within(share)
        decay = math.exp(-1 / self.scale)
        beyond = 0.0 if self.largest is None else 2 * survival(self.scale, self.largest + 1)
        outside = 1 - share * (1 - beyond)
        # P[|z| > k] = 2·a^(k+1)/(1+a). One less is tried first: the logarithm may be off by its last digit.
        first = max(0, math.ceil(-self.scale * math.log(outside * (1 + decay) / 2)) - 2)
        tried = (first, first + 1)
        return next((k for k in tried if 2 * math.exp(-(k + 1) / self.scale) / (1 + decay) <= outside), first + 2)

    def nearly_within(self, share: float) -> float:
        """The same as if noise were no whole numbers: what pages up to the third words say."""
        if self.law == GEOMETRIC:
            return -self.scale * math.log(1 - share)
        return self.scale * NormalDist().inv_cdf((1 + share) / 2)

    def chance_missing(self, users: int, threshold: int, *, only_if_held: bool = True) -> float:
        """The chance that an item of so many users is not printed, by the noise alone. Only where counts are tested.

        `threshold` is the least printed count. `only_if_held`: whether items whose count is 0 are never looked at, as
        those of no public list are.
        """
        if only_if_held and users < self.min_users:
            return 1.0
        missing = (threshold if self.tested_from is None else self.tested_from) - max(users, self.min_users - 1)
        if self.law == GAUSSIAN:
            return _normal_below(missing / self.scale)
        least = math.ceil(missing)
        if self.largest is None:
            return 1 - survival(self.scale, least)
        beyond = survival(self.scale, self.largest + 1)
        share = survival(self.scale, max(least, -self.largest)) - beyond
        return 1 - max(share, 0.0) / (1 - 2 * beyond)

    def as_json(self) -> dict[str, Any]:
        """As draws store it and manifests print it."""
        reaches = [{**asdict(reach), "looks": [asdict(look) for look in reach.looks]} for reach in self.reaches]
        return {**asdict(self), "reaches": reaches, "deviation": six(self.deviation)}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> TableNoise:
        kept = {name: value for name, value in facts.items() if name != "deviation"}
        reaches = tuple(
            Reach(**{**reach, "looks": tuple(Look(**look) for look in reach["looks"])}) for reach in facts["reaches"]
        )
        return cls(**{**kept, "reaches": reaches})


def least_users(chance: Callable[[int], float], at_most: float, *, start: int = 1) -> int:
    """The least number of users from `start` on with at most this chance, which falls as they grow: by steps that
    double, then by halves."""
    low, high, step = start - 1, start, 1
    while chance(high) > at_most:
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if chance(middle) > at_most else (low, middle)
    return high


def geometric_deviation(scale: float) -> float:
    """The standard deviation of two-sided geometric noise: √(2a)/(1-a), a = e^(-1/scale)."""
    return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)


def six(value: float) -> float:
    """A number as it is said in public: six digits are more than anybody needs."""
    return float(f"{value:.6g}")


def _normal_below(value: float) -> float:
    return math.erfc(-value / math.sqrt(2)) / 2
