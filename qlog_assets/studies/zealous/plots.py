"""Pictures of the study: one line per method over the items per user. Drawn with matplotlib, imported on first use.

They show measures on private data and lie beside the tables they show, under `private/studies/`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]

FREQUENT_MEASURES = {
    "released": "items released",
    "inaccuracy": "inaccuracy",
    "recall": "recall of frequent items",
    "precision": "precision",
    "relative_error": "median relative count error",
}


def frequent_items(rows: Rows) -> bytes:
    """A grid: one row per measure, one column per kind of items."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    return _grid(
        [
            (f"{words}, {kind}", measure, [row for row in rows if row["kind"] == kind])
            for measure, words in FREQUENT_MEASURES.items()
            for kind in kinds
        ],
        columns=len(kinds),
    )


def applications(caching: Rows, substitution: Rows) -> bytes:
    """Index caching and query substitution side by side, as people who were held out find them."""
    panels = [("hit rate of an index cache", "hit_rate", caching)] if caching else []
    if substitution:
        panels += [
            ("queries with a substitute", "coverage", substitution),
            ("nDCG@10 of substitutes", "ndcg", substitution),
        ]
    return _grid(panels, columns=max(len(panels), 1))


def _grid(panels: Sequence[tuple[str, str, Rows]], columns: int) -> bytes:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    lines = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(4.2 * columns, 3.2 * lines + 0.8), squeeze=False)
    labelled: dict[str, Any] = {}
    for place, (title, measure, rows) in enumerate(panels):
        axis = axes[place // columns][place % columns]
        for number, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
            labelled[method] = _line(axis, [row for row in rows if row["method"] == method], measure, number)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("items per user, m")
        axis.set_xscale("log")
        if measure in ("released", "inaccuracy"):
            axis.set_yscale("symlog", linthresh=10)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    figure.legend(labelled.values(), labelled.keys(), loc="lower center", ncols=min(len(labelled), 5), fontsize=9)
    figure.tight_layout(rect=(0, 0.9 / (3.2 * lines + 0.8), 1, 1))
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=110)
    pyplot.close(figure)
    return page.getvalue()


def _line(axis: Any, rows: Rows, measure: str, number: int) -> Any:
    """A method over m; a baseline, which limits nobody, as a dashed level."""
    colour = f"C{number % 10}"
    if rows[0]["m"] is None:
        return axis.axhline(rows[0][measure] or 0, color=colour, linestyle="--", linewidth=1)
    return axis.plot(
        [row["m"] for row in rows],
        [float("nan") if row[measure] is None else row[measure] for row in rows],
        color=colour,
        marker="o",
        markersize=3,
    )[0]
