"""Writes the text of `released/index.html`: every release of a data set on one page, made of the catalogue alone.

One self-contained file that works from a web server and from a folder: nothing is fetched, the style and the few lines
of script are in it and are named by their digests in the page's own content policy. Without the script everything is
there but the search. The same catalogue gives the same bytes.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qlog_assets.months import month_name
from qlog_assets.privacy.bounds import at_most
from qlog_assets.report.account import join_words
from qlog_assets.report.catalogue import Catalogue, ListedRelease, ListedSkip
from qlog_assets.report.datasheet import SHARED_STYLE_NAME
from qlog_assets.report.index_plots import spending_chart
from qlog_assets.version import VERSION

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATE_NAME = "index.html.jinja"
GENERATOR = f"qlog {VERSION}"
DOCUMENTS = {"datasheet.html": "Datasheet", "README.md": "How to load it", "CITATION.cff": "How to cite it"}
"""What a document is called on the page; one of another name keeps it."""


@dataclass(frozen=True)
class ShownTable:
    """A table of a release: its facts, where its files are, and the words that find it."""

    name: str
    rows: str
    columns: str
    files: list[tuple[str, str]]
    search: str


@dataclass(frozen=True)
class ShownRelease:
    """A release as the page shows it; one without tables was withdrawn, or its files are not there."""

    listed: ListedRelease
    epsilon: str
    delta: str
    superseded: bool
    links: list[tuple[str, str]]
    tables: list[ShownTable]
    search: str


@dataclass(frozen=True)
class ShownMonth:
    """A month with what there is of it."""

    month: str
    name: str
    releases: list[ShownRelease]
    skips: list[ListedSkip]


def render_index(catalogue: Catalogue) -> str:
    """The page as text."""
    style, script = _beside(SHARED_STYLE_NAME) + _beside("index.css"), _beside("index.js")
    months = list_months(catalogue)
    return (
        _environment()
        .get_template(TEMPLATE_NAME)
        .render(
            generator=GENERATOR,
            catalogue=catalogue,
            about={key: value for key, value in catalogue.about.items() if value},
            months=months,
            tables=sum(len(release.tables) for month in months for release in month.releases),
            withdrawn=sum(release.withdrawn for release in catalogue.releases),
            spending=[
                (row.month, *map(at_most, (row.epsilon, row.delta, row.epsilon_so_far, row.delta_so_far)))
                for row in catalogue.spending()
            ],
            charts=draw_charts(catalogue),
            style=style,
            script=script,
            policy="; ".join(
                (
                    "default-src 'none'",
                    f"style-src {source_of(style)}",
                    f"script-src {source_of(script)}",
                    "img-src data:",
                    "base-uri 'none'",
                    "form-action 'none'",
                )
            ),
        )
    )


def list_months(catalogue: Catalogue) -> list[ShownMonth]:
    """The months that something is said of, newest first."""
    releases = {month: list(group) for month, group in groupby(catalogue.releases, lambda each: each.charge.month)}
    skips = {month: list(group) for month, group in groupby(catalogue.skips, lambda skip: skip.month)}
    return [
        ShownMonth(
            month, month_name(month), [show(release) for release in releases.get(month, [])], skips.get(month, [])
        )
        for month in sorted({*releases, *skips}, reverse=True)
    ]


def show(release: ListedRelease) -> ShownRelease:
    charge, manifest = release.charge, release.manifest
    words = [charge.month, month_name(charge.month), charge.mechanism, charge.variant, charge.release_id]
    tables = [] if manifest is None else list(manifest["tables"].items())
    return ShownRelease(
        release,
        at_most(charge.epsilon),
        at_most(charge.delta),
        manifest is not None and not release.newest,
        [] if manifest is None else list_links(release.folder, manifest),
        [show_table(name, facts, release.folder, words) for name, facts in tables],
        searchable([*words, "withdrawn" if release.withdrawn else "", release.text if release.withdrawn else ""]),
    )


def show_table(name: str, facts: Mapping[str, Any], folder: str, words: Sequence[str]) -> ShownTable:
    columns = [column["name"] for column in facts["columns"]]
    return ShownTable(
        name.replace("_", " "),
        f"{facts['rows']:,}",
        join_words(columns),
        [(kind, f"{folder}/{facts['files'][key]['path']}") for key, kind in (("parquet", "Parquet"), ("csv", "CSV"))],
        searchable([*words, name, name.replace("_", " "), *columns]),
    )


def list_links(folder: str, manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The documents of a release, and its manifest."""
    documents = sorted((document["path"] for document in manifest["documents"]), key=_document_place)
    links = [(DOCUMENTS.get(name, name), f"{folder}/{name}") for name in documents]
    return [*links, ("Manifest", f"{folder}/manifest.json")]


def draw_charts(catalogue: Catalogue) -> list[str]:
    """ε and δ over the months; δ only where any was spent."""
    rows = catalogue.spending()
    if not rows:
        return []
    months = [str(row.month) for row in rows]
    epsilons = ([row.epsilon for row in rows], [row.epsilon_so_far for row in rows])
    deltas = ([row.delta for row in rows], [row.delta_so_far for row in rows])
    charts = []
    for title, (each, so_far) in (("ε per month, and all so far", epsilons), ("δ per month, and all so far", deltas)):
        if so_far[-1] > 0:
            told = list(zip((at_most(value) for value in each), (at_most(value) for value in so_far), strict=True))
            charts.append(spending_chart(title, months, [*map(float, each)], [*map(float, so_far)], told))
    return charts


def searchable(words: Sequence[str]) -> str:
    """Words as the page's search compares them."""
    return " ".join(word for word in words if word).casefold()


def source_of(text: str) -> str:
    """How a content policy names a style or a script that is in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _document_place(name: str) -> tuple[int, str]:
    known = list(DOCUMENTS)
    return (known.index(name) if name in DOCUMENTS else len(known), name)


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> Environment:
    """The templates of this folder; whatever they print is escaped, and a name they were not given is an error."""
    # Its import takes some 60 ms by itself: who only looks at the catalogue does not wait for it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
