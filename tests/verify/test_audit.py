"""The audit: a sound warehouse has no finding, and whatever is changed by hand is found, with the reason."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from support.cli import qlog
from support.door import MARCH, Child, charges, die_releasing, door_at, materialize, release, warehouse_at
from support.instances import Prepared, make_home
from support.ledgers import hand_in
from support.stages import with_later_stage
from support.tampering import break_the_cap, edit_json, flip, vouch_for
from support.warehouses import build_chain

from qlog_assets.ledger import Book, Ledger
from qlog_assets.ledger.store import EVENTS
from qlog_assets.mechanisms.register import adding, mechanism
from qlog_assets.pipeline.batches import ingest_batch
from qlog_assets.pipeline.landing import batch_of, column_map_beside
from qlog_assets.sources import readers
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.verify.audit import AuditReport, audit_warehouse
from qlog_assets.verify.lineage import Followed, Lineage

pytest_plugins = ("support.warehouse_fixtures",)


def audit(home: Path) -> AuditReport:
    return audit_warehouse(warehouse_at(home), "small")


def public(home: Path, name: str) -> Path:
    (charge,) = charges(home)
    return home / "released" / "safelog" / MARCH / charge.release_id / name


def partition(home: Path, asset: str) -> Partition:
    return warehouse_at(home).current(asset, MARCH)


def one_file(home: Path, asset: str, table: str) -> Path:
    return partition(home, asset).files(table)[0]


def batch(home: Path) -> Path:
    (path,) = (home / "private" / "landing_batch").glob("*/*/provenance.json")
    return path


# Nothing wrong --------------------------------------------------------------------------------------------------------


def test_a_sound_release_has_neither_findings_nor_notes(prepared: Prepared) -> None:
    answer = qlog(prepared("released"), "audit", "--json").json
    assert (answer["ok"], answer["findings"]) == (True, [])
    (release_verdict,) = answer["releases"]
    assert (release_verdict["ok"], release_verdict["findings"], release_verdict["notes"]) == (True, [], [])


def test_the_audit_says_what_it_recomputed_and_what_it_believed(prepared: Prepared) -> None:
    answer = qlog(prepared("released"), "audit", "--json").json
    (verdict,) = answer["releases"]
    assert any(each.startswith("its ε and δ") for each in verdict["recomputed"])
    assert "cleaned_log 2006-03: checksums of its files, against the ledger's entry" in verdict["recomputed"]
    assert any(each.startswith("cleaned_log 2006-03: that it follows from") for each in verdict["believed"])
    said = qlog(prepared("released"), "audit").success
    assert f"{verdict['release_id']}  recomputed: " in said and f"{verdict['release_id']}  believed: " in said


def test_a_deep_audit_computes_every_table_again_and_leaves_nothing_behind(prepared: Prepared) -> None:
    home = prepared("released")
    answer = qlog(home, "audit", "--deep", "--json").json
    (verdict,) = answer["releases"]
    assert (answer["ok"], answer["deep"], verdict["findings"]) == (True, True, [])
    recomputed = " ".join(verdict["recomputed"])
    for each in (
        "capped_log 2006-03, from cleaned_log",
        "cleaned_log 2006-03, from raw_log",
        "raw_log 2006-03, from its batches",
        ", from its landing file",
        "pool_augmented 2006-03, from capped_log and pool",
        "pool public, from the file that the policy names",
    ):
        assert each in recomputed
    # What is left to believe is what no file can prove.
    assert not any(asset in " ".join(verdict["believed"]) for asset in ("log", "pool", "batch"))
    assert list((home / "private" / "spill").iterdir()) == []


def test_the_audit_writes_nothing(prepared: Prepared) -> None:
    home = prepared("released")
    before = {path: path.stat().st_mtime_ns for zone in ("private", "released", "landing") for path in home.rglob(zone)}
    history = (home / "ledger.db").read_bytes()
    assert qlog(home, "audit").code == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (home / "ledger.db").read_bytes() == history


def test_an_empty_warehouse_is_sound_and_stays_empty(tmp_path: Path) -> None:
    answer = qlog(tmp_path / "nowhere", "audit", "--json").json
    assert answer["notes"] and {**answer, "notes": []} == {
        "ok": True, "deep": False, "findings": [], "failures": [], "notes": [], "releases": [],
    }  # fmt: skip
    assert not (tmp_path / "nowhere").exists()


def test_a_named_release_is_audited_alone_and_an_unknown_one_is_an_error(released: Path) -> None:
    (charge,) = charges(released)
    answer = qlog(released, "audit", charge.release_id, "--json").json
    assert [each["release_id"] for each in answer["releases"]] == [charge.release_id]
    assert "the ledger knows no release safelog-2006-03-0" in qlog(released, "audit", "safelog-2006-03-0").refusal


# Changed by hand ------------------------------------------------------------------------------------------------------


def change_ledger_row(home: Path) -> None:
    with hand_in(str(home / "ledger.db")) as connection:
        row = sa.update(EVENTS).where(EVENTS.c.kind == "reserved")
        connection.execute(row.values(payload=sa.func.replace(EVENTS.c.payload, '"epsilon":"20"', '"epsilon":"2"')))


def cut_ledger(home: Path) -> None:
    with hand_in(str(home / "ledger.db")) as connection:
        connection.execute(sa.delete(EVENTS).where(EVENTS.c.kind == "published"))


def change_row_and_vouch(home: Path) -> None:
    """One row of the capped log changed, with checksums, digest and seal to match: only the ledger remembers."""
    path = one_file(home, "capped_log", "queries")
    rows = pq.read_table(path).to_pylist()
    rows[0]["query"] = "something else"
    pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(path)), path)
    vouch_for(home, partition(home, "capped_log"))


TAMPERING: dict[str, tuple[Callable[[Path], None], str]] = {
    "manifest": (
        lambda home: edit_json(public(home, "manifest.json"), "parameters", "threshold", value=99),
        "manifest.json is not the one the ledger recorded",
    ),
    "Parquet table": (lambda home: flip(public(home, "queries.parquet")), "queries.parquet is not the file that was"),
    "CSV table": (lambda home: flip(public(home, "clicks.csv")), "clicks.csv is not the file that was published"),
    "datasheet": (lambda home: flip(public(home, "datasheet.html")), "datasheet.html is not the file that was"),
    "a table is gone": (lambda home: public(home, "queries.csv").unlink(), "queries.csv is missing"),
    "one more file": (lambda home: public(home, "more.csv").write_text("x"), "'more.csv' is not in the manifest"),
    "ledger row": (change_ledger_row, " was altered: its hash does not fit its fields"),
    "ledger cut": (cut_ledger, "the ledger at"),
    "provenance": (
        lambda home: edit_json(partition(home, "capped_log").path / "provenance.json", "run_id", value="other"),
        "lineage: capped_log 2006-03: its provenance was changed after it was written",
    ),
    "provenance of the raw log": (
        lambda home: edit_json(partition(home, "raw_log").path / "provenance.json", "tables", "log", "rows", value=1),
        "lineage: raw_log 2006-03: its provenance was changed after it was written",
    ),
    "stored draw": (
        lambda home: flip(next((home / "private" / "draws").glob("*/queries.parquet"))),
        "draw: it is not the one the ledger recorded: it was changed on disk",
    ),
    "facts of the draw": (
        lambda home: edit_json(next((home / "private" / "draws").glob("*/draw.json")), "release", "salt", value="ab"),
        "draw: it is not the one the ledger recorded",
    ),
    "capped rows": (
        lambda home: flip(one_file(home, "capped_log", "clicks")),
        "lineage: capped_log 2006-03: clicks.parquet was changed after it was written",
    ),
    "capped rows with everything that vouches for them": (
        change_row_and_vouch,
        "lineage: capped_log 2006-03 is not what was released from: its rows differ",
    ),
    "counted rows": (
        lambda home: flip(one_file(home, "pool_augmented", "queries")),
        "lineage: pool_augmented 2006-03: queries.parquet was changed after it was written",
    ),
    "cleaned rows": (
        lambda home: flip(one_file(home, "cleaned_log", "log")),
        "lineage: cleaned_log 2006-03: log.parquet was changed after it was written",
    ),
    "ingested batch": (lambda home: edit_json(batch(home), "measured", "read", value=1), "lineage: landing_batch "),
    "pool": (
        lambda home: flip(next((home / "private" / "pool").glob("*/*/queries.parquet"))),
        "lineage: pool public: queries.parquet was changed after it was written",
    ),
    "public file from nowhere": (
        lambda home: (home / "released" / "rows.csv").write_text("x"),
        "released/rows.csv: the ledger at",
    ),
}


@pytest.mark.parametrize("case", TAMPERING)
def test_what_was_changed_by_hand_is_found_with_the_reason(released: Path, case: str) -> None:
    tamper, reason = TAMPERING[case]
    tamper(released)
    found = audit(released).all_findings
    assert any(reason in finding for finding in found), found


@pytest.mark.parametrize("case", ["manifest", "ledger row", "provenance", "stored draw"])
def test_a_finding_is_exit_code_1_with_the_reason_for_people_and_machines(released: Path, case: str) -> None:
    tamper, reason = TAMPERING[case]
    tamper(released)
    said = qlog(released, "audit")
    assert said.code == 1 and reason in " ".join(said.out.split())
    answer = qlog(released, "audit", "--json")
    facts = json.loads(answer.out)
    findings = [*facts["findings"], *(finding for each in facts["releases"] for finding in each["findings"])]
    assert (answer.code, facts["ok"]) == (1, False) and any(reason in finding for finding in findings)


def test_a_broken_cap_is_found_by_counting_even_where_everything_vouches_for_it(chained: Path) -> None:
    """The hand changes rows, checksums, digest and seal, and then the ledger as far as it can."""
    release(chained)
    break_the_cap(chained, vouched=True, entered=True)
    digest = partition(chained, "capped_log").provenance.content_digest
    with hand_in(str(chained / "ledger.db")) as connection:
        old = charges(chained)[0].inputs["capped_log"]
        connection.execute(sa.update(EVENTS).values(payload=sa.func.replace(EVENTS.c.payload, old, digest)))
    findings = audit(chained).all_findings
    assert any("limits: capped_log 2006-03: safelog/capped_log: 1 of " in finding for finding in findings), findings
    assert any("was altered" in finding for finding in findings)


def test_a_lost_ledger_is_a_finding_that_names_every_release(released: Path) -> None:
    (charge,) = charges(released)
    (released / "ledger.db").unlink()
    answer = qlog(released, "audit", "--json")
    assert answer.code == 1 and not (released / "ledger.db").exists()
    found = json.loads(answer.out)["findings"]
    assert found[0].startswith("ledger: there is no ledger at")
    assert f"released/safelog/{MARCH}/{charge.release_id}: no ledger accounts for it" in found
    # Nor is a new ledger beside old releases taken for theirs.
    door_at(released)
    assert any("does not know it" in finding for finding in audit(released).all_findings)


def test_a_ledger_that_is_no_database_is_a_finding(released: Path) -> None:
    (released / "ledger.db").write_bytes(b"nothing of the kind" * 100)
    answer = qlog(released, "audit")
    assert answer.code == 1 and "file is not a database" in answer.out


@pytest.mark.parametrize("name", ["index.html", "datapackage.json", "safelog/2006-03/latest"])
def test_a_page_or_pointer_that_nobody_wrote_is_found_where_there_never_was_a_ledger(home: Path, name: str) -> None:
    assert audit(home).ok
    path = home / "released" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("forged", encoding="utf-8")
    assert f"released/{name}: no ledger accounts for it" in audit(home).all_findings


def test_a_lost_ledger_is_found_before_anything_was_published(drawn: Path) -> None:
    (drawn / "ledger.db").unlink()
    assert [finding[:27] for finding in audit(drawn).all_findings] == ["ledger: there is no ledger "]


def test_a_charge_without_a_release_is_a_finding_until_it_is_given_back(drawn: Path) -> None:
    (charge,) = charges(drawn)
    assert audit(drawn).all_findings == [
        f"{charge.release_id}: charged and drawn, but not published: run the release again"
    ]
    release(drawn)
    assert audit(drawn).ok


@pytest.mark.parametrize("kept", [True, False])
def test_a_draw_that_another_came_after_before_it_was_published_is_told_and_is_no_finding(
    drawn: Path, kept: bool
) -> None:
    """Nothing of it can be published any more, so "run the release again" would be refused."""
    (first,) = charges(drawn)
    if not kept:
        shutil.rmtree(drawn / "private" / "draws" / first.fingerprint)
    second = release(drawn, again="another process asked for one more in between").charge
    report = audit(drawn)
    assert report.ok, report.all_findings
    (verdict,) = (each for each in report.releases if each.release_id == first.release_id)
    assert any(f"{second.release_id} came after it" in note for note in verdict.notes)
    door_at(drawn).withdraw(second.release_id, "it was one too many")
    assert "charged and drawn, but not published" in audit(drawn).all_findings[0]


def test_a_reservation_that_another_draw_came_after_can_only_be_given_back(chained: Path) -> None:
    assert Child(die_releasing, chained, "charge_reserved").end().code == -signal.SIGKILL
    (first,) = charges(chained)
    second = release(chained, again="the first one died").charge
    assert audit(chained).all_findings == [
        f"{first.release_id}: charged, and {second.release_id} came after it: qlog ledger abandon"
    ]
    door_at(chained).abandon(first.release_id, "nothing was drawn for it")
    assert audit(chained).ok


def test_files_of_another_data_set_in_a_shared_ledger_are_not_looked_for_here(released: Path) -> None:
    ledger = door_at(released).ledger
    ledger.ensure_dataset("other", ledger.datasets()[0].budget)
    ledger.reserve(
        dataset="other", month=MARCH, mechanism="safelog", variant="sound", mechanism_version=1,
        parameters={}, inputs={}, epsilon="1", delta="0",
    )  # fmt: skip
    assert audit(released).ok
    assert not audit_warehouse(warehouse_at(released)).ok


def test_a_changed_tombstone_is_found_and_withdrawing_again_mends_it(released: Path) -> None:
    (charge,) = charges(released)
    door_at(released).withdraw(charge.release_id, "a name was in it")
    assert audit(released).ok
    stone = released / "released" / "safelog" / MARCH / f"{charge.release_id}.withdrawn.json"
    edit_json(stone, "text", value="nothing happened")
    assert audit(released).all_findings == [f"{charge.release_id}: its tombstone was changed: run qlog withdraw again"]
    door_at(released).withdraw(charge.release_id, "a name was in it")
    assert audit(released).ok


# No longer there ------------------------------------------------------------------------------------------------------


def test_inputs_deleted_by_hand_are_a_note_and_the_rest_is_still_verified(released: Path) -> None:
    shutil.rmtree(released / "private" / "capped_log")
    shutil.rmtree(released / "dagster")
    (verdict,) = audit(released).releases
    assert verdict.findings == []
    assert any("capped_log is not there with the rows that were released from" in note for note in verdict.notes)
    assert any("Dagster's history is not there" in note for note in verdict.notes)
    flip(public(released, "queries.csv"))
    assert not audit(released).ok


def test_what_was_rebuilt_after_retention_is_counted_again(released: Path) -> None:
    """The same rows in other files: the content digest is what the ledger has."""
    shutil.rmtree(released / "private" / "capped_log" / MARCH)
    build_chain(released)
    (verdict,) = audit(released).releases
    assert (verdict.findings, [note for note in verdict.notes if "counted" in note]) == ([], [])


# In Dagster -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_asset_verifies_every_release_and_fails_on_a_finding(released: Path) -> None:
    ended = materialize(released, "release_audit", month=None)
    assert ended.code == 0, ended.answer
    flip(public(released, "queries.csv"))
    ended = materialize(released, "release_audit", month=None)
    assert ended.code == 1 and "1 finding(s): safelog-2006-03-" in ended.answer
    assert "queries.csv is not the file that was published" in ended.answer


@pytest.mark.slow
def test_capped_rows_that_nobody_typed_are_a_finding(ingested: Path) -> None:
    """Code that is wrong writes a user within all limits before the draw, and enters it; the door cannot know."""
    assert materialize(ingested, "raw_log", "cleaned_log", "capped_log").code == 0
    path = one_file(ingested, "capped_log", "queries")
    table = pq.read_table(path)
    invented = pa.Table.from_pylist([{**table.slice(0, 1).to_pylist()[0], "user": "nobody"}], table.schema)
    pq.write_table(pa.concat_tables([table, invented]), path)
    vouch_for(ingested, partition(ingested, "capped_log"), entered=True)
    for assets in (["pool_augmented"], ["selected"], ["released_queries", "released_clicks", "released_transitions"]):
        ended = materialize(ingested, *assets)
        assert ended.code == 0, ended.answer
    assert audit(ingested).releases[0].findings == [
        "lineage: capped_log 2006-03 holds rows that are not in its cleaned_log"
    ]


def test_a_cleaned_log_of_other_types_is_a_finding_that_quotes_no_user(released: Path) -> None:
    """To compare users with numbers DuckDB would cast them, and name the first that is none."""
    path = one_file(released, "cleaned_log", "log")
    table = pq.read_table(path)
    numbers = pa.array(range(table.num_rows), pa.int64())
    pq.write_table(table.set_column(table.column_names.index("user"), "user", numbers), path)
    vouch_for(released, partition(released, "cleaned_log"))
    capped = one_file(released, "capped_log", "queries")
    rows = pq.read_table(capped)
    named = pa.array([f"jsmith-{user}" for user in rows["user"].to_pylist()])
    pq.write_table(rows.set_column(0, "user", named), capped)
    vouch_for(released, partition(released, "capped_log"))
    warehouse, found = warehouse_at(released), Followed()
    lineage = Lineage(warehouse, Ledger.open(warehouse.ledger_url))
    lineage._count_again(mechanism("safelog"), partition(released, "capped_log"), found)
    assert len(found.findings) == 1 and "check_capped_origin" in found.findings[0]
    assert "jsmith" not in found.findings[0]


def test_a_release_of_an_earlier_version_is_served_and_audited(released: Path) -> None:
    """Its capped rows had no times; the digest of what they say is the same, and so are the draw and the charge."""
    made = partition(released, "capped_log")
    for table in made.provenance.tables:
        path = one_file(released, "capped_log", table)
        pq.write_table(pq.read_table(path).drop_columns(["time"]), path)
    vouch_for(released, made, entered=True)
    assert partition(released, "capped_log").provenance.content_digest == made.provenance.content_digest
    (finding,) = audit(released).releases[0].findings
    assert "check_capped_log: its tables are not as this version writes them" in finding
    with adding(with_later_stage("safelog", "capped_log")):
        door_at(released).publish("safelog", MARCH)
        report = audit(released).releases[0]
    assert report.findings == []
    assert "capped_log 2006-03 was made by another version of qlog: its limits are not counted again" in report.notes


@pytest.mark.slow
def test_a_release_made_over_a_failed_check_is_a_finding(ingested: Path) -> None:
    """The check fails in the run that writes the cleaned log; somebody then asks for the rest, one asset at a time."""
    path = one_file(ingested, "raw_log", "log")
    table = pq.read_table(path)
    later = [{**row, "time": row["time"] + timedelta(days=31)} for row in table.to_pylist() if row["user"] == "1"]
    path.unlink()  # Another name of the file belongs to the batch.
    pq.write_table(pa.concat_tables([table, pa.Table.from_pylist(later, table.schema)]), path)
    vouch_for(ingested, partition(ingested, "raw_log"), entered=True)
    failed = materialize(ingested, "cleaned_log")
    assert failed.code == 1 and "normalised_rows" in failed.answer
    released = ["released_queries", "released_clicks", "released_transitions"]
    for assets in (["capped_log"], ["pool_augmented"], ["selected"], released):
        ended = materialize(ingested, *assets)
        assert ended.code == 0, ended.answer
    (finding,) = audit(ingested).releases[0].findings
    assert finding.endswith("the check normalised_rows failed, and the release was made all the same")


@pytest.mark.parametrize("written", ["by this version", "by an earlier one"])
def test_the_audit_looks_at_the_history_of_its_own_warehouse(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    """An auditor's environment may name another instance, whose history knows nothing of these runs."""
    settings = released / "dagster" / "dagster.yaml"
    if written == "by an earlier one":
        storage = "storage:\n  custom:\n    module: qlog_assets.run_history\n    class: RunHistory\n    config: {}\n"
        settings.write_text(settings.read_text(encoding="utf-8") + storage, encoding="utf-8")
    before = settings.read_bytes()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "elsewhere"))
    (verdict,) = audit(released).releases
    assert (verdict.findings, verdict.notes) == ([], []) and settings.read_bytes() == before
    assert not (tmp_path / "elsewhere").exists()
    assert os.environ["DAGSTER_HOME"] == str(tmp_path / "elsewhere")


# Read by another version ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_file_that_todays_reader_refuses_is_said_to_be_believed_and_the_rest_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers of the same number took an array's last record, which has no comma behind it."""
    home = make_home(tmp_path / "warehouse")
    door, path = door_at(home), home / "landing" / "json" / "export.json"
    path.parent.mkdir(parents=True)
    records = [f'{{"user": "u{n}", "query": "news", "time": "{MARCH}-05 10:00:00"}}' for n in range(2)]
    path.write_text("[\n" + ",\n".join(records) + "\n]\n", encoding="utf-8")
    column_map_beside(path).write_text('user = "user"\nquery = "query"\ntime = "time"\n', encoding="utf-8")
    book = Book(door.ledger, door.policy.dataset)
    with monkeypatch.context() as earlier, Engine.open(door.warehouse) as engine:
        earlier.setattr(readers, "_refuse_one_value", lambda *_, **__: None)
        read, _ = ingest_batch(door.warehouse, engine, batch_of(path, "json"), door.policy.admission, book=book)
    assert read.rows(MARCH) == 1
    build_chain(home)
    release(home)
    answer = qlog(home, "audit", "--deep", "--json").json
    (verdict,) = answer["releases"]
    (said,) = (each for each in verdict["believed"] if "cannot be read again" in each)
    assert answer["ok"] is True and "export.json: is one JSON value and not one object per line" in said
    assert f"cleaned_log {MARCH}, from raw_log" in verdict["recomputed"]
