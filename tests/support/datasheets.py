"""Datasheets of every mechanism that can be released, from stated requests and made-up rows: nothing is drawn.

The requests are those of `tests/data/words-2.json` and `words-3.json`: mechanism, variant, parameters as they were
charged, the tables that such a release does not have, and the noise that its draw stated.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from support.releases import POOL

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.report.datasheet import reading_order, render
from qlog_assets.report.manifest import ManifestTable, build_manifest
from qlog_assets.report.table_noise import TableNoise
from qlog_assets.report.tables import PublishedFile, TableLayout, in_public_order

DATA = Path(__file__).parents[1] / "data"
TEXTS = ("weather", "größe", "<b>news</b>")
FILE = PublishedFile("table.parquet", "d" * 64, 1234)


@dataclass(frozen=True)
class Example:
    """A release that was never drawn: what its page is made of, and the page."""

    guarantee: Guarantee
    manifest: dict[str, Any]
    page: str


def requests_of(words: int) -> list[dict[str, Any]]:
    """The requests that are pinned for a version of the public words."""
    return json.loads((DATA / f"words-{words}.json").read_text(encoding="utf-8"))


def name_of(case: dict[str, Any]) -> str:
    return f"{case['mechanism']} {case['variant']} {case['parameters'].get('method', '')}".strip()


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


def example_datasheet(case: dict[str, Any], words: int, software: str, **facts: Any) -> Example:
    """The page of a request in a version of the words; `facts` are further ones of the manifest."""
    asked, charged = mechanism(case["mechanism"]), case["parameters"]
    guarantee = asked.guarantee(case["variant"], asked.parameters(**charged), words=words)
    layouts = [layout for layout in asked.tables if layout.name not in case["without"]]
    outside = {"queries": 30} if case["mechanism"] == "safelog" and charged["delta"] != "0" else {}
    noise = {name: TableNoise.from_json(stated) for name, stated in case.get("noise", {}).items()}
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
        parameters=asked.printed_parameters(case["variant"], charged, words=words),
        guarantee=guarantee,
        tables=[
            ManifestTable(
                layout,
                3,
                {"parquet": FILE, "csv": FILE},
                None if layout.count is None else 20,
                outside.get(layout.name),
                noise=noise.get(layout.name),
            )
            for layout in layouts
        ],
        pools=pools,
        ledger_seq=7,
        ledger_salt="ab" * 16,
        ledger_salted_head="c" * 64,
        witnessed=True,
        software={"qlog": software, "python": "3.11.2"},
        words=words,
        **facts,
    )
    in_order = {name: manifest["tables"][name] for name in reading_order(manifest, asked.titles)}
    told = asked.account({**manifest, "tables": in_order})
    page = render(manifest, {layout.name: rows_of(layout) for layout in layouts}, told, asked.titles)
    return Example(guarantee, manifest, page)
