"""`qlog suggest` on releases that lie under `released/` and nowhere else: no ledger, no private zone, no policy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.cli import qlog
from support.door import in_child
from support.releases import write_release

from qlog_assets.mechanisms.register import guarantee, mechanism
from qlog_assets.report.manifest import ManifestTable, build_manifest, write_manifest
from qlog_assets.report.tables import Column, TableLayout, in_public_order, write_table

USERS = Column("users", "integer", "Noisy number of users.")
SESSIONS = TableLayout("sessions", (Column("queries", "texts", "Queries in order."), USERS))
CLICKS = TableLayout("clicks", (Column("query", "text", "A query."), Column("url", "text", "A url."), USERS))
MARCH, APRIL = "sessions-2006-03-0123456789ab", "sessions-2006-04-0123456789ab"
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "sessions": [(["weather", "news"], 60), (["weather", "snow"], 30), (["weather", "snow", "news"], 10)],
    "clicks": [("weather", "http://sky.example", 40), ("rain", "http://sky.example", 30), ("lone", "x.example", 25)],
}
"""After weather: news 70 and snow 40 of 110 by sessions, rain 1 by clicks; λ = ½."""


def publish(home: Path, release_id: str, rows: dict[str, list[tuple[Any, ...]]]) -> Path:
    """Lay a release of sessions into `released/` by hand, as if somebody had downloaded it."""
    month = release_id[len("sessions-") :][:7]
    folder = home / "released" / "sessions" / month / release_id
    folder.mkdir(parents=True)
    tables = []
    for layout in (SESSIONS, CLICKS):
        columns = list(zip(*rows[layout.name], strict=True))
        arrays = [pa.array(list(column), field.type) for column, field in zip(columns, layout.schema, strict=True)]
        table = in_public_order(pa.Table.from_arrays(arrays, schema=layout.schema), layout)
        tables.append(ManifestTable(layout, table.num_rows, write_table(table, layout, folder), threshold=20))
    chosen = mechanism("sessions").parameters()
    manifest = build_manifest(
        release_id=release_id,
        dataset="demo",
        month=month,
        mechanism_version=1,
        draw_number=1,
        drawn_on="2026-11-16",
        parameters=chosen.as_public(),
        guarantee=guarantee("sessions", "sound", chosen),
        tables=tables,
        pools=[],
        ledger_seq=7,
        ledger_salt="ab" * 16,
        ledger_salted_head="c" * 64,
    )
    write_manifest(manifest, folder)
    latest = folder.parent / "latest"
    latest.symlink_to(release_id)
    return folder


@pytest.fixture
def published(home: Path) -> Path:
    publish(home, MARCH, ROWS)
    return home


def test_suggestions_come_from_the_public_files_alone(published: Path) -> None:
    facts = qlog(published, "suggest", " Weather ", "--json").json
    assert (facts["release_id"], facts["month"], facts["query"]) == (MARCH, "2006-03", "weather")
    assert [each["query"] for each in facts["suggestions"]] == ["rain", "news", "snow"]
    assert [each["score"] for each in facts["suggestions"]] == pytest.approx([0.5, 35 / 110, 20 / 110])
    assert [path.name for path in published.iterdir()] == ["released"], "nothing is made beside what is read"
    said = qlog(published, "suggest", "weather", "--count", 2).success
    assert "rain" in said and "news" in said and "snow" not in said and MARCH in said


def test_the_latest_month_answers_unless_a_release_is_named(published: Path, tmp_path: Path) -> None:
    folder = publish(published, APRIL, {**ROWS, "sessions": [(["weather", "spring"], 80)]})

    def first(*words: object) -> str:
        return qlog(published, "suggest", "weather", *words, "--json").json["suggestions"][-1]["query"]

    assert first() == "spring" and first("--release", MARCH) == "snow"
    downloaded = folder.rename(tmp_path / "downloaded")
    assert first("--release", downloaded) == "spring"
    assert first() == "snow", "a pointer at nothing is no release"


def test_the_python_function_answers_the_same(published: Path) -> None:
    assert in_child(ask_by_python, published).answer == ["rain", "news"]


def ask_by_python(home: Path) -> list[str]:
    """A child's task."""
    os.environ["QLOG_HOME"] = str(home)
    import qlog_assets as qlog

    return [each.query for each in qlog.suggest("weather", MARCH, count=2)]


def test_what_cannot_be_answered_is_said_in_one_line(published: Path) -> None:
    safelog = published / "released" / "safelog" / "2006-03" / "safelog-2006-03-0123456789"
    safelog.mkdir(parents=True)
    write_manifest(write_release(safelog).manifest, safelog)
    (published / "released" / "sessions" / "2006-03" / "gone.withdrawn.json").write_text("{}")
    asked = {
        ("nobody asks this",): f"the query is not in {MARCH}",
        ("weather", "--release", "sessions-2006-03-ffff"): "there is no release 'sessions-2006-03-ffff'",
        ("weather", "--release", "latest"): "there is no release 'latest'",
        ("weather", "--release", "gone"): "gone was withdrawn",
        ("weather", "--release", safelog.name): "is a release of safelog: suggestions come from one of sessions",
        ("weather", "--count", 0): "ask for 1 to 1000 suggestions",
        (os.fsdecode(b"\xff"),): "the query is not text",
    }
    for words, refusal in asked.items():
        assert refusal in qlog(published, "suggest", *words).refusal
    assert "nobody asks this" not in qlog(published, "suggest", "nobody asks this").err
    assert "nothing that follows it" in qlog(published, "suggest", "lone").success


def test_a_file_that_was_changed_after_it_was_published_is_not_read(published: Path) -> None:
    (changed,) = published.glob("released/sessions/2006-03/sessions-*/clicks.parquet")
    changed.write_bytes(changed.read_bytes()[:-1] + b"?")
    refusal = qlog(published, "suggest", "weather").refusal
    assert f"{MARCH} is not as it was published" in refusal and "clicks.parquet" in refusal


def test_a_warehouse_without_a_release_of_sessions_says_so(home: Path) -> None:
    assert "there is no release of sessions" in qlog(home, "suggest", "weather").refusal


def test_suggesting_waits_for_neither_dagster_nor_great_expectations(published: Path) -> None:
    program = (
        "import sys; from qlog_assets.cli.app import app\n"
        "app(['suggest', 'weather'], standalone_mode=False)\n"
        "print(sorted({'dagster', 'great_expectations'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "QLOG_HOME": str(published)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.splitlines()[-1] == "[]"
