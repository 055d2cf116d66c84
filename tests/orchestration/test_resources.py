"""The policy as Dagster's launchpad takes it: the policy file's values stand unless a run changes them, one by one."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.register import simulated
from qlog_assets.months import Month
from qlog_assets.orchestration.resources import (
    PolicyResource,
    WarehouseResource,
    month_partitions,
    policy_resource,
    policy_schema,
)
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


def seen_by_a_run(launched: dict[str, Any], asking: str = "chosen") -> Policy:
    """What an asset is given when somebody writes this into the launchpad."""
    seen: list[Policy] = []

    @dg.asset
    def looking(policy: PolicyResource) -> None:
        seen.append(getattr(policy, asking)())

    result = dg.materialize(
        [looking],
        resources={"policy": policy_resource()},
        run_config={"resources": {"policy": {"config": launched}}} if launched else None,
    )
    assert result.success
    return seen[0]


@pytest.mark.parametrize("launched", [{}, {"settings": {}}, {"safelog": {}}, {"zealous": {}}])
def test_a_run_that_changes_nothing_uses_the_policy_files_parameters(launched: dict[str, Any]) -> None:
    chosen = seen_by_a_run(launched)
    assert chosen.mechanisms == POLICY.mechanisms and chosen.section("zealous").items_per_user == 3


def test_a_run_that_changes_one_parameter_keeps_the_policy_files_others() -> None:
    chosen = seen_by_a_run({"safelog": {"threshold": 50}})
    assert chosen.section("safelog") == POLICY.section("safelog").with_changes(threshold=50)
    for settings in ({"safelog.threshold": "50"}, {"safelog.threshold": 50}):
        assert seen_by_a_run({"settings": settings}).mechanisms == chosen.mechanisms
    assert chosen.in_file.section("safelog") == POLICY.section("safelog")


def test_a_run_may_switch_an_optional_part_off_and_on_again() -> None:
    assert POLICY.section("safelog").click_scale is None
    for off in (None, "none"):
        assert seen_by_a_run({"safelog": {"transition_scale": off}}).section("safelog").transition_scale is None
    assert seen_by_a_run({"safelog": {"click_scale": "4"}}).section("safelog").click_scale == 4


@pytest.mark.parametrize("written", ["1E-6", 1e-6, 0.000001, "0.000001"])
def test_a_decimal_may_be_text_or_the_number_that_the_launchpad_makes_of_it(written: object) -> None:
    """Picking a month rewrites the text 1E-6 as a number."""
    for launched in ({"safelog": {"delta": written}}, {"settings": {"safelog.delta": written}}):
        assert seen_by_a_run(launched).section("safelog").as_public()["delta"] == "1E-6"


def test_every_mechanism_that_can_be_drawn_has_its_section_in_the_launchpad_with_descriptions() -> None:
    schema = policy_schema()
    assert set(schema) == {*(mechanism.name for mechanism in simulated()), "settings"}
    for mechanism in simulated():
        fields = schema[mechanism.name].config_type.fields
        assert set(fields) == set(mechanism.policy_section.model_fields)
        for key, field in fields.items():
            assert field.description and field.description == mechanism.policy_section.model_fields[key].description
            assert not field.is_required and not field.default_provided
    chosen = seen_by_a_run({"baselines": {"k": 7}, "zealous": {"items_per_user": 9}})
    assert chosen.section("baselines").k == 7 and chosen.section("zealous").items_per_user == 9
    assert chosen.section("safelog") == POLICY.section("safelog")


def test_the_launchpad_takes_no_key_that_the_policy_does_not_have() -> None:
    with pytest.raises(dg.DagsterInvalidConfigError, match="treshold"):
        seen_by_a_run({"safelog": {"treshold": 50}})
    with pytest.raises(ParameterError, match="threshold"):
        seen_by_a_run({"safelog": {"threshold": 0}})
    with pytest.raises(
        ParameterError, match=r"crowd\.delta or safelog\.delta or sanitized\.delta or sessions\.delta or zealous\.delta"
    ):
        seen_by_a_run({"settings": {"delta": "0.1"}})


def test_no_run_reads_the_machines_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster's own text type takes `{env: NAME}`: a refused value would print what the variable holds."""
    monkeypatch.setenv("SECRET", "a password of the machine")
    for launched in (
        {"safelog": {"click_support": {"env": "SECRET"}}},
        {"safelog": {"delta": {"env": "SECRET"}}},
        {"settings": {"safelog.delta": {"env": "SECRET"}}},
    ):
        with pytest.raises((ParameterError, dg.DagsterInvalidConfigError)) as refused:
            seen_by_a_run(launched)
        assert "password" not in str(refused.value)


FORBIDDEN = {
    "budget.epsilon": 1_000_000,
    "dataset": "mine",
    "last": "2030-01",
    "pool.path": "/etc/passwd",
    "pool.kind": "default",
    "url_list": "/etc/passwd",
    "limits.epsilon": 99,
    "ingest.max_rejected_share": 1,
}


@pytest.mark.parametrize("key", FORBIDDEN)
def test_the_launchpads_settings_change_nothing_of_a_release_but_parameters(key: str) -> None:
    with pytest.raises(ParameterError, match=f"{key}: .* come from the policy file alone"):
        seen_by_a_run({"settings": {key: FORBIDDEN[key]}})


def test_a_study_may_try_what_a_release_may_not_but_reads_no_file_of_its_own() -> None:
    tried = {"pool.kind": "default", "pool.probability": 0.5, "safelog.selection_scale": 0.01}
    chosen = seen_by_a_run({"settings": tried}, "for_study")
    assert (chosen.pool.probability, chosen.section("safelog").selection_scale) == (Fraction(1, 2), Fraction(1, 100))
    for key in ("pool.path", "url_list", "public_directories"):
        with pytest.raises(ParameterError, match=f"{key}: names a file"):
            seen_by_a_run({"settings": {key: "/etc/passwd"}}, "for_study")


def test_a_policy_that_was_edited_after_loading_is_what_a_run_uses(tmp_path: Path) -> None:
    loaded = policy_resource()
    (tmp_path / "policy.toml").write_text("[safelog]\nthreshold = 30\nclicks_per_user = 5\n", encoding="utf-8")
    seen: list[Policy] = []

    @dg.asset
    def looking(policy: PolicyResource) -> None:
        seen.append(policy.chosen())

    said = {"resources": {"policy": {"config": {"safelog": {"queries_per_user": 7}}}}}
    assert dg.materialize([looking], resources={"policy": loaded}, run_config=said).success
    shown = seen[0].section("safelog").as_public()
    assert (shown["threshold"], shown["clicks_per_user"], shown["queries_per_user"]) == (30, 5, 7)


def test_partitions_include_the_policys_last_month() -> None:
    """Dagster's own end is exclusive."""
    assert month_partitions(POLICY).get_partition_keys() == ["2006-03", "2006-04", "2006-05"]
    open_ended = month_partitions(POLICY.with_changes(last=None)).get_partition_keys()
    assert open_ended[0] == "2006-03" and open_ended[-1] < Month.containing(date.today())


def test_the_shared_duckdb_keeps_the_machines_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever opened it, it is held to memory, threads and a spill directory of its own, and fetches nothing."""
    for variable, value in {"QLOG_HOME": str(tmp_path), "QLOG_MEMORY_MB": "256", "QLOG_THREADS": "1"}.items():
        monkeypatch.setenv(variable, value)
    found: dict[str, str] = {}

    @dg.asset
    def looking(warehouse: WarehouseResource) -> None:
        names = ("threads", "memory_limit", "temp_directory", "autoinstall_known_extensions")
        with warehouse.engine() as engine:
            for name in names:
                row = engine.connection.execute(f"SELECT current_setting('{name}')").fetchone()
                found[name] = str(row and row[0])

    assert dg.materialize([looking], resources={"warehouse": WarehouseResource()}).success
    assert found["threads"] == "1" and found["memory_limit"].startswith("244")
    assert Path(found["temp_directory"]).is_relative_to(tmp_path / "private" / "spill")
    assert found["autoinstall_known_extensions"].lower() == "false"


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
