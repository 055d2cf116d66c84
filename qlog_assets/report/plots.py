"""Small pictures for the datasheet as SVG text: no scripts, no fonts, the same bytes for the same numbers."""

from __future__ import annotations

from html import escape
from itertools import pairwise

import numpy as np

WIDTH, HEIGHT = 360, 220
LEFT, RIGHT, TOP, BOTTOM = 4, 4, 42, 42
MOST_BARS = 8
FEWEST_BARS = 5
GAP = 6


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
