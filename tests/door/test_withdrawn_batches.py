"""Rows of a file that was withdrawn: the door draws nothing from them, and the audit finds out if anybody did."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.door import MARCH, charges, door_at, release, warehouse_at

from qlog_assets.door import inputs
from qlog_assets.door.inputs import DoorError
from qlog_assets.ledger import Book
from qlog_assets.pipeline.batches import batches
from qlog_assets.pipeline.withdrawal import withdraw_batch
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)


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
    release(chained)
    (verdict,) = audit_warehouse(warehouse_at(chained)).releases
    assert any("it was made with rows of" in finding and "of a test" in finding for finding in verdict.findings)
