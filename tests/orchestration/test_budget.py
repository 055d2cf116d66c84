"""The job `budget`: the account with every event, and the check that no month was lost; and the job `skip_month`."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from support.door import door_at
from support.instances import load_definitions, make_home
from support.ledgers import published

CHECK = "no_month_lost"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A warehouse whose first month was released, as its ledger has it."""
    home = make_home(tmp_path / "warehouse")
    door = door_at(home)
    door.open_account()
    published(door.ledger, dataset="small", month="2006-03")
    return home


def test_the_check_names_lost_months_until_the_job_records_why_they_are_skipped(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions = load_definitions(home, monkeypatch)
    schedule = definitions.resolve_schedule_def("budget_daily")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING and schedule.description
    budget, skip = definitions.resolve_job_def("budget"), definitions.resolve_job_def("skip_month")
    with dg.DagsterInstance.ephemeral() as instance:
        answer = budget.execute_in_process(instance=instance)
        (check,) = answer.get_asset_check_evaluations()
        assert answer.success and check.check_name == CHECK and not check.passed
        assert "safelog: 2006-04 to 2006-05: neither a release nor a recorded reason" in str(check.description)
        assert "skip_month" in str(check.description)
        for month in ("2006-04", "2006-05"):
            config = {"ops": {"skip": {"config": {"reason": "![x](http://a.example) | none", "mechanism": "safelog"}}}}
            run = skip.execute_in_process(instance=instance, partition_key=month, run_config=config)
            assert run.success
        answer = budget.execute_in_process(instance=instance)
        (check,) = answer.get_asset_check_evaluations()
        assert check.passed, check.description
        events = str(answer.asset_materializations_for_node("privacy_budget")[0].metadata["events"].value)
    newest = events.splitlines()[2]
    assert "2006-05 skipped by safelog" in newest and run.run_id[:8] in newest
    assert r"\!\[x\](http:/{}/a.example) \| none".format("\u200b") in newest, (
        "a reason is text, never a picture that a page would load"
    )


def test_without_a_ledger_nothing_is_lost_and_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(tmp_path / "warehouse")
    with dg.DagsterInstance.ephemeral() as instance:
        answer = load_definitions(home, monkeypatch).resolve_job_def("budget").execute_in_process(instance=instance)
    (check,) = answer.get_asset_check_evaluations()
    assert check.passed and not (home / "ledger.db").exists()
