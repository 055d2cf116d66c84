"""`qlog_assets.load` and `qlog show` on a folder of public files, as whoever downloaded them has it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.public_files import lay_release, lay_tombstone

import qlog_assets
from qlog_assets.cli.output import console
from qlog_assets.cli.reading import release_lines
from qlog_assets.errors import QlogError
from qlog_assets.report.tables import describe_file

MARCH, APRIL = "2006-03", "2006-04"
ROWS = {
    "queries": [("weather", 940), ("größe", 205), ("red \x1b[31malert\x9b2J", 150)],
    "clicks": [("weather", "http://weather.example", 402)],
}


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    """What is under somebody's `released/`, copied to a folder of another name."""
    folder = tmp_path / "downloads"
    lay_release(folder, MARCH, ROWS)
    return folder


def test_a_table_is_loaded_from_public_files_alone_with_its_month(downloads: Path) -> None:
    queries = qlog_assets.load("safelog", MARCH, "queries", home=downloads)
    assert isinstance(queries, pa.Table)
    assert queries.column_names == ["query", "users", "month"]
    assert queries.slice(0, 2).to_pylist() == [
        {"query": "weather", "users": 940, "month": MARCH},
        {"query": "größe", "users": 205, "month": MARCH},
    ]
    assert [path.name for path in downloads.iterdir()] == ["safelog"], "nothing is made beside what is read"


def test_a_release_without_a_table_named_tells_its_promise_and_gives_its_tables(downloads: Path) -> None:
    release = qlog_assets.load("safelog", MARCH, home=downloads)
    assert set(release.tables) == {"queries", "clicks"}
    assert (release.variant, release.month, release.manifest["dataset"]) == ("sound", MARCH, "demo")
    assert release.epsilon == release.manifest["guarantee"]["epsilon"] > 0
    assert release.table("clicks").num_rows == 1


def test_a_warehouse_and_the_folder_of_one_release_are_read_too(downloads: Path, tmp_path: Path) -> None:
    (single,) = downloads.glob("safelog/2006-03/safelog-*")
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    (warehouse / "released").symlink_to(downloads)
    for home in (warehouse, single, str(downloads)):
        assert qlog_assets.load("safelog", MARCH, "queries", home=home).num_rows == 3


def test_of_two_draws_the_later_one_is_read_whatever_a_copy_made_of_the_pointer(downloads: Path) -> None:
    """A copy by a web server has no links: `latest` is gone, or a directory that is the same release once more."""
    again = lay_release(downloads, MARCH, {"queries": [("weather", 900)]}, draw_number=2)
    assert qlog_assets.load("safelog", MARCH, home=downloads).path == again
    copied = lay_release(downloads / "aside", MARCH, {"queries": [("weather", 100)]}, draw_number=3)
    copied.rename(again.parent / "latest")
    assert qlog_assets.load("safelog", MARCH, home=downloads).path == again


def test_the_csv_file_stands_in_for_a_parquet_file_that_was_not_downloaded(downloads: Path) -> None:
    whole = qlog_assets.load("safelog", MARCH, "queries", home=downloads)
    (parquet,) = downloads.glob("safelog/2006-03/*/queries.parquet")
    parquet.unlink()
    assert qlog_assets.load("safelog", MARCH, "queries", home=downloads).equals(whole)
    parquet.with_suffix(".csv").unlink()
    with pytest.raises(QlogError, match="neither its Parquet nor its CSV file is there"):
        qlog_assets.load("safelog", MARCH, "queries", home=downloads)


def test_what_is_not_there_is_one_line_that_names_what_is(downloads: Path, tmp_path: Path) -> None:
    lay_release(downloads, "2006-05", ROWS)
    lay_release(downloads, "2006-06", ROWS)
    (tmp_path / "empty").mkdir()
    asked = {
        ("safelog", APRIL): f"safelog {APRIL}: there is no release of it under {downloads}: there are {MARCH}, "
        "2006-05 to 2006-06",
        ("zealous", MARCH): "there are releases of safelog",
        ("safelog", "March"): "'March' is not a month",
        ("safelog", MARCH, "urls"): "has no table 'urls': it has clicks, queries",
        ("safelog", MARCH, "queries", tmp_path / "empty"): "nothing was released there",
        ("safelog", MARCH, "queries", tmp_path / "nowhere"): "is no directory",
    }
    for words, refusal in asked.items():
        with pytest.raises(QlogError) as raised:
            qlog_assets.load(
                *words[:2], words[2] if len(words) > 2 else None, words[3] if len(words) > 3 else downloads
            )
        assert refusal in str(raised.value) and "\n" not in str(raised.value)


def test_a_changed_file_a_moved_release_and_a_broken_note_are_refused(downloads: Path) -> None:
    (table,) = downloads.glob("safelog/2006-03/*/clicks.parquet")
    table.write_bytes(table.read_bytes()[:-1] + b"?")
    with pytest.raises(QlogError, match=r"clicks\.parquet: is not the file that was published"):
        qlog_assets.load("safelog", MARCH, "clicks", home=downloads)
    assert qlog_assets.load("safelog", MARCH, "queries", home=downloads).num_rows == 3, "the others are as they were"
    (downloads / "safelog" / MARCH).rename(downloads / "safelog" / APRIL)
    with pytest.raises(QlogError, match=f"lies where safelog {APRIL} belongs, and its manifest is of safelog {MARCH}"):
        qlog_assets.load("safelog", APRIL, home=downloads)
    lay_tombstone(downloads, MARCH, "")
    next(downloads.glob("safelog/2006-03/*.withdrawn.json")).write_text("[]")
    with pytest.raises(QlogError, match="cannot be read as the note of a withdrawn release"):
        qlog_assets.load("safelog", MARCH, home=downloads)


def test_a_withdrawn_month_is_refused_in_the_words_that_the_public_was_told(downloads: Path) -> None:
    lay_tombstone(downloads, APRIL, "made from the wrong\x1b[2J file")
    refusal = qlog(downloads, "show", "safelog", APRIL, "queries").refusal
    assert f"safelog {APRIL}: was withdrawn on 2026-11-17: made from the wrong\\x1b[2J file" in refusal
    lay_release(downloads, APRIL, ROWS, draw_number=2)
    assert qlog_assets.load("safelog", APRIL, home=downloads).manifest["draw_number"] == 2, "drawn once more since"


def test_a_real_release_loads_by_the_command_and_by_python_alike(released: Path) -> None:
    """What the publication writes is what the reading reads, and no step of it needs the ledger."""
    (released / "ledger.db").rename(released / "put-away.db")
    (released / "policy.toml").unlink()
    table = qlog_assets.load("safelog", MARCH, "queries", home=released)
    shown = qlog(released, "show", "safelog", MARCH, "queries", "--json").json
    assert [row["query"] for row in shown["shown"]] == table.column("query").to_pylist()
    assert shown["rows"] == table.num_rows > 0 and shown["shown"][0]["month"] == MARCH
    # Two-sided geometric noise of scale ½: √(2a)/(1-a) with a = e^-2 is 0.602.
    assert (shown["law"], shown["deviation"]) == ("two-sided geometric", 0.7)
    assert {row["standard_error"] for row in shown["shown"]} == {0.7}
    assert not (released / "ledger.db").exists()


def test_show_tells_what_a_release_holds_and_the_error_of_every_count(downloads: Path) -> None:
    said = qlog(downloads, "show", "safelog", MARCH).success
    assert "safelog 2006-03  sound, ε = " in said and "δ = " in said and "per user" in said
    assert said.index("queries") < said.index("clicks"), "in the order in which a reader meets them"
    # Scale 10: the standard deviation of the noise is 14.2, and 19 of 20 stay within 10·ln 20.
    assert "14.2 users" in said and "200 users" in said
    rows = qlog(downloads, "show", "safelog", MARCH, "queries", "--rows", 2).success.splitlines()
    assert rows[1].split() == ["query", "users", "±"] and rows[2].split() == ["weather", "940", "14.2"]
    assert rows[-1].startswith("2 of 3 rows of queries; ±: standard deviation of the noise")
    assert rows[-1].endswith("19 of 20 within 30")


def test_released_texts_reach_the_terminal_without_what_it_would_obey(downloads: Path) -> None:
    said = qlog(downloads, "show", "safelog", MARCH, "queries").success
    assert "\x1b" not in said and "\x9b" not in said and r"red \x1b[31malert\x9b2J" in said
    told = qlog(downloads, "show", "safelog", MARCH, "queries", "--json")
    assert "\x1b" not in told.out and "\x9b" not in told.out and "größe" in told.out
    assert told.json["shown"][2]["query"] == "red \x1b[31malert\x9b2J", "and the JSON means the same"


def test_a_manifest_cannot_drive_the_terminal(downloads: Path) -> None:
    """Its words on which items can be rows are printed: free text once, so the schema and the printing both refuse."""
    (path,) = downloads.glob("safelog/2006-03/*/manifest.json")
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["tables"]["clicks"]["noise"]["among"] = "clicks\x1b]0;gone\x07\x1b[2J"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    assert (
        "'tables.clicks.noise.among' is not what the schema allows" in qlog(downloads, "show", "safelog", MARCH).refusal
    )
    told = {"mechanism": "safelog", "month": MARCH, "variant": "sound", "epsilon": 1, "delta": 0, "unit": "user"}
    table = {"rows": 1, "columns": ["query"], "deviation": None, "row_needs_about": 3, "condition": "a\x1b[2Jb\u202e"}
    with console.capture() as said:
        release_lines({**told, "path": "there", "tables": {"queries": table}})
    assert r"* a\x1b[2Jb\u202e" in said.get() and "\x1b[2J" not in said.get()


def fits_its_manifest(downloads: Path, content: bytes) -> None:
    """Put bytes in place of a table's Parquet file, and their checksum into the manifest."""
    (path,) = downloads.glob("safelog/2006-03/*/clicks.parquet")
    path.write_bytes(content)
    manifest = json.loads((path.parent / "manifest.json").read_text(encoding="utf-8"))
    manifest["tables"]["clicks"]["files"]["parquet"] = asdict(describe_file(path))
    (path.parent / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def parquet(**columns: Any) -> bytes:
    page = io.BytesIO()
    pq.write_table(pa.table(columns), page)
    return page.getvalue()


NOT_A_TABLE = {
    "no Parquet at all": b"PAR1 and nothing else PAR1",
    "empty": b"",
    "a column is missing": parquet(query=["weather"], users=[402]),
    "a column too many": parquet(query=["weather"], url=["a"], users=[402], more=[1]),
    "texts for numbers": parquet(query=["weather"], url=["a"], users=["402"]),
    "a count is null": parquet(query=["weather"], url=["a"], users=pa.array([None], pa.int64())),
    "no text": parquet(query=pa.array([b"\xff"]).view(pa.string()), url=["a"], users=[402]),
}


@pytest.mark.parametrize("content", NOT_A_TABLE.values(), ids=NOT_A_TABLE)
def test_a_file_that_fits_its_manifest_and_is_not_the_table_it_describes_is_one_line(
    downloads: Path, content: bytes
) -> None:
    fits_its_manifest(downloads, content)
    asked = [("show", "safelog", MARCH, "clicks"), ("series", "weather", "--url", "http://weather.example")]
    for words in asked:
        assert "clicks.parquet: " in (refusal := qlog(downloads, *words).refusal), refusal
        assert "is not the table that its manifest describes: tell whoever published it" in refusal


def test_a_csv_file_that_is_not_the_table_is_refused_alike(downloads: Path) -> None:
    (path,) = downloads.glob("safelog/2006-03/*/clicks.csv")
    manifest = json.loads((path.parent / "manifest.json").read_text(encoding="utf-8"))
    path.with_suffix(".parquet").unlink()
    for content in (b"", b"query\n\xff\n", b'query,url,users\n"a","b","c"\n', b'query,url\n"a","b"\n'):
        path.write_bytes(content)
        manifest["tables"]["clicks"]["files"]["csv"] = asdict(describe_file(path))
        (path.parent / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        assert "clicks.csv: is not the table" in qlog(downloads, "show", "safelog", MARCH, "clicks").refusal


@pytest.mark.parametrize("rows", [0, -1, 10**9])
def test_a_number_of_rows_that_cannot_be_shown_is_refused(downloads: Path, rows: int) -> None:
    assert "ask for 1 to 100,000 rows" in qlog(downloads, "show", "safelog", MARCH, "queries", "--rows", rows).refusal


def test_reading_waits_for_neither_dagster_nor_great_expectations(downloads: Path) -> None:
    program = (
        "import sys, qlog_assets\n"
        "qlog_assets.load('safelog', '2006-03', 'queries')\n"
        "print(sorted({'dagster', 'great_expectations', 'matplotlib'} & set(sys.modules)))"
    )
    environment = {**os.environ, "QLOG_HOME": str(downloads)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
