"""A small release to test reports on: three tables, their files and the manifest that goes with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from qlog_assets.mechanisms.register import guarantee
from qlog_assets.mechanisms.safelog.draw import known_noise
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.mechanisms.safelog.tables import TABLES
from qlog_assets.report.manifest import ManifestTable, build_manifest
from qlog_assets.report.tables import in_public_order, write_table

LAYOUTS = {layout.name: layout for layout in TABLES}
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "queries": [("weather", 940), ("<script>alert(1)</script>", 500), ('say "hi", =cmd', 310), ("größe", 205)],
    "clicks": [("weather", "http://weather.example/", 402)],
    "transitions": [("weather", "größe", 260)],
}
POOL = {
    "kind": "default",
    "name": "wordsegment",
    "description": "Word pairs of a public corpus.",
    "licence": "Apache-2.0",
    "rows": 258_437,
    "sha256": "a" * 64,
    "sources": {"bigrams.txt": "b" * 64},
}


@dataclass(frozen=True)
class Release:
    """A release on disk without its manifest and datasheet, and what those are made of."""

    directory: Path
    manifest: dict[str, Any]
    tables: dict[str, pa.Table]


PARAMETERS = {
    "queries_per_user": 10,
    "clicks_per_user": 10,
    "selection_scale": 10,
    "click_scale": 20,
    "transition_scale": 18,
    "threshold": 100,
}
"""What the example release was drawn with, whatever the defaults are."""


def as_table(name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    schema = LAYOUTS[name].schema
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return in_public_order(pa.Table.from_arrays(arrays, schema=schema), LAYOUTS[name])


def write_release(
    directory: Path,
    parameters: dict[str, Any] | None = None,
    rows: dict[str, list[tuple[Any, ...]]] | None = None,
    **facts: Any,
) -> Release:
    """Write the tables of a release and build its manifest; parameters, rows and facts can be changed."""
    chosen = SafelogParameters(**{**PARAMETERS, **(parameters or {})})
    tables = {name: as_table(name, content) for name, content in (ROWS if rows is None else rows).items()}
    entries = [
        ManifestTable(
            LAYOUTS[name],
            table.num_rows,
            write_table(table, LAYOUTS[name], directory),
            threshold=100 if name == "queries" else 250,
            threshold_outside_pool=200 if name == "queries" and chosen.delta > 0 else None,
            noise=known_noise(name, chosen),
        )
        for name, table in tables.items()
    ]
    values: dict[str, Any] = {
        "release_id": "safelog-2006-03-0123456789",
        "dataset": "demo",
        "month": "2006-03",
        "mechanism_version": 1,
        "draw_number": 1,
        "drawn_on": "2026-11-16",
        "parameters": chosen.as_public(),
        "guarantee": guarantee("safelog", "sound", chosen),
        "tables": entries,
        "pools": [POOL],
        "ledger_seq": 7,
        "ledger_salt": "ab" * 16,
        "ledger_salted_head": "c" * 64,
    }
    return Release(directory, build_manifest(**{**values, **facts}), tables)
