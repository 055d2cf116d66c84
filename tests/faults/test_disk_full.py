"""A disk that fills up at any step: nothing half-written is public, the error says so, and room is all it takes."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import MARCH, REFUSED, charges, in_child, leftovers, public_files, release, released_id, warehouse_at

from qlog_assets.door import door as door_module
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)
pytestmark = pytest.mark.faults

# Before each thing that is written: the reservation, the draw, its record, the staged files, the record of publication.
FULL_AT = ("guarantee_computed", "tables_drawn", "draw_stored", "draw_loaded", "outputs_checked", "release_staged")
SMALL_FILE_BYTES = 600
DISK_BYTES = 24 << 20
ROOM_FOR_THE_DOOR = 650_000
"""Enough to publish, and too little for Dagster's own history of the run."""


def _release_with(home: Path, point: str, act: Callable[[], None]) -> str:
    door_module.on_point = lambda reached: act() if reached == point else None
    return released_id(home)


def _no_large_file_from(home: Path, point: str) -> str:
    """A child's task: from a point on, no file may grow beyond a few hundred bytes."""
    limits = (SMALL_FILE_BYTES, SMALL_FILE_BYTES)
    return _release_with(home, point, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits))


def _full_disk_from(home: Path, point: str) -> str:
    """A child's task: at a point, something else takes all that is left of the disk."""
    return _release_with(home, point, lambda: fill(home / "ballast"))


def fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as stream:
        for block in (1 << 20, 1 << 12, 1):
            while True:
                try:
                    stream.write(b"\0" * block)
                except OSError:
                    break


def assert_refused_and_nothing_public(home: Path, code: int, said: str) -> None:
    assert code == REFUSED, said
    assert "nothing" in said and ("could not" in said or "cannot be used" in said), said
    assert public_files(home) == {}


def assert_finished_at_no_new_charge(home: Path) -> None:
    known = charges(home)
    receipt = release(home)
    assert receipt.charged is (known == [])
    assert [charge.release_id for charge in known] in ([], [receipt.charge.release_id])
    assert len(charges(home)) == 1
    assert leftovers(home) == [] and audit_warehouse(warehouse_at(home)).ok


@pytest.mark.parametrize("point", FULL_AT)
def test_files_that_cannot_grow_leave_nothing_half_written_and_no_new_charge(chained: Path, point: str) -> None:
    ended = in_child(_no_large_file_from, chained, point)
    assert_refused_and_nothing_public(chained, ended.code, ended.answer)
    assert_finished_at_no_new_charge(chained)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with little room."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", mount]
    if shutil.which("mount") is None or os.getuid() != 0:
        pytest.skip("only root can mount a file system")
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let root mount a file system")
    yield mount
    subprocess.run(["umount", "--lazy", mount], check=True)


@pytest.mark.parametrize("point", FULL_AT)
def test_a_full_disk_leaves_nothing_half_written_and_no_new_charge(small_disk: Path, chained: Path, point: str) -> None:
    home = Path(shutil.copytree(chained, small_disk / "warehouse", ignore=shutil.ignore_patterns("dagster")))
    ended = in_child(_full_disk_from, home, point)
    assert_refused_and_nothing_public(home, ended.code, ended.answer)
    (home / "ballast").unlink()
    assert_finished_at_no_new_charge(home)


@pytest.mark.parametrize("room", [0, 50_000, 200_000, 400_000, 500_000, ROOM_FOR_THE_DOOR])
def test_a_whole_run_on_a_full_disk_is_refused_in_one_line_and_can_be_run_again(
    small_disk: Path, ingested: Path, room: int
) -> None:
    """The ledger, Dagster's own history or a partition finds no room first: it is one line all the same."""
    home = Path(shutil.copytree(ingested, small_disk / "warehouse"))
    fill(home / "ballast")
    os.truncate(home / "ballast", (home / "ballast").stat().st_size - room)
    refusal = qlog(home, "release", "safelog", "--month", MARCH).refusal
    assert "disk" in refusal or "No space left" in refusal
    seen = public_files(home)
    (home / "ballast").unlink()
    assert qlog(home, "release", "safelog", "--month", MARCH, "--json").json["rows"]
    # With most room the door finishes, and Dagster finds none to say so: then all of the release is public.
    assert seen == {} or (room == ROOM_FOR_THE_DOOR and seen == public_files(home))
    assert len(charges(home)) == 1 and leftovers(home) == []
    assert qlog(home, "audit").code == 0
