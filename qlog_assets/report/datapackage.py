"""Writes the text of `released/datapackage.json`: every table of every release as a Frictionless Data Package.

Made of the catalogue and of the first line of CSV files, which says how many places a list has. A resource is a CSV
file, because that is what readers of data packages read; its `parquet` names the same table as Parquet.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qlog_assets.months import month_name
from qlog_assets.report.catalogue import Catalogue, ListedRelease
from qlog_assets.report.index_page import GENERATOR
from qlog_assets.report.tables import CSV_NOTE, MONTH_COLUMN
from qlog_assets.storage.digests import canonical_json

FIELD_TYPES = {"text": "string", "texts": "string", "integer": "integer"}


def render_datapackage(catalogue: Catalogue, released: Path) -> str:
    """The data package as text; the same catalogue gives the same bytes."""
    about = catalogue.about
    return canonical_json(
        {
            "profile": "tabular-data-package",
            "name": catalogue.dataset,
            "title": f"Releases of {catalogue.dataset}",
            "description": "Differentially private statistics of a query log. Counts are noisy numbers of users; the "
            f"datasheet of each release says what is promised. {CSV_NOTE}",
            "created_by": GENERATOR,
            **(
                {"contributors": [{"title": about["publisher"], "role": "publisher"}]} if about.get("publisher") else {}
            ),
            **({"licence": about["licence"]} if about.get("licence") else {}),
            "resources": [
                describe_table(release, name, facts, released)
                for release in catalogue.live
                if release.manifest is not None
                for name, facts in sorted(release.manifest["tables"].items())
            ],
        }
    )


def describe_table(release: ListedRelease, name: str, facts: Mapping[str, Any], released: Path) -> dict[str, Any]:
    """One table of a release as a resource."""
    charge, files = release.charge, facts["files"]
    path = f"{release.folder}/{files['csv']['path']}"
    title = f"{name.replace('_', ' ').capitalize()} by {charge.mechanism}, {month_name(charge.month)}"
    return {
        "profile": "tabular-data-resource",
        "name": f"{charge.release_id}-{name}".lower(),
        "title": title,
        "path": path,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": files["csv"]["bytes"],
        "hash": f"sha256:{files['csv']['sha256']}",
        "parquet": {
            "path": f"{release.folder}/{files['parquet']['path']}",
            "bytes": files["parquet"]["bytes"],
            "hash": f"sha256:{files['parquet']['sha256']}",
        },
        "release": charge.release_id,
        "mechanism": charge.mechanism,
        "month": charge.month,
        "table": name,
        "rows": facts["rows"],
        "newest": release.newest,
        "dialect": {"delimiter": ",", "quoteChar": '"', "doubleQuote": True, "lineTerminator": "\n", "header": True},
        "schema": {"fields": describe_fields(facts["columns"], read_header(released / path)), "missingValues": []},
    }


def describe_fields(columns: Sequence[Mapping[str, str]], header: Sequence[str]) -> list[dict[str, Any]]:
    """The columns as the CSV file has them: a list is a column per place, empty behind its end."""
    fields: list[dict[str, Any]] = []
    for column in columns:
        name, kind = column["name"], column["type"]
        places = (
            [cell for cell in header if re.fullmatch(rf"{re.escape(name)}_\d+", cell)] if kind == "texts" else [name]
        )
        described = {"type": FIELD_TYPES[kind], "description": column["description"]}
        if name == MONTH_COLUMN:
            described["type"] = "yearmonth"
        fields += [{"name": place, **described} for place in places]
    return fields


def read_header(path: Path) -> list[str]:
    """The first line of a CSV file; nothing where it is not there."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return next(csv.reader(stream), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return []
