"""Rows of a file that was withdrawn: the door draws nothing from them, and the audit finds out if anybody did."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.door import MARCH, charges, door_at, release, warehouse_at

from qlog_assets.door import inputs, outputs
from qlog_assets.door.door import Door
from qlog_assets.door.inputs import DoorError, RefusedByDoorError
from qlog_assets.ledger import Book
from qlog_assets.pipeline.batches import batches
from qlog_assets.pipeline.withdrawal import withdraw_batch
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)
pytestmark = pytest.mark.slow


def test_tables_that_were_made_before_a_file_was_withdrawn_are_not_drawn_from(
    chained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing above them is current any more, and in the UI their assets can be materialized one by one."""
    door, (batch,) = door_at(chained), batches(warehouse_at(chained))
    done = withdraw_batch(door.warehouse, Book(door.ledger, "small"), batch.provenance.month, "of a test")
    assert set(done.months.values()) == {None} and not door.warehouse.has_current("raw_log", MARCH)
    with pytest.raises(DoorError, match=rf"rows of the batch {batch.provenance.month}, which was withdrawn on"):
        release(chained)
    assert charges(chained) == []
    # Somebody whose door does not look.
    monkeypatch.setattr(inputs, "refuse_withdrawn_rows", lambda *_: None)
    monkeypatch.setattr(outputs, "withdrawn_sources", lambda *_: [])
    release(chained)
    (verdict,) = audit_warehouse(warehouse_at(chained)).releases
    assert any("it was made with rows of" in finding and "of a test" in finding for finding in verdict.findings)


def test_a_draw_that_nobody_has_seen_is_not_published_once_its_file_was_withdrawn(chained: Path) -> None:
    door, (batch,) = door_at(chained), batches(warehouse_at(chained))
    charge = door.draw("safelog", MARCH).charge
    withdraw_batch(door.warehouse, Book(door.ledger, "small"), batch.provenance.month, "of a test")
    with pytest.raises(RefusedByDoorError, match=f"it has rows of {batch.provenance.month}, which was withdrawn"):
        door.publish("safelog", MARCH)
    assert not (chained / "released" / "safelog").exists()
    assert door.withdraw(charge.release_id, "its file was withdrawn").state == "withdrawn"


def test_a_release_of_another_data_set_is_not_taken_back_from_here(released: Path) -> None:
    """One ledger may serve several warehouses."""
    (charge,) = charges(released)
    door = door_at(released)
    other = Door(door.warehouse, door.policy.with_changes(dataset="other"), door.ledger)
    with pytest.raises(DoorError, match="is of the data set small, and this warehouse's policy says other"):
        other.withdraw(charge.release_id, "by mistake")
    assert charges(released) == [charge]
