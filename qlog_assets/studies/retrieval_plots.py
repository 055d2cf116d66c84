"""Pictures of the studies of retrieval. The number of evaluated queries stands in each of them.

Drawn with matplotlib, imported on first use. They show measures on private data and lie under `private/studies/`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Line:
    """Points of one name: where, how high, the ends of the interval (None: none is shown), and what stands beside."""

    name: str
    points: Sequence[tuple[float, float | None]]
    intervals: Sequence[tuple[float, float] | None] = ()
    labels: Sequence[str] = ()
    style: str = "-"
    slanted: bool = False
    """Whether labels lean, where they are long and close to each other."""


@dataclass(frozen=True)
class Panel:
    """One picture of several in a row."""

    title: str
    across: str
    lines: Sequence[Line]
    upright: float | None = None
    """Where a line stands upright, such as a turning point."""
    highest: float | None = None
    """How far up it goes, where that is not for the lines to say."""


def line_panels(rows: Sequence[Sequence[Panel]], title: str, *, logarithmic: bool = True) -> bytes:
    """Rows of equally many panels, with one legend for all."""
    pyplot = _pyplot()
    across, down = len(rows[0]), len(rows)
    figure, axes = pyplot.subplots(down, across, figsize=(max(4.2 * across, 9), 1.4 + 3.4 * down), squeeze=False)
    panels = [panel for row in rows for panel in row]
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    for axis, panel in zip(axes.flat, panels, strict=True):
        for line in panel.lines:
            _draw_line(axis, line, f"C{names.index(line.name)}")
        if panel.upright is not None:
            axis.axvline(panel.upright, color="grey", linestyle=":", linewidth=1)
        if logarithmic:
            axis.set_xscale("log")
        axis.set_title(panel.title, fontsize=10)
        axis.set_xlabel(panel.across)
        axis.set_ylim(0, panel.highest)
        axis.grid(alpha=0.3)
    return _finish(figure, axes[0][0], title)


def _draw_line(axis: Any, line: Line, colour: str) -> None:
    shown = [place for place, (_, height) in enumerate(line.points) if height is not None]
    across = [line.points[place][0] for place in shown]
    heights = [line.points[place][1] for place in shown]
    markers = {"marker": "o", "markersize": 3} if line.intervals else {"markersize": 4}
    axis.plot(across, heights, line.style, color=colour, label=line.name, linewidth=1.2, **markers)
    for place in shown:
        x, y = line.points[place]
        if line.intervals and (interval := line.intervals[place]) is not None:
            axis.plot([x, x], interval, color=colour, linewidth=2.5, alpha=0.4)
        if line.labels:
            lean = {"rotation": 60, "rotation_mode": "anchor"} if line.slanted else {}
            axis.annotate(line.labels[place], (x, y), fontsize=7, xytext=(3, 4), textcoords="offset points", **lean)


def bar_panels(rows: Rows, measures: Mapping[str, str], columns: Mapping[str, str], title: str) -> bytes:
    """A panel per measure, and in it a group of bars per row: one for each of some columns."""
    pyplot = _pyplot()
    names = list(dict.fromkeys(_row_name(row) for row in rows))
    figure, axes = pyplot.subplots(
        1, len(measures), figsize=(6.2 * len(measures), 1.6 + 0.42 * len(names)), sharey=True, squeeze=False
    )
    width = 0.8 / len(columns)
    for axis, (measure, words) in zip(axes[0], measures.items(), strict=True):
        shown = {_row_name(row): row for row in rows if row["measure"] == measure}
        for place, (column, label) in enumerate(columns.items()):
            heights = [shown[name][column] or 0 for name in names]
            axis.barh([at + (place + 0.5) * width - 0.4 for at in range(len(names))], heights, width, label=label)
        axis.set_yticks(range(len(names)), names, fontsize=8)
        axis.set_title(words, fontsize=10)
        axis.set_xlim(0, 1)
        axis.grid(axis="x", alpha=0.3)
    axes[0][0].invert_yaxis()
    return _finish(figure, axes[0][0], title)


def _row_name(row: Mapping[str, Any]) -> str:
    return f"{row['log']}, {row['method']}: {row['evaluated']:,} of {row['tested']:,} queries"


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _finish(figure: Any, first: Any, title: str) -> bytes:
    figure.suptitle(title, fontsize=10)
    figure.legend(*first.get_legend_handles_labels(), loc="lower center", ncols=4, fontsize=8)
    figure.tight_layout(rect=(0, 0.1, 1, 0.99))
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=110)
    _pyplot().close(figure)
    return page.getvalue()
