"""Writes `README.md` and `CITATION.cff` of a release: how its tables are read, and how it is cited.

Made of the manifest alone, and listed in it with their checksums: a change of a byte here, in `loading` or in `citation`
makes releases impossible to make again, so what changes depends on the version of the public words (decision 11). The
snippets are run by tests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qlog_assets.report.account import join_words
from qlog_assets.report.citation import citation_cff, citation_text, promise_in_short, release_title
from qlog_assets.report.loading import loading_snippets
from qlog_assets.report.tables import CSV_NOTE, PublishedFile, describe_file

README_NAME = "README.md"
CITATION_NAME = "CITATION.cff"
FENCES = {"pandas": "python", "DuckDB": "sql", "Polars": "python", "R": "r"}
"""The language of each snippet."""


def write_release_files(manifest: Mapping[str, Any], names: Sequence[str], directory: Path) -> list[PublishedFile]:
    """Write both beside the tables; `names` are the tables in the order in which a reader meets them."""
    texts = {README_NAME: render_readme(manifest, names), CITATION_NAME: citation_cff(manifest)}
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8", newline="\n")
    return [describe_file(directory / name) for name in texts]


def render_readme(manifest: Mapping[str, Any], names: Sequence[str]) -> str:
    """The README as text."""
    mechanism, tables = manifest["mechanism"], manifest["tables"]
    ordered = {**manifest, "tables": {name: tables[name] for name in names}}
    lines = [
        f"# {release_title(manifest)}",
        "",
        f"Release `{manifest['release_id']}` by {mechanism}: {join_words([_words(name) for name in names])}, with "
        f"differential privacy, {promise_in_short(manifest)}. `datasheet.html` says what that means, how exact the counts "
        "are and what not to conclude from them. `manifest.json` has every parameter, and a checksum of every file.",
        "",
        f"In a spreadsheet open the CSV files. {CSV_NOTE}",
        "",
    ]
    for name in names:
        lines += [f"## {_words(name).capitalize()}", ""]
        lines += [f"`{name}.parquet` and `{name}.csv`, {tables[name]['rows']:,} rows.", ""]
        lines += [f"- `{column['name']}`: {column['description']}" for column in tables[name]["columns"]] + [""]
    lines += ["## How to load it", "", "In this directory:", ""]
    for language, code in loading_snippets(ordered).items():
        lines += [f"{language}:", "", f"```{FENCES[language]}", *code.splitlines(), "```", ""]
    lines += [
        "All months of this kind of release together, in DuckDB, from the directory three levels up. Releases of earlier "
        "versions have no column `month`: `union_by_name` leaves it empty there.",
        "",
        "```sql",
        f"SELECT month, count(*) FROM read_parquet('{mechanism}/*/*/{names[0]}.parquet', union_by_name = true) "
        "GROUP BY month;",
        "```",
        "",
        "If a month was drawn again, each draw has a directory of its own; "
        f"`{mechanism}/{manifest['month']}/latest` names the newest.",
        "",
        "## How to cite it",
        "",
        f"`{CITATION_NAME}` has it for programs. In print:",
        "",
        f"> {_plain(citation_text(manifest))}",
        "",
    ]
    return "\n".join(lines)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _plain(text: str) -> str:
    """A text in which nothing is a mark of Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|!])", r"\\\1", text)
