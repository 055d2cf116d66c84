"""The policy as Dagster's launchpad takes it: the policy file's values stand unless a run changes them, one by one."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from qlog_assets.errors import ParameterError
from qlog_assets.months import Month
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource, month_partitions
from qlog_assets.policy import Policy

POLICY = Policy.model_validate(
    {
        "first": "2006-03",
        "last": "2006-05",
        "safelog": {"queries_per_user": 7, "threshold": 33, "click_scale": None, "selection_scale": "2.5"},
        "zealous": {"items_per_user": 3},
    }
)


@pytest.fixture(autouse=True)
def policy_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same policy as a file, where a run reads it."""
    path = tmp_path / "policy.toml"
    path.write_text(
        'first = "2006-03"\nlast = "2006-05"\n[safelog]\nqueries_per_user = 7\nthreshold = 33\nclick_scale = "none"\n'
        'selection_scale = "2.5"\n[zealous]\nitems_per_user = 3\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("QLOG_POLICY", str(path))


def policy_seen_by_a_run(launched: dict[str, Any]) -> Policy:
    """What an asset is given when somebody writes this into the launchpad."""
    seen: list[Policy] = []

    @dg.asset
    def looking(policy: PolicyResource) -> None:
        seen.append(policy.chosen())

    result = dg.materialize(
        [looking],
        resources={"policy": PolicyResource.showing(POLICY), "warehouse": WarehouseResource()},
        run_config={"resources": {"policy": {"config": launched}}},
    )
    assert result.success
    return seen[0]


@pytest.mark.parametrize(
    "launched", [{}, {"settings": {}}, {"settings": {"pool.description": "a test"}}, {"safelog": {}}, {"zealous": {}}]
)
def test_a_run_that_changes_nothing_uses_the_policy_files_parameters(launched: dict[str, Any]) -> None:
    chosen = policy_seen_by_a_run(launched)
    assert chosen.safelog == POLICY.section("safelog") and chosen.zealous == POLICY.zealous


def test_a_run_that_changes_one_parameter_keeps_the_policy_files_others() -> None:
    chosen = policy_seen_by_a_run({"safelog": {"threshold": 50}})
    assert chosen.safelog == POLICY.section("safelog").with_changes(threshold=50)
    assert policy_seen_by_a_run({"settings": {"safelog.threshold": "50"}}).safelog == chosen.safelog


def test_a_run_may_switch_an_optional_part_off_and_on_again() -> None:
    assert POLICY.section("safelog").click_scale is None
    assert policy_seen_by_a_run({"safelog": {"transition_scale": None}}).safelog.transition_scale is None
    assert policy_seen_by_a_run({"safelog": {"click_scale": "4"}}).safelog.click_scale == 4


def test_the_launchpad_takes_no_key_that_the_policy_does_not_have() -> None:
    with pytest.raises(dg.DagsterInvalidConfigError, match="treshold"):
        policy_seen_by_a_run({"safelog": {"treshold": 50}})
    with pytest.raises(ParameterError, match="threshold"):
        policy_seen_by_a_run({"safelog": {"threshold": 0}})


def test_partitions_include_the_policys_last_month() -> None:
    """Dagster's own end is exclusive."""
    assert month_partitions(POLICY).get_partition_keys() == ["2006-03", "2006-04", "2006-05"]
    open_ended = month_partitions(POLICY.with_changes(last=None)).get_partition_keys()
    assert open_ended[0] == "2006-03" and open_ended[-1] < Month.containing(date.today())


@pytest.mark.parametrize("fails", [False, True])
def test_steps_share_a_duckdb_but_no_table_and_it_is_closed_whatever_happens(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QLOG_HOME", str(tmp_path))
    databases: list[duckdb.DuckDBPyConnection | None] = []

    @dg.asset
    def first(warehouse: WarehouseResource) -> None:
        with warehouse.engine() as engine:
            engine.connection.execute("CREATE TEMP TABLE mine AS SELECT 1 AS x")
            engine.connection.execute("CREATE TABLE everybodys AS SELECT 1 AS x")
        databases.append(warehouse._database)

    @dg.asset(deps=[first])
    def second(warehouse: WarehouseResource) -> None:
        with warehouse.engine() as engine:
            assert engine.connection.sql("SELECT table_name FROM duckdb_tables()").fetchall() == [("everybodys",)]
        databases.append(warehouse._database)
        assert list((tmp_path / "private" / "spill").iterdir())
        if fails:
            raise ValueError("a step that fails")

    result = dg.materialize([first, second], resources={"warehouse": WarehouseResource()}, raise_on_error=False)
    assert result.success is not fails
    (database,) = set(databases)
    assert database is not None
    with pytest.raises(duckdb.ConnectionException, match="closed"):
        database.execute("SELECT 1")
    assert not list((tmp_path / "private" / "spill").iterdir())


def test_a_duckdb_that_failed_is_replaced_and_its_words_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error of its own DuckDB answers nothing any more, whoever asks."""
    monkeypatch.setenv("QLOG_HOME", str(tmp_path))

    @dg.asset
    def first(warehouse: WarehouseResource) -> None:
        with warehouse.engine() as engine:
            engine.connection.execute("CREATE TABLE of_the_first (x INTEGER)")
            raise duckdb.InternalException("INTERNAL Error: near 'my own secret query'")

    @dg.asset
    def second(warehouse: WarehouseResource) -> None:
        with warehouse.engine() as engine:
            assert engine.connection.sql("SELECT table_name FROM duckdb_tables()").fetchall() == []

    result = dg.materialize([first, second], resources={"warehouse": WarehouseResource()}, raise_on_error=False)
    (failure,) = result.get_step_failure_events()
    assert failure.step_key == "first"
    assert "InternalException" in str(failure.event_specific_data)
    assert "secret" not in str(failure.event_specific_data)
    assert not list((tmp_path / "private" / "spill").iterdir())
