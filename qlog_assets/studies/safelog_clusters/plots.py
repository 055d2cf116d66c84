"""The picture of Table 4: how pure the clusters of every log are, and how many sites are in them.

Measures on private data: it lies beside the tables that it shows, under `private/studies/`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from qlog_assets.studies.safelog_clusters.printed import PURITY

Rows = Sequence[Mapping[str, Any]]


def bars(rows: Rows) -> bytes:
    """Two panels, clusters of two sites or more: their purity and their sites; one bar per log and click threshold."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    logs = list(dict.fromkeys(row["log"] for row in rows))
    thresholds = sorted({row["least_clicks"] for row in rows})
    found = {(row["log"], row["least_clicks"]): row for row in rows}
    height = 0.8 / len(thresholds)
    figure, axes = pyplot.subplots(1, 2, figsize=(12, 1.2 + 0.55 * len(logs)), sharey=True)
    for number, least in enumerate(thresholds):
        places = [place + (number - (len(thresholds) - 1) / 2) * height for place in range(len(logs))]
        label = f"pairs of {least} clicks or more" if least else "all pairs"
        measured = [found[log, least] for log in logs]
        axes[0].barh(places, [row["linked_purity"] or 0 for row in measured], height, label=label)
        axes[1].barh(places, [row["linked_sites"] for row in measured], height)
        for place, row in zip(places, measured, strict=True):
            told = f" {row['linked_sites']:,} in {row['linked_clusters']:,}"
            axes[1].text(row["linked_sites"], place, told, va="center", fontsize=7)
    axes[0].axvline(PURITY, color="black", linestyle=":", label=f"the paper's {PURITY}")
    axes[0].set_yticks(range(len(logs)), logs)
    axes[0].set_ylim(len(logs) - 0.5, -0.5)
    axes[0].set_xlim(0, 1)
    axes[0].set_title("purity of clusters of two sites or more", fontsize=10)
    axes[1].set_title("sites in such clusters", fontsize=10)
    axes[1].set_xlim(0, 1.3 * max([1, *(row["linked_sites"] for row in rows)]))
    for axis in axes:
        axis.grid(axis="x", alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=len(thresholds) + 1, fontsize=9)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=110)
    pyplot.close(figure)
    return page.getvalue()
