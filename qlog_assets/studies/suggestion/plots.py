"""The picture of Table 5: precision and recall of every log, on what it answers and on what all of them answer.

Measures on private data: it lies beside the tables that it shows, under `private/studies/`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
MEASURES = {"precision": "Precision@5", "recall": "Recall@5", "sessions": "sessions answered"}


def bars(own: Rows, shared: Rows) -> bytes:
    """One panel per measure, two bars per log."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(MEASURES), figsize=(13, 4.2))
    names = [label(row) for row in own]
    on_shared = {label(row): row for row in shared}
    for axis, (measure, words) in zip(axes, MEASURES.items(), strict=True):
        places = range(len(names))
        axis.barh([place - 0.2 for place in places], [row[measure] or 0 for row in own], 0.4, label="what it answers")
        axis.barh(
            [place + 0.2 for place in places],
            [on_shared[name][measure] or 0 for name in names],
            0.4,
            label="what every log answers",
        )
        axis.set_yticks(list(places), names)
        axis.invert_yaxis()
        axis.set_title(words, fontsize=10)
        axis.grid(axis="x", alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=2, fontsize=9)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=110)
    pyplot.close(figure)
    return page.getvalue()


def label(row: Mapping[str, Any]) -> str:
    return row["log"] + (", pairs" if row["reading"] == "pairs" and row["log"] != "original" else "")
