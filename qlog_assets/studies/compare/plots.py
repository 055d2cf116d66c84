"""The pictures of the comparison. How many queries were evaluated stands in every one of them.

Measures on private data: they lie beside the tables that they show, under `private/studies/`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from qlog_assets.studies.compare.systems import ANONYMITY, ORIGINAL, PRINTED, PURE, SAME
from qlog_assets.studies.study import Tables

Rows = Sequence[Mapping[str, Any]]
COLOURS = {ORIGINAL: "#222222", SAME: "#1f6fb4", PURE: "#2a9d55", PRINTED: "#c8553d", ANONYMITY: "#8a8a8a"}
MARKERS = {ORIGINAL: "*", SAME: "o", PURE: "D", PRINTED: "s", ANONYMITY: "^"}
PRIVATE = (SAME, PURE)


def draw_pictures(tables: Tables) -> dict[str, bytes]:
    rows = tables["comparison"]
    return {
        "items.png": items_and_ranking(rows),
        "searches.png": bars(
            rows,
            {
                "ndcg_walk": "nDCG@10, random walk",
                "ndcg_feedback": "nDCG@10, implicit feedback",
                "precision_at_5": "P@5 of suggestions",
            },
        ),
        "coverage.png": bars(
            rows, {"impressions_share": "searches covered", "cache_hits": "cache hits", "purity": "purity of clusters"}
        ),
        "errors.png": bars(
            rows,
            {"median_error": "median error of counts, users", "median_relative_error": "the same, relative"},
            by_power=True,
        ),
    }


def evaluated(rows: Rows) -> str:
    """What a picture's scores are means over."""
    first = rows[0]
    return (
        f"{first['tested_queries']:,.0f} tested queries of held-out users, zero where a log does not know one; "
        f"{first['tested_prefixes']:,.0f} prefixes of sessions"
    )


def items_and_ranking(rows: Rows, size: tuple[float, float] = (8, 5), dpi: int = 110) -> bytes:
    """Items against nDCG with zeros: how much a log holds, and how well it finds."""
    pyplot = load_pyplot()
    figure, axis = pyplot.subplots(figsize=size)
    for kind, colour in COLOURS.items():
        chosen = [row for row in rows if row["kind"] == kind]
        if not chosen:
            continue
        places = [items_of(row) for row in chosen], [row["ndcg_walk"] or 0 for row in chosen]
        axis.scatter(*places, color=colour, marker=MARKERS[kind], s=46, label=kind, zorder=3)
        for row, items, ndcg in zip(chosen, *places, strict=True):
            axis.annotate(
                f"{row['system']} ({row['answered_queries']:,.0f})",
                (items, ndcg),
                xytext=(5, 4),
                textcoords="offset points",
                fontsize=6.5,
                color=colour,
            )
    axis.set_xscale("symlog", linthresh=1)
    axis.set_xlim(left=-0.2, right=12 * max(items_of(row) for row in rows) + 10)
    axis.set_xlabel("items released: queries, clicks and transitions")
    axis.set_ylabel("nDCG@10 of the random walk, zero for missing queries")
    axis.set_title(f"{evaluated(rows)}\n(in brackets: queries that a log answers)", fontsize=8)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7, loc="upper left")
    return as_png(figure, dpi)


def bars(rows: Rows, measures: Mapping[str, str], *, by_power: bool = False) -> bytes:
    """One panel per measure, one bar per system. What is not known has no bar."""
    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(
        1, len(measures), figsize=(4 * len(measures) + 1, 0.27 * len(rows) + 1.3), sharey=True
    )
    places = range(len(rows))
    for axis, (measure, told) in zip(axes, measures.items(), strict=True):
        values = [row[measure] for row in rows]
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
        if by_power:
            axis.set_xscale("symlog", linthresh=0.1)
            axis.set_xlim(left=0)
        axis.margins(x=0.18)
        axis.set_title(told, fontsize=9)
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(list(places), [row["system"] for row in rows], fontsize=8)
    axes[0].invert_yaxis()
    figure.suptitle(evaluated(rows), fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.99))
    return as_png(figure, 110)


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
    figure.tight_layout()
    figure.savefig(page, format="png", dpi=dpi)
    load_pyplot().close(figure)
    return page.getvalue()
