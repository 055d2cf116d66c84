"""The page of the comparison: one HTML file that asks nobody for anything. Its layout is `page.html.jinja`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qlog_assets.privacy.bounds import at_most
from qlog_assets.studies.compare.same_law import is_same
from qlog_assets.studies.compare.systems import ANONYMITY, ORIGINAL, PRINTED, PURE, SAME
from qlog_assets.studies.study import StudyWork, Tables

PAGE = "compare.html"
TEMPLATE = "page.html.jinja"
KINDS = {
    ORIGINAL: "what the systems draw from; never to be published",
    SAME: "may be published",
    PURE: "may be published",
    PRINTED: "for study alone: what is claimed holds in part or not at all, and the noise is made of floats",
    ANONYMITY: "for study alone: promises nothing against somebody who makes accounts",
}
"""What may be done with a log of each kind."""
PICTURES = {
    "items.png": "How much each log holds, and how well it finds what held-out people clicked.",
    "searches.png": "Finding pages and suggesting queries, zero for whatever a log does not know.",
    "coverage.png": "Held-out searches whose query a log holds or a cache of its most frequent queries answers; and "
    "how pure clusters of sites are, where topics are known.",
    "errors.png": "Printed counts beside the true number of users.",
}
DASH = "–"
LARGE, SMALL = 100, 0.001


def write_page(tables: Tables, pictures: Mapping[str, bytes], work: StudyWork) -> dict[str, str]:
    # Its import takes some 60 ms by itself: Dagster loads every study.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, auto_reload=False
    )
    environment.filters |= {"number": number, "loss": loss, "share": share, "size": size}
    rows = tables["comparison"]
    page = environment.get_template(TEMPLATE).render(
        month=str(work.month),
        settings=work.settings,
        epsilon=at_most(work.settings.epsilon),
        delta=at_most(work.settings.delta),
        rows=rows,
        kinds={kind: told for kind, told in KINDS.items() if any(row["kind"] == kind for row in rows)},
        choices=tables["choices"],
        same_law=tables["same_law"],
        is_same=is_same(tables["same_law"]),
        trusts=trusts_of(rows),
        pictures=[(name, told, base64.b64encode(pictures[name]).decode("ascii")) for name, told in PICTURES.items()],
    )
    return {PAGE: page}


def trusts_of(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Each sentence on trust once, with the systems that it is said of."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["trust"], []).append(row["system"])
    return found


def number(value: float | None) -> str:
    """A score or an error, to three digits."""
    if value is None:
        return DASH
    if 0 < value < SMALL:
        return f"{value:.6f}"
    return f"{value:,.0f}" if value >= LARGE else f"{value:.3g}"


def size(value: float | None) -> str:
    """How many there are."""
    return DASH if value is None else f"{value:,.0f}"


def share(value: float | None) -> str:
    return DASH if value is None else f"{100 * value:.1f} %"


def loss(value: float | None) -> str:
    """An ε or δ: never rounded down."""
    return "nothing" if value is None else at_most(value)
