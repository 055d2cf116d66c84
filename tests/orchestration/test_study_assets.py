"""A study as an asset: per month, with its rows, its text and its pictures to look at, and how far it is in the log."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import Field
from support.instances import MONTHS

from qlog_assets.errors import ParameterError
from qlog_assets.orchestration.resources import WarehouseResource, month_partitions, policy_resource
from qlog_assets.orchestration.study_assets import PROGRESS, study_asset
from qlog_assets.policy import Policy
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.settings import Settings
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.study import Step, Study, facts_of_run

PNG = b"\x89PNG\r\n\x1a\n and so on"


class ToySettings(Parameters):
    """What the toy varies."""

    rows: int = Field(2, ge=1)


def step(name: str) -> Step:
    return Step(name, lambda work: {"numbers": [{"step": name, "row": row} for row in range(work.settings.rows)]})


TOY = Study(
    name="toy",
    title="A toy",
    question="How many rows has a toy?",
    settings=ToySettings,
    steps=lambda work: [step("first"), step("second")],
    version=3,
    pictures=lambda tables: {"numbers.png": PNG},
    words=lambda tables, settings: f"It has {len(tables['numbers'])} rows.",
)


def run_toy(home: Path, **settings: object) -> dg.ExecuteInProcessResult:
    policy = Policy.load(home / "policy.toml")
    upstream = dg.AssetSpec("raw_log", partitions_def=month_partitions(policy))
    return dg.materialize(
        [upstream, study_asset(month_partitions(policy), TOY)],
        partition_key=MONTHS[0],
        resources={"policy": policy_resource(), "warehouse": WarehouseResource()},
        run_config={"ops": {"study_toy": {"config": {"settings": settings}}}},
    )


def test_a_study_shows_its_rows_its_text_and_its_pictures(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QLOG_HOME", str(ingested))
    result = run_toy(ingested, rows="4")
    (event,) = result.asset_materializations_for_node("study_toy")
    shown: dict[str, Any] = {name: entry.value for name, entry in event.metadata.items()}
    assert shown["rows numbers"] == 8 and "It has 8 rows." in shown["text"] and "![" not in shown["text"]
    assert base64.b64encode(PNG).decode() in shown["numbers"] and shown["numbers"].startswith(
        "![numbers](data:image/png"
    )
    facts = facts_of_run(Warehouse(Settings(home=ingested)), result.run_id)
    assert str(shown["path"]) == facts["path"] and facts["settings"] == {"rows": 4} and facts["month"] == MONTHS[0]


def test_how_far_a_study_is_stands_in_the_runs_log(
    ingested: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QLOG_HOME", str(ingested))
    run_toy(ingested)
    said = capfd.readouterr().err
    for done in ("0/2 first", "1/2 second", "2/2 writing"):
        assert f"{PROGRESS}{done}" in said


def test_a_study_takes_no_setting_that_it_does_not_have(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QLOG_HOME", str(ingested))
    with pytest.raises(ParameterError, match="columns: unknown key"):
        run_toy(ingested, columns="4")


def test_a_study_stands_below_the_raw_log_of_its_month_in_a_group_of_its_own() -> None:
    months = month_partitions(Policy(first="2006-03", last="2006-05"))
    (spec,) = study_asset(months, TOY).specs
    assert spec.key == dg.AssetKey("study_toy") and spec.group_name == "studies" and spec.code_version == "3"
    assert {dep.asset_key for dep in spec.deps} == {dg.AssetKey("raw_log")} and spec.partitions_def == months
