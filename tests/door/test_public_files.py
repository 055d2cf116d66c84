"""What lies under `released/` beside the tables: pointers that no glob follows, an index that is true."""

from __future__ import annotations

from pathlib import Path

import duckdb
from support.door import APRIL, MARCH, charges, door_at, latest_folder, release, warehouse_at
from support.warehouses import build_chain

from qlog_assets.report.manifest import load_manifest
from qlog_assets.report.public_zone import latest_release, pointed_at
from qlog_assets.storage.scratch import hold_lock
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)


def pointer_of(home: Path, month: str = MARCH) -> Path:
    return home / "released" / "safelog" / month / "latest"


def as_link(home: Path, month: str = MARCH) -> Path:
    """The pointer as versions up to 0.4.0 made it."""
    pointer = pointer_of(home, month)
    name = pointed_at(pointer)
    assert name is not None
    pointer.unlink()
    pointer.symlink_to(name)
    return pointer


def test_the_obvious_glob_reads_every_release_once(released: Path) -> None:
    release(released, again="one more")
    build_chain(released, APRIL)
    release(released, APRIL)
    folders = [path.parent for path in (released / "released").glob("*/*/*/manifest.json")]
    assert sorted(path.name for path in folders) == sorted(charge.release_id for charge in charges(released))
    rows = sum(load_manifest(path / "manifest.json")["tables"]["queries"]["rows"] for path in folders)
    tables = f"{released}/released/*/*/*/queries.parquet"
    found = duckdb.sql(f"SELECT month, count(*) FROM '{tables}' GROUP BY month").fetchall()
    assert {month for month, _ in found} == {MARCH, APRIL} and sum(count for _, count in found) == rows > 0


def test_the_pointer_is_a_small_file_for_everybody_that_names_the_newest_release(released: Path) -> None:
    second = release(released, again="one more").charge
    pointer = pointer_of(released)
    assert pointer.read_text(encoding="utf-8") == f"{second.release_id}\n" and not pointer.is_symlink()
    assert pointer.stat().st_mode & 0o777 == 0o644
    assert latest_folder(released, "safelog").name == second.release_id


def test_a_link_of_an_earlier_version_audits_green_and_becomes_a_file_when_the_month_is_served(released: Path) -> None:
    pointer = as_link(released)
    report = audit_warehouse(warehouse_at(released))
    assert report.ok, report.all_findings
    assert latest_folder(released, "safelog").name == charges(released)[0].release_id
    release(released)
    assert not pointer.is_symlink() and pointed_at(pointer) == charges(released)[0].release_id


def test_links_of_other_months_become_files_too_but_not_under_a_process_that_is_at_their_door(released: Path) -> None:
    build_chain(released, APRIL)
    release(released, APRIL)
    pointer = as_link(released)
    lock = warehouse_at(released).locks / f"safelog-{MARCH}.lock"
    with hold_lock(lock, 0, "busy"):
        door_at(released).publish("safelog", APRIL)
        assert pointer.is_symlink()
    door_at(released).publish("safelog", APRIL)
    assert not pointer.is_symlink() and pointed_at(pointer) == charges(released)[0].release_id


def test_a_pointer_that_leads_elsewhere_names_no_release(released: Path) -> None:
    warehouse, pointer = warehouse_at(released), pointer_of(released)
    for text in ("../2006-04/other", "/etc", "", ".."):
        pointer.write_text(text, encoding="utf-8")
        assert latest_release(warehouse, "safelog", MARCH) is None
