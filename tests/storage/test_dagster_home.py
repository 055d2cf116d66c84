"""DAGSTER_HOME inside a warehouse: its settings follow the version, an operator's own stay, and no run is lost."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager

from qlog_assets.errors import QlogError
from qlog_assets.settings import Settings
from qlog_assets.storage.dagster_home import DAGSTER_YAML, SETTINGS, open_existing, owner_only, prepare_home
from qlog_assets.storage.warehouse import Warehouse

pytestmark = pytest.mark.usefixtures("restored_environment")

# As an earlier version wrote it, to the letter; the class that it names is gone.
EARLIER_YAML = """\
# Written by qlog: nothing leaves this machine, no sign-up window covers the UI, what a library may print of the log
# while a step runs is not kept, and the history's files stay open while a run writes them.
telemetry:
  enabled: false
nux:
  enabled: false
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
storage:
  custom:
    module: qlog_assets.run_history
    class: RunHistory
    config:
      base_dir:
        env: DAGSTER_HOME
"""
OWN_YAML = "telemetry:\n  enabled: false\n"


@dg.asset
def number() -> int:
    return 1


@dg.asset_check(asset=number, blocking=True)
def is_one(number: int) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=number == 1)


JOB = dg.Definitions(assets=[number], asset_checks=[is_one], jobs=[dg.define_asset_job("all")]).resolve_job_def("all")


@pytest.fixture
def warehouse(home: Path) -> Warehouse:
    return Warehouse(Settings(home=home)).make()


def settings_of(warehouse: Warehouse) -> Path:
    return warehouse.dagster / SETTINGS


def run_once(warehouse: Warehouse) -> str:
    prepare_home(warehouse)
    with dg.DagsterInstance.get() as instance:
        return JOB.execute_in_process(instance=instance).run_id


def assert_all_is_there(instance: dg.DagsterInstance, *run_ids: str) -> None:
    """The runs, their events, the checks they evaluated, and what was materialized last."""
    assert {run.run_id for run in instance.get_runs()} == set(run_ids)
    for run_id in run_ids:
        kinds = [record.dagster_event_type for record in instance.all_logs(run_id)]
        assert kinds[-1] is dg.DagsterEventType.RUN_SUCCESS
        assert dg.DagsterEventType.ASSET_CHECK_EVALUATION in kinds
    newest = instance.get_latest_materialization_event(dg.AssetKey("number"))
    assert newest is not None and newest.run_id == run_ids[-1]


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


# Preparing ------------------------------------------------------------------------------------------------------------


def test_a_new_home_has_our_settings_and_this_process_is_pointed_at_it(warehouse: Warehouse) -> None:
    prepare_home(warehouse)
    assert settings_of(warehouse).read_text(encoding="utf-8") == DAGSTER_YAML
    assert os.environ["DAGSTER_HOME"] == str(warehouse.dagster)
    assert os.environ["QLOG_HOME"] == str(warehouse.home)
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"


def test_the_instance_sends_nothing_keeps_no_output_and_stores_runs_as_dagster_does(warehouse: Warehouse) -> None:
    run_id = run_once(warehouse)
    with dg.DagsterInstance.get() as instance:
        assert instance.telemetry_enabled is False and instance.nux_enabled is False
        assert isinstance(instance.compute_log_manager, NoOpComputeLogManager)
        assert type(instance.event_log_storage) is SqliteEventLogStorage
    assert (warehouse.dagster / "history" / "runs" / f"{run_id}.db").exists()
    assert not (warehouse.dagster / "storage" / run_id / "compute_logs").exists()


@pytest.mark.parametrize("earlier", [EARLIER_YAML, "# Written by qlog: of some version\n"], ids=["last", "any"])
def test_settings_that_an_earlier_version_wrote_follow_this_one_and_the_runs_stay(
    warehouse: Warehouse, earlier: str
) -> None:
    first = run_once(warehouse)
    settings_of(warehouse).write_text(earlier, encoding="utf-8")
    second = run_once(warehouse)
    assert settings_of(warehouse).read_text(encoding="utf-8") == DAGSTER_YAML
    with dg.DagsterInstance.get() as instance:
        assert_all_is_there(instance, first, second)


@pytest.mark.parametrize("own", [OWN_YAML, DAGSTER_YAML.partition("\n")[2], ""], ids=["other", "first line", "empty"])
def test_an_operators_own_settings_are_left_alone(warehouse: Warehouse, own: str) -> None:
    settings_of(warehouse).write_text(own, encoding="utf-8")
    prepare_home(warehouse)
    assert settings_of(warehouse).read_text(encoding="utf-8") == own


def test_settings_of_this_version_are_not_written_again(warehouse: Warehouse) -> None:
    prepare_home(warehouse)
    before = settings_of(warehouse).stat().st_mtime_ns
    prepare_home(warehouse)
    assert settings_of(warehouse).stat().st_mtime_ns == before


# Looking --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["warehouse", "log #1: 'ours', größe"])
@pytest.mark.parametrize("settings", [DAGSTER_YAML, EARLIER_YAML, OWN_YAML], ids=["this version's", "earlier", "own"])
def test_looking_finds_the_runs_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, settings: str
) -> None:
    """Whatever the settings say, wherever they lie, and whichever instance this process is pointed at."""
    warehouse = Warehouse(Settings(home=tmp_path / folder)).make()
    run_id = run_once(warehouse)
    settings_of(warehouse).write_text(settings, encoding="utf-8")
    before, beside = contents(warehouse.home), sorted(tmp_path.iterdir())
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "elsewhere"))
    with open_existing(warehouse.dagster) as instance:
        assert_all_is_there(instance, run_id)
    assert contents(warehouse.home) == before and sorted(tmp_path.iterdir()) == beside
    assert os.environ["DAGSTER_HOME"] == str(tmp_path / "elsewhere")


def test_looking_at_a_home_of_an_earlier_version_leaves_no_folder_behind(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_once(warehouse)
    settings_of(warehouse).write_text(EARLIER_YAML, encoding="utf-8")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    with open_existing(warehouse.dagster):
        assert list(scratch.glob("*/*")) != []
    # The place for such folders stays, the owner's alone; nothing is in it.
    assert list(scratch.glob("*/*")) == []


def test_an_operators_own_history_is_the_one_that_is_looked_at(warehouse: Warehouse, tmp_path: Path) -> None:
    run_once(warehouse)
    own = f"{OWN_YAML}storage:\n  sqlite:\n    base_dir: {tmp_path / 'kept'}\n"
    settings_of(warehouse).write_text(own, encoding="utf-8")
    kept = run_once(warehouse)
    with open_existing(warehouse.dagster) as instance:
        assert_all_is_there(instance, kept)


def test_an_operators_own_settings_that_name_what_is_gone_are_refused_in_one_line(warehouse: Warehouse) -> None:
    settings_of(warehouse).write_text(EARLIER_YAML.partition("\n")[2].partition("\n")[2], encoding="utf-8")
    for use in (lambda: prepare_home(warehouse), lambda: open_existing(warehouse.dagster).__enter__()):
        with pytest.raises(QlogError, match=r"dagster\.yaml: names qlog_assets\.run_history.*delete its storage part"):
            use()


def test_what_dagster_records_is_readable_by_the_owner_alone(warehouse: Warehouse) -> None:
    with owner_only():
        run_once(warehouse)
    modes = {path.stat().st_mode & 0o077 for path in (warehouse.dagster, *warehouse.dagster.rglob("*"))}
    assert modes == {0}


def test_a_file_of_another_run_that_vanishes_meanwhile_stops_nobody(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite makes and removes files beside a database all the time, and several months run side by side."""
    prepare_home(warehouse)
    passing = warehouse.dagster / "index.db-wal"
    passing.touch()
    listed = Path.rglob

    def list_then_lose(self: Path, pattern: str) -> list[Path]:
        found = list(listed(self, pattern))
        passing.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "rglob", list_then_lose)
    warehouse.dagster.chmod(0o755)
    prepare_home(warehouse)
    assert warehouse.dagster.stat().st_mode & 0o077 == 0
