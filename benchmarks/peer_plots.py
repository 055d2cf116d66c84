"""A picture of what each method releases of the peers' task, month by month, and how far its counts are off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

NAMES = {
    ("threshold that keeps δ", 10): "OpenDP, 10 per user",
    ("its selection, Laplace counts", 10): "PipelineDP, Laplace, 10 per user",
    ("Gaussian counts above a threshold", 10): "PipelineDP, Gaussian, 10 per user",
    ("Gaussian counts above a threshold", 50): "PipelineDP, Gaussian, 50 per user",
    ("sound", 10): "stability histogram, 10 per user",
    ("gaussian_counts", 10): "Gaussian counts, 10 per user",
    ("gaussian_counts", 50): "Gaussian counts, 50 per user",
    ("sips", 200): "DP-SIPS",
    ("weighted_gaussian", 200): "one round",
    ("steered", 1_000): "steered",
    ("steered, public pool", 1_000): "steered, with a public pool",
}
"""What a line of a method with so many items per user is called in the picture."""
OURS, OTHERS = "#1b6ca8", "#8a8a8a"


def key_of(result: dict[str, Any]) -> tuple[str, int]:
    return result["method"], result["items_per_user"]


def shown_lines(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of the task that the picture shows, by month and in the order of `NAMES`."""
    order = list(NAMES)
    known = [one for one in results if one.get("log") == "task" and key_of(one) in NAMES]
    return sorted(known, key=lambda one: (one["month"], order.index(key_of(one))))


def draw_picture(results: list[dict[str, Any]], path: Path) -> bool:
    """Bars of released queries, the part near the truth dark, and of median errors; false without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    lines = shown_lines(results)
    places = [float(place + one["month"]) for place, one in enumerate(lines)]  # a gap between two months
    colours = [OTHERS if one["library"] != "qlog" else OURS for one in lines]
    figure = Figure(figsize=(9, 0.32 * len(lines) + 1.4), layout="constrained")
    released, errors = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    released.barh(places, [one["released"] for one in lines], color=colours, alpha=0.35)
    released.barh(places, [one["released"] * (one["near"] or 0) for one in lines], color=colours)
    errors.barh(places, [one["median_error"] or 0 for one in lines], color=colours, alpha=0.7)
    for place, one in zip(places, lines, strict=True):
        released.text(one["released"], place, f" {one['released']:,.0f}", va="center", fontsize=8)
        if one["median_error"] is not None:
            errors.text(one["median_error"], place, f" {one['median_error']:.0f}", va="center", fontsize=8)
    released.set_yticks(places, [f"month {one['month']}: {NAMES[key_of(one)]}" for one in lines], fontsize=8)
    released.invert_yaxis()
    released.set(title="Queries released (dark: count within 20 % of the truth)")
    errors.set(title="Median error of the counts, users")
    for axes in (released, errors):
        axes.title.set_fontsize(9)
        axes.margins(x=0.15)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="x", labelsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    return True
