"""Forgetting: what goes, what stays, what is recorded; and that releases and audits do not mind."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import qlog
from support.door import (
    APRIL,
    MARCH,
    Child,
    charges,
    die_releasing,
    door_at,
    in_child,
    public_files,
    release,
    warehouse_at,
)
from support.forgetting import forget, landed, private_rows
from support.instances import AOL_HEADER, make_home, small_log
from support.tampering import edit_json
from support.warehouses import build_chain

from qlog_assets.ledger import Book, Ledger
from qlog_assets.pipeline.decided_months import forgotten_months
from qlog_assets.pipeline.landing import column_map_beside
from qlog_assets.storage.dagster_home import open_existing
from qlog_assets.verify.audit import audit_warehouse
from qlog_assets.verify.retention import forget_before

pytest_plugins = ("support.warehouse_fixtures",)

NEVER = "nothing of it was released"


def test_published_months_lose_their_private_data_and_others_keep_theirs(released: Path) -> None:
    build_chain(released, APRIL)
    before = public_files(released)
    answer = qlog(released, "forget", "--before", "2006-05", "--json").json
    (name,) = landed(released)
    assert answer == {
        "months": [MARCH], "kept": {APRIL: NEVER}, "landing": [name], "landing_deleted": [], "unread": [], "stores": [],
    }  # fmt: skip
    assets = ("capped_log", "cleaned_log", "pool_augmented", "raw_log", "landing_batch")
    assert private_rows(released) == {asset: [APRIL] for asset in assets}
    assert list((released / "private" / "draws").iterdir()) == []
    assert public_files(released) == before
    said = qlog(released, "forget", "--before", "2006-05").out
    assert f"{APRIL}: kept, because {NEVER}" in said and f"{name}: still holds forgotten months" in said


def test_the_ledger_records_what_was_forgotten_before_it_is_gone(released: Path) -> None:
    forget(released)
    (event,) = [event for event in Ledger.open(released / "ledger.db").events() if event.kind == "forgotten"]
    assert event.facts["months"] == [MARCH]
    assert list(event.facts["files"].values()) == [[MARCH, APRIL]]


def test_whoever_waits_for_it_hears_how_far_it_is(released: Path) -> None:
    (name,) = landed(released)
    size, heard = (released / "landing" / "aol" / name).stat().st_size, []
    door = door_at(released)
    forget_before(door.warehouse, door.policy, door.ledger, APRIL, False, lambda *told: heard.append(told))
    assert heard == [(0, size, f"looking at {name}"), (0, 1, f"deleting {MARCH}")]


def test_audits_stay_green_and_say_what_can_no_longer_be_counted(released: Path) -> None:
    forget(released)
    answer = qlog(released, "audit", "--json").json
    (verdict,) = answer["releases"]
    assert (answer["ok"], verdict["findings"]) == (True, [])
    assert any("capped_log was forgotten on" in note and "cannot be counted again" in note for note in verdict["notes"])
    assert "its stored draw is no longer there" in verdict["notes"]


def test_what_forgetting_takes_out_of_a_batch_is_not_taken_for_tampering(released: Path) -> None:
    """The batch holds April, too: its provenance changes, and the ledger's event says why."""
    forget(released)
    build_chain(released, APRIL)
    release(released, APRIL)
    door = door_at(released)
    report = audit_warehouse(door.warehouse, "small", deep=door.policy.lists)
    assert report.ok, report.all_findings
    assert any("from its landing file" in each for verdict in report.releases for each in verdict.recomputed)


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--yes",)], ids=["left out", "brought back"])
def test_a_file_that_was_read_again_after_forgetting_is_no_finding_of_a_deep_audit(
    released: Path, words: tuple[str, ...]
) -> None:
    (name,) = landed(released)
    forget(released)
    answer = qlog(released, "ingest", released / "landing" / "aol" / name, "--format", "aol", *words, "--json").json
    assert set(answer["left_out"]) == (set() if words else {MARCH})
    build_chain(released, APRIL)
    release(released, APRIL)
    door = door_at(released)
    report = audit_warehouse(door.warehouse, "small", deep=door.policy.lists)
    assert report.ok, report.all_findings
    assert any("from its landing file" in each for verdict in report.releases for each in verdict.recomputed)


def test_the_public_release_is_still_served_and_still_watched(released: Path) -> None:
    forget(released)
    before = public_files(released)
    receipt = door_at(released).publish("safelog", MARCH)
    assert receipt.charge.state == "published" and public_files(released) == before
    assert receipt.path is not None
    edit_json(receipt.path / "manifest.json", "month", value=str(APRIL))
    assert not audit_warehouse(warehouse_at(released)).ok


@pytest.mark.slow
def test_the_same_file_ingested_again_serves_the_published_release_and_charges_nothing(
    released: Path, tmp_path: Path
) -> None:
    (charge,) = charges(released)
    before = public_files(released)
    log = tmp_path / "small.txt"
    log.write_text(small_log(), encoding="utf-8")
    assert forget(released)["months"] == [MARCH]
    assert qlog(released, "release", "safelog", "--month", MARCH, "--json").json["charged"] is False
    refusal = qlog(released, "release", "safelog", "--month", MARCH, "--again", "fresh noise").refusal
    assert "no rows of 2006-03 were ingested" in refusal
    assert qlog(released, "ingest", log, "--format", "aol", "--yes", "--json").json["accepted"] > 0
    answer = qlog(released, "release", "safelog", "--month", MARCH, "--json").json
    assert (answer["release_id"], answer["charged"]) == (charge.release_id, False)
    assert public_files(released) == before and len(charges(released)) == 1
    (verdict,) = audit_warehouse(warehouse_at(released)).releases
    assert verdict.findings == [] and not any("counted again" in note for note in verdict.notes)
    # And it can be forgotten once more.
    assert forget(released)["months"] == [MARCH]
    assert private_rows(released) == {"raw_log": [APRIL], "landing_batch": [APRIL]}


def test_a_landing_file_goes_with_the_last_of_its_months(released: Path) -> None:
    (name,) = landed(released)
    assert forget(released, landing=True)["landing_deleted"] == []
    assert landed(released) == [name]
    build_chain(released, APRIL)
    release(released, APRIL)
    # Only listed at first; by then nothing but the ledger knows which months the file held.
    assert forget(released)["landing"] == [name]
    assert landed(released) == [name] and private_rows(released) == {}
    answer = forget(released, landing=True)
    assert (answer["months"], answer["landing"], answer["landing_deleted"]) == ([], [name], [name])
    assert landed(released) == []
    report = audit_warehouse(warehouse_at(released))
    assert report.ok and len(report.releases) == 2


def test_a_landing_file_with_rows_of_a_month_that_is_kept_is_kept(released: Path) -> None:
    build_chain(released, APRIL)
    release(released, APRIL)
    (name,) = landed(released)
    # April is published but not older than April.
    assert forget(released, before="2006-04", landing=True) == {
        "months": [MARCH], "kept": {}, "landing": [name], "landing_deleted": [], "unread": [], "stores": [],
    }  # fmt: skip
    assert landed(released) == [name]


def test_a_file_whose_ingest_failed_goes_with_the_landing_files_that_are_as_old(ingested: Path) -> None:
    """Its rows are as private as those of any other file, and no batch remembers it."""
    zone = ingested / "landing" / "aol"
    for name in ("failed.txt", "fresh.txt", "waiting.txt"):
        (zone / name).write_bytes(b"BZh91AY&SY" + name.encode())
    for name in ("failed.txt", "fresh.txt"):
        assert "compressed" in qlog(ingested, "ingest", zone / name, "--format", "aol").refusal
    # Refused before a run of it starts: Dagster does not remember it either.
    tables = zone.with_name("table")
    tables.mkdir()
    whole = gzip.compress(b"who,what,when\n" + os.urandom(400).hex().encode() + b",tea,2006-03-01\n")
    for name, content in (("cut.csv.gz", whole[:100]), ("whole.csv.gz", whole), ("mapless.csv.gz", whole[:99])):
        (tables / name).write_bytes(content)
        if name != "mapless.csv.gz":
            column_map_beside(tables / name).write_text('user = "who"\nquery = "what"\ntime = "when"\n', "utf-8")
    for path in (zone / "failed.txt", zone / "waiting.txt", *tables.iterdir()):
        os.utime(path, (1_143_000_000, 1_143_000_000))  # 22 March 2006
    before, others = landed(ingested), {path.name for path in tables.iterdir()}
    said = qlog(ingested, "forget", "--before", "2006-04").success
    assert "failed.txt: its ingest failed" in said and "--landing deletes it" in said and landed(ingested) == before
    answer = qlog(ingested, "forget", "--before", "2006-04", "--landing", "--json").json
    gone = ["cut.csv.gz", "failed.txt"]
    assert (answer["unread"], answer["landing_deleted"]) == (gone, gone)
    assert set(before) - set(landed(ingested)) == {"failed.txt"}, "one is newer, one was never tried"
    left = others - {path.name for path in tables.iterdir()}
    assert left == {"cut.csv.gz", "cut.csv.gz.columns.toml"}, "one was never tried, one waits for its column map"


def test_a_month_that_only_withdrawn_files_hold_can_be_forgotten_although_nothing_was_released(ingested: Path) -> None:
    (name,) = landed(ingested)
    words = ("forget", "--before", "2006-05", "--landing", "--json")
    assert qlog(ingested, *words).json["kept"] == {MARCH: NEVER, APRIL: NEVER}
    assert qlog(ingested, "ingest", "withdraw", name, "--reason", "of another site").success
    answer = qlog(ingested, *words).json
    assert (answer["months"], answer["landing_deleted"]) == ([MARCH, APRIL], [name])
    assert private_rows(ingested) == {} and audit_warehouse(warehouse_at(ingested)).ok


def test_a_month_that_every_mechanism_skipped_can_be_forgotten_and_its_rows_stay_away(ingested: Path) -> None:
    (name,) = landed(ingested)
    skip = ("skip", "--month", APRIL, "--reason", "half of it is missing")
    assert qlog(ingested, skip[0], "safelog", *skip[1:]).success
    assert forget(ingested)["kept"][APRIL].startswith(f"{NEVER}, and it is skipped by safelog but not by ")
    assert qlog(ingested, *skip, "--month", MARCH).success
    answer = forget(ingested, landing=True)
    assert (answer["months"], answer["kept"], answer["landing_deleted"]) == ([MARCH, APRIL], {}, [name])
    assert private_rows(ingested) == {} and audit_warehouse(warehouse_at(ingested)).ok
    door = door_at(ingested)
    away = forgotten_months(door.warehouse, Book(door.ledger, door.policy.dataset))
    assert set(away) == {MARCH, APRIL}, "a file that comes again does not bring back what was decided and forgotten"


@pytest.mark.slow
def test_rows_that_were_brought_back_and_withdrawn_leave_the_month_forgotten(released: Path, tmp_path: Path) -> None:
    """Otherwise the next file would bring a forgotten month back and nobody would have said so."""
    assert qlog(released, "forget", "--before", APRIL, "--landing", "--json").json["months"] == [MARCH]
    late, later = tmp_path / "late.txt", tmp_path / "later.txt"
    for number, path in enumerate((late, later)):
        path.write_text(AOL_HEADER + f"late{number}\tnews\t{MARCH}-09 10:00:00\t\t\n", "utf-8")
    assert qlog(released, "ingest", late, "--format", "aol", "--yes", "--json").json["months"] == {MARCH: 1}
    assert qlog(released, "ingest", "withdraw", "late.txt", "--reason", "a test").success
    answer = qlog(released, "ingest", later, "--format", "aol", "--json").json
    assert (answer["months"], answer["left_out"]) == ({}, {MARCH: 1})


@pytest.mark.slow
def test_a_file_of_one_month_goes_although_another_file_of_that_month_stays(tmp_path: Path) -> None:
    home = make_home(tmp_path / "warehouse")
    header, *rows = small_log().splitlines(keepends=True)
    (tmp_path / "march.txt").write_text(AOL_HEADER + "".join(row for row in rows if "\t2006-03" in row), "utf-8")
    (tmp_path / "both.txt").write_text(header + "".join(rows[::7]), "utf-8")
    paths = [tmp_path / "march.txt", tmp_path / "both.txt"]
    assert qlog(home, "ingest", *paths, "--format", "aol").code == 0
    build_chain(home)
    release(home)
    answer = forget(home, landing=True)
    assert (answer["landing"], answer["landing_deleted"]) == (["both.txt", "march.txt"], ["march.txt"])
    assert audit_warehouse(warehouse_at(home)).ok


@pytest.mark.slow
def test_a_file_that_was_read_in_two_ways_stays_as_long_as_one_of_them_holds_rows(tmp_path: Path) -> None:
    home = make_home(tmp_path / "warehouse")
    log, columns = tmp_path / "march.txt", tmp_path / "columns.toml"
    _, *rows = small_log().splitlines(keepends=True)
    log.write_text(AOL_HEADER + "".join(row for row in rows if "\t2006-03" in row), "utf-8")
    columns.write_text('user = "AnonID"\nquery = "Query"\ntime = "QueryTime"\ntime_format = "%d.%m.%Y"\n', "utf-8")
    assert qlog(home, "ingest", log, "--format", "aol").code == 0
    build_chain(home)
    release(home)
    assert forget(home)["months"] == [MARCH]
    assert qlog(home, "ingest", log, "--format", "aol", "--yes", "--json").json["accepted"] > 0
    # The same file once more, by mistake: none of its rows can be read so.
    assert qlog(home, "ingest", log, "--format", "table", "--columns", columns, "--json").json["accepted"] == 0
    # And the month is kept, because its release is to be mended.
    (manifest,) = (home / "released").rglob("manifest.json")
    manifest.write_text("{}", "utf-8")
    answer = forget(home, landing=True)
    assert list(answer["kept"]) == [MARCH] and answer["landing_deleted"] == []
    assert landed(home) == ["march.txt"]


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        ("charge_reserved", "is reserved and not published"),
        ("draw_recorded", "is drawn and not published"),
        ("publication_recorded", "are not whole: its files are gone"),
    ],
)
def test_a_month_whose_release_is_not_finished_keeps_what_finishing_it_takes(
    chained: Path, point: str, reason: str
) -> None:
    assert in_child(die_releasing, chained, point).killed
    answer = forget(chained)
    assert answer["months"] == [] and reason in answer["kept"][MARCH]
    assert release(chained).charged is False
    assert forget(chained)["months"] == [MARCH]


def test_a_withdrawn_month_can_be_forgotten(released: Path) -> None:
    (charge,) = charges(released)
    door_at(released).withdraw(charge.release_id, "a name was in it")
    assert forget(released)["months"] == [MARCH]
    assert audit_warehouse(warehouse_at(released)).ok


def test_studies_of_a_forgotten_month_go_too(released: Path) -> None:
    for month in (MARCH, APRIL):
        assert qlog(released, "simulate", "safelog", "--month", month).code == 0
    forget(released)
    (study,) = (released / "private" / "studies").glob("*/study.json")
    assert json.loads(study.read_text("utf-8"))["month"] == APRIL
    with open_existing(released / "dagster") as instance:
        kept = [
            (run.job_name, run.tags["dagster/partition"]) for run in instance.get_runs() if "safelog" in run.job_name
        ]
    # What a simulation found is gone from Dagster's history, too; that the month was released stays there.
    assert sorted(kept) == [("safelog_release", MARCH), ("safelog_simulation", APRIL)]


def test_nothing_older_leaves_everything_as_it_is(released: Path) -> None:
    before = private_rows(released)
    assert set(map(str, forget(released, before="2006-03").values())) == {"[]", "{}"}
    assert private_rows(released) == before
    assert not [event for event in Ledger.open(released / "ledger.db").events() if event.kind == "forgotten"]


def _forget_in_child(home: Path) -> dict[str, Any]:
    return forget(home)


@pytest.mark.faults
def test_forgetting_while_the_month_is_released_waits_or_keeps_it(another: Callable[[str], Path]) -> None:
    for _ in range(3):
        home = another("chained")
        children = [Child(die_releasing, home, "never"), Child(_forget_in_child, home)]
        released, forgotten = (child.end() for child in children)
        assert (released.code, forgotten.code) == (0, 0), (released, forgotten)
        assert len(charges(home)) == 1 and public_files(home)
        assert audit_warehouse(warehouse_at(home)).ok
        shutil.rmtree(home)
