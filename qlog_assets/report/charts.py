"""Small pictures for Dagster's pages: counts of a table, and how far off they may be. SVG text, public numbers only.

Dagster shows Markdown of less than 1,000 signs in its place and hides longer ones behind a button. So these are drawn
with few strokes: as a data address each stays below that.
"""

from __future__ import annotations

import math
from html import escape
from itertools import pairwise

import numpy as np

from qlog_assets.report.account import counted
from qlog_assets.report.table_noise import TableNoise

WIDTH, HEIGHT = 340, 150
LEFT, RIGHT, TOP, FLOOR = 36, 330, 30, 126
INK, FILL = "#1f3a5f", "#7a9cc6"
MOST_BARS = 8
DECADES = 3
STEPS = 12
SIZES = 7
"""Around how many sizes of counts rows are put together where their errors differ."""


def picture_counts(counts: np.ndarray, least: int) -> str:
    """How many rows of a table have a count of which size; each bar is named by the count it begins at."""
    starts = doubling_from(max(least, 1), int(counts.max()) if len(counts) else least)
    # What lies below the first start belongs to the first bar: none is left out.
    inner = [-math.inf, *starts[1:], math.inf]
    heights = [int(np.count_nonzero((counts >= low) & (counts < high))) for low, high in pairwise(inner)]
    tallest, step = max(*heights, 1), (WIDTH - 10) // len(heights)
    bars = "".join(
        f"M{8 + place * step} {FLOOR}v-{(FLOOR - TOP) * height // tallest}h{step - 6}V{FLOOR}"
        for place, height in enumerate(heights)
    )
    names = [(5 + place * step + step // 2, short_number(start)) for place, start in enumerate(starts)]
    return draw(
        f"Rows by noisy count; tallest bar: {counted(tallest, 'row', 'rows')}",
        f"<path fill='{FILL}' d='{bars}'/>{draw_labels(names)}",
    )


def doubling_from(first: int, largest: int) -> list[int]:
    """Where bars begin: each at twice the count of the one before, the last one open."""
    starts = [first]
    while len(starts) < MOST_BARS and 2 * starts[-1] <= largest:
        starts.append(2 * starts[-1])
    return starts


def short_number(number: int) -> str:
    """A number that fits under a bar: 950, 1.92k, 12k, 3.4m."""
    for size, letter in ((10**6, "m"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return str(number)


def picture_errors(noise: TableNoise, counts: np.ndarray, errors: np.ndarray | None) -> str:
    """The standard error as a share of the count, against the count: a line, or a band where it differs by row.

    `errors` are the standard errors that are printed beside the counts, where they are.
    """
    title = "Standard error as a share of the count"
    if errors is None or not noise.by_row:
        start = 10.0 ** math.floor(math.log10(max(noise.deviation, 1)))
        across = [start * 10 ** (DECADES * step / STEPS) for step in range(STEPS + 1)]
        return draw_shares(title, across, [noise.deviation / count for count in across], None)
    across, low, high = errors_by_size(counts, errors)
    if len(across) < 2:
        return draw(title, f"<text x='8' y='{TOP + 20}'>too few rows to draw</text>")
    return draw_shares(f"{title}, least to largest", across, low, high)


def errors_by_size(counts: np.ndarray, errors: np.ndarray) -> tuple[list[float], list[float], list[float]]:
    """The least and the largest share of the rows around each of a few sizes; sizes without a row are left out."""
    shown = counts > 0
    sizes, shares = counts[shown].astype(float), (errors[shown] / counts[shown]).astype(float)
    if not len(sizes):
        return [], [], []
    edges = np.geomspace(sizes.min(), sizes.max() * 1.000001, SIZES + 1)
    places = np.clip(np.searchsorted(edges, sizes, side="right") - 1, 0, SIZES - 1)
    held = [place for place in range(SIZES) if np.any(places == place)]
    across = [float(np.sqrt(edges[place] * edges[place + 1])) for place in held]
    low = [float(shares[places == place].min()) for place in held]
    high = [float(shares[places == place].max()) for place in held]
    return across, low, high


def draw_shares(title: str, across: list[float], low: list[float], high: list[float] | None) -> str:
    """A line or a band over counts that grow by factors; a share of more than 1 is on the top edge."""
    first, last = math.log(across[0]), math.log(across[-1])

    def at(count: float) -> int:
        return round(LEFT + (RIGHT - 14 - LEFT) * (math.log(count) - first) / (last - first))

    def points(shares: list[float]) -> list[str]:
        return [
            f"{at(count)},{round(FLOOR - (FLOOR - TOP) * min(share, 1.0))}"
            for count, share in zip(across, shares, strict=True)
        ]

    drawn = (
        f"<polyline fill='none' stroke='{INK}' stroke-width='2' points='{' '.join(points(low))}'/>"
        if high is None
        else f"<polygon fill='{FILL}' stroke='{INK}' points='{' '.join([*points(high), *reversed(points(low))])}'/>"
    )
    names = [(at(count), f"{count:,}") for count in round_counts(across[0], across[-1])]
    scale = f"<text y='{TOP + 4}' x='2'>100%</text><text y='{FLOOR}' x='14'>0%</text>"
    return draw(title, f"{drawn}{draw_labels(names)}{scale}")


def draw(title: str, content: str) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{HEIGHT}' font-family='sans-serif' "
        f"font-size='11'><rect width='100%' height='100%' fill='#fff'/><text x='8' y='16'>{escape(title)}</text>"
        f"{content}</svg>"
    )


def draw_labels(names: list[tuple[int, str]]) -> str:
    """What stands under the floor, each in the middle of its place."""
    parts = "".join(f"<tspan x='{place}'>{name}</tspan>" for place, name in names)
    return f"<text y='142' text-anchor='middle'>{parts}</text>"


def round_counts(first: float, last: float) -> list[int]:
    """Powers of ten between two numbers; or 1, 2 and 5 times them, where that leaves fewer than two."""
    powers = range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
    for steps in ((1,), (1, 2, 5)):
        found = [step * 10**power for power in powers if power >= 0 for step in steps]
        shown = [count for count in found if first <= count <= last]
        if len(shown) >= 2:
            return shown
    return shown
