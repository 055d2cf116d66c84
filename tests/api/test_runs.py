"""Several months at once: what becomes of the others when one process dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest
from support.door import charges, warehouse_at

from qlog_assets.api.runs import JobRun, RunFailedError, get_ready, run_all
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
