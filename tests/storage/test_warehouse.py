"""The warehouse on disk: partitions whole or not at all, provenance that says what made them and shows every change."""

from __future__ import annotations

import os
import shutil
import stat
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.door import Child, in_child, umask, warehouse_at
from support.tampering import edit_json, flip

from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.partition import Partition, Provenance, TableFacts, WarehouseError, describe
from qlog_assets.storage.private_files import write_private
from qlog_assets.storage.warehouse import Warehouse

MONTH = "2006-03"


@pytest.fixture
def warehouse(home: Path) -> Warehouse:
    return warehouse_at(home)


def provenance(**changes: Any) -> Provenance:
    facts: dict[str, Any] = {"code_version": "1", "parameters": {"limit": 4}, "upstream": {"raw_log": "abc"}}
    return describe("capped_log", MONTH, **{**facts, **changes}, run_id="run")


def writer(text: str = "rows") -> Any:
    def write(directory: Path) -> dict[str, TableFacts]:
        path = directory / "part.parquet"
        path.write_text(text, encoding="utf-8")
        return {"queries": TableFacts(1, {path.name: file_checksum(path)}, "digest")}

    return write


def written(warehouse: Warehouse, text: str = "rows", **changes: Any) -> Partition:
    return warehouse.write_partition(provenance(**changes), writer(text))[0]


# Provenance -----------------------------------------------------------------------------------------------------------


def test_a_partition_carries_what_made_it(warehouse: Warehouse) -> None:
    facts = written(warehouse).provenance
    assert (facts.asset, facts.month, facts.code_version, facts.run_id) == ("capped_log", MONTH, "1", "run")
    assert (facts.parameters, facts.upstream) == ({"limit": 4}, {"raw_log": "abc"})
    assert facts.tables["queries"].rows == 1 and len(facts.tables["queries"].files["part.parquet"]) == 64
    assert warehouse.current("capped_log", MONTH).provenance == facts


@pytest.mark.parametrize(
    "changes", [{"parameters": {"limit": 5}}, {"upstream": {"raw_log": "x"}}, {"code_version": "2"}]
)
def test_another_parameter_upstream_or_version_is_another_shape_beside_the_first(
    warehouse: Warehouse, changes: dict[str, Any]
) -> None:
    first = written(warehouse)
    second = written(warehouse, **changes)
    assert first.path != second.path
    first.verify()
    assert warehouse.current("capped_log", MONTH).path == second.path


def test_a_study_does_not_move_current(warehouse: Warehouse) -> None:
    first = written(warehouse)
    warehouse.write_partition(provenance(parameters={"limit": 9}), writer(), make_current=False)
    assert warehouse.current("capped_log", MONTH).path == first.path


FIELDS = {
    "asset": "cleaned_log", "month": "2006-04", "shape": "0" * 20, "code_version": "2", "parameters": {"limit": 99},
    "upstream": {}, "tables": {}, "measured": {"read": 1}, "run_id": None, "written_at": "2001-01-01", "seal": "0",
}  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_a_change_of_any_field_of_the_provenance_is_seen(warehouse: Warehouse, field: str) -> None:
    partition = written(warehouse)
    edit_json(partition.path / "provenance.json", field, value=FIELDS[field])
    with pytest.raises(WarehouseError, match="capped_log 2006-03: its provenance was changed after it was written"):
        warehouse.current("capped_log", MONTH).verify()


def test_every_field_of_the_provenance_is_tried() -> None:
    assert set(FIELDS) | {"version"} == set(Provenance.__dataclass_fields__)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"tables": {}}'])
def test_what_is_no_provenance_is_named_as_such(warehouse: Warehouse, text: str) -> None:
    partition = written(warehouse)
    (partition.path / "provenance.json").write_text(text, encoding="utf-8")
    with pytest.raises(WarehouseError, match=r"materialize (it|the partition) again"):
        warehouse.current("capped_log", MONTH)


# Files ----------------------------------------------------------------------------------------------------------------


def test_a_changed_missing_or_added_file_is_seen(warehouse: Warehouse) -> None:
    partition = written(warehouse)
    (partition.path / "more.parquet").touch()
    with pytest.raises(WarehouseError, match=r"holds 1 file\(s\) its provenance does not know"):
        partition.verify()
    (partition.path / "more.parquet").unlink()
    flip(partition.path / "part.parquet")
    with pytest.raises(WarehouseError, match=r"part\.parquet was changed after it was written"):
        partition.verify()
    (partition.path / "part.parquet").unlink()
    with pytest.raises(WarehouseError, match=r"part\.parquet was changed after it was written"):
        partition.verify()


def test_a_block_beside_which_a_changed_file_is_found_fails_with_that_reason_alone(warehouse: Warehouse) -> None:
    """Whatever the block itself makes of the file: its own words could quote a value."""
    partition = written(warehouse)
    with partition.verifying():
        pass
    with pytest.raises(ZeroDivisionError), partition.verifying():
        raise ZeroDivisionError
    flip(partition.path / "part.parquet")
    for reason in (None, ValueError("could not convert 'my own secret query'")):
        with (
            pytest.raises(WarehouseError, match=r"part\.parquet was changed after it was written") as caught,
            partition.verifying(),
        ):
            if reason is not None:
                raise reason
        assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_a_link_to_a_file_made_while_it_is_read_is_no_change(warehouse: Warehouse, tmp_path: Path) -> None:
    """The raw log's files are links to those of its batches, and another month of a batch may be taken in meanwhile."""
    partition = written(warehouse)
    with partition.verifying():
        os.link(partition.path / "part.parquet", tmp_path / "elsewhere.parquet")


@pytest.mark.parametrize("name", ["../part.parquet", "linked/part.parquet"])
def test_a_file_that_lies_elsewhere_is_no_file_of_a_partition(warehouse: Warehouse, name: str) -> None:
    partition = written(warehouse)
    (partition.path / "part.parquet").rename(partition.path.parent / "part.parquet")
    (partition.path / "linked").symlink_to(partition.path.parent)
    made = partition.provenance
    ((table, facts),) = made.tables.items()
    forged = replace(facts, files={name: facts.files["part.parquet"]})
    replace(made, tables={table: forged}).write(partition.path / "provenance.json")
    with pytest.raises(WarehouseError, match=r"part\.parquet was changed after it was written"):
        warehouse.current("capped_log", MONTH).verify()


def test_a_partition_that_was_mended_while_it_was_read_is_not_what_was_read(warehouse: Warehouse) -> None:
    partition = written(warehouse)
    path, mended = partition.path / "part.parquet", warehouse.home / "mended.parquet"
    mended.write_bytes(path.read_bytes())
    os.utime(mended, (1, 1))
    with pytest.raises(WarehouseError, match="was written anew while it was read"), partition.verifying():
        # In one step: whoever hashes it beside this block finds the same bytes at any moment.
        os.replace(mended, path)


def test_a_partition_under_another_months_name_is_not_that_months(warehouse: Warehouse) -> None:
    written(warehouse)
    shutil.copytree(warehouse.private / "capped_log" / MONTH, warehouse.private / "capped_log" / "2006-04")
    with pytest.raises(WarehouseError, match="its provenance was changed"):
        warehouse.current("capped_log", "2006-04").verify()


def test_an_intact_partition_is_kept_and_a_damaged_or_unusable_one_is_written_anew(warehouse: Warehouse) -> None:
    first = written(warehouse)
    again, fresh = warehouse.write_partition(provenance(), writer("other rows"))
    assert fresh is False and again.provenance == first.provenance
    flip(first.path / "part.parquet")
    again, fresh = warehouse.write_partition(provenance(), writer("other rows"))
    assert fresh is True and (again.path / "part.parquet").read_text("utf-8") == "other rows"
    _, fresh = warehouse.write_partition(provenance(), writer(), usable=lambda partition: False)
    assert fresh is True


def test_a_partition_that_is_missing_or_points_nowhere_is_an_error_that_says_what_to_do(warehouse: Warehouse) -> None:
    with pytest.raises(WarehouseError, match="capped_log 2006-03: not materialized yet"):
        warehouse.current("capped_log", MONTH)
    partition = written(warehouse)
    pointer = partition.path.parent / "current"
    for text in ("", "no-such-shape", "\xff"):
        pointer.write_text(text, encoding="latin-1")
        with pytest.raises(WarehouseError, match="materialize it again"):
            warehouse.current("capped_log", MONTH)


def test_a_write_that_fails_leaves_nothing(warehouse: Warehouse) -> None:
    def fail(directory: Path) -> dict[str, TableFacts]:
        (directory / "part.parquet").touch()
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        warehouse.write_partition(provenance(), fail)
    assert list((warehouse.private / "capped_log").rglob("*")) == [warehouse.private / "capped_log" / MONTH]


def _die_writing(home: Path) -> None:
    def write(directory: Path) -> dict[str, TableFacts]:
        (directory / "part.parquet").touch()
        os.kill(os.getpid(), 9)
        return {}

    warehouse_at(home).write_partition(provenance(), write)


def test_a_killed_write_shows_nothing_and_is_cleaned_up(warehouse: Warehouse, home: Path) -> None:
    assert in_child(_die_writing, home).killed
    assert not warehouse.has_current("capped_log", MONTH)
    assert list(warehouse.private.rglob(".qlog-tmp-*"))
    warehouse.remove_leftovers()
    assert not list(warehouse.private.rglob(".qlog-tmp-*"))


def _write_often(home: Path, text: str) -> None:
    for _ in range(30):
        warehouse_at(home).write_partition(provenance(), writer(text), usable=lambda partition: False)


def test_processes_that_write_the_same_partition_at_once_leave_a_whole_one(warehouse: Warehouse, home: Path) -> None:
    ended = [child.end() for child in [Child(_write_often, home, text) for text in ("one", "two")]]
    assert [each.code for each in ended] == [0, 0], ended
    warehouse.current("capped_log", MONTH).verify()
    assert not list(warehouse.private.rglob(".qlog-tmp-*"))


def test_dropping_a_table_leaves_the_others_and_a_provenance_that_fits(warehouse: Warehouse) -> None:
    def write(directory: Path) -> dict[str, TableFacts]:
        tables = {}
        for name in ("2006-03", "2006-04"):
            (directory / name).write_text(name, encoding="utf-8")
            tables[name] = TableFacts(1, {name: file_checksum(directory / name)})
        return tables

    partition, _ = warehouse.write_partition(provenance(), write)
    warehouse.drop_tables(partition, ["2006-03", "2001-01"])
    left = warehouse.current("capped_log", MONTH)
    left.verify()
    assert list(left.provenance.tables) == ["2006-04"] and left.provenance.shape == partition.provenance.shape


def test_one_table_is_verified_by_itself_and_one_that_is_not_there_is_no_good_one(warehouse: Warehouse) -> None:
    def write(directory: Path) -> dict[str, TableFacts]:
        for name in ("good", "bad"):
            (directory / name).write_text(name, encoding="utf-8")
        return {name: TableFacts(1, {name: file_checksum(directory / name)}) for name in ("good", "bad")}

    partition, _ = warehouse.write_partition(provenance(), write)
    (partition.path / "bad").write_text("worse", encoding="utf-8")
    partition.verify("good")
    for table in ("bad", None):
        with pytest.raises(WarehouseError, match="bad was changed"):
            partition.verify(table)
    with pytest.raises(WarehouseError, match="has no table other"):
        partition.verify("other")


# Who can read it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o077, 0o000])
def test_private_zones_and_landing_are_the_owners_alone_and_released_is_everybodys(home: Path, mask: int) -> None:
    with umask(mask):
        warehouse = warehouse_at(home / "inner")
        written(warehouse)
        write_private(warehouse.private / "note", "text")
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in warehouse.home.rglob("*")}
    assert modes.pop(warehouse.released) == 0o755
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
