"""Runs from Python: what becomes of other months when one process dies, and what is said of a run that failed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from sqlalchemy.exc import OperationalError
from support.door import charges, warehouse_at

from qlog_assets.api import runs
from qlog_assets.api.runs import JobRun, RunFailedError, dagster_instance, get_ready, run_all, without_echoes
from qlog_assets.checks import beside, suites
from qlog_assets.door import door
from qlog_assets.settings import Settings
from qlog_assets.storage.warehouse import Warehouse

MONTHS = ("2006-03", "2006-04")


def release_both(home: Path, answer: multiprocessing.SimpleQueue[dict[str, str]], killed: bool) -> None:
    """Release two months side by side; if `killed`, each worker dies as the out-of-memory killer would have it."""
    os.environ["QLOG_HOME"] = str(home)
    if killed:
        door.on_point = lambda point: os.kill(os.getpid(), signal.SIGKILL) if point == "charge_reserved" else None
    answer.put(run_all(warehouse_at(home), [JobRun("safelog_release", month, {}) for month in MONTHS]))


def in_process(home: Path, killed: bool) -> dict[str, str]:
    context = multiprocessing.get_context("fork")
    answer: multiprocessing.SimpleQueue[dict[str, str]] = context.SimpleQueue()
    process = context.Process(target=release_both, args=(home, answer, killed))
    process.start()
    process.join(120)
    assert process.exitcode == 0, "it must end, whatever happens to its workers"
    return answer.get()


@pytest.mark.slow
def test_a_killed_worker_is_reported_and_the_next_run_takes_up_its_charge(ingested: Path) -> None:
    failures = in_process(ingested, killed=True)
    assert set(failures) == set(MONTHS)
    assert all("was killed" in reason for reason in failures.values())
    reserved = {charge.release_id for charge in charges(ingested)}
    assert in_process(ingested, killed=False) == {}
    after = charges(ingested)
    assert reserved <= {charge.release_id for charge in after}
    assert [charge.state for charge in after] == ["published"] * len(MONTHS)


@pytest.mark.usefixtures("restored_environment")
def test_an_instance_that_cannot_be_opened_is_one_line_whatever_opens_it(tmp_path: Path) -> None:
    warehouse = Warehouse(Settings(home=tmp_path)).make()
    (warehouse.dagster / "dagster.yaml").mkdir()
    works = [JobRun("safelog_release", month, {}) for month in MONTHS]
    assert "could not finish the run" in run_all(warehouse, works[:1])[MONTHS[0]]
    for opening in (lambda: run_all(warehouse, works), lambda: get_ready(warehouse)):
        with pytest.raises(RunFailedError, match=r"could not finish the run \(.*dagster\.yaml"):
            opening()


@dg.asset
def number() -> int:
    return 1


@pytest.mark.usefixtures("restored_environment")
def test_a_history_without_room_fails_the_run_in_one_line_and_prints_no_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = SqliteEventLogStorage.store_event
    full: list[dg.EventLogEntry] = []

    def refuse(self: SqliteEventLogStorage, event: dg.EventLogEntry) -> None:
        if full or event.dagster_event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
            full.append(event)
            raise OperationalError("INSERT INTO event_logs", {"event": event.message}, Exception("disk is full"))
        store(self, event)

    job = dg.Definitions(assets=[number], jobs=[dg.define_asset_job("all")]).resolve_job_def("all")
    monkeypatch.setattr(SqliteEventLogStorage, "store_event", refuse)
    with (
        pytest.raises(RunFailedError, match=r"could not finish the run \(disk is full\)"),
        dagster_instance(warehouse_at(tmp_path)) as instance,
        without_echoes(),
    ):
        job.execute_in_process(instance=instance)
    assert full and "INSERT" not in capsys.readouterr().err


def test_whatever_else_is_written_to_standard_error_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    with without_echoes():
        print("a warning", file=sys.stderr)
        assert sys.stderr.isatty() is False
    assert capsys.readouterr().err == "a warning\n"


def test_months_that_run_in_order_are_checked_by_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[object]
) -> None:
    """Each process that checks spends seconds of a core on its imports."""
    asked: list[object] = []
    monkeypatch.setattr(runs, "_run_here", lambda *given: asked.append(suites.evaluate_elsewhere.get()))
    works = [JobRun("safelog_release", month, {}) for month in MONTHS]
    assert run_all(warehouse_at(tmp_path), works, in_order=True) == {}
    assert len(asked) == len(MONTHS) and len(started) == 1 and set(asked) == set(started)
    assert suites.evaluate_elsewhere.get() is None


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What stands for processes that check, in the order of their start; none of them answers."""
    found: list[object] = []

    class Started:
        def __init__(self) -> None:
            self.evaluate = object()
            found.append(self.evaluate)

        def end(self) -> None:
            """There is no process to end."""

    monkeypatch.setattr(beside, "Checker", Started)
    monkeypatch.setattr(suites, "is_loaded", lambda: False)
    return found
