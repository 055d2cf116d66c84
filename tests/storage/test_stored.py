"""Partitions whose tables lie in a store: shown whole or not at all, read as they were written, deleted with their
record. The store here is a directory on this disk, through the same file systems of Arrow's; `test_object_storage` has
a server."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest
from support.cli import qlog
from support.door import MARCH, in_child
from support.instances import MONTHS
from support.stored import objects, provenance, storing, text_of, writer, written
from support.tampering import flip

from qlog_assets.errors import ParameterError
from qlog_assets.settings import Settings
from qlog_assets.storage.partition import Partition, Provenance, TableFacts, WarehouseError
from qlog_assets.storage.stored import COPIES, RECORD, drop_copies
from qlog_assets.storage.stores import Store, StoreError, open_store
from qlog_assets.storage.warehouse import Warehouse

# Writing and reading ------------------------------------------------------------------------------------------------


def test_tables_lie_in_the_store_and_what_vouches_for_them_in_the_warehouse(warehouse: Warehouse, store: Path) -> None:
    partition = written(warehouse)
    assert {path.name for path in partition.path.rglob("*") if path.is_file()} == {"provenance.json", RECORD}
    (folder,) = {name.partition("/")[0] for name in objects(store)}
    assert objects(store) == [f"{folder}/{table}/part.parquet" for table in ("clicks", "queries")]
    assert folder.startswith(f"capped_log.{partition.provenance.shape}.") and MARCH not in folder
    partition.verify()
    drop_copies()
    assert text_of(warehouse.current("capped_log", MARCH)) == "rows of queries"
    assert partition.provenance == Provenance.read(partition.path / "provenance.json")
    for path in (warehouse.private / COPIES).rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_a_partition_of_the_same_shape_is_kept_and_nothing_is_written_again(warehouse: Warehouse, store: Path) -> None:
    written(warehouse)
    before = objects(store)
    assert warehouse.write_partition(provenance(), writer("other rows"))[1] is False
    assert objects(store) == before


def test_partitions_stay_where_they_are_when_the_setting_changes(home: Path, store: Path, tmp_path: Path) -> None:
    local = Warehouse(Settings(home=home)).make()
    first = local.write_partition(provenance(), writer("local"))[0]
    storing(home, store).write_partition(provenance(parameters={"limit": 5}), writer("stored"))
    third = tmp_path / "a third disk"
    third.mkdir(mode=0o700)
    storing(home, third).write_partition(provenance(parameters={"limit": 6}), writer("third"))
    texts = set()
    for path in first.path.parent.glob("*/provenance.json"):
        partition = local.partition("capped_log", MARCH, path.parent.name)
        partition.verify()
        texts.add(text_of(partition))
    assert texts == {"local of queries", "stored of queries", "third of queries"}


@pytest.mark.slow
def test_copies_are_gone_when_the_process_ends_and_when_a_killed_one_is_followed_by_another(
    ingested: Path, store: Path
) -> None:
    place = {"QLOG_PARTITIONS": f"file://{store}"}
    assert qlog(ingested, "simulate", "zealous", "--month", MONTHS[0], environment=place).code == 0
    assert objects(store) and list((ingested / "private" / COPIES).iterdir()) == []
    assert in_child(_die_with_copies, ingested, store).killed
    assert list((ingested / "private" / COPIES).iterdir()) != []
    assert qlog(ingested, "ledger").code == 0
    assert list((ingested / "private" / COPIES).iterdir()) == []


def _die_with_copies(home: Path, store: Path) -> None:
    written(storing(home, store))
    os.kill(os.getpid(), signal.SIGKILL)


# Changes by hand ----------------------------------------------------------------------------------------------------


def flip_one(store: Path) -> None:
    flip(store / objects(store)[0])


def remove_one(store: Path) -> None:
    (store / objects(store)[0]).unlink()


def add_one(store: Path) -> None:
    (store / objects(store)[0]).with_name("more.parquet").write_text("rows of a hand", encoding="utf-8")


def lengthen_one(store: Path) -> None:
    with (store / objects(store)[0]).open("a", encoding="utf-8") as stream:
        stream.write("!")


@pytest.mark.parametrize("hand", [flip_one, remove_one, add_one, lengthen_one])
def test_what_a_hand_changed_in_the_store_is_not_used_and_is_made_again(
    warehouse: Warehouse, store: Path, hand: Any
) -> None:
    partition = written(warehouse)
    hand(store)
    drop_copies()
    with pytest.raises(WarehouseError, match=r"capped_log 2006-03: .*materialize it again"):
        partition.verify()
    with pytest.raises(WarehouseError), partition.verifying():
        raise AssertionError("a block read it")
    again, fresh = warehouse.write_partition(provenance(), writer())
    again.verify()
    assert fresh and len(objects(store)) == 2, "the folder of the damaged one is gone"


def test_a_process_uses_the_bytes_that_it_hashed_whatever_happens_in_the_store(
    warehouse: Warehouse, store: Path
) -> None:
    partition = written(warehouse)
    for name in objects(store):
        (store / name).write_text("x" * (store / name).stat().st_size, encoding="utf-8")
    assert text_of(partition) == "rows of queries"
    drop_copies()
    with pytest.raises(WarehouseError, match="checksum differs"):
        partition.files("queries")


@pytest.mark.parametrize(
    "record",
    [
        "",
        "[]",
        '{"place": "gs://x/y", "folder": "a.0.0"}',
        f'{{"place": "file:///tmp", "marker": "{"0" * 32}", "folder": ".."}}',
        f'{{"place": "file:///tmp", "marker": "..", "folder": "a.0.{"0" * 32}"}}',
    ],
)
def test_a_record_that_names_no_folder_of_ours_is_refused(warehouse: Warehouse, record: str) -> None:
    partition = written(warehouse)
    (partition.path / RECORD).write_text(record, encoding="utf-8")
    with pytest.raises(WarehouseError, match="does not say where the tables lie"):
        warehouse.current("capped_log", MARCH)


# Failures -----------------------------------------------------------------------------------------------------------


class Interrupted(BaseException):
    """As a signal is."""


def interrupt(provenance: Provenance) -> None:
    raise Interrupted


def test_a_write_that_fails_behind_its_upload_leaves_nothing(warehouse: Warehouse, store: Path) -> None:
    with pytest.raises(Interrupted):
        written(warehouse, announce=interrupt)
    assert objects(store) == [] and not warehouse.has_current("capped_log", MARCH)
    assert list((warehouse.private / "capped_log" / MARCH).iterdir()) == []


def _die_behind_the_upload(home: Path, store: Path) -> None:
    written(storing(home, store), "new rows", announce=lambda _: os.kill(os.getpid(), signal.SIGKILL), usable=refuse)


def refuse(partition: Partition) -> bool:
    return False


def test_a_kill_between_the_objects_and_their_record_changes_nothing_and_is_tidied_up(
    warehouse: Warehouse, home: Path, store: Path
) -> None:
    partition, before = written(warehouse), objects(store)
    assert in_child(_die_behind_the_upload, home, store).killed
    assert len(objects(store)) == 4
    partition.verify()
    assert text_of(warehouse.current("capped_log", MARCH)) == "rows of queries"
    # By a command that knows nothing of the store but what the record says.
    assert qlog(home, "ledger").code == 0
    assert objects(store) == before and len(list(partition.path.parent.glob(".*"))) == 0


def test_what_an_unreachable_store_keeps_is_deleted_by_a_later_command(
    warehouse: Warehouse, home: Path, store: Path
) -> None:
    away = store.with_name("away")

    def lose(provenance: Provenance) -> None:
        store.rename(away)
        raise Interrupted

    with pytest.raises(Interrupted):
        written(warehouse, announce=lose)
    (left,) = (warehouse.private / "capped_log" / MARCH).glob(".qlog-tmp-*")
    assert [path.name for path in left.rglob("*") if path.is_file()] == [RECORD]
    said = qlog(home, "ledger")
    assert said.code == 0 and f"file://{store}: cannot be used" in said.err and left.exists()
    away.rename(store)
    assert objects(store) and qlog(home, "ledger").err == ""
    assert objects(store) == [] and not left.exists()


def test_a_store_that_is_not_there_is_said_before_anything_is_written(warehouse: Warehouse, store: Path) -> None:
    store.rmdir()

    def write(directory: Path) -> dict[str, TableFacts]:
        raise AssertionError("it was asked to write")

    with pytest.raises(StoreError, match="cannot be used"):
        warehouse.write_partition(provenance(), write)


def test_a_directory_that_others_may_enter_is_refused(warehouse: Warehouse, store: Path) -> None:
    store.chmod(0o755)
    with pytest.raises(StoreError, match="is not yours alone, and would hold rows of the log: chmod 700"):
        written(warehouse)
    assert objects(store) == []


def test_a_store_that_does_not_answer_is_no_damage_that_a_partition_is_made_again_for(
    warehouse: Warehouse, store: Path
) -> None:
    partition = written(warehouse)
    store.rename(store.with_name("away"))
    with pytest.raises(StoreError):
        warehouse.write_partition(provenance(), writer())
    assert partition.path.is_dir()


# Deleting -----------------------------------------------------------------------------------------------------------


def test_dropped_tables_and_removed_partitions_are_gone_from_the_store_and_from_the_copies(
    warehouse: Warehouse, store: Path
) -> None:
    partition = written(warehouse)
    warehouse.drop_tables(partition, ["clicks"])
    assert [name.split("/")[1] for name in objects(store)] == ["queries"]
    warehouse.current("capped_log", MARCH).verify()
    warehouse.remove_partitions(partition.path.parent)
    assert objects(store) == [] and not partition.path.exists()
    assert [path for path in (warehouse.private / COPIES).rglob("*") if path.is_file()] == []


def test_nothing_is_forgotten_here_while_the_store_does_not_answer(warehouse: Warehouse, store: Path) -> None:
    partition = written(warehouse)
    away = store.rename(store.with_name("away"))
    for delete in (warehouse.drop_tables, lambda *_: warehouse.remove_partitions(partition.path.parent)):
        with pytest.raises(StoreError):
            delete(partition, ["clicks"])
    away.rename(store)
    warehouse.current("capped_log", MARCH).verify()


# The command --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_month_is_released_audited_and_forgotten_with_its_tables_on_another_disk(ingested: Path, store: Path) -> None:
    environment = {"QLOG_PARTITIONS": f"file://{store}"}
    assert qlog(ingested, "release", "safelog", "--month", MARCH, environment=environment).code == 0
    assert {name.partition(".")[0] for name in objects(store)} == {
        "cleaned_log", "capped_log", "pool", "pool_augmented",
    }  # fmt: skip
    # Where the tables lie is in their records: an audit needs no setting.
    assert qlog(ingested, "audit", "--deep").code == 0
    flip(store / next(name for name in objects(store) if name.startswith("cleaned_log")))
    audit = qlog(ingested, "audit")
    assert audit.code == 1 and "cleaned_log 2006-03: log.parquet was changed after it was written" in audit.out
    sealed = ingested / "crowd" / MARCH / "report"
    sealed.parent.mkdir(parents=True)
    sealed.write_text("sealed", encoding="utf-8")
    away = store.rename(store.with_name("away"))
    refused = qlog(ingested, "forget", "--before", "2006-04")
    assert refused.code == 2 and "cannot be used" in refused.err
    assert sealed.exists() and "forgotten" not in qlog(ingested, "ledger").out, "nothing is begun without the store"
    away.rename(store)
    forgotten = qlog(ingested, "forget", "--before", "2006-04")
    assert f"{store}: deleted there, too; a store that keeps versions" in " ".join(forgotten.success.split())
    assert {name.partition(".")[0] for name in objects(store)} == {"pool"}, "which is public"


# The setting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            "gs://bucket/logs",
            "names no place that partitions can lie in: write s3://BUCKET/PREFIX or file:///DIRECTORY",
        ),
        ("/mnt/logs", "names no place"),
        ("s3://hunter2:hunter2@bucket/logs", "holds more than a place: credentials come from AWS_ACCESS_KEY_ID"),
        ("s3://bucket/logs?secret_key=hunter2", "holds more than a place"),
        ("s3://", "is no s3://BUCKET/PREFIX"),
        ("s3://Bucket_hunter2", "is no s3://BUCKET/PREFIX"),
        ("s3://bucket//hunter2", "is no s3://BUCKET/PREFIX"),
        ("s3://bucket/../hunter2", "is no s3://BUCKET/PREFIX"),
        ("file://hunter2/logs", "is no file:///DIRECTORY"),
        ("file:///", "is no file:///DIRECTORY"),
    ],
)
def test_a_place_that_partitions_cannot_lie_in_is_refused_and_not_repeated(
    given: str, reason: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QLOG_HOME", str(home))
    monkeypatch.setenv("QLOG_PARTITIONS", given)
    with pytest.raises(ParameterError) as refused:
        Settings.from_environment()
    assert str(refused.value).startswith(f"QLOG_PARTITIONS: {reason}") and "hunter2" not in str(refused.value)


def test_a_place_in_the_warehouse_itself_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QLOG_HOME", str(home))
    monkeypatch.setenv("QLOG_PARTITIONS", f"file://{home}/private/elsewhere")
    with pytest.raises(ParameterError, match=r"^QLOG_PARTITIONS: lies in the warehouse"):
        Settings.from_environment()
    assert Settings(home=home, partitions="s3://bucket/logs/").partitions == "s3://bucket/logs"


@pytest.mark.parametrize(
    "address",
    [
        "localhost:9000",
        "ftp://host",
        "http://",
        "http://hunter2:hunter2@host",
        "http://:hunter2@host",
        "http://[hunter2",
    ],
)
def test_a_servers_address_that_is_none_is_refused_and_not_repeated(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    with pytest.raises(StoreError) as refused:
        open_store("s3://bucket/logs")
    assert "AWS_ENDPOINT_URL: is no address of a server" in str(refused.value) and "hunter2" not in str(refused.value)


# What servers say ---------------------------------------------------------------------------------------------------


class Refusing:
    """A file system whose server refuses in its own words."""

    def __init__(self, words: str) -> None:
        self.words = words

    def get_file_info(self, asked: object) -> object:
        raise OSError(self.words)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("AWS Error ACCESS_DENIED during HeadBucket operation: User: arn:aws:iam::1:user/anna is", "access is denied"),
        ("AWS Error UNKNOWN (HTTP status 403) during HeadBucket operation: anna", "access is denied"),
        ("AWS Error UNKNOWN (HTTP status 301) during HeadBucket operation: anna", "in another region: set AWS_REGION"),
        ("AWS Error NETWORK_CONNECTION during HeadBucket operation: curlCode: 7, anna", "does not answer"),
        ("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation: anna", "there is no such bucket"),
        ("AWS Error INVALID_PARTY during ListObjectsV2 operation: anna", r"the server refused \(INVALID_PARTY\)"),
        ("anna", "could not be written or read"),
    ],
)
def test_a_servers_error_is_told_by_its_kind_and_never_in_its_words(words: str, told: str) -> None:
    store = Store("s3://bucket/logs", Refusing(words))
    for ask in (store.check, lambda: store.sizes("folder")):
        with pytest.raises(StoreError, match=f"^s3://bucket/logs: .*{told}") as refused:
            ask()
        assert "anna" not in str(refused.value)
