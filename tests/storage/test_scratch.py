"""Scratch directories and locks: a dead process's are removed, a living one's are not."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from support.door import Child, in_child, umask

from qlog_assets.storage import scratch
from qlog_assets.storage.scratch import BusyError, hold_lock, make_private, remove_leftovers, temporary_directory


def _die_with_scratch(folder: Path) -> None:
    with temporary_directory(folder) as path:
        (path / "rows").write_text("private", encoding="utf-8")
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    assert in_child(_die_with_scratch, tmp_path).killed
    assert len(list(tmp_path.iterdir())) == 1
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_living_process_holds_stays(tmp_path: Path) -> None:
    with temporary_directory(tmp_path) as path:
        remove_leftovers(tmp_path)
        assert path.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_was_renamed_away_stays_under_its_name(tmp_path: Path) -> None:
    with temporary_directory(tmp_path) as path:
        (path / "rows").touch()
        path.rename(tmp_path / "finished")
        remove_leftovers(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["finished"]


def test_nothing_but_scratch_is_ever_removed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".qlog-tmp-file").touch()
    (folder / "ordinary").mkdir()
    (folder / ".qlog-tmp-link").symlink_to(elsewhere)
    remove_leftovers(folder)
    assert sorted(path.name for path in folder.iterdir()) == [".qlog-tmp-file", ".qlog-tmp-link", "ordinary"]
    assert elsewhere.is_dir()


def _clean_for(folder: Path, stop: Path) -> None:
    while not stop.exists():
        remove_leftovers(folder)


def test_scratch_can_be_made_while_others_clean_up(tmp_path: Path) -> None:
    folder, stop = tmp_path / "folder", tmp_path / "stop"
    folder.mkdir()
    cleaner = Child(_clean_for, folder, stop)
    for number in range(2000):
        with temporary_directory(folder) as path:
            (path / "rows").touch()
            path.rename(folder / f"finished-{number}")
    stop.touch()
    assert cleaner.end().code == 0
    assert len(list(folder.glob("finished-*/rows"))) == 2000


def test_where_there_are_no_locks_nothing_is_taken_for_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "_hold", lambda descriptor: None)  # what a file system without locks answers
    (tmp_path / ".qlog-tmp-somebodys").mkdir()
    with temporary_directory(tmp_path) as path:
        remove_leftovers(tmp_path)
        assert path.is_dir()
    with hold_lock(tmp_path / "lock", 0, "busy"):
        pass
    assert (tmp_path / ".qlog-tmp-somebodys").is_dir()


def test_a_lock_is_exclusive_and_dies_with_its_process(tmp_path: Path) -> None:
    lock = tmp_path / "locks" / "door"
    with (
        hold_lock(lock, 0, "busy"),
        pytest.raises(BusyError, match=r"busy \(waited 0.1 s\)"),
        hold_lock(lock, 0.1, "busy"),
    ):
        pass
    assert in_child(_die_with_lock, lock).killed
    with hold_lock(lock, 0, "busy"):
        pass


def _die_with_lock(lock: Path) -> None:
    with hold_lock(lock, 0, "busy"):
        os.kill(os.getpid(), signal.SIGKILL)


def test_private_directories_are_private_at_every_level(tmp_path: Path) -> None:
    with umask(0):
        make_private(tmp_path / "a" / "b" / "c")
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "a").rglob("*")} == {0o700}
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
