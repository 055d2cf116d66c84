"""A release that is asked for in Dagster asks first: what is refused ends without work, failure or riddle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from support.door import charges, door_at
from support.instances import MONTHS, edit_policy, load_definitions

pytestmark = pytest.mark.slow
MARCH = MONTHS[0]
Run = Callable[..., dg.ExecuteInProcessResult]
OTHER = {"resources": {"policy": {"config": {"safelog": {"threshold": 12}}}}}


@pytest.fixture
def run(released: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs in the warehouse where March is released, as the UI starts them."""
    definitions = load_definitions(released, monkeypatch)
    instance = dg.DagsterInstance.ephemeral()

    def running(*assets: str, config: dict[str, Any] | None = None, job: str = "safelog_release") -> Any:
        return definitions.resolve_job_def(job).execute_in_process(
            instance=instance,
            partition_key=MARCH,
            raise_on_error=False,
            asset_selection=[dg.AssetKey(name) for name in assets] or None,
            run_config=config or {},
        )

    return running


def refusals(result: dg.ExecuteInProcessResult) -> list[str]:
    """Why a run was refused, as its pages show it."""
    assert result.success and result.get_asset_materialization_events() == []
    observed = [event.asset_observation_data.asset_observation for event in result.get_asset_observation_events()]
    assert {(each.asset_key.to_user_string(), each.partition) for each in observed} == {("selected", MARCH)}
    return [str(each.metadata["refused"].value) for each in observed]


@pytest.mark.parametrize("assets", [(), ("capped_log",), ("pool_augmented",), ("selected",)], ids=str)
def test_other_parameters_than_those_released_are_refused_before_any_stage_is_made(
    run: Run, released: Path, assets: tuple[str, ...]
) -> None:
    before = sorted((released / "private").rglob("*/provenance.json"))
    (reason,) = refusals(run(*assets, config=OTHER))
    assert "differs in parameter threshold (10, now 12)" in reason
    assert "`again: REASON` in the run's config" in reason and "--again" not in reason
    assert sorted((released / "private").rglob("*/provenance.json")) == before and len(charges(released)) == 1


def test_a_policy_that_was_edited_is_refused_in_the_same_way(run: Run, released: Path) -> None:
    edit_policy(released, safelog="threshold = 12")
    assert "parameter threshold" in refusals(run())[0]


def test_a_reason_in_the_runs_config_goes_on(run: Run, released: Path) -> None:
    result = run(config=OTHER | {"ops": {"selected": {"config": {"again": "other threshold"}}}})
    assert result.success and len(result.get_asset_materialization_events()) > 5
    assert [charge.draw_number for charge in charges(released)] == [1, 2]


def test_what_is_released_is_served_and_shown(run: Run, released: Path) -> None:
    result = run()
    assert result.success and len(charges(released)) == 1
    shown = {event.asset_key.to_user_string() for event in result.get_asset_materialization_events()}
    assert {"selected", "released_queries"} <= shown


def test_what_was_withdrawn_and_what_is_over_budget_ends_without_failure(run: Run, released: Path) -> None:
    (charge,) = charges(released)
    door_at(released).withdraw(charge.release_id, "a name was in it")
    for assets in ((), ("released_queries",)):
        assert "was withdrawn: a name was in it" in refusals(run(*assets))[0]
    door_at(released).ledger.set_budget(charge.dataset, charge.epsilon, charge.delta, "no more than this")
    asked = {"ops": {"selected": {"config": {"again": "without the name"}}}}
    assert refusals(run(config=asked))[0].startswith("over the budget")
    assert len(charges(released)) == 1


def test_what_is_materialized_for_no_release_is_not_asked(run: Run) -> None:
    """The log's own stages belong to every mechanism: alone, they ask for no release."""
    result = run("cleaned_log", config=OTHER)
    assert [event.asset_key.to_user_string() for event in result.get_asset_materialization_events()] == ["cleaned_log"]
