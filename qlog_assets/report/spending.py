"""What was spent over the months, as values and as a picture. Reads the ledger; everything here is about charges."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from html import escape
from typing import Any

from qlog_assets.ledger import Ledger
from qlog_assets.months import months_between
from qlog_assets.privacy.bounds import at_most, double_at_least
from qlog_assets.privacy.guarantee import printed

WIDTH, HEIGHT = 760, 280
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 46, 56
BAR, LINE, LIMIT = "#7a9cc6", "#1f3a5f", "#b03a2e"
MOST_LABELS = 12


def spending_by_month(ledger: Ledger, dataset: str) -> list[dict[str, Any]]:
    """From the first charged month to the last: what each was charged, and the most in any window that holds it.

    Where the budget is for ever the window is all that was charged. With the zcdp accountant a window's ε is what its
    ρ comes to, and does not add up from the months'.
    """
    charges = [charge for charge in ledger.charges(dataset) if charge.counted]
    if not charges:
        return []
    spent: dict[str, dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    deltas: dict[str, Fraction] = defaultdict(Fraction)
    for charge in charges:
        spent[charge.month][charge.mechanism] += charge.epsilon
        deltas[charge.month] += charge.delta
    first, last = min(charge.span.first for charge in charges), max(charge.span.last for charge in charges)
    months = months_between(first, last)
    return [
        {
            "month": str(month),
            "epsilon": printed(sum(spent[month].values(), Fraction(0))),
            "delta": printed(deltas[month]),
            "by_mechanism": {name: printed(value) for name, value in sorted(spent[month].items())},
            "window": {"epsilon": printed(balance.spent.epsilon), "delta": printed(balance.spent.delta)},
            "left": {"epsilon": double_at_least(balance.left.epsilon), "delta": double_at_least(balance.left.delta)},
        }
        for month, balance in zip(months, ledger.balances(dataset, months), strict=True)
    ]


def spending_by_window(ledger: Ledger, dataset: str) -> list[dict[str, Any]]:
    """Every window of months that anything was charged in; empty where the budget is for ever."""
    return [
        {
            "first": str(span.first),
            "last": str(span.last),
            "epsilon": printed(spent.epsilon),
            "delta": printed(spent.delta),
        }
        for span, spent in ledger.windows(dataset)
    ]


def spending_picture(rows: list[dict[str, Any]], limit: float, window: int | None) -> str:
    """ε per month as bars, the most in any window that holds the month as a line, and the budget, as SVG text."""
    top = max([limit, *(row["window"]["epsilon"] for row in rows)]) * 1.05
    floor, room, step = HEIGHT - BOTTOM, HEIGHT - TOP - BOTTOM, (WIDTH - LEFT - RIGHT) / max(len(rows), 1)

    def height(value: float) -> float:
        return floor - room * value / top

    parts, points = [], []
    every = -(-len(rows) // MOST_LABELS)
    for number, row in enumerate(rows):
        left = LEFT + number * step
        names = ", ".join(f"{name} {at_most(value)}" for name, value in row["by_mechanism"].items()) or "nothing"
        y = height(row["epsilon"])
        parts.append(
            f"<g><title>{row['month']}: {escape(names)}</title>"
            f'<rect x="{left + step * 0.15:.1f}" y="{y:.1f}" width="{step * 0.7:.1f}" height="{floor - y:.1f}" '
            f'fill="{BAR}"/></g>'
        )
        points.append(f"{left + step / 2:.1f},{height(row['window']['epsilon']):.1f}")
        if number % every == 0:
            parts.append(
                f'<text x="{left + step / 2:.1f}" y="{floor + 16}" text-anchor="middle" font-size="11">'
                f"{row['month']}</text>"
            )
    together = "all months together" if window is None else f"the dearest {window} months in a row that hold it"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" role="img" aria-label="Privacy budget over months">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
        f'<text x="{LEFT}" y="18" font-size="13" fill="{LINE}">ε charged per month (bars); {together} (line)</text>'
        f'<text x="{LEFT}" y="36" font-size="12" fill="{LIMIT}">budget: ε = {at_most(limit)}</text>'
        f'<line x1="{LEFT}" y1="{floor}" x2="{WIDTH - RIGHT}" y2="{floor}" stroke="#444"/>'
        f'<line x1="{LEFT}" y1="{height(limit):.1f}" x2="{WIDTH - RIGHT}" y2="{height(limit):.1f}" stroke="{LIMIT}" '
        'stroke-dasharray="6 4"/>'
        f"{''.join(parts)}"
        f'<polyline points="{" ".join(points)}" fill="none" stroke="{LINE}" stroke-width="2"/>'
        "</svg>"
    )
