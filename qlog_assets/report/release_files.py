"""Writes `README.md` and `CITATION.cff` of a release: how its tables are read, and how it is cited.

Made of the manifest alone, and listed in it with their checksums: a change of a byte here makes releases impossible to
make again, so what changes depends on the version of the public words (decision 11). The snippets are run by tests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from qlog_assets.privacy.bounds import at_most, exact_value
from qlog_assets.report.account import join_words
from qlog_assets.report.datasheet import month_name
from qlog_assets.report.tables import CSV_NOTE, PublishedFile, describe_file

README_NAME = "README.md"
CITATION_NAME = "CITATION.cff"
SPDX_LICENCES = ("CC0-1.0", "CC-BY-4.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "ODbL-1.0", "ODC-By-1.0", "PDDL-1.0")
"""Licences of data that a citation file may name; another one stands in its abstract."""


def write_release_files(manifest: Mapping[str, Any], names: Sequence[str], directory: Path) -> list[PublishedFile]:
    """Write both beside the tables; `names` are the tables in the order in which a reader meets them."""
    texts = {README_NAME: render_readme(manifest, names), CITATION_NAME: render_citation(manifest)}
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8", newline="\n")
    return [describe_file(directory / name) for name in texts]


def render_readme(manifest: Mapping[str, Any], names: Sequence[str]) -> str:
    """The README as text."""
    month, first, tables = manifest["month"], names[0], manifest["tables"]
    guarantee = manifest["guarantee"]
    lines = [
        f"# Search statistics of {manifest['dataset']}, {month_name(month)}",
        "",
        f"Release `{manifest['release_id']}`: {join_words([name.replace('_', ' ') for name in names])}, with "
        f"differential privacy (ε = {loss(guarantee, 'epsilon')}, δ = {loss(guarantee, 'delta')}, unit: "
        f"{guarantee['unit']}). `datasheet.html` says what that means, how exact the counts are and what not to "
        "conclude from them. `manifest.json` has every parameter, and a checksum of every file.",
        "",
        f"In a spreadsheet open the CSV files. {CSV_NOTE}",
        "",
    ]
    for name in names:
        lines += [f"## {name.replace('_', ' ').capitalize()}", ""]
        lines += [f"`{name}.parquet` and `{name}.csv`, {tables[name]['rows']:,} rows.", ""]
        lines += [f"- `{column['name']}`: {column['description']}" for column in tables[name]["columns"]] + [""]
    lines += ["## How to load it", "", "In this directory:", ""]
    lines += fenced("python", "import pandas", f'{first} = pandas.read_parquet("{first}.parquet")')
    lines += fenced("python", "import duckdb", f"{first} = duckdb.sql(\"SELECT * FROM '{first}.parquet'\")")
    lines += fenced("python", "import polars", f'{first} = polars.read_parquet("{first}.parquet")')
    lines += fenced("r", f'{first} <- read.csv("{first}.csv")')
    lines += [
        "All months of this kind of release together, from the directory three levels up. Releases of earlier versions "
        "have no column `month`: `union_by_name` leaves it empty there.",
        "",
    ]
    pattern = f"{manifest['mechanism']}/*/*/{first}.parquet"
    together = f"SELECT month, count(*) FROM read_parquet('{pattern}', union_by_name = true) GROUP BY month"
    lines += fenced("python", "import duckdb", f'months = duckdb.sql("{together}")')
    lines += [
        "If a month was drawn again, each draw has a directory of its own; "
        f"`{manifest['mechanism']}/{month}/latest` names the newest.",
        "",
        "## How to cite it",
        "",
        f"`{CITATION_NAME}` has it for programs. In print:",
        "",
        f"> {cited(manifest)}",
        "",
    ]
    return "\n".join(lines)


def render_citation(manifest: Mapping[str, Any]) -> str:
    """The citation file as text: YAML, with every value as a JSON text, which is one."""
    about, guarantee = manifest["about"], manifest["guarantee"]
    licence = about["licence"]
    abstract = (
        f"Statistics of the queries of {month_name(manifest['month'])}, by {manifest['mechanism']} with differential "
        f"privacy: epsilon {loss(guarantee, 'epsilon')}, delta {loss(guarantee, 'delta')}, unit {guarantee['unit']}."
    )
    if licence is not None and licence not in SPDX_LICENCES:
        abstract += f" Licence: {licence}"
    facts = {
        "cff-version": "1.2.0",
        "message": "If you use these tables, please cite them as below.",
        "type": "dataset",
        "title": title_of(manifest),
        "abstract": abstract,
        "version": manifest["release_id"],
        "date-released": manifest["drawn_on"],
        **({"license": licence} if licence in SPDX_LICENCES else {}),
        "keywords": ["query log", "differential privacy", manifest["mechanism"]],
    }
    lines = [f"{key}: {yaml_text(value)}" for key, value in facts.items()]
    return "\n".join([*lines, "authors:", f"  - name: {yaml_text(author_of(manifest))}", ""])


def loss(guarantee: Mapping[str, Any], name: str) -> str:
    """ε or δ in print, never below the number that holds."""
    return at_most(Fraction(guarantee[f"{name}_exact"] or exact_value(guarantee[name])))


def title_of(manifest: Mapping[str, Any]) -> str:
    return f"Search statistics of {manifest['dataset']}, {month_name(manifest['month'])} ({manifest['mechanism']})"


def author_of(manifest: Mapping[str, Any]) -> str:
    """Who is cited: the publisher, or the data set's name where its owner said nothing."""
    return printable(manifest["about"]["publisher"] or manifest["dataset"])


def cited(manifest: Mapping[str, Any]) -> str:
    """The release in one sentence; marks that Markdown would read as its own are escaped."""
    year, release = manifest["drawn_on"][:4], manifest["release_id"]
    text = f"{author_of(manifest)} ({year}). {title_of(manifest)}. Release {release}."
    return re.sub(r"([\\`*_{}\[\]<>#|!])", r"\\\1", text)


def printable(text: str) -> str:
    """A text on one line, without what a terminal or an editor would act on."""
    return "".join(character if character.isprintable() else " " for character in text).strip()


def yaml_text(value: Any) -> str:
    """A value as JSON, which YAML reads as it is."""
    clean = printable(value) if isinstance(value, str) else value
    return json.dumps(clean, ensure_ascii=False)


def fenced(language: str, *lines: str) -> list[str]:
    return [f"```{language}", *lines, "```", ""]
