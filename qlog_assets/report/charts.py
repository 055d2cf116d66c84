"""Pictures that stand alone, without the datasheet's style: for Dagster's pages. SVG text, public numbers only."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from qlog_assets.report.plots import distribution
from qlog_assets.report.table_noise import TableNoise

WIDTH, HEIGHT = 460, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 30, 44, 48
STYLE = (
    "text{font:11px sans-serif;fill:#333}.heading{font-size:13px;fill:#1f3a5f}.bar{fill:#7a9cc6}"
    ".axis{stroke:#666}.grid{stroke:#ddd}.value,.tick{text-anchor:middle}.line{fill:none;stroke:#1f3a5f;stroke-width:2}"
    ".spread{fill:#7a9cc6;fill-opacity:.35}"
)
DECADES = 3
STEPS = 48
BINS = 12


def stand_alone(svg: str, width: int, height: int) -> str:
    """A picture of the datasheet with a size, a ground and a style of its own."""
    opening, _, content = svg.partition(">")
    return (
        f'{opening} xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"><style>{STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>{content}'
    )


def picture_counts(counts: np.ndarray, least: int, table: str) -> str:
    """How many rows of a table have a count of which size."""
    return stand_alone(distribution(counts, least, title=f"Rows of {table} by noisy count", unit="users"), 360, 220)


def picture_errors(noise: TableNoise, counts: np.ndarray, errors: np.ndarray | None) -> str:
    """The standard error as a share of the count, against the count: a line, or a band where it differs by row.

    `errors` are the standard errors that are printed beside the counts, where they are.
    """
    if errors is None or not noise.by_row:
        start = 10 ** math.floor(math.log10(max(noise.deviation, 1)))
        across = [start * 10 ** (DECADES * step / STEPS) for step in range(STEPS + 1)]
        low = high = [noise.deviation / count for count in across]
    else:
        across, low, high = errors_by_size(counts, errors)
    return draw_errors(across, low, high, differs=errors is not None and noise.by_row)


def errors_by_size(counts: np.ndarray, errors: np.ndarray) -> tuple[list[float], list[float], list[float]]:
    """The least and the largest share of the rows around each of a few sizes; sizes without a row are left out."""
    shown = counts > 0
    sizes, shares = counts[shown].astype(float), (errors[shown] / counts[shown]).astype(float)
    if not len(sizes):
        return [], [], []
    edges = np.geomspace(sizes.min(), sizes.max() * 1.000001, BINS + 1)
    places = np.clip(np.searchsorted(edges, sizes, side="right") - 1, 0, BINS - 1)
    held = [place for place in range(BINS) if np.any(places == place)]
    across = [float(np.sqrt(edges[place] * edges[place + 1])) for place in held]
    low = [float(shares[places == place].min()) for place in held]
    high = [float(shares[places == place].max()) for place in held]
    return across, low, high


def draw_errors(across: list[float], low: list[float], high: list[float], *, differs: bool) -> str:
    """A line or a band over counts that grow by factors; a share of more than 1 is on the top edge."""
    title = "Standard error of a count, as a share of it"
    if not across:
        return empty_picture(title)
    first, last = math.log(across[0]), math.log(max(across[-1], across[0] * 1.01))
    floor, room = HEIGHT - BOTTOM, HEIGHT - TOP - BOTTOM

    def at(count: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(count) - first) / (last - first)

    def up(share: float) -> float:
        return floor - room * min(share, 1.0)

    parts = []
    for quarter in range(5):
        height = up(quarter / 4)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{25 * quarter} %</text>')
    for count in round_counts(across[0], across[-1]):
        parts.append(f'<text class="tick" x="{at(count):.1f}" y="{floor + 16}">{count:,}</text>')
    upper = [f"{at(count):.1f},{up(share):.1f}" for count, share in zip(across, high, strict=True)]
    lower = [f"{at(count):.1f},{up(share):.1f}" for count, share in zip(across, low, strict=True)]
    if differs:
        parts.append(f'<polygon class="spread" points="{" ".join([*upper, *reversed(lower)])}"/>')
    parts.append(f'<polyline class="line" points="{" ".join(lower)}"/>')
    words = "noisy count; line: least error of any row, band: up to the largest" if differs else "count of users"
    return stand_alone(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f'<text class="heading" x="{LEFT}" y="18">{escape(title)}</text>'
        f'<line class="axis" x1="{LEFT}" y1="{floor}" x2="{WIDTH - RIGHT}" y2="{floor}"/>{"".join(parts)}'
        f'<text x="{LEFT}" y="{HEIGHT - 10}">{escape(words)}</text></svg>',
        WIDTH,
        HEIGHT,
    )


def empty_picture(title: str) -> str:
    return stand_alone(
        f'<svg viewBox="0 0 {WIDTH} 60" role="img" aria-label="{escape(title)}">'
        f'<text class="heading" x="{LEFT}" y="18">{escape(title)}</text><text x="{LEFT}" y="42">no row</text></svg>',
        WIDTH,
        60,
    )


def round_counts(first: float, last: float) -> list[int]:
    """1, 2 and 5 times powers of ten between two numbers, thinned out where there are many."""
    found = [
        step * 10**power
        for power in range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
        for step in (1, 2, 5)
        if power >= 0 and first <= step * 10**power <= last
    ]
    return found if len(found) <= 8 else [count for count in found if str(count)[0] == "1"]
