"""Draws of versions 0.3.0 and 0.4.0 keep their guarantees, manifests and pages byte for byte.

Their public words are the second and the third. `tests/data/words-2.json` and `words-3.json` hold what those versions
wrote for some requests: the parameters as they were charged, the tables that such a release does not have, the noise
that its draw stated (the third words), and digests of guarantee, manifest and page. They never change.
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
from qlog_assets.report.table_noise import TableNoise
from qlog_assets.report.tables import PublishedFile, TableLayout, in_public_order
from qlog_assets.storage.digests import canonical_json

DATA = Path(__file__).parents[1] / "data"
VERSIONS = {2: "0.3.0", 3: "0.4.0"}
CASES = [
    (words, case)
    for words in VERSIONS
    for case in json.loads((DATA / f"words-{words}.json").read_text(encoding="utf-8"))
]
NAMES = [
    f"{words} {case['mechanism']} {case['variant']} {case['parameters'].get('method', '')}" for words, case in CASES
]
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


def written(words: int, case: dict[str, Any]) -> dict[str, str]:
    """The digests of what is written today for a draw in these words."""
    asked, charged = mechanism(case["mechanism"]), case["parameters"]
    guarantee = asked.guarantee(case["variant"], asked.parameters(**charged), words=words)
    layouts = [layout for layout in asked.tables if layout.name not in case["without"]]
    outside = {"queries": 30} if case["mechanism"] == "safelog" and charged["delta"] != "0" else {}
    noise = {name: TableNoise.from_json(facts) for name, facts in case.get("noise", {}).items()}
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
        software={"qlog": VERSIONS[words], "python": "3.11.2"},
        words=words,
    )
    in_order = {name: manifest["tables"][name] for name in reading_order(manifest, asked.titles)}
    told = asked.account({**manifest, "tables": in_order})
    page = render(manifest, {layout.name: rows_of(layout) for layout in layouts}, told, asked.titles)
    return {
        "guarantee": digest(canonical_json(guarantee.as_json())),
        "manifest": digest(canonical_json(manifest)),
        "datasheet": digest(page),
    }


@pytest.mark.parametrize(("words", "case"), CASES, ids=NAMES)
def test_earlier_words_are_what_their_version_said(words: int, case: dict[str, Any]) -> None:
    found = written(words, case)
    assert found == {name: case[name] for name in found}
