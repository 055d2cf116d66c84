"""Partitions in a store, and what a kill, a fork, a full disk, a power cut or the wrong disk makes of them."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import APRIL, MARCH, in_child
from support.instances import make_home, small_log
from support.stored import objects, provenance, storing, text_of, writer, written

from qlog_assets.storage import stored as stored_module
from qlog_assets.storage.partition import TableFacts, WarehouseError
from qlog_assets.storage.stored import COPIES, RECORD, drop_copies
from qlog_assets.storage.stores import MARKERS, Store, StoreError, open_store
from qlog_assets.storage.warehouse import Warehouse


def copies(warehouse: Warehouse) -> list[Path]:
    return [path for path in (warehouse.private / COPIES).rglob("*") if path.is_file()]


# Kills and wrong disks ----------------------------------------------------------------------------------------------


def _die_behind_the_deletion(home: Path, store: Path) -> None:
    delete = stored_module.Stored.delete

    def die(self: stored_module.Stored, private: Path) -> None:
        delete(self, private)
        os.kill(os.getpid(), signal.SIGKILL)

    stored_module.Stored.delete = die  # type: ignore[method-assign]
    storing(home, store).remove_partitions(home / "private" / "capped_log" / MARCH)


def forget_it(warehouse: Warehouse) -> None:
    warehouse.remove_partitions(warehouse.private / "capped_log" / MARCH)
    assert not (warehouse.private / "capped_log" / MARCH).exists()


def make_it_again(warehouse: Warehouse) -> None:
    assert text_of(written(warehouse, "new rows")) == "new rows of queries"


@pytest.mark.parametrize("second", [forget_it, make_it_again])
def test_what_was_killed_between_the_objects_and_their_record_is_finished_by_a_second_try(
    warehouse: Warehouse, home: Path, store: Path, second: Callable[[Warehouse], None]
) -> None:
    written(warehouse)
    assert in_child(_die_behind_the_deletion, home, store).killed
    assert objects(store) == [] and list(warehouse.private.rglob(RECORD)) != []
    second(warehouse)


def _die_behind_the_upload(home: Path, store: Path) -> None:
    written(storing(home, store), announce=lambda _: os.kill(os.getpid(), signal.SIGKILL))


def test_what_a_killed_upload_left_is_named_until_its_own_disk_is_back(
    warehouse: Warehouse, home: Path, store: Path
) -> None:
    assert in_child(_die_behind_the_upload, home, store).killed
    mounted = store.rename(store.with_name("mounted"))
    store.mkdir(mode=0o700)
    said = qlog(home, "ledger")
    assert said.code == 0 and "is it the store that was written to" in said.err
    assert len(list(warehouse.private.rglob(RECORD))) == 1 and len(objects(mounted)) == 2
    store.rmdir()
    mounted.rename(store)
    assert qlog(home, "ledger").err == ""
    assert objects(store) == [] and list(warehouse.private.rglob(RECORD)) == []


def test_writers_that_come_first_at_once_leave_a_store_that_knows_them_both(
    warehouse: Warehouse, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither has seen the other's marker: there is no lock in a store."""
    first = written(warehouse)
    with monkeypatch.context() as unseen:
        unseen.setattr(Store, "sizes", lambda self, folder: {})
        second = open_store(f"file://{store}").identify()
    assert len(list((store / MARKERS).iterdir())) == 2
    assert first.stored is not None and second != first.stored.marker
    first.verify()
    replace(first.stored, marker=second).check()


def test_nothing_is_made_again_or_forgotten_at_a_store_without_the_marker_of_the_one_that_was_written_to(
    warehouse: Warehouse, store: Path
) -> None:
    partition = written(warehouse)
    drop_copies()
    mounted = store.rename(store.with_name("mounted"))
    store.mkdir(mode=0o700)
    for use in (
        partition.verify,
        lambda: warehouse.write_partition(provenance(), writer()),
        lambda: warehouse.drop_tables(partition, ["clicks"]),
        lambda: warehouse.remove_partitions(partition.path.parent),
    ):
        with pytest.raises(StoreError, match="is it the store that was written to"):
            use()
    store.rmdir()
    mounted.rename(store)
    warehouse.current("capped_log", MARCH).verify()


# Copies -------------------------------------------------------------------------------------------------------------


def _work_in_one_process(home: Path, store: Path, log: Path) -> dict[str, list[int]]:
    """How many files are copies after each run and each look, and before each release that an audit comes to."""
    os.environ |= {"QLOG_HOME": str(home), "QLOG_PARTITIONS": f"file://{store}"}
    import qlog_assets as qlog
    from qlog_assets.verify.audit import audit_warehouse

    warehouse = storing(home, store)
    found: dict[str, list[int]] = {"runs": [], "looks": [], "audit": []}
    qlog.ingest([log], format="aol")
    for name in ("safelog", "zealous"):
        qlog.release(name, MARCH)
        found["runs"].append(len(copies(warehouse)))
    assert qlog.ingest([log], format="aol").already_ingested
    found["looks"].append(len(copies(warehouse)))
    report = audit_warehouse(warehouse, bar=lambda *_: found["audit"].append(len(copies(warehouse))))
    assert report.ok and len(report.releases) == 2
    found["audit"].append(len(copies(warehouse)))
    return found


@pytest.mark.slow
def test_copies_last_no_longer_than_a_run_a_look_and_the_audit_of_a_release(tmp_path: Path, store: Path) -> None:
    """In one process: a code server, and months in order, live longer than each of them."""
    home, log = make_home(tmp_path / "warehouse"), tmp_path / "log.txt"
    log.write_text(small_log(), encoding="utf-8")
    ended = in_child(_work_in_one_process, home, store, log)
    assert ended.answer == {"runs": [0, 0], "looks": [0], "audit": [0, 0, 0]}


def _end(path: str) -> None:
    assert Path(path).exists()


def test_a_forked_process_that_ends_leaves_its_parents_copies(warehouse: Warehouse) -> None:
    partition = written(warehouse)
    (copy,) = partition.files("queries")
    child = multiprocessing.get_context("fork").Process(target=_end, args=(str(copy),))
    child.start()
    child.join()
    assert child.exitcode == 0 and copy.exists()


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may become larger than a megabyte, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_without_room_for_a_copy_is_no_change_of_the_partition(
    warehouse: Warehouse, request: pytest.FixtureRequest
) -> None:
    partition = written(warehouse, "rows" * (1 << 19))
    drop_copies()
    request.getfixturevalue("small_files")
    with pytest.raises(StoreError, match=r"a copy could not be written here \(File too large\)"):
        partition.verify()
    assert copies(warehouse) == []


def test_a_copy_that_is_changed_while_it_is_read_is_noticed(warehouse: Warehouse) -> None:
    partition = written(warehouse)
    with pytest.raises(WarehouseError, match=r"was changed after|was written anew"), partition.verifying():
        partition.files("queries")[0].write_text("rows of a hand", encoding="utf-8")


@pytest.mark.parametrize("refetched", [False, True])
def test_copies_and_a_directory_of_objects_are_the_owners_alone(
    warehouse: Warehouse, store: Path, refetched: bool
) -> None:
    before = os.umask(0o022)
    try:
        partition = written(warehouse)
        if refetched:
            drop_copies()
            partition.verify()
    finally:
        os.umask(before)
    found = [*store.rglob("*"), *(warehouse.private / COPIES).rglob("*")]
    assert len(copies(warehouse)) == 2 and len(objects(store)) == 2
    for path in found:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_record_is_on_the_disk_before_the_first_object(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[int] = set()
    fsync, put = os.fsync, Store.put

    def hear(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def look(self: Store, source: Path, name: str) -> None:
        (record,) = warehouse.private.rglob(RECORD)
        above = [folder for folder in record.parents if folder.is_relative_to(warehouse.private)]
        unsynced.extend(path for path in (record, *above) if path.stat().st_ino not in synced)
        put(self, source, name)

    unsynced: list[Path] = []
    monkeypatch.setattr(os, "fsync", hear)
    monkeypatch.setattr(Store, "put", look)
    written(warehouse)
    assert unsynced == []


# Forgetting ---------------------------------------------------------------------------------------------------------


def test_stores_are_named_that_something_was_deleted_from(home: Path, tmp_path: Path) -> None:
    """A broken record of another month is that month's trouble."""
    warehouses = []
    for name in ("one", "two", "three"):
        folder = tmp_path / name
        folder.mkdir(mode=0o700)
        warehouses.append(storing(home, folder))
    one, two, three = warehouses
    part = written(one)
    other = two.write_partition(provenance(APRIL), writer())[0]
    broken = three.write_partition(provenance("2006-05"), writer())[0]
    (broken.path / RECORD).write_text("", encoding="utf-8")
    assert two.drop_tables(other, ["clicks"]) == {f"file://{tmp_path / 'two'}"}
    assert one.remove_partitions(part.path.parent) == {f"file://{tmp_path / 'one'}"}


@pytest.mark.parametrize("stored", [True, False])
def test_no_table_is_dropped_that_lies_outside_its_partition(
    warehouse: Warehouse, store: Path, home: Path, stored: bool
) -> None:
    if not stored:
        warehouse = Warehouse(warehouse.settings.for_scratch(home)).make()
    partition = written(warehouse)
    outside = [store.parent / "precious", partition.path.parent / "precious", store / "precious"]
    for path in outside:
        path.write_text("x", encoding="utf-8")
    for name in ("../precious", "../../precious"):
        forged = replace(partition.provenance, tables={"queries": TableFacts(1, {name: "0"})})
        with pytest.raises(WarehouseError, match="was changed after it was written"):
            warehouse.drop_tables(replace(partition, provenance=forged), ["queries"])
    assert all(path.exists() for path in outside)
