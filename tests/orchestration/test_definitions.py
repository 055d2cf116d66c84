"""Loading the code location, the one thing that every Dagster process does before anything else.

Why this exists: a definitions module that fails to import, or that takes seconds because somebody imported Great
Expectations at its top, is noticed by no unit test, and then the UI, the daemon and every command are broken or slow at
once. So the module is loaded here as Dagster loads it, in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from support.instances import load_definitions, make_home

from qlog_assets.mechanisms.names import folder_names
from qlog_assets.mechanisms.register import releasable, simulated
from qlog_assets.settings import CHECKOUT
from qlog_assets.studies.register import studies

LOADING = """
import json, sys, time
started = time.perf_counter()
import dagster
imported = time.perf_counter()
from qlog_assets.definitions import defs
defs.get_repository_def().load_all_definitions()
loaded = time.perf_counter()
print(json.dumps({"modules": sorted(sys.modules), "dagster": imported - started, "ours": loaded - imported}))
"""
SLOW_MODULES = ("great_expectations", "matplotlib", "scipy", "dp_accounting", "jsonschema")
SPINE = {
    "log": {"landing_batch", "raw_log", "cleaned_log"},
    "public_lists": {"pool", "url_list"},
    "safelog": {
        "capped_log",
        "pool_augmented",
        "selected",
        "released_queries",
        "released_clicks",
        "released_transitions",
    },
}
UNVERSIONED = {
    name for mechanism in releasable() for name in (mechanism.draw_asset, *mechanism.released_assets.values())
}
"""Draws and what is published of them: they follow the ledger, and no change of code makes them out of date."""


@pytest.fixture(scope="module")
def loading(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a fresh process that loads the definitions has imported, and the seconds it took."""
    home = tmp_path_factory.mktemp("empty")
    environment = {**os.environ, "QLOG_HOME": str(home)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", LOADING], env=environment, capture_output=True, text=True, check=True, cwd=home
    )
    facts: dict[str, Any] = json.loads(done.stdout)
    assert not list(home.iterdir()), "loading the definitions writes nothing"
    return facts


@pytest.fixture
def definitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dg.Definitions:
    return load_definitions(make_home(tmp_path / "warehouse"), monkeypatch)


def test_loading_does_not_import_what_costs_seconds(
    loading: dict[str, Any], record_property: pytest.RecordProperty
) -> None:
    """The budget of two seconds is reported and not asserted: it is the machine's as much as ours."""
    record_property("seconds to load the definitions", round(loading["dagster"] + loading["ours"], 2))
    assert [name for name in SLOW_MODULES if name in loading["modules"]] == []


def test_everything_in_the_definitions_resolves(definitions: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(definitions)
    assert definitions.resolve_job_def("ingest") and definitions.resolve_job_def("audit")
    for mechanism in releasable():
        assert definitions.resolve_job_def(f"{mechanism.name}_release")
        assert definitions.resolve_schedule_def(f"{mechanism.name}_monthly")
    for mechanism in simulated():
        assert definitions.resolve_job_def(f"{mechanism.name}_simulation")
    for study in studies():
        assert definitions.resolve_job_def(study.job)


def test_the_names_that_folders_tell_are_those_of_the_register() -> None:
    """A command that only lists names imports no mechanism: what it lists must be what there is."""
    assert folder_names("stages.py") == tuple(mechanism.name for mechanism in releasable())
    assert folder_names("draw.py") == tuple(mechanism.name for mechanism in simulated())


def test_the_launchpad_of_every_job_opens_empty_and_offers_nothing_that_is_not_read(
    definitions: dg.Definitions,
) -> None:
    """What it prefilled would be the policy of the time when the code was loaded, sent back by every run."""
    assert set(definitions.resources or {}) == {"policy", "warehouse"}
    for job in definitions.resolve_all_job_defs():
        config = job.run_config_schema.config_type
        assert prefilled(config) == {}, job.name


def prefilled(config: Any) -> dict[str, Any]:
    """The defaults in a configuration's schema that a launchpad would show: all but empty ones."""
    found = {}
    for name, field in getattr(config, "fields", {}).items():
        default = field.default_value if field.default_provided else prefilled(field.config_type)
        kept = without_empty(default)
        if kept not in (None, {}):
            found[name] = kept
    return found


def without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: kept for name, each in value.items() if (kept := without_empty(each)) not in (None, {})}


def test_every_asset_says_what_it_is_who_owns_it_and_which_code_made_it(definitions: dg.Definitions) -> None:
    specs = {spec.key.to_user_string(): spec for spec in definitions.resolve_all_asset_specs()}
    for name, spec in specs.items():
        assert spec.description and len(spec.description) > 30, name
        assert spec.kinds and spec.owners and spec.group_name, name
        assert bool(spec.code_version) is (name not in UNVERSIONED), name
    for group, names in SPINE.items():
        assert names <= {name for name, spec in specs.items() if spec.group_name == group}
    groups = {"log", "public_lists", "studies", "audit", *(mechanism.name for mechanism in releasable())}
    assert {spec.group_name for spec in specs.values()} == groups
    assert set(specs) >= UNVERSIONED, "of these another code version would invite another draw"


def test_months_are_the_partitions_of_every_asset_of_the_chain(definitions: dg.Definitions) -> None:
    for spec in definitions.resolve_all_asset_specs():
        name = spec.key.to_user_string()
        if spec.group_name in ("log", *(mechanism.name for mechanism in releasable())) and name != "landing_batch":
            assert isinstance(spec.partitions_def, dg.MonthlyPartitionsDefinition), name
            assert spec.partitions_def.get_partition_keys() == ["2006-03", "2006-04", "2006-05"]


def test_a_draw_that_a_release_may_steer_depends_on_the_draw_of_the_month_before(definitions: dg.Definitions) -> None:
    """Backfills then go month by month. The first month has nothing before it, and can be run all the same."""
    graph = definitions.resolve_asset_graph()
    for mechanism in releasable():
        key = dg.AssetKey(mechanism.draw_asset)
        assert (key in graph.get(key).parent_keys) is mechanism.may_be_steered
        if mechanism.may_be_steered:
            mapping = graph.get(key).partition_mappings[key]
            assert isinstance(mapping, dg.TimeWindowPartitionMapping)
            assert (mapping.start_offset, mapping.end_offset) == (-1, -1)


def test_every_stage_that_a_release_is_made_from_has_a_blocking_check(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    checked = {key.asset_key.to_user_string() for key in graph.asset_check_keys if graph.get_check_spec(key).blocking}
    limited = {mechanism.limited_stage.name for mechanism in releasable()}
    assert SPINE["log"] | SPINE["public_lists"] | limited <= checked


def test_a_release_job_goes_from_the_raw_log_to_the_released_tables(definitions: dg.Definitions) -> None:
    job = definitions.resolve_job_def("safelog_release")
    chain = {key.to_user_string() for key in job.asset_layer.executable_asset_keys}
    assert chain == {"raw_log", "cleaned_log"} | SPINE["public_lists"] | SPINE["safelog"]
    job = definitions.resolve_job_def("zealous_release")
    chain = {key.to_user_string() for key in job.asset_layer.executable_asset_keys}
    assert not chain & SPINE["public_lists"] and {"raw_log", "zealous_items", "released_zealous_pairs"} <= chain


def test_a_released_table_can_be_selected_alone_and_takes_no_parameters(definitions: dg.Definitions) -> None:
    """The door decides what is published: a run that selects one table reaches it and has nothing to say to it."""
    released = definitions.resolve_assets_def("released_queries")
    assert released.can_subset
    config = definitions.resolve_job_def("safelog_release").run_config_schema.run_config_schema_type.fields["ops"]
    assert config.config_type.fields["released_safelog"].config_type.fields["config"].config_type.fields == {}


def test_the_work_file_and_the_project_file_name_the_definitions() -> None:
    assert "module_name: qlog_assets.definitions" in (CHECKOUT / "workspace.yaml").read_text(encoding="utf-8")
    assert 'module_name = "qlog_assets.definitions"' in (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
