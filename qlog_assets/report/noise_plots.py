"""Pictures of the noise on counts: how far off a count is for its size, and how likely a row is to be missing.

Drawn from what the manifest says of the noise and the thresholds; of the rows nothing is looked at but the largest
standard error that is printed, where rows have errors of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from qlog_assets.report.datasheet_errors import chances_missing
from qlog_assets.report.datasheet_numbers import Numbers
from qlog_assets.report.plots import Axis, Curve, curves
from qlog_assets.report.table_noise import TableNoise, least_users

DECADES = 3
STEPS = 60
EXAMPLE = 100
"""The count whose error is marked."""


def picture_error(noise: TableNoise, largest: float | None, numbers: Numbers) -> str:
    """The expected relative error against the count. `largest` is the largest standard error among rows that differ."""
    widths = _widths(noise, largest)
    start = 10.0 ** max(0, math.floor(math.log10(max(widths.values()))))
    axis = Axis(start, start * 10**DECADES, tuple(start * 10**step for step in range(DECADES + 1)), multiplies=True)
    share = next(iter(widths.values())) / EXAMPLE
    told = [f"{label[:1].lower()}{label[1:]} {numbers.relative(width / EXAMPLE)}" for label, width in widths.items()]
    return curves(
        [Curve(label, _falling(width, axis)) for label, width in widths.items()],
        axis,
        title="Error as a share of the count",
        unit="count, in users",
        told=f"At a count of {EXAMPLE}: {', '.join(told)}.",
        marks=[(EXAMPLE, share, numbers.relative(share))] if axis.first < EXAMPLE and share < 1 else [],
    )


def picture_missing(noise: TableNoise, facts: Mapping[str, Any], numbers: Numbers) -> str:
    """The chance that something is missing against how many users did it, exactly as noise and threshold have it."""
    chances = chances_missing(noise, facts)
    if not chances:
        return ""
    last = _round_up(max(least_users(chance, 0.01) for chance in chances.values()))
    step = max(1, last // STEPS)
    axis = Axis(0, last, tuple(last * quarter / 4 for quarter in range(5)))
    told = [f"{label}: {numbers.chance(chance(EXAMPLE))}" for label, chance in chances.items()]
    return curves(
        [
            Curve(_in_short(label), tuple((users, chance(users)) for users in range(0, last + 1, step)))
            for label, chance in chances.items()
        ],
        axis,
        title="Chance that it is missing",
        unit="number of users who did it",
        told=f"Of what {EXAMPLE} users did. {'; '.join(told)}.",
    )


def _widths(noise: TableNoise, largest: float | None) -> dict[str, float]:
    """The widths that are shown, in users, by what they are; the standard error first."""
    if not noise.by_row:
        return {"Standard error": noise.deviation, "19 of 20 counts are within": noise.within(0.95)}
    if largest is None or largest <= noise.deviation:
        return {"Standard error, at least": noise.deviation}
    return {"Standard error, least of all rows": noise.deviation, "Standard error, largest of all rows": largest}


def _in_short(label: str) -> str:
    """What a line is the chance of, under a title that says that it is one."""
    return label.removeprefix("Missing, if ").replace("they hold", "users hold")


def _falling(width: float, axis: Axis) -> tuple[tuple[float, float], ...]:
    """The width as a share of the count, from where it falls below 100 %."""
    first = max(axis.first, width)
    ratio = axis.last / first
    counts = [first * ratio ** (step / STEPS) for step in range(STEPS + 1)]
    return tuple((count, min(1.0, width / count)) for count in counts)


def _round_up(users: int) -> int:
    """A number at the end of an axis with four equal parts: 4, 8, 12 or 20 times a power of ten."""
    size = 1
    while True:
        for step in (4, 8, 12, 20):
            if step * size >= users:
                return step * size
        size *= 10
