"""Dagster's history kept open: the same files, the same answers, and nothing written where nobody looks."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from support.door import warehouse_at

from qlog_assets import run_history
from qlog_assets.api import runs
from qlog_assets.api.runs import dagster_instance
from qlog_assets.errors import QlogError
from qlog_assets.run_history import OPEN_SHARDS, OpenEventLog, OpenRunStorage, place

pytestmark = pytest.mark.usefixtures("restored_environment")


@dg.asset
def number() -> int:
    return 1


@dg.asset_check(asset=number, blocking=True)
def is_one(number: int) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=number == 1)


JOB = dg.Definitions(assets=[number], asset_checks=[is_one], jobs=[dg.define_asset_job("all")]).resolve_job_def("all")


def run_once(home: Path) -> str:
    with dagster_instance(warehouse_at(home)) as instance:
        return JOB.execute_in_process(instance=instance).run_id


def test_the_instance_uses_it(tmp_path: Path) -> None:
    with dagster_instance(warehouse_at(tmp_path)) as instance:
        assert isinstance(instance.event_log_storage, OpenEventLog)
        assert isinstance(instance.run_storage, OpenRunStorage)


@pytest.mark.parametrize("ours_first", [True, False])
def test_what_one_storage_writes_the_other_reads_and_continues(
    tmp_path: Path, ours_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warehouse of an earlier version keeps its history, and going back to Dagster's own storage loses nothing."""
    ours, found = runs.DAGSTER_YAML, []
    plain = ours.split("storage:")[0]
    for text in (ours, plain) if ours_first else (plain, ours):
        monkeypatch.setattr(runs, "DAGSTER_YAML", text)
        found.append(run_once(tmp_path))
        with dagster_instance(warehouse_at(tmp_path)) as instance:
            assert isinstance(instance.event_log_storage, OpenEventLog) is (text is ours)
            assert {run.run_id for run in instance.get_runs()} == set(found)
            for run_id in found:
                kinds = [record.dagster_event_type for record in instance.all_logs(run_id)]
                assert kinds[-1] is dg.DagsterEventType.RUN_SUCCESS
                assert dg.DagsterEventType.ASSET_CHECK_EVALUATION in kinds
            newest = instance.get_latest_materialization_event(dg.AssetKey("number"))
            assert newest is not None and newest.run_id == found[-1]
            checks = instance.event_log_storage.get_asset_check_execution_history(
                dg.AssetCheckKey(dg.AssetKey("number"), "is_one"), limit=10
            )
            assert {check.run_id for check in checks} == set(found)


def test_the_databases_are_those_that_dagster_makes(tmp_path: Path) -> None:
    def schema(path: Path) -> list[tuple[object, ...]]:
        with sqlite3.connect(path) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            assert mode == "wal"
            tables = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
            return tables + connection.execute("SELECT version_num FROM alembic_version").fetchall()

    for storage, folder in ((SqliteEventLogStorage, "dagster"), (OpenEventLog, "ours")):
        log = storage(str(tmp_path / folder))
        with log.run_connection("a-run"):
            pass
        log.dispose()
    for shard in ("index.db", "a-run.db"):
        assert schema(tmp_path / "ours" / shard) == schema(tmp_path / "dagster" / shard)


def test_what_is_kept_open_is_read_by_others(tmp_path: Path) -> None:
    with dagster_instance(warehouse_at(tmp_path)) as instance:
        run_id = JOB.execute_in_process(instance=instance).run_id
        events = tmp_path / "dagster" / "history" / "runs"
        assert events.joinpath(f"{run_id}.db-wal").exists()
        assert len(SqliteEventLogStorage(str(events)).get_logs_for_run(run_id)) == len(instance.all_logs(run_id)) > 5


def test_the_end_of_a_run_is_in_its_files_although_the_ui_has_them_open(tmp_path: Path) -> None:
    with dagster_instance(warehouse_at(tmp_path)) as ui:
        run_id = run_once(tmp_path)
        events = len(ui.all_logs(run_id))
        with dagster_instance(warehouse_at(tmp_path)) as running:
            running.report_engine_event("one more", running.get_run_by_id(run_id))
        path = Path(ui.event_log_storage.path_for_shard(run_id))
        assert path.with_name(f"{path.name}-wal").exists()
        alone = tmp_path / "without-its-log.db"
        alone.write_bytes(path.read_bytes())
        with sqlite3.connect(alone) as connection:
            assert connection.execute("SELECT count(*) FROM event_logs").fetchone() == (events + 1,)


def test_a_watched_run_is_told_while_it_runs(tmp_path: Path) -> None:
    """The UI hears of a run's progress by changes of the database file itself; reading it must be no change."""
    with dagster_instance(warehouse_at(tmp_path)) as watching, dagster_instance(warehouse_at(tmp_path)) as running:
        heard, done = [], threading.Event()

        def hear(entry: dg.EventLogEntry, cursor: str) -> None:
            heard.append(entry.dagster_event_type)
            if entry.dagster_event_type is dg.DagsterEventType.ENGINE_EVENT:
                done.set()

        run = running.create_run_for_job(JOB)
        watching.watch_event_logs(run.run_id, None, hear)
        running.report_engine_event("under way", run)
        assert done.wait(timeout=30), heard
        path = Path(running.event_log_storage.path_for_shard(run.run_id))
        before = path.stat().st_mtime_ns
        assert running.all_logs(run.run_id) and watching.all_logs(run.run_id)
        assert path.stat().st_mtime_ns == before


def test_a_database_that_somebody_deleted_is_made_again(tmp_path: Path) -> None:
    log = OpenEventLog(str(tmp_path))
    with log.run_connection("a-run") as connection:
        connection.exec_driver_sql("CREATE TABLE mine (x)")
    for path in tmp_path.glob("a-run.db*"):
        path.unlink()
    with log.run_connection("a-run") as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM event_logs").scalar() == 0
        assert not connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE name = 'mine'").fetchall()
    assert (tmp_path / "a-run.db").exists()
    log.dispose()


def test_a_database_that_another_process_made_again_is_the_one_that_counts(tmp_path: Path) -> None:
    first, second = OpenEventLog(str(tmp_path)), OpenEventLog(str(tmp_path))
    for log in (first, second):
        with log.run_connection("a-run"):
            pass
    for path in tmp_path.glob("a-run.db*"):
        path.unlink()
    with first.run_connection("a-run") as connection:
        connection.exec_driver_sql("CREATE TABLE mine (x)")
    with second.run_connection("a-run") as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM mine").scalar() == 0
    first.dispose()
    second.dispose()


def test_events_of_a_deleted_database_do_not_come_back_with_the_log_that_was_left(tmp_path: Path) -> None:
    log = OpenEventLog(str(tmp_path))
    with log.run_connection("a-run") as connection:
        connection.exec_driver_sql("CREATE TABLE deleted (x)")
    left = (tmp_path / "a-run.db-wal").read_bytes()
    log.dispose()
    (tmp_path / "a-run.db").unlink()
    (tmp_path / "a-run.db-wal").write_bytes(left)
    log = OpenEventLog(str(tmp_path))
    with log.run_connection("a-run") as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM event_logs").scalar() == 0
        assert not connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE name = 'deleted'").fetchall()
    log.dispose()


def test_an_event_whose_database_was_just_deleted_fails_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def store_and_wipe(self: SqliteEventLogStorage, event: dg.EventLogEntry) -> None:
        Path(self.path_for_shard(event.run_id)).unlink(missing_ok=True)

    monkeypatch.setattr(SqliteEventLogStorage, "store_event", store_and_wipe)
    with dagster_instance(warehouse_at(tmp_path)) as instance:
        assert JOB.execute_in_process(instance=instance).success


def test_no_history_is_made_where_no_instance_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped DAGSTER_HOME beside the right dagster.yaml: an empty history would be believed."""
    run_once(tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(QlogError, match=r"has no dagster\.yaml"):
        dg.DagsterInstance.from_config(str(tmp_path / "dagster"))
    assert not (tmp_path / "elsewhere").exists()


def test_a_tilde_is_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = run_once(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_HOME", "~/dagster")
    monkeypatch.chdir(tmp_path)
    with dg.DagsterInstance.get() as instance:
        assert [run.run_id for run in instance.get_runs()] == [run_id]
    assert not (tmp_path / "~").exists()


def test_only_a_few_databases_stay_open(tmp_path: Path) -> None:
    log = OpenEventLog(str(tmp_path))
    for number in range(3 * OPEN_SHARDS):
        with log.run_connection(f"run-{number}"), pytest.raises(KeyError):
            log._engines[f"run-{number - OPEN_SHARDS}"]
    assert len(log._engines) == OPEN_SHARDS
    log.dispose()
    assert not log._engines
    assert not list(tmp_path.glob("*-wal"))


def test_a_database_without_revision_is_left_to_dagster(tmp_path: Path) -> None:
    """As left by a version that did not stamp, or by a process that was killed while it made one."""
    for name in ("index.db", "a-run.db"):
        sqlite3.connect(tmp_path / name).execute("VACUUM").connection.close()
    log = OpenEventLog(str(tmp_path))
    for shard in ("index", "a-run"):
        with log._connect(shard) as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM event_logs").scalar() == 0
        assert run_history.is_newest(tmp_path / f"{shard}.db")
    log.dispose()


def test_a_file_is_placed_once(tmp_path: Path) -> None:
    target = tmp_path / "a.db"
    place(target, b"first")
    place(target, b"second")
    assert target.read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


def test_no_file_is_placed_where_links_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(run_history.os, "link", refuse)
    log = OpenEventLog(str(tmp_path))
    with log.run_connection("a-run") as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM event_logs").scalar() == 0
    log.dispose()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-run.db", "index.db"]
