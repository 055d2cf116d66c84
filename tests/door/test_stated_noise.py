"""The error of counts on its way out: from a draw to manifest, datasheet, files, metadata and whoever loads them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.door import charges, door_at, release, warehouse_at
from support.releases import as_table
from support.tampering import edit_json

from qlog_assets.door.draws import load_draw, store_draw
from qlog_assets.door.publication import PublicationError, differences_from_draw, stage
from qlog_assets.ledger.chain import SaltedHead
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.mechanisms.register import guarantee, mechanism
from qlog_assets.report.manifest import load_manifest
from qlog_assets.report.table_noise import Look, Reach, TableNoise
from qlog_assets.report.tables import ERROR_COLUMN, MONTH_COLUMN, read_csv
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)

BY_ROW = TableNoise("discrete Gaussian", 2.5, by_row=True, tested=False, reaches=(Reach(1, (Look(17.2, 2.5),)),))
ROWS = [("weather", 40), ("news", 31), ("maps", 31), ("a rare thought", 3)]


def with_errors(errors: list[int], noise: TableNoise | None = BY_ROW) -> Drawn:
    """A draw whose rows have errors, in public order by count and query: the error has no part in it."""
    rows = as_table("queries", ROWS).append_column(ERROR_COLUMN, pa.array(errors, pa.int64()))
    return Drawn({"queries": DrawnTable(rows, 1, noise=noise)})


def staged(home: Path, drawn: Drawn, folder: Path) -> Path:
    """Stage a hand-made draw in the place of a real one, as the door would; returns the folder."""
    (charge,) = charges(home)
    warehouse, fingerprint = warehouse_at(home), "e" * 64
    store_draw(warehouse, replace(load_draw(warehouse, charge.fingerprint).release, fingerprint=fingerprint), drawn)
    folder.mkdir()
    promised = guarantee("safelog", "sound", door_at(home).policy.section("safelog"))
    draw, head = load_draw(warehouse, fingerprint), SaltedHead(3, "ab" * 16, "c" * 64)
    stage(folder, mechanism("safelog"), charge, draw, promised, head, lambda point: None)
    return folder


def test_every_table_of_a_release_states_its_noise_from_the_draw_on(drawn: Path) -> None:
    receipt = release(drawn)
    assert receipt.path is not None
    tables = load_manifest(receipt.path / "manifest.json")["tables"]
    section = door_at(drawn).policy.section("safelog")
    for name, parameter in (
        ("queries", "selection_scale"),
        ("clicks", "click_scale"),
        ("transitions", "transition_scale"),
    ):
        scale = float(getattr(section, parameter))
        assert tables[name]["noise"]["scale"] == scale
        assert tables[name]["noise"]["deviation"] == pytest.approx(TableNoise("two-sided geometric", scale).deviation)
        assert ERROR_COLUMN not in pq.read_schema(receipt.path / f"{name}.parquet").names
    page = (receipt.path / "datasheet.html").read_text(encoding="utf-8")
    assert "How exact the counts are" in page and "Half of all noise within" in page
    assert audit_warehouse(warehouse_at(drawn)).ok


def test_a_row_may_tell_its_own_error_in_every_file(drawn: Path, tmp_path: Path) -> None:
    folder = staged(drawn, with_errors([9, 4, 8, 3]), tmp_path / "out")
    table = pq.read_table(folder / "queries.parquet")
    assert (
        table.schema.names == ["query", "users", ERROR_COLUMN, MONTH_COLUMN] and table[ERROR_COLUMN].type == pa.int64()
    )
    # Of equal counts the smaller text is first, whatever the errors are.
    assert table.to_pydict()["query"] == ["weather", "maps", "news", "a rare thought"]
    lines = (folder / "queries.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ['"query","users","standard_error","month"', '"weather",40,9,"2006-03"']
    (layout,) = (layout for layout in mechanism("safelog").tables if layout.name == "queries")
    assert read_csv(folder / "queries.csv", layout.with_errors().with_month()).equals(table)
    facts = load_manifest(folder / "manifest.json")["tables"]["queries"]
    assert [column["name"] for column in facts["columns"]] == ["query", "users", ERROR_COLUMN, MONTH_COLUMN]
    assert (
        facts["columns"][2]["description"] == "Standard deviation of the noise in `users`, rounded up to whole users."
    )
    page = (folder / "datasheet.html").read_text(encoding="utf-8")
    assert "How much differs by row" in page and page.count("Rows by noisy count of") == 2  # its label and its text
    assert "17 users" not in page and "18 users did it who hold nothing else" in page
    draw = load_draw(warehouse_at(drawn), "e" * 64)
    assert differences_from_draw(folder, draw, mechanism("safelog")) == []


def test_an_error_that_was_changed_after_the_draw_is_found(drawn: Path, tmp_path: Path) -> None:
    folder = staged(drawn, with_errors([9, 4, 8, 3]), tmp_path / "out")
    draw = load_draw(warehouse_at(drawn), "e" * 64)
    table = pq.read_table(folder / "queries.parquet")
    pq.write_table(table.set_column(2, ERROR_COLUMN, pa.array([1, 1, 1, 1])), folder / "queries.parquet")
    found = differences_from_draw(folder, draw, mechanism("safelog"))
    assert found[0] == "queries.parquet does not say what was drawn"
    pq.write_table(table, folder / "queries.parquet")
    edit_json(folder / "manifest.json", "tables", "queries", "noise", "scale", value=0.5)
    assert differences_from_draw(folder, draw, mechanism("safelog")) == [
        "queries: its manifest does not say what the draw does of its noise"
    ]


def test_an_error_of_nothing_is_not_published(drawn: Path, tmp_path: Path) -> None:
    with pytest.raises(PublicationError, match="released/standard_errors: 1 of 4 expectations failed") as refusal:
        staged(drawn, with_errors([9, 4, 8, 0]), tmp_path / "out")
    assert "thought" not in str(refusal.value)


def test_a_draw_that_does_not_state_its_noise_has_neither_the_fact_nor_the_section(drawn: Path, tmp_path: Path) -> None:
    rows = as_table("queries", [("weather", 40)])
    folder = staged(drawn, Drawn({"queries": DrawnTable(rows, 10, 12)}), tmp_path / "out")
    assert "noise" not in json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["tables"]["queries"]
    page = (folder / "datasheet.html").read_text(encoding="utf-8")
    assert "How exact the counts are" not in page and "Half of all noise within" in page
