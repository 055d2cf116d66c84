"""A release as a schema.org `Dataset`: what search engines for data read in a datasheet. From the manifest alone.

It stands in the page as a block of data, which no browser runs. Addresses of files are relative to the page, because a
release does not know where it is served.
"""

from __future__ import annotations

import calendar
import json
from collections.abc import Mapping
from typing import Any

from qlog_assets.report.citation import (
    LICENCES,
    citation_text,
    licence_name,
    one_line,
    promise_in_short,
    release_author,
    release_description,
    release_title,
)

FORMATS = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}


def describe_dataset(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The release in the words of schema.org."""
    year, month = (int(part) for part in manifest["month"].split("-"))
    last = calendar.monthrange(year, month)[1]
    author = {"@type": "Organization", "name": release_author(manifest)}
    licence, stated = licence_name(manifest), one_line(manifest["about"]["licence"] or "")
    return {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": release_title(manifest),
        "description": release_description(manifest),
        "identifier": manifest["release_id"],
        "version": str(manifest["draw_number"]),
        "dateCreated": manifest["drawn_on"],
        "temporalCoverage": f"{manifest['month']}-01/{manifest['month']}-{last:02d}",
        "creator": author,
        "publisher": author,
        "citation": citation_text(manifest),
        **({"license": LICENCES[licence] if licence else stated} if stated else {}),
        "keywords": ["search queries", "query log", "differential privacy"],
        "measurementTechnique": (
            f"Differential privacy by {manifest['mechanism']}, variant {manifest['variant']}: "
            f"{promise_in_short(manifest)} ({manifest['guarantee']['label']})."
        ),
        "variableMeasured": [
            {
                "@type": "PropertyValue",
                "name": f"{name}.{column['name']}",
                "description": column["description"],
            }
            for name, table in manifest["tables"].items()
            for column in table["columns"]
        ],
        "distribution": [
            {
                "@type": "DataDownload",
                "name": file["path"],
                "encodingFormat": FORMATS[kind],
                "contentUrl": file["path"],
                "contentSize": f"{file['bytes']} B",
                "sha256": file["sha256"],
            }
            for table in manifest["tables"].values()
            for kind, file in table["files"].items()
        ],
    }


def script_text(value: Any) -> str:
    """JSON that may stand between script tags: no sign in it can end the block or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
