"""Forgery: tables, ledgers, partitions and draws that were changed so that they fit one another pass no door."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.door import APRIL, MARCH, charges, door_at, release, warehouse_at
from support.stages import with_later_stage
from support.warehouses import build_chain

from qlog_assets.door.inputs import DoorError
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Ledger
from qlog_assets.ledger.chain import Event
from qlog_assets.mechanisms.register import adding
from qlog_assets.mechanisms.safelog.tables import QUERIES
from qlog_assets.pipeline.public_material import earlier_release
from qlog_assets.report.tables import in_public_order, write_table
from qlog_assets.storage.digests import canonical_json, canonical_line, file_checksum
from qlog_assets.verify.audit import audit_warehouse


def forge_table(path: Path) -> None:
    """Add a row to a public table and make files and manifest fit one another again."""
    rows = pq.read_table(path / "queries.parquet")
    extra = pa.table({"query": ["forged"], "users": [99], "month": [MARCH]}, schema=rows.schema)
    layout = QUERIES.with_month()
    files = write_table(in_public_order(pa.concat_tables([rows, extra]), layout), layout, path)
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    table = manifest["tables"]["queries"]
    table["rows"] += 1
    table["files"] = {kind: dict(vars(file)) for kind, file in files.items()}
    (path / "manifest.json").write_text(canonical_json(manifest), encoding="utf-8")


def forge_last_event(home: Path, manifest_digest: str) -> None:
    """Rewrite the event that recorded the publication, with a hash that fits: nothing after it says otherwise."""
    ledger = Ledger.open(warehouse_at(home).ledger_url)
    last = ledger.events()[-1]
    assert last.kind == "published"
    payload = canonical_line({**last.facts, "manifest_digest": manifest_digest})
    forged: Event = replace(last, payload=payload).sealed()
    with sqlite3.connect(home / "ledger.db") as database:
        for trigger in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {trigger[0]}")
        database.execute("UPDATE events SET payload = ?, hash = ? WHERE seq = ?", (payload, forged.hash, last.seq))


def test_a_table_forged_together_with_manifest_and_ledger_is_told_by_its_draw(copied: Callable[[str], Path]) -> None:
    home = copied("drawn")
    path = door_at(home).publish("safelog", MARCH).path
    assert path is not None
    forge_table(path)
    forge_last_event(home, file_checksum(path / "manifest.json"))
    verdict = audit_warehouse(warehouse_at(home)).releases[0]
    assert any("does not say what was drawn" in finding for finding in verdict.findings), verdict
    with pytest.raises(DoorError, match="does not say what was drawn"):
        door_at(home).publish("safelog", MARCH)


def test_a_lost_ledger_is_no_fresh_budget_even_where_nothing_public_is_left(copied: Callable[[str], Path]) -> None:
    home = copied("chained")
    path = release(home).path
    assert path is not None
    path.with_name("latest").unlink()
    path.rename(home.parent / "web-server")
    (home / "ledger.db").unlink()
    with pytest.raises(DoorError, match="restore the ledger"):
        door_at(home).draw("safelog", MARCH)


def test_a_partition_left_by_an_older_version_is_refused_by_name(copied: Callable[[str], Path]) -> None:
    home = copied("chained")
    expected = "capped_log 2006-03 was made by another version of the software"
    with adding(with_later_stage("safelog", "capped_log")), pytest.raises(DoorError, match=expected):
        door_at(home).draw("safelog", MARCH)
    assert charges(home) == []


def test_a_raw_log_of_a_batch_that_was_read_again_is_refused(copied: Callable[[str], Path]) -> None:
    home = copied("chained")
    (pointer,) = (home / "private" / "landing_batch").glob("*/current")
    batch = warehouse_at(home).current("landing_batch", pointer.parent.name)
    other = batch.path.with_name("0" * 20)
    batch.path.rename(other)
    replace(batch.provenance, shape=other.name).write(other / "provenance.json")
    pointer.write_text(other.name, encoding="ascii")
    with pytest.raises(DoorError, match="raw_log 2006-03 was made from a landing_batch that is no longer current"):
        door_at(home).draw("safelog", MARCH)


def test_a_changed_release_cannot_serve_as_a_pool(copied: Callable[[str], Path]) -> None:
    home = copied("chained")
    receipt = release(home)
    assert receipt.path is not None
    assert earlier_release(warehouse_at(home), receipt.charge.release_id, APRIL).month == MARCH
    table = receipt.path / "queries.parquet"
    rows = pq.read_table(table)
    extra = pa.table({"query": ["somebody's address"], "users": [9], "month": [MARCH]}, schema=rows.schema)
    pq.write_table(pa.concat_tables([rows, extra]), table)
    with pytest.raises(QlogError, match=r"queries.parquet is not the file that was published"):
        earlier_release(warehouse_at(home), receipt.charge.release_id, APRIL)


def test_what_lies_beside_a_draw_does_not_keep_a_public_release_from_being_served(
    copied: Callable[[str], Path],
) -> None:
    home = copied("chained")
    first = release(home)
    (home / "private" / "draws" / first.charge.fingerprint / ".DS_Store").write_bytes(b"\0")
    assert release(home).charge.release_id == first.charge.release_id
    findings = audit_warehouse(warehouse_at(home)).releases[0].findings
    assert any("changed on disk" in finding for finding in findings), "the audit still tells"


def test_a_request_that_differs_from_a_mere_reservation_is_told_how_to_give_it_back(
    copied: Callable[[str], Path],
) -> None:
    home = copied("chained")
    door = door_at(home)
    chosen = door.policy.section("safelog")
    door.open_account()
    reserved, _ = door.ledger.reserve(
        dataset="small",
        month=MARCH,
        mechanism="safelog",
        variant="sound",
        mechanism_version=1,
        parameters=chosen.with_changes(threshold=11).as_released(),
        inputs={},
        epsilon=1,
        delta=0,
    )
    build_chain(home)
    with pytest.raises(QlogError, match=f"qlog ledger abandon {reserved.release_id} gives its charge back"):
        door.draw("safelog", MARCH)
