"""Writes `datasheet.html`: what a release is, what was done to the data, what is promised and how to use it.

One self-contained page made of the manifest and the released tables, both public: no script, nothing fetched, the same
bytes for the same release. The page and the sentences that hold for every release are in `datasheet.html.jinja`, its
lists and grids in `datasheet_parts.html.jinja`; a mechanism's own sentences come with its account, pictures from
`plots` and `noise_plots`, numbers from `datasheet_numbers`. Here is what the page shows, and how a text is made safe to
show.

A release's manifest holds the checksum of its datasheet: a change of a single byte here or in the templates makes old
releases impossible to make again. What changes depends on `words`, the version of the public words (decision 11): the
templates of earlier ones are in `earlier/`.
"""

from __future__ import annotations

import functools
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from markupsafe import Markup

from qlog_assets.months import month_name
from qlog_assets.report.account import Account, join_words
from qlog_assets.report.citation import citation_bibtex, citation_text, release_title
from qlog_assets.report.datasheet_errors import (
    EARLIER_SUMMARY_COLUMNS,
    SUMMARY_COLUMNS,
    ToldNoise,
    group_titles,
    summarise_noise,
    summarise_noise_earlier,
    tell_error_of,
    tell_noise,
    tell_threshold,
)
from qlog_assets.report.datasheet_numbers import Numbers, numbers_of
from qlog_assets.report.json_ld import describe_dataset, script_text
from qlog_assets.report.loading import loading_snippets
from qlog_assets.report.manifest import words_of
from qlog_assets.report.noise_plots import EXAMPLE, picture_error, picture_missing
from qlog_assets.report.over_time import tell_over_time
from qlog_assets.report.plots import distribution
from qlog_assets.report.table_noise import TableNoise
from qlog_assets.report.tables import CSV_NOTE, ERROR_COLUMN, PublishedFile, describe_file

if TYPE_CHECKING:
    from jinja2 import Environment

DATASHEET_NAME = "datasheet.html"
TEMPLATE_NAME = "datasheet.html.jinja"
STYLE_NAME = "datasheet.css"
SHARED_STYLE_NAME = "pages.css"
"""Colours and type, of the index as well."""
LAST_EARLIER_WORDS = 3
"""The last version of the words whose pages are made by the templates in `earlier/`."""
EXAMPLE_ROWS = 6

Row = Sequence[str | list[str]]
"""The cells of a row: a text, or a list of texts."""


@dataclass(frozen=True)
class NoiseShown:
    """What the page shows of the noise on one or several tables: words, a grid, and pictures as SVG."""

    told: ToldNoise
    error: str
    missing: str


@dataclass(frozen=True)
class ShownTable:
    """A table as the page shows it: its facts from the manifest, its first rows, and its pictures as SVG."""

    name: str
    words: str
    title: str
    facts: Mapping[str, Any]
    rows: int
    descriptions: list[Row]
    """The name of each column, its type, and what it holds."""
    columns: list[tuple[str, str]]
    """The name of each column, and of what kind its cells are."""
    examples: list[Row]
    pictures: str
    noise: ToldNoise | None
    """What is said of the noise on its counts; None where its draw said nothing."""
    largest_error: float | None
    """The largest standard error of its rows, where they have errors of their own."""


def write_datasheet(
    manifest: Mapping[str, Any],
    tables: Mapping[str, pa.Table],
    directory: Path,
    told: Account,
    titles: Mapping[str, str],
) -> PublishedFile:
    """Write the datasheet of a release beside its tables."""
    path = directory / DATASHEET_NAME
    path.write_text(render(manifest, tables, told, titles), encoding="utf-8", newline="\n")
    return describe_file(path)


def render(
    manifest: Mapping[str, Any], tables: Mapping[str, pa.Table], told: Account, titles: Mapping[str, str]
) -> str:
    """The page as text. `titles` has the title of each table, in the order in which a reader meets them."""
    guarantee, words = manifest["guarantee"], words_of(manifest)
    numbers = numbers_of(words)
    names = reading_order(manifest, titles)
    shown = [_shown(titles.get(name), name, manifest["tables"][name], tables[name], words) for name in names]
    facts = {
        "manifest": manifest,
        "about": manifest["about"],
        "guarantee": guarantee,
        "words": words,
        "epsilon": numbers.loss(guarantee, "epsilon"),
        "delta": numbers.loss(guarantee, "delta"),
        "odds": None if guarantee["delta"] == 0 else numbers.odds(guarantee),
        "epsilon_per_year": numbers.loss(guarantee, "epsilon", 12),
        "doubled_epsilon": numbers.loss(guarantee, "epsilon", 2),
        "doubled_delta": numbers.doubled_delta(guarantee),
        "over_time": tell_over_time(manifest),
        "told": told,
        "month": month_name(manifest["month"]),
        "table_names": join_words([_words(name) for name in names]),
        "sure": numbers.belief(guarantee),
        "parts": _parts(guarantee, numbers),
        "tables": shown,
        "files": _files(manifest, names),
        "software": ", ".join(f"{name} {version}" for name, version in sorted(manifest["software"].items())),
        "csv_note": CSV_NOTE,
    }
    if words <= LAST_EARLIER_WORDS:
        return _render("earlier/", facts | _earlier_facts(manifest, told, names, shown, numbers))
    return _render("", facts | _todays_facts(manifest, told, shown, numbers))


def _earlier_facts(
    manifest: Mapping[str, Any], told: Account, names: Sequence[str], shown: Sequence[ShownTable], numbers: Numbers
) -> dict[str, Any]:
    """What only pages in earlier words show."""
    return {
        "noise": _noise(manifest, told, names, numbers),
        "errors": _errors(manifest, told, names, numbers),
        "error_columns": EARLIER_SUMMARY_COLUMNS,
        "told_noise": group_titles({table.title: table.noise for table in shown if table.noise is not None}),
        "parameters": _parameters(manifest),
    }


def _todays_facts(
    manifest: Mapping[str, Any], told: Account, shown: Sequence[ShownTable], numbers: Numbers
) -> dict[str, Any]:
    """What only pages in today's words show."""
    stated = {table.name: (table, TableNoise.from_json(table.facts["noise"])) for table in shown if table.noise}
    in_order = {**manifest, "tables": {table.name: table.facts for table in shown}}
    return {
        "title": release_title(manifest),
        "json_ld": Markup(script_text(describe_dataset(in_order))),
        "rows": join_words([f"{table.rows:,} of {table.words}" for table in shown]),
        "errors": [
            summarise_noise(table.words, table.facts, told.expected_inventions.get(name, 0.0), numbers)
            for name, (table, _) in stated.items()
        ],
        "error_columns": SUMMARY_COLUMNS,
        "example_errors": group_titles(
            {
                table.title: tell_error_of(EXAMPLE, table.facts, table.largest_error, numbers)
                for table, _ in stated.values()
            }
        ),
        "told_noise": group_titles(
            {
                table.title: NoiseShown(
                    table.noise,
                    picture_error(noise, table.largest_error, numbers),
                    picture_missing(noise, table.facts, numbers),
                )
                for table, noise in stated.values()
                if table.noise is not None
            }
        ),
        "thresholds": {table.title: found for table in shown if (found := tell_threshold(table.facts))},
        "parameters": _set_parameters(manifest),
        "snippets": loading_snippets(in_order),
        "citation": citation_text(manifest),
        "bibtex": citation_bibtex(manifest),
    }


def _render(folder: str, facts: Mapping[str, Any]) -> str:
    """A page by the templates and the style in a folder of this one; earlier pages shared nothing with others."""
    names = (folder + STYLE_NAME,) if folder else (SHARED_STYLE_NAME, STYLE_NAME)
    style = "".join((Path(__file__).parent / name).read_text(encoding="utf-8") for name in names)
    return _environment().get_template(folder + TEMPLATE_NAME).render(facts, style=style)


# What the page shows ------------------------------------------------------------------------------------------------


def reading_order(manifest: Mapping[str, Any], titles: Mapping[str, str]) -> list[str]:
    """The tables in the order of their titles, those without one last and by name."""
    known = list(titles)
    return sorted(manifest["tables"], key=lambda name: (known.index(name) if name in titles else len(known), name))


def _parts(guarantee: Mapping[str, Any], numbers: Numbers) -> list[Row]:
    """What each part of the release costs, and why."""
    return [
        (_words(part["name"]), numbers.plain(part["epsilon"]), numbers.plain(part["delta"]), part["sentence"])
        for part in guarantee["parts"]
    ]


def _noise(manifest: Mapping[str, Any], told: Account, names: Sequence[str], numbers: Numbers) -> list[Row]:
    """What the noise does to each table of counts, of a draw that did not state its noise."""
    if any("noise" in manifest["tables"][name] for name in names):
        return []
    thresholds = {name: manifest["tables"][name]["threshold"] for name in names}
    return [
        (
            _words(name),
            f"±{numbers.within(told.noise_scales[name] * math.log(2))}",
            f"±{numbers.within(told.noise_scales[name] * math.log(20))}",
            f"{thresholds[name]:,}",
            numbers.invented(told.expected_inventions.get(name, 0.0)),
        )
        for name in names
        if name in told.noise_scales and thresholds[name] is not None
    ]


def _errors(manifest: Mapping[str, Any], told: Account, names: Sequence[str], numbers: Numbers) -> list[Row]:
    """The noise of each table whose draw stated it."""
    return [
        summarise_noise_earlier(_words(name), facts, told.expected_inventions.get(name, 0.0), numbers)
        for name, facts in ((name, manifest["tables"][name]) for name in names)
        if "noise" in facts
    ]


def _shown(title: str | None, name: str, facts: Mapping[str, Any], table: pa.Table, words: int) -> ShownTable:
    """A table with its first rows, and a picture of each of its counts if it has a threshold."""
    earlier = words <= LAST_EARLIER_WORDS
    columns, first = facts["columns"], table.slice(0, EXAMPLE_ROWS).to_pydict()
    cells = [[_cell(value) for value in first[column["name"]]] for column in columns]
    counts = [column["name"] for column in columns if column["type"] == "integer" and column["name"] != ERROR_COLUMN]
    drawn = counts if table.num_rows and facts["threshold"] is not None else []
    own_errors = table.column(ERROR_COLUMN).to_numpy() if ERROR_COLUMN in table.column_names else []
    return ShownTable(
        name=name,
        words=_words(name),
        title=title or _words(name).capitalize(),
        facts=facts,
        rows=table.num_rows,
        descriptions=[(column["name"], column["type"], column["description"]) for column in columns],
        columns=[(column["name"], "number" if column["type"] == "integer" else "") for column in columns],
        examples=list(zip(*cells, strict=True)),
        pictures="".join(
            distribution(
                values,
                # Where weights chose the rows the threshold is 1, and nothing is near it.
                facts["threshold"] if earlier else max(facts["threshold"], int(values.min())),
                title=f"Rows by noisy count of {count}",
                unit=count,
            )
            for count, values in ((count, table.column(count).to_numpy()) for count in drawn)
        ),
        noise=tell_noise(facts, numbers_of(words)),
        largest_error=float(max(own_errors)) if len(own_errors) else None,
    )


def _files(manifest: Mapping[str, Any], names: Sequence[str]) -> list[Row]:
    """Every file of a table, with its size and checksum."""
    files = [file for name in names for file in manifest["tables"][name]["files"].values()]
    return [(file["path"], f"{file['bytes']:,}", file["sha256"]) for file in files]


def _parameters(manifest: Mapping[str, Any]) -> str:
    """The parameters by name; one without a value is off."""
    parameters = sorted(manifest["parameters"].items())
    return "; ".join(f"{key} = {'off' if value is None else value}" for key, value in parameters)


def _set_parameters(manifest: Mapping[str, Any]) -> list[Row]:
    """The parameters by name. A threshold that nobody set is the one that the others made of it."""
    rows: list[Row] = []
    for key, value in sorted(manifest["parameters"].items()):
        derived = manifest["tables"].get(f"{key.removesuffix('_threshold')}s", {}).get("threshold")
        if value is None and key.endswith("threshold"):
            rows.append((key, "derived" if derived is None else f"{derived:,} (derived)"))
        else:
            rows.append((key, "not set" if value is None else str(value)))
    return rows


# How it is written --------------------------------------------------------------------------------------------------


def _words(name: str) -> str:
    """The name of a table or a part as words."""
    return name.replace("_", " ")


def _cell(value: Any) -> str | list[str]:
    """A value of a table: a list of texts stays a list, which the grid joins."""
    if isinstance(value, list):
        return [str(text) for text in value]
    return f"{value:,}" if isinstance(value, int) else str(value)


# The templates ------------------------------------------------------------------------------------------------------


@functools.cache
def _environment() -> Environment:
    """The templates of this folder; one that uses a name it was not given is an error."""
    # Its import takes some 60 ms by itself: who only wants a number written does not wait for it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=_escaped,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters |= {
        "commas": lambda number: f"{number:,}",
        "foreign": _foreign,
        "prose": _prose,
    }
    return environment


def _escaped(value: object) -> Markup:
    """Whatever a template prints that is not markup already.

    Jinja's own escaping is on as well and finds nothing left to do. It writes quotes as other entities than `escape`,
    which wrote the datasheets of earlier releases.
    """
    return value if isinstance(value, Markup) else Markup(escape(str(value)))


def _prose(sentence: str) -> Markup:
    """A sentence of ours between two tags, where quotes may stay as they are."""
    return Markup(escape(sentence, quote=False))


def _foreign(text: str) -> Markup:
    """A text that came from outside: nothing in it is markup, invisible, or able to turn the text around it."""
    shown = "".join(
        character if character == " " or unicodedata.category(character)[0] not in "CZ" else "\ufffd"
        for character in text
    )
    return Markup(escape(shown) if shown.isascii() else f"<bdi>{escape(shown)}</bdi>")
