"""The picture of what was spent over the months, as SVG text for a page with a style of its own: no colour is here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 460, 190
LEFT, RIGHT, TOP, BOTTOM = 8, 8, 34, 34
MOST_LABELS = 6
NARROWEST_GAP = 0.15
"""Of a bar's place, on each side."""


def spending_chart(
    title: str, months: Sequence[str], each: Sequence[float], so_far: Sequence[float], told: Sequence[tuple[str, str]]
) -> str:
    """Bars for the months, a line for everything up to each, on one scale from zero. `told` says them in print."""
    top = max([*so_far, 0.0]) or 1.0
    floor, room = HEIGHT - BOTTOM, HEIGHT - TOP - BOTTOM
    step = (WIDTH - LEFT - RIGHT) / len(months)
    every = -(-len(months) // MOST_LABELS)
    parts, points = [], []
    for number, month in enumerate(months):
        left, middle = LEFT + number * step, LEFT + (number + 0.5) * step
        height = room * each[number] / top
        hint = f"{month}: {told[number][0]}, so far {told[number][1]}"
        parts.append(
            f"<g><title>{escape(hint)}</title>"
            f'<rect class="bar" x="{left + step * NARROWEST_GAP:.1f}" y="{floor - height:.1f}" '
            f'width="{step * (1 - 2 * NARROWEST_GAP):.1f}" height="{height:.1f}"/></g>'
        )
        points.append((middle, floor - room * so_far[number] / top))
        if number % every == 0:
            parts.append(f'<text class="tick" x="{middle:.1f}" y="{floor + 18}">{escape(month)}</text>')
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points)
    summary = f"{title}: {told[-1][1]} from {months[0]} to {months[-1]}"
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(summary)}">'
        f'<text class="heading" x="{LEFT}" y="16">{escape(title)}</text>'
        f'<text class="total" x="{WIDTH - RIGHT}" y="16">{escape(told[-1][1])} in all</text>'
        f'<line class="axis" x1="{LEFT}" y1="{floor}" x2="{WIDTH - RIGHT}" y2="{floor}"/>'
        f'{"".join(parts)}<polyline class="line" points="{line}"/>{dots}</svg>'
    )
