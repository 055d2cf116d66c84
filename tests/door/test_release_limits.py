"""The most that one release may cost: the door holds every request to the policy file's limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import qlog
from support.door import APRIL, MARCH, charges, door_at, materialize, release, warehouse_at
from support.instances import POLICY_EPSILON, edit_policy
from support.warehouses import build_chain

from qlog_assets.door.door import Door
from qlog_assets.door.inputs import DoorError
from qlog_assets.door.release_limits import refuse_beyond_limits
from qlog_assets.ledger import Ledger
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.policy import Policy

pytest_plugins = ("support.warehouse_fixtures",)
MORE_EPSILON = {"safelog.selection_scale": "0.4"}
MORE_DELTA = {"safelog.delta": "0.002"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            MORE_EPSILON,
            r"refuses safelog at ε = 22: one release may cost ε = 20 at most, by \S+policy.toml \(what its own",
        ),
        (MORE_DELTA, r"refuses safelog at δ = 0.002: one release may cost δ = 0.001 at most, by \S+policy.toml \(what"),
    ],
)
def test_without_limits_a_run_gets_no_more_than_the_policy_files_own_parameters_cost(
    chained: Path, settings: dict[str, str], said: str
) -> None:
    with pytest.raises(DoorError, match=said):
        door_at(chained, settings).draw("safelog", MARCH)
    assert charges(chained) == [] and Ledger.open(warehouse_at(chained).ledger_url).datasets() == []


def test_a_run_may_ask_for_less_and_for_as_much(chained: Path) -> None:
    # More noise on queries, less on clicks: what counts is the sum.
    swapped = {"safelog.selection_scale": "1", "safelog.click_scale": "0.3", "safelog.threshold": "12"}
    receipt = door_at(chained, swapped).draw("safelog", MARCH)
    assert receipt.charged and receipt.charge.epsilon == POLICY_EPSILON
    build_chain(chained, APRIL)
    assert door_at(chained, {"safelog.selection_scale": "1"}).draw("safelog", APRIL).charge.epsilon == 16


def test_limits_in_the_file_allow_more_than_its_own_parameters_and_are_named_when_they_refuse(chained: Path) -> None:
    edit_policy(chained, limits="epsilon = 22")
    with pytest.raises(
        DoorError, match=r"at ε = 26: one release may cost ε = 22 at most, by \S+ \(\[limits\] epsilon\)"
    ):
        door_at(chained, {"safelog.click_scale": "0.25"}).draw("safelog", MARCH)
    with pytest.raises(DoorError, match=r"δ = 0.001 at most, by \S+ \(what its own \[safelog\] costs"):
        door_at(chained, MORE_EPSILON | MORE_DELTA).draw("safelog", MARCH)
    assert door_at(chained, MORE_EPSILON).draw("safelog", MARCH).charge.epsilon == 22


@pytest.mark.parametrize(
    ("name", "limit", "symbol", "own"), [("epsilon", "5", "ε", "20"), ("delta", "0.0001", "δ", "0.001")]
)
def test_a_file_whose_own_parameters_cost_more_than_its_limits_is_refused_with_both(
    chained: Path, name: str, limit: str, symbol: str, own: str
) -> None:
    edit_policy(chained, limits=f'{name} = "{limit}"')
    said = rf"policy.toml: \[safelog\] costs {symbol} = {own}, and \[limits\] allows {symbol} = {limit} per release"
    # Even where the run itself asks for little enough.
    modest = {"safelog.selection_scale": "100", "safelog.click_scale": "none", "safelog.transition_scale": "none"}
    for settings in ({}, modest | {"safelog.delta": "0"}):
        with pytest.raises(DoorError, match=said):
            door_at(chained, settings).draw("safelog", MARCH)
    assert "[limits] allows" in qlog(chained, "release", "safelog", "--month", MARCH).refusal
    assert charges(chained) == []


def test_the_door_takes_no_policy_that_was_changed_as_a_study_may(chained: Path) -> None:
    """Whoever opens a door by hand with a study's policy opens no account with a study's budget."""
    warehouse = warehouse_at(chained)
    for settings in ({"budget.epsilon": "1000000"}, {"limits.epsilon": "99"}, {"last": "2006-04"}):
        policy = Policy.load(chained / "policy.toml").with_settings(settings)
        with pytest.raises(DoorError, match="come from the policy file alone"):
            Door(warehouse, policy, Ledger.open(warehouse.ledger_url)).draw("safelog", MARCH)
    assert charges(chained) == []


def test_a_month_that_was_released_is_served_while_the_policy_still_allows_it(released: Path) -> None:
    edit_policy(released, limits="epsilon = 20")
    assert release(released).charged is False


def test_a_hand_written_configuration_is_bound_as_well(chained: Path) -> None:
    """By Dagster's own command, which knows nothing of ours."""
    config = chained / "run.yaml"
    for said, refused in (
        ("{selection_scale: 0.25, queries_per_user: 4}", "one release may cost"),
        ("{delta: 0.002}", "one release may cost"),
    ):
        config.write_text(f"resources: {{policy: {{config: {{safelog: {said}}}}}}}\n", encoding="utf-8")
        ended = materialize(chained, "selected", config=config)
        assert ended.code == 0 and "refused, nothing was done: the door refuses safelog at" in ended.answer
        assert refused in ended.answer and charges(chained) == []
    config.write_text("resources: {policy: {config: {settings: {budget.epsilon: 1000000}}}}\n", encoding="utf-8")
    ended = materialize(chained, "selected", config=config)
    assert ended.code != 0 and "come from the policy file alone" in ended.answer
    assert charges(chained) == []


def test_under_a_zcdp_filter_a_run_gets_no_more_rho_than_the_files_own_parameters_cost(chained: Path) -> None:
    """The same ε and δ can cost the filter many times as much."""
    edit_policy(chained, budget='accountant = "zcdp"', zealous='variant = "sound"')
    zealous, policy = mechanism("zealous"), Policy.load(chained / "policy.toml")
    asked = policy.with_run_changes({"zealous.variant": "modern"})
    guarantee = zealous.guarantee("modern", asked.parameters(zealous))
    with pytest.raises(DoorError, match=r"refuses zealous at ρ = 0.0\d+: the budget adds up ρ"):
        refuse_beyond_limits(asked, zealous, guarantee)
    refuse_beyond_limits(policy, zealous, zealous.guarantee("sound", policy.parameters(zealous)))
