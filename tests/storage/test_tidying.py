"""What killed processes left and what others could read is mended by the next command that works on the warehouse."""

from __future__ import annotations

import os
import signal
import stat
import tempfile
from pathlib import Path

from support.cli import qlog
from support.door import in_child, warehouse_at

from qlog_assets.storage.engine import Engine
from qlog_assets.storage.scratch import system_scratch, temporary_directory


def _die(home: Path) -> None:
    """A child's task: die with scratch directories in every zone, one with what DuckDB spilled."""

    warehouse = warehouse_at(home)
    (warehouse.landing / "aol").mkdir()
    with (
        Engine.open(warehouse) as engine,
        temporary_directory(warehouse.landing / "aol") as landing,
        temporary_directory(warehouse.draws),
        temporary_directory(warehouse.private / "capped_log" / "2006-03"),
    ):
        (landing / "log.txt").write_text("rows of the log", encoding="utf-8")
        engine.connection.execute("SET memory_limit = '32MB'")
        engine.connection.execute("CREATE TABLE numbers AS SELECT range, random() FROM range(5000000)")
        os.kill(os.getpid(), signal.SIGKILL)


def scratch(home: Path) -> list[Path]:
    return list(home.rglob(".qlog-tmp-*"))


def test_the_next_command_removes_what_a_killed_process_left(home: Path) -> None:
    assert in_child(_die, home).killed
    assert len(scratch(home)) == 4 and list((home / "private" / "spill").rglob("*.tmp"))
    assert qlog(home, "ledger").code == 0
    assert scratch(home) == [] and list((home / "private" / "spill").iterdir()) == []


def test_loose_modes_are_closed_and_told_in_one_line_and_public_ones_stay(home: Path) -> None:
    assert qlog(home, "ledger", "set-budget", "--epsilon", "9", "--delta", "0.1", "--reason", "an account").success
    (home / "private" / "draws" / "stored").write_text("noise", encoding="utf-8")
    (home / "crowd" / "2006-03").mkdir(parents=True)
    (home / "crowd" / "2006-03" / "reports.parquet").write_text("reports", encoding="utf-8")
    (home / "released" / "table.csv").write_text("public", encoding="utf-8")
    private = ("landing", "private", "private/draws", "private/draws/stored", "dagster", "ledger.db")
    private += ("crowd", "crowd/2006-03", "crowd/2006-03/reports.parquet")
    for name in private:
        (home / name).chmod(0o777)
    public = (home / "released" / "table.csv").stat().st_mode
    answer = qlog(home, "ledger")
    assert answer.code == 0 and answer.err.count("\n") == 1 and "and 8 more could be used by others" in answer.err
    for name in private:
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o700, name
    assert (home / "released" / "table.csv").stat().st_mode == public
    assert stat.S_IMODE((home / "released").stat().st_mode) == 0o755
    assert qlog(home, "ledger").err == ""


def test_an_ordinary_release_leaves_nothing_to_close(released: Path) -> None:
    assert qlog(released, "ledger").err == ""


def test_a_warehouse_that_everybody_can_write_is_told(home: Path) -> None:
    home.chmod(0o777)
    assert "can be written by everybody" in qlog(home, "ledger").err


def _die_with_system_scratch(place: str) -> None:
    tempfile.tempdir = place

    with system_scratch():
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_was_left_outside_any_warehouse_is_removed_by_the_next_one() -> None:
    with system_scratch() as mine:
        assert in_child(_die_with_system_scratch, tempfile.gettempdir()).killed
        before = set(mine.parent.iterdir())
        with system_scratch() as another:
            left = set(mine.parent.iterdir()) - {another}
    assert mine in left and len(left) < len(before)
