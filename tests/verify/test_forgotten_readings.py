"""Forgetting takes a month out of every reading of a file, and meets nobody who reads the file."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import APRIL, MARCH, warehouse_at
from support.forgetting import forget, landed, private_rows
from support.instances import edit_policy

from qlog_assets.storage.scratch import BusyError
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)


def ingest_again(home: Path, policy: str) -> int:
    """The same file under other months of the policy; returns how many rows are in use of it."""
    edit_policy(home, top=policy)
    (name,) = landed(home)
    answer = qlog(home, "ingest", home / "landing" / "aol" / name, "--format", "aol", "--json").json
    return int(answer["accepted"])


def test_a_file_that_was_read_again_under_another_policy_is_forgotten_in_both_readings(released: Path) -> None:
    assert ingest_again(released, 'last = "2006-06"') > 0
    (batch,) = (path.parent for path in (released / "private" / "landing_batch").glob("*/current"))
    assert len(list(batch.glob("*/provenance.json"))) == 2
    assert forget(released)["months"] == [MARCH]
    assert private_rows(released)["landing_batch"] == [APRIL]
    assert audit_warehouse(warehouse_at(released)).ok


def test_months_that_the_policy_no_longer_has_are_forgotten_although_nothing_was_released(ingested: Path) -> None:
    """Only a reading holds them that another one has replaced: no release will be made of it."""
    assert ingest_again(ingested, 'first = "2006-05"') == 0
    answer = forget(ingested)
    assert (answer["months"], answer["kept"]) == ([MARCH, APRIL], {})
    assert private_rows(ingested) == {}


def test_a_month_that_another_reading_of_the_file_still_gives_is_kept(ingested: Path) -> None:
    assert ingest_again(ingested, 'first = "2006-04"') > 0
    answer = forget(ingested)
    assert answer["months"] == [MARCH] and list(answer["kept"]) == [APRIL]
    assert private_rows(ingested)["landing_batch"] == [APRIL]


def test_rows_that_nothing_points_at_are_forgotten(released: Path) -> None:
    """As a kill leaves them behind the rename that shows a batch, and before what points at it."""
    for pointer in (released / "private" / "landing_batch").glob("*/current"):
        pointer.unlink()
    answer = forget(released, landing=True)
    assert (answer["months"], list(answer["kept"]), answer["landing_deleted"]) == ([MARCH], [APRIL], [])
    assert private_rows(released)["landing_batch"] == [APRIL]


def test_a_month_that_the_policy_has_again_is_kept_until_it_is_released(ingested: Path) -> None:
    assert ingest_again(ingested, 'last = "2006-03"') > 0
    edit_policy(ingested, top='last = "2006-05"')
    answer = forget(ingested, landing=True)
    assert (answer["months"], list(answer["kept"]), answer["landing_deleted"]) == ([], [MARCH, APRIL], [])
    assert private_rows(ingested)["landing_batch"] == [MARCH, APRIL]


def test_rows_that_a_killed_ingest_had_moved_aside_are_forgotten(
    released: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was killed while forgetting waited for it, behind what tidies up before."""
    (batch,) = (path.parent for path in (released / "private" / "landing_batch").glob("*/current"))
    (reading,) = (path.parent for path in batch.glob("*/provenance.json"))
    aside, writing, moved = batch / ".qlog-tmp-killed", Warehouse.writing, False

    def die_before(self: Warehouse, asset: str, month: str) -> AbstractContextManager[None]:
        nonlocal moved
        if asset == "landing_batch" and not moved:
            moved = True
            aside.mkdir(mode=0o700)
            reading.rename(aside / "old")
        return writing(self, asset, month)

    monkeypatch.setattr(Warehouse, "writing", die_before)
    assert forget(released)["months"] == [MARCH] and moved
    monkeypatch.undo()
    warehouse_at(released).remove_leftovers()
    assert private_rows(released)["landing_batch"] == [APRIL]


def test_a_damaged_reading_is_named_with_what_to_do(released: Path) -> None:
    assert ingest_again(released, 'last = "2006-06"') > 0
    (batch,) = (path.parent for path in (released / "private" / "landing_batch").glob("*/current"))
    current = (batch / "current").read_text(encoding="ascii").strip()
    (earlier,) = (path for path in batch.glob("*/provenance.json") if path.parent.name != current)
    earlier.write_text("{}", encoding="utf-8")
    assert f"where that does not help, delete {earlier.parent}" in qlog(released, "forget", "--before", APRIL).refusal
    shutil.rmtree(earlier.parent)
    assert forget(released)["months"] == [MARCH]


def test_an_audit_says_what_of_a_forgotten_month_is_still_there(released: Path, tmp_path: Path) -> None:
    """As an earlier version left it, or a backup brings it back."""
    batches = released / "private" / "landing_batch"
    shutil.copytree(batches, tmp_path / "backup")
    forget(released)
    assert not any(MARCH in note for note in audit_warehouse(warehouse_at(released)).notes)
    shutil.rmtree(batches)
    shutil.copytree(tmp_path / "backup", batches)
    (note,) = [note for note in audit_warehouse(warehouse_at(released)).notes if MARCH in note]
    assert f"{MARCH} was forgotten, and rows of it are there" in note and "qlog forget --before 2006-04" in note
    assert forget(released)["months"] == [MARCH]
    assert not any(MARCH in note for note in audit_warehouse(warehouse_at(released)).notes)


def test_an_audit_has_nothing_to_say_of_a_forgotten_month_that_was_brought_back(released: Path) -> None:
    forget(released)
    (name,) = landed(released)
    path = released / "landing" / "aol" / name
    assert MARCH in qlog(released, "ingest", path, "--format", "aol", "--yes", "--json").json["months"]
    assert private_rows(released)["landing_batch"] == [MARCH, APRIL]
    assert not any(MARCH in note for note in audit_warehouse(warehouse_at(released)).notes)


def test_forgetting_waits_for_whoever_reads_the_file(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qlog_assets.storage.warehouse.LONGEST_WRITE_SECONDS", 0.1)
    (batch,) = (path.parent.name for path in (released / "private" / "landing_batch").glob("*/current"))
    with (
        warehouse_at(released).writing("landing_batch", batch),
        pytest.raises(BusyError, match=f"another process is writing landing_batch {batch}"),
    ):
        forget(released)
    assert private_rows(released)["landing_batch"] == [MARCH, APRIL]
    assert forget(released)["months"] == [MARCH]
    assert private_rows(released)["landing_batch"] == [APRIL]
