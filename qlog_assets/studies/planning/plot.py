"""A plan as a picture: rows per table over ε, as the policy stands and as recommended. SVG text, the same bytes for the
same numbers, no scripts and no fonts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 150, 40, 44
COLOURS = ("#1b6ca8", "#c8553d", "#2e7d32", "#7b1fa2")
DASHES = {"recommended": "", "policy": "5 4"}
"""What is recommended is drawn through, the policy as it stands is dashed."""
STYLE = "text{font:12px sans-serif;fill:#333}.axis{stroke:#999;fill:none}polyline{fill:none;stroke-width:2}"


def draw_plan(facts: Mapping[str, Any]) -> str:
    """The curve of a plan. Both axes grow by factors; a table of less than one row lies on the floor."""
    curve: Sequence[Mapping[str, Any]] = facts["curve"]
    tables = list(dict.fromkeys(table for point in curve for how in DASHES for table in point[how]))
    epsilons = [point["epsilon"] for point in curve]
    most = max((rows(point, how, table) for point in curve for how in DASHES for table in tables), default=1.0)
    top = max(10.0, 10 ** math.ceil(math.log10(max(most, 1.0))))

    def across(epsilon: float) -> float:
        low, high = math.log(epsilons[0]), math.log(epsilons[-1])
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(epsilon) - low) / ((high - low) or 1)

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(max(value, 1.0)) / math.log(top)

    title = f"{facts['mechanism']}: rows of a month of {facts['users']:,} users over ε"
    parts = [f'<text x="{LEFT}" y="20">{escape(title)}</text>']
    for power in range(round(math.log10(top)) + 1):
        height = up(10**power)
        parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
        label = "1 or none" if power == 0 else f"{10**power:,}"
        parts.append(f'<text x="{LEFT - 4}" y="{height + 4:.1f}" text-anchor="end">{label}</text>')
    for epsilon in epsilons:
        parts.append(
            f'<text x="{across(epsilon):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{epsilon:.3g}</text>'
        )
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 8}">ε; drawn through: as recommended, dashed: the policy</text>')
    for number, table in enumerate(tables):
        colour = COLOURS[number % len(COLOURS)]
        for how, dashes in DASHES.items():
            points = [(across(point["epsilon"]), up(rows(point, how, table))) for point in curve if table in point[how]]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            parts.append(f'<polyline stroke="{colour}" stroke-dasharray="{dashes}" points="{line}"/>')
        height = TOP + 16 * number
        parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{height}" style="fill:{colour}">{escape(table)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}"><style>{STYLE}</style><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
        f"{''.join(parts)}</svg>\n"
    )


def rows(point: Mapping[str, Any], how: str, table: str) -> float:
    """The rows of a table that somebody made; none where the settings have no such table."""
    told = point[how].get(table)
    return 0.0 if told is None else float(told["rows"] - told["noise_rows"])
