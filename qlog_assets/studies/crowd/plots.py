"""Figures 3, 4 and 5: a share against k, one line per policy. Drawn with matplotlib, imported on first use.

They show measures on private data and lie beside the tables they show, under `private/studies/`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
Panel = tuple[str, str, Rows]
"""Title, the column that is shown, and the rows."""
SHARES = {
    "impressions_share": "impressions in the log of what is released",
    "sent_impressions_share": "impressions that were sent, of what is released",
    "distinct_share": "distinct queries released",
}


def shares(rows: Rows) -> bytes:
    """Figure 3 or 4: the three shares side by side."""
    return _panels([(title, column, rows) for column, title in SHARES.items()])


def person(rows: Rows) -> bytes:
    """Figure 5: the planted person's distinct queries."""
    return _panels([("the planted person's distinct queries released", "share", rows)])


def _panels(panels: Sequence[Panel]) -> bytes:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(panels), figsize=(max(4.6 * len(panels), 6), 4.2), squeeze=False)
    for axis, (title, column, rows) in zip(axes[0], panels, strict=True):
        for policy in dict.fromkeys(row["policy"] for row in rows):
            line = sorted((row["k"], row[column]) for row in rows if row["policy"] == policy)
            style = "--" if policy in ("sound", "gaussian") else "-"
            axis.plot(*zip(*line, strict=True), style, label=policy, linewidth=1.2)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("k")
        # At k = 1 frequency thresholds release everything: nothing else would be seen on a linear scale.
        axis.set_yscale("log")
        axis.grid(alpha=0.3)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncols=6, fontsize=9)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=110)
    pyplot.close(figure)
    return page.getvalue()
