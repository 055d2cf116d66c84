"""The pictures of the comparison. How many queries were evaluated stands in every one of them.

Measures on private data: they lie beside the tables that they show, under `private/studies/`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qlog_assets.studies.compare.systems import ANONYMITY, ORIGINAL, PRINTED, PURE, SAME
from qlog_assets.studies.study import Tables

Rows = Sequence[Mapping[str, Any]]
COLOURS = {ORIGINAL: "#222222", SAME: "#1f6fb4", PURE: "#2a9d55", PRINTED: "#c8553d", ANONYMITY: "#8a8a8a"}
MARKERS = {ORIGINAL: "*", SAME: "o", PURE: "D", PRINTED: "s", ANONYMITY: "^"}
SMALL_SCORE = 1e-5
"""Scores with zeros range over powers of ten: so small a one is drawn as zero."""


@dataclass(frozen=True)
class Panel:
    """One measure of a picture of bars."""

    measure: str
    title: str
    smallest: float | None = None
    """From where on the axis is logarithmic. None: nowhere."""


def draw_pictures(tables: Tables) -> dict[str, bytes]:
    order = list(COLOURS)
    rows = sorted(tables["comparison"], key=lambda row: (order.index(row["kind"]), -(row["ndcg_walk"] or 0)))
    return {
        "compare.png": bars(
            rows,
            Panel("impressions_share", "share of searches covered"),
            Panel("ndcg_walk", "nDCG@10, random walk", SMALL_SCORE),
            Panel("median_relative_error", "median relative error of counts", 0.01),
            dpi=66,
        ),
        "items.png": items_and_ranking(rows),
        "searches.png": bars(
            rows,
            Panel("ndcg_walk", "nDCG@10, random walk", SMALL_SCORE),
            Panel("ndcg_feedback", "nDCG@10, implicit feedback", SMALL_SCORE),
            Panel("precision_at_5", "P@5 of suggestions", SMALL_SCORE),
        ),
        "coverage.png": bars(
            rows,
            Panel("impressions_share", "share of searches covered"),
            Panel("cache_hits", "share of searches that the cache answers"),
            Panel("purity", "purity of clusters of sites"),
        ),
        "errors.png": bars(
            rows,
            Panel("median_error", "median error of counts, in users", 1),
            Panel("median_relative_error", "the same, relative to the true count", 0.01),
        ),
    }


def evaluated(rows: Rows) -> str:
    """What a picture's scores are means over."""
    first = rows[0]
    return (
        f"{first['tested_queries']:,.0f} tested queries and {first['tested_prefixes']:,.0f} prefixes of sessions of "
        "held-out users, zero where a log does not know one (in brackets: tested queries that it knows)"
    )


def items_and_ranking(rows: Rows) -> bytes:
    """Items against nDCG with zeros: how much a log holds, and how well it finds."""
    pyplot = load_pyplot()
    figure, axis = pyplot.subplots(figsize=(9, 5.2))
    for kind, colour in COLOURS.items():
        chosen = [row for row in rows if row["kind"] == kind]
        if chosen:
            places = [items_of(row) for row in chosen], [row["ndcg_walk"] or 0 for row in chosen]
            axis.scatter(*places, color=colour, marker=MARKERS[kind], s=46, label=kind, zorder=3)
    axis.set_xscale("symlog", linthresh=1)
    axis.set_xlim(left=-0.2, right=3 * max(items_of(row) for row in rows) + 10)
    axis.set_yscale("symlog", linthresh=SMALL_SCORE)
    axis.set_ylim(bottom=-SMALL_SCORE / 4, top=1)
    # Names stand in a column at the right, the best first, with a line to each point: beside the points they would
    # cover each other.
    ranked = sorted(rows, key=lambda row: (row["ndcg_walk"] or 0, items_of(row)), reverse=True)
    for place, row in enumerate(ranked):
        axis.annotate(
            f"{row['system']} ({row['answered_queries']:,.0f})",
            (items_of(row), row["ndcg_walk"] or 0),
            xytext=(1.02, 0.985 - 0.97 * place / max(len(rows) - 1, 1)),
            textcoords="axes fraction",
            va="center",
            fontsize=6.5,
            color=COLOURS[row["kind"]],
            arrowprops={
                "arrowstyle": "-",
                "relpos": (0, 0.5),
                "color": COLOURS[row["kind"]],
                "alpha": 0.35,
                "linewidth": 0.6,
            },
        )
    axis.set_xlabel("items released: queries, clicks and transitions")
    axis.set_ylabel("nDCG@10 of the random walk, zero for missing queries", fontsize=9)
    axis.set_title(evaluated(rows).replace(" of held-out", "\nof held-out"), fontsize=8)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7, loc="upper left")
    return as_png(figure, 110)


def bars(rows: Rows, *panels: Panel, dpi: int = 110) -> bytes:
    """One panel per measure, one bar per system. What is not known has no bar."""
    pyplot = load_pyplot()
    size = 4 * len(panels) + 1, 0.27 * len(rows) + 1.3
    figure, axes = pyplot.subplots(1, len(panels), figsize=size, sharey=True)
    places = range(len(rows))
    for axis, panel in zip(axes, panels, strict=True):
        values = [row[panel.measure] for row in rows]
        largest = max((value for value in values if value is not None), default=0) or 1
        axis.barh(places, [value or 0 for value in values], 0.7, color=[COLOURS[row["kind"]] for row in rows])
        for place, value in zip(places, values, strict=True):
            axis.annotate(
                "–" if value is None else f"{value:.3g}",
                (value or 0, place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
            )
        if panel.smallest is not None:
            axis.set_xscale("symlog", linthresh=panel.smallest)
        axis.set_xlim(0, 1.2 * largest if panel.smallest is None else 8 * largest)
        axis.set_title(panel.title, fontsize=9)
        axis.grid(axis="x", alpha=0.3)
    labels = [f"{row['system']} ({row['answered_queries']:,.0f})" for row in rows]
    axes[0].set_yticks(list(places), labels, fontsize=8)
    axes[0].invert_yaxis()
    kinds = {row["kind"]: pyplot.Rectangle((0, 0), 1, 1, color=COLOURS[row["kind"]]) for row in rows}
    figure.legend(list(kinds.values()), list(kinds), fontsize=7, loc="lower center", ncols=len(kinds))
    figure.suptitle(evaluated(rows), fontsize=8)
    return as_png(figure, dpi)


def items_of(row: Mapping[str, Any]) -> float:
    return float(row["queries"] + row["clicks"] + row["transitions"])


def load_pyplot() -> Any:
    """matplotlib, which is imported where it is used: Dagster loads every study, and would wait for it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def as_png(figure: Any, dpi: int) -> bytes:
    page = io.BytesIO()
    figure.tight_layout(rect=(0, 0.03, 1, 1))  # below, there may be a legend
    figure.savefig(page, format="png", dpi=dpi)
    load_pyplot().close(figure)
    return page.getvalue()
