"""Small pictures for the datasheet as SVG text: no scripts, no fonts, the same bytes for the same numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np

WIDTH, HEIGHT = 360, 220
LEFT, RIGHT, TOP, BOTTOM = 4, 4, 42, 42
MOST_BARS = 8
FEWEST_BARS = 5
GAP = 6
CURVES_HEIGHT, LEGEND = 260, 16


def distribution(values: np.ndarray, start: int, *, title: str, unit: str) -> str:
    """How many of `values` lie in each range from `start` up; each range is wider than the one before by one factor."""
    edges = _growing_edges(max(start, 1), int(values.max()) if len(values) else start)
    heights = [int(np.count_nonzero((values >= low) & (values < high))) for low, high in pairwise(edges)]
    # What lies outside the ranges would be missing from the picture without a trace: the ends take it in.
    heights[0] += int(np.count_nonzero(values < edges[0]))
    heights[-1] += int(np.count_nonzero(values >= edges[-1]))
    floor, room = HEIGHT - BOTTOM, HEIGHT - TOP - BOTTOM
    step = (WIDTH - LEFT - RIGHT) / len(heights)
    tallest = max(*heights, 1)
    bars = []
    for position, height in enumerate(heights):
        left, size = LEFT + position * step, room * height / tallest
        middle = left + step / 2
        last = position == len(heights) - 1
        tick = _short(edges[position]) + ("+" if last else "")
        reach = f"{edges[position]:,} or more" if last else f"{edges[position]:,} to {edges[position + 1] - 1:,}"
        bars.append(
            f"<g><title>{height:,} rows with {reach} {escape(unit)}</title>"
            f'<rect class="bar" x="{left + GAP / 2:.1f}" y="{floor - size:.1f}" width="{step - GAP:.1f}" '
            f'height="{size:.1f}"/>'
            f'<text class="value" x="{middle:.1f}" y="{floor - size - 5:.1f}">{height:,}</text>'
            f'<text class="tick" x="{middle:.1f}" y="{floor + 16}">{tick}</text>'
            "</g>"
        )
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f'<text class="heading" x="{LEFT}" y="15">{escape(title)}</text>'
        f'<line class="axis" x1="{LEFT}" y1="{floor}" x2="{WIDTH - RIGHT}" y2="{floor}"/>'
        f"{''.join(bars)}"
        f'<text class="unit" x="{LEFT}" y="{HEIGHT - 6}">{escape(unit)}, from the number given up to the next</text>'
        "</svg>"
    )


@dataclass(frozen=True)
class Curve:
    """A line of a picture: what it is of, and its points from left to right; heights are shares of 1."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Axis:
    """The numbers along the foot of a picture: the first and the last, the marked ones, and whether steps multiply."""

    first: float
    last: float
    ticks: tuple[float, ...]
    multiplies: bool = False

    def place(self, value: float) -> float:
        """Where a number stands, from 0 at the left to 1 at the right."""
        scale = math.log if self.multiplies else float
        return (scale(value) - scale(self.first)) / (scale(self.last) - scale(self.first))


def curves(
    lines: Sequence[Curve],
    axis: Axis,
    *,
    title: str,
    unit: str,
    told: str,
    marks: Sequence[tuple[float, float, str]] = (),
) -> str:
    """Shares between 0 and 100 % as lines over numbers; `told` says in a sentence what the picture shows.

    A line is known by its dashes as well as by its colour, for whoever does not see colours. `marks` are points with a
    word each.
    """
    left, foot = 44, CURVES_HEIGHT - BOTTOM
    top = 36 + LEGEND * len(lines)
    wide, high = WIDTH - left - 14, foot - top

    def at(number: float, share: float) -> tuple[str, str]:
        return f"{left + wide * axis.place(number):.1f}", f"{foot - high * share:.1f}"

    parts = []
    for percent in (0, 50, 100):
        y = at(axis.first, percent / 100)[1]
        parts.append(f'<line class="axis" x1="{left}" y1="{y}" x2="{WIDTH - 14}" y2="{y}"/>')
        parts.append(f'<text class="tick side" x="{left - 6}" y="{float(y) + 4:.1f}">{percent} %</text>')
    for number in axis.ticks:
        parts.append(f'<text class="tick" x="{at(number, 0)[0]}" y="{foot + 16}">{_short(round(number))}</text>')
    for place, line in enumerate(lines):
        base = 22 + LEGEND * (place + 1)
        sample = f'x1="{LEFT}" y1="{base - 4}" x2="{LEFT + 22}" y2="{base - 4}"'
        parts.append(f'<line class="curve curve-{place}" {sample}/>')
        parts.append(f'<text class="legend" x="{LEFT + 28}" y="{base}">{escape(line.label)}</text>')
        points = " ".join(",".join(at(*point)) for point in line.points)
        parts.append(f'<polyline class="curve curve-{place}" points="{points}"/>')
    for number, share, word in marks:
        x, y = at(number, share)
        parts.append(f'<circle class="mark" cx="{x}" cy="{y}" r="3.5"/>')
        parts.append(f'<text class="value legend" x="{float(x) + 7:.1f}" y="{float(y) - 6:.1f}">{escape(word)}</text>')
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {CURVES_HEIGHT}" role="img" '
        f'aria-label="{escape(f"{title}. {told}")}">'
        f'<text class="heading" x="{LEFT}" y="15">{escape(title)}</text>'
        f"{''.join(parts)}"
        f'<text class="unit" x="{left}" y="{CURVES_HEIGHT - 6}">{escape(unit)}</text>'
        "</svg>"
    )


def _growing_edges(start: int, largest: int) -> list[int]:
    """Whole numbers from `start` past `largest`: each twice the one before, or closer where that makes few ranges."""
    growth = min(2.0, max(largest / start, 1.0) ** (1 / FEWEST_BARS))
    edges = [start]
    while edges[-1] <= largest and len(edges) <= MOST_BARS:
        edges.append(max(edges[-1] + 1, round(edges[-1] * growth)))
    return edges if len(edges) > 1 else [start, start + 1]


def _short(number: int) -> str:
    """A number that fits under a bar: 950, 1.9k, 12k, 3.4m."""
    for size, letter in ((10**6, "m"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return str(number)
