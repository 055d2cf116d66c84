"""Records of stored partitions in the wrong place: the disk goes while it is written to, or the record is a copy."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import APRIL, MARCH, in_child
from support.stored import objects, provenance, storing, text_of, writer, written

from qlog_assets.door.preconditions import lock_months
from qlog_assets.storage.partition import Provenance, TableFacts, WarehouseError
from qlog_assets.storage.stored import RECORD
from qlog_assets.storage.stores import Store, StoreError
from qlog_assets.storage.warehouse import Warehouse


@pytest.mark.parametrize("mount_point", [True, False])
def test_a_disk_that_goes_while_a_partition_is_made_gets_no_row_on_the_one_below(
    warehouse: Warehouse, home: Path, store: Path, mount_point: bool
) -> None:
    written(warehouse)
    before, mounted = objects(store), store.with_name("mounted")

    def write(directory: Path) -> dict[str, TableFacts]:
        store.rename(mounted)
        if mount_point:
            store.mkdir(mode=0o700)
        return writer()(directory)

    with pytest.raises(StoreError):
        warehouse.write_partition(provenance(APRIL), write)
    assert not warehouse.has_current("capped_log", APRIL)
    assert not store.exists() or list(store.iterdir()) == []
    if mount_point:
        store.rmdir()
    mounted.rename(store)
    assert qlog(home, "ledger").err == ""
    assert objects(store) == before and len(list(warehouse.private.rglob(RECORD))) == 1


def test_a_disk_that_goes_between_two_files_keeps_none_of_them(
    warehouse: Warehouse, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(warehouse)
    put, mounted = Store.put, store.with_name("mounted")

    def unmount(self: Store, source: Path, name: str) -> None:
        put(self, source, name)
        if not mounted.exists():
            store.rename(mounted)
            store.mkdir(mode=0o700)

    monkeypatch.setattr(Store, "put", unmount)
    with pytest.raises(StoreError, match="is it the store that was written to"):
        warehouse.write_partition(provenance(APRIL), writer())
    assert objects(store) == [] and not warehouse.has_current("capped_log", APRIL)


def test_a_disk_that_goes_and_one_below_that_fills_up_keeps_no_file(
    warehouse: Warehouse, home: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(warehouse)
    put, mounted = Store.put, store.with_name("mounted")

    def fill(self: Store, source: Path, name: str) -> None:
        if mounted.exists():
            raise StoreError("no room")
        store.rename(mounted)
        store.mkdir(mode=0o700)
        put(self, source, name)

    monkeypatch.setattr(Store, "put", fill)
    with pytest.raises(StoreError, match="no room"):
        warehouse.write_partition(provenance(APRIL), writer())
    assert objects(store) == [] and len(objects(mounted)) == 2


def test_a_copy_of_a_warehouse_that_was_taken_while_it_wrote_deletes_nothing_of_it(
    warehouse: Warehouse, home: Path, store: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"

    def take(provenance: Provenance) -> None:
        shutil.copytree(home, copy)

    partition = written(warehouse, announce=take)
    said = qlog(copy, "ledger")
    assert said.code == 0 and f"file://{store}" in said.err and "here is a copy" in said.err
    partition.verify()
    (left,) = copy.glob("private/capped_log/*/.qlog-tmp-*")
    assert [path.name for path in left.rglob("*") if path.is_file()] == [RECORD] and f"then {left}" in said.err
    assert qlog(copy, "ledger").err == said.err
    shutil.rmtree(left)
    assert qlog(copy, "ledger").err == "" and len(objects(store)) == 2


def test_a_partition_that_a_copy_makes_again_stays_in_the_warehouse_that_was_copied(
    warehouse: Warehouse, home: Path, store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    partition = written(warehouse)
    shutil.copytree(home, tmp_path / "copy")
    with caplog.at_level(logging.WARNING):
        again = written(storing(tmp_path / "copy", store), "new rows", usable=lambda _: False)
    assert "here is a copy" in caplog.text
    assert text_of(again) == "new rows of queries"
    partition.verify()


def test_the_record_of_another_partition_is_no_partitions_own(warehouse: Warehouse, store: Path) -> None:
    mine, other = written(warehouse), warehouse.write_partition(provenance(APRIL), writer())[0]
    shutil.copy(other.path / RECORD, mine.path / RECORD)
    for use in (
        lambda: warehouse.current("capped_log", MARCH),
        lambda: warehouse.remove_partitions(mine.path.parent),
    ):
        with pytest.raises(WarehouseError, match="does not say where the tables lie"):
            use()
    assert text_of(written(warehouse, "new rows")) == "new rows of queries"
    other.verify()


def test_what_was_deleted_on_another_disk_stays_so_after_a_power_cut(
    warehouse: Warehouse, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record goes behind it, and may be on the other disk first."""
    partition = written(warehouse)
    assert partition.stored is not None
    synced: list[Path] = []
    monkeypatch.setattr("qlog_assets.storage.stores.sync", synced.append)
    warehouse.drop_tables(partition, ["clicks"])
    assert synced == [store / partition.stored.folder / "clicks"]
    synced.clear()
    warehouse.remove_partitions(partition.path.parent)
    assert synced == [store]


def test_many_months_are_locked_and_a_store_that_is_away_is_asked_once(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidied: list[Warehouse] = []

    def remember(self: Warehouse) -> None:
        tidied.append(self)

    monkeypatch.setattr(Warehouse, "remove_leftovers", remember)
    with lock_months(warehouse, [MARCH, APRIL, "2006-05"], undone="nothing was forgotten"):
        assert tidied == [warehouse]


def test_a_broken_record_that_was_made_again_is_said_with_what_to_delete(
    warehouse: Warehouse, home: Path, store: Path
) -> None:
    partition = written(warehouse)
    (partition.path / RECORD).write_text("{}", encoding="utf-8")
    written(warehouse, "new rows")
    said = qlog(home, "ledger").err
    (left,) = warehouse.private.glob("capped_log/*/.qlog-tmp-*")
    assert f"then {left / 'old'}" in said and "later command" not in said
    shutil.rmtree(left)
    assert qlog(home, "ledger").err == ""


def _die_between_the_renames(home: Path, store: Path) -> None:
    rename = os.rename

    def die(source: Path, target: Path) -> None:
        rename(source, target)
        if Path(target).name == "old":
            os.kill(os.getpid(), signal.SIGKILL)

    os.rename = die  # type: ignore[assignment]
    written(storing(home, store), "new rows", usable=lambda _: False)


def test_a_kill_between_two_renames_leaves_what_was_there(warehouse: Warehouse, home: Path, store: Path) -> None:
    partition, before = written(warehouse), objects(store)
    assert in_child(_die_between_the_renames, home, store).killed
    assert not partition.path.exists()
    assert qlog(home, "ledger").code == 0
    warehouse.current("capped_log", MARCH).verify()
    assert objects(store) == before
