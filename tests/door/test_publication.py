"""From a draw to public files: nothing personal, nothing that a suite refuses, the same bytes every time."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.door import MARCH, charges, door_at, public_files, release, warehouse_at
from support.releases import as_table

from qlog_assets.door.draws import load_draw, store_draw
from qlog_assets.door.publication import (
    MONTH_WORDS_SINCE,
    Publication,
    PublicationError,
    differences_from_draw,
    show_month,
    stage,
    suppress_personal_data,
)
from qlog_assets.ledger.chain import SaltedHead
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.mechanisms.register import guarantee, mechanism
from qlog_assets.report.manifest import load_manifest, verify_files
from qlog_assets.report.tables import MONTH_COLUMN

pytest_plugins = ("support.warehouse_fixtures",)


def drawn_of(rows: list[tuple[str, int]], public: list[str], threshold: int = 10, outside: int = 12) -> Drawn:
    return Drawn({"queries": DrawnTable(as_table("queries", rows), threshold, outside)}, pa.array(public, pa.string()))


def staged(home: Path, drawn: Drawn, folder: Path, fingerprint: str = "e" * 64) -> Path:
    """Stage a hand-made draw in the place of a real one, as the door would."""
    (charge,) = charges(home)
    warehouse = warehouse_at(home)
    facts = replace(load_draw(warehouse, charge.fingerprint).release, fingerprint=fingerprint)
    store_draw(warehouse, facts, drawn)
    folder.mkdir()
    promised = guarantee("safelog", "sound", door_at(home).policy.section("safelog"))
    draw = load_draw(warehouse, fingerprint)
    return stage(
        folder, mechanism("safelog"), charge, draw, promised, SaltedHead(3, "ab" * 16, "c" * 64), lambda point: None
    )


def test_rows_that_look_like_somebodys_data_are_suppressed_unless_they_were_public_before(
    drawn: Path, tmp_path: Path
) -> None:
    rows = [
        ("weather", 40), ("jane.doe@example.com", 30), ("info@museum.example", 25), ("4111 1111 1111 1111", 20),
        ("078-05-1120", 15),
    ]  # fmt: skip
    manifest = load_manifest(staged(drawn, drawn_of(rows, ["weather", "info@museum.example"]), tmp_path / "out"))
    table = pq.read_table(tmp_path / "out" / "queries.parquet")
    assert table["query"].to_pylist() == ["weather", "info@museum.example"]
    assert (manifest["tables"]["queries"]["rows"], manifest["tables"]["queries"]["suppressed_rows"]) == (2, 3)
    for file in (tmp_path / "out").iterdir():
        assert b"jane.doe" not in file.read_bytes() and b"4111 1111" not in file.read_bytes()


def test_suppression_reads_released_texts_and_the_pool_and_nothing_else() -> None:
    kept, suppressed = suppress_personal_data(drawn_of([("a@b.example", 30), ("plain", 20)], []), mechanism("safelog"))
    assert kept["queries"]["query"].to_pylist() == ["plain"] and suppressed == {"queries": 1}


@pytest.mark.parametrize(
    ("rows", "public"),
    [
        ([("weather", 40), ("news", 9)], ["weather", "news"]),
        ([("weather", 40), ("a private thought", 11)], ["weather"]),
    ],
    ids=["below the threshold", "outside the pool and below its threshold"],
)
def test_a_table_that_breaks_its_suite_is_not_published(
    drawn: Path, tmp_path: Path, rows: list[tuple[str, int]], public: list[str]
) -> None:
    with pytest.raises(
        PublicationError, match="the door refuses to publish: safelog/released_queries: 1 of"
    ) as refusal:
        staged(drawn, drawn_of(rows, public), tmp_path / "out")
    assert "news" not in str(refusal.value) and "thought" not in str(refusal.value)


def test_a_draw_gives_the_same_bytes_in_every_warehouse_and_at_every_time(another: Callable[[str], Path]) -> None:
    first, second = another("drawn"), another("drawn")
    for home in (first, second):
        door_at(home).publish("safelog", MARCH)
    assert public_files(first) == public_files(second)


def test_a_release_says_of_itself_what_its_files_are(drawn: Path) -> None:
    receipt = release(drawn)
    assert receipt.path is not None
    manifest = load_manifest(receipt.path / "manifest.json")
    assert verify_files(manifest, receipt.path) == []
    published = Publication.read(receipt.path)
    for name, rows in published.rows.items():
        table = pq.read_table(receipt.path / f"{name}.parquet")
        with (receipt.path / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            assert len(list(csv.reader(stream))) - 1 == table.num_rows == rows
        assert min(table["users"].to_pylist(), default=published.thresholds[name]) >= published.thresholds[name]


def test_public_files_hold_no_digest_of_an_input_no_fingerprint_and_no_run(released: Path) -> None:
    (charge,) = charges(released)
    private = [charge.fingerprint, charge.draw_digest, *charge.inputs.values(), charge.run_id]
    provenance = json.loads(next((released / "private" / "capped_log").glob("*/*/provenance.json")).read_text("utf-8"))
    private += [provenance["shape"], *(table["content_digest"] for table in provenance["tables"].values())]
    assert all(private)
    pool = charge.inputs["pool"]
    for name, content in public_files(released).items():
        for secret in private:
            # The pool is public, and so is what tells it apart.
            assert secret == pool or str(secret).encode() not in content, name


def test_what_is_public_is_compared_with_what_was_drawn_row_by_row(drawn: Path, tmp_path: Path) -> None:
    """Whatever the texts are: suppressed, escaped for spreadsheets, quoted, split over lines, empty tables."""
    rows = [
        ("=sum(a1)", 40),
        ("'quoted'", 39),
        ('say "hi", you', 38),
        ("two\nlines", 37),
        ("-", 36),
        ("größe 東京", 35),
    ]
    texts = [text for text, _ in rows]
    for number, content in enumerate(([*rows, ("jane.doe@example.com", 30)], [])):
        made = drawn_of(content, texts)
        folder = tmp_path / f"out-{number}"
        staged(drawn, made, folder, fingerprint=f"{number}" * 64)
        draw = load_draw(warehouse_at(drawn), f"{number}" * 64)
        assert differences_from_draw(folder, draw, mechanism("safelog")) == []
    other = load_draw(warehouse_at(drawn), "0" * 64)
    assert differences_from_draw(folder, other, mechanism("safelog")) == ["queries.parquet does not say what was drawn"]
    (folder / "queries.csv").write_text('"query","users","month"\n"weather",1,"2006-03"\n', encoding="utf-8")
    assert "queries.csv does not say what queries.parquet says" in differences_from_draw(
        folder, other, mechanism("safelog")
    )
    (folder / "queries.csv").write_text("no table", encoding="utf-8")
    assert differences_from_draw(folder, other, mechanism("safelog")) == [
        "queries cannot be read as the table it should be"
    ]


def test_every_row_of_every_public_table_says_its_month_and_nothing_that_was_drawn_does(drawn: Path) -> None:
    receipt = release(drawn)
    assert receipt.path is not None
    tables = load_manifest(receipt.path / "manifest.json")["tables"]
    assert set(tables) == {"queries", "clicks", "transitions"}
    stored = load_draw(warehouse_at(drawn), receipt.charge.fingerprint).read()
    for name, facts in tables.items():
        assert facts["columns"][-1]["name"] == MONTH_COLUMN
        assert MONTH_COLUMN not in stored.tables[name].rows.column_names
        rows = pq.read_table(receipt.path / f"{name}.parquet")
        assert rows.column_names == [column["name"] for column in facts["columns"]]
        assert rows[MONTH_COLUMN].to_pylist() == [str(MARCH)] * facts["rows"]
        with (receipt.path / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            assert [row[MONTH_COLUMN] for row in csv.DictReader(stream)] == [str(MARCH)] * facts["rows"]


def test_a_month_that_was_changed_in_public_is_not_what_was_drawn(drawn: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    staged(drawn, drawn_of([("weather", 40)], ["weather"]), folder)
    draw = load_draw(warehouse_at(drawn), "e" * 64)
    other = pa.table({"query": ["weather"], "users": [40], MONTH_COLUMN: ["2006-04"]})
    pq.write_table(other, folder / "queries.parquet")
    assert "queries.parquet does not say what was drawn" in differences_from_draw(folder, draw, mechanism("safelog"))


def test_a_draw_of_words_without_a_month_is_published_without_one(drawn: Path) -> None:
    (charge,) = charges(drawn)
    draw = load_draw(warehouse_at(drawn), charge.fingerprint)
    earlier = replace(draw, release=replace(draw.release, words=MONTH_WORDS_SINCE - 1))
    rows = as_table("queries", [("weather", 40)])
    assert show_month(rows, earlier).column_names == ["query", "users"]
    assert show_month(rows, draw).column_names == ["query", "users", MONTH_COLUMN]
