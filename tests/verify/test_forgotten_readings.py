"""Forgetting takes a month out of every reading of a file, and meets nobody who reads the file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import APRIL, MARCH, warehouse_at
from support.forgetting import forget, landed, private_rows
from support.instances import edit_policy

from qlog_assets.storage.scratch import BusyError
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
    assert forget(released)["months"] == [MARCH, APRIL]
    assert "landing_batch" not in private_rows(released)


def test_an_audit_says_what_of_a_forgotten_month_is_still_there(released: Path, tmp_path: Path) -> None:
    """As an earlier version left it, or a backup brings it back."""
    batches = released / "private" / "landing_batch"
    shutil.copytree(batches, tmp_path / "backup")
    forget(released)
    assert not any(MARCH in note for note in audit_warehouse(warehouse_at(released)).notes)
    shutil.rmtree(batches)
    shutil.copytree(tmp_path / "backup", batches)
    (note,) = [note for note in audit_warehouse(warehouse_at(released)).notes if MARCH in note]
    assert f"{MARCH} was forgotten on" in note and "qlog forget --before 2006-04" in note
    assert forget(released)["months"] == [MARCH]
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
