"""Lines over a threshold or over a number of sessions, side by side: the pictures of the studies of session logs.

Drawn with matplotlib, imported on first use. They show measures on private data and lie under `private/studies/`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Point = tuple[float, float | None]


@dataclass(frozen=True)
class Panel:
    """One picture of several: a line per log."""

    title: str
    across: str
    lines: Mapping[str, Sequence[Point]]
    logarithmic: bool = False


def line_panels(panels: Sequence[Panel]) -> bytes:
    """The panels in one row, as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(panels), figsize=(4.6 * len(panels), 3.8), squeeze=False)
    colours = {name: f"C{place}" for place, name in enumerate(dict.fromkeys(n for each in panels for n in each.lines))}
    for axis, panel in zip(axes[0], panels, strict=True):
        for name, points in panel.lines.items():
            shown = [(x, y) for x, y in points if y is not None]
            axis.plot(
                [x for x, _ in shown], [y for _, y in shown], marker="o", markersize=3, color=colours[name], label=name
            )
        axis.set_title(panel.title, fontsize=10)
        axis.set_xlabel(panel.across)
        if panel.logarithmic:
            axis.set_yscale("symlog", linthresh=10)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.tight_layout()
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=110)
    pyplot.close(figure)
    return page.getvalue()
