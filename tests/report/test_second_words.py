"""Draws of version 0.3.0, whose public words are the second, keep their guarantees, manifests and pages byte for byte.

`tests/data/words-2.json` holds what that version wrote for some requests: the parameters as they were charged, the
tables that such a release does not have, and digests of guarantee, manifest and page. They never change.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.releases import POOL

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.report.datasheet import reading_order, render
from qlog_assets.report.manifest import ManifestTable, build_manifest
from qlog_assets.report.tables import PublishedFile, TableLayout, in_public_order
from qlog_assets.storage.digests import canonical_json

SECOND = json.loads((Path(__file__).parents[1] / "data" / "words-2.json").read_text(encoding="utf-8"))
NAMES = [f"{case['mechanism']} {case['variant']} {case['parameters'].get('method', '')}" for case in SECOND]
TEXTS = ("weather", "größe", "<b>news</b>")
FILE = PublishedFile("table.parquet", "d" * 64, 1234)


def rows_of(layout: TableLayout) -> pa.Table:
    """Three rows whose texts and numbers are made up from the layout alone."""
    columns: dict[str, list[Any]] = {}
    for column in layout.columns:
        if column.type == "integer":
            columns[column.name] = [940, 310, 205] if column.name == layout.count else [1, 2, 3]
        elif column.type == "texts":
            columns[column.name] = [[text, "maps"] for text in TEXTS]
        else:
            columns[column.name] = list(TEXTS)
    return in_public_order(pa.table(columns, schema=layout.schema), layout)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("case", SECOND, ids=NAMES)
def test_the_second_words_are_what_version_0_3_0_said(case: dict[str, Any]) -> None:
    asked, charged = mechanism(case["mechanism"]), case["parameters"]
    guarantee = asked.guarantee(case["variant"], asked.parameters(**charged), words=2)
    assert digest(canonical_json(guarantee.as_json())) == case["guarantee"]
    layouts = [layout for layout in asked.tables if layout.name not in case["without"]]
    outside = {"queries": 30} if case["mechanism"] == "safelog" and charged["delta"] != "0" else {}
    pools = [POOL] if case["mechanism"] == "safelog" else []
    if charged.get("domain", "open") != "open":
        pools = [{**POOL, "kind": "releases"}]
    manifest = build_manifest(
        release_id=f"{case['mechanism']}-2006-03-0123456789",
        dataset="demo",
        month="2006-03",
        mechanism_version=1,
        draw_number=1,
        drawn_on="2026-11-17",
        parameters=asked.printed_parameters(case["variant"], charged, words=2),
        guarantee=guarantee,
        tables=[
            ManifestTable(
                layout,
                3,
                {"parquet": FILE, "csv": FILE},
                None if layout.count is None else 20,
                outside.get(layout.name),
            )
            for layout in layouts
        ],
        pools=pools,
        ledger_seq=7,
        ledger_salt="ab" * 16,
        ledger_salted_head="c" * 64,
        witnessed=True,
        software={"qlog": "0.3.0", "python": "3.11.2"},
        words=2,
    )
    assert digest(canonical_json(manifest)) == case["manifest"]
    in_order = {name: manifest["tables"][name] for name in reading_order(manifest, asked.titles)}
    told = asked.account({**manifest, "tables": in_order})
    page = render(manifest, {layout.name: rows_of(layout) for layout in layouts}, told, asked.titles)
    assert digest(page) == case["datasheet"]
