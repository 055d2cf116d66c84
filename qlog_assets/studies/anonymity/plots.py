"""The picture of the k-anonymity study: what share of the searches each variant prints as k grows.

Measured on private data: it lies beside the tables that it shows, under `private/studies/`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
PANELS = {"impressions_share": "searches behind printed items, %", "users_share": "users with a printed item, %"}


def shares(rows: Rows) -> bytes:
    """One panel per share, one line per variant."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(11, 4.2))
    for axis, (measure, words) in zip(axes, PANELS.items(), strict=True):
        for variant in dict.fromkeys(row["variant"] for row in rows):
            own = [row for row in rows if row["variant"] == variant]
            axis.plot([row["k"] for row in own], [100 * row[measure] for row in own], marker="o", label=variant)
        axis.set_xscale("log")
        axis.set_xlabel("k")
        axis.set_title(words, fontsize=10)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=110)
    pyplot.close(figure)
    return page.getvalue()
