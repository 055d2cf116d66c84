"""What the UI is told: assets, checks, jobs and materializations over GraphQL, complete and without a private value."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster_graphql.test.utils import execute_dagster_graphql
from support.instances import MONTHS, POLICY_EPSILON, USERS, Prepared, load_definitions

from qlog_assets.mechanisms.register import releasable

MARCH = MONTHS[0]
Ask = Callable[..., dict[str, Any]]

ASSETS = """
query { assetNodes {
    assetKey { path } groupName description kinds owners { ... on TeamAssetOwner { team } }
    opVersion jobNames isPartitioned partitionKeys
    dependencyKeys { path }
    assetChecksOrError { ... on AssetChecks { checks { name blocking } } }
} }
"""
MATERIALIZATIONS = """
query Made($path: [String!]!) { assetOrError(assetKey: {path: $path}) { ... on Asset { assetMaterializations {
    partition runId
    tags { key value }
    metadataEntries {
        label
        ... on TextMetadataEntry { text } ... on IntMetadataEntry { intValue } ... on FloatMetadataEntry { floatValue }
        ... on BoolMetadataEntry { boolValue } ... on PathMetadataEntry { path } ... on MarkdownMetadataEntry { mdStr }
        ... on JsonMetadataEntry { jsonString }
    }
} } } }
"""
CHECKS = """
query { assetNodes { assetKey { path } assetChecksOrError { ... on AssetChecks { checks {
    name blocking executionForLatestMaterialization { status evaluation { description metadataEntries { label } } }
} } } } }
"""
LOGS = """
query { runsOrError { ... on Runs { results { runId jobName status eventConnection { events {
    __typename ... on MessageEvent { message }
} } } } } }
"""


@pytest.fixture(scope="module")
def ask(prepared: Prepared) -> Iterator[Ask]:
    """Questions to the server's schema about the small log's warehouse with its one release."""
    home = prepared("released")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(home / "dagster"))
        load_definitions(home, patch)
        origin = LoadableTargetOrigin(module_name="qlog_assets.definitions", working_directory=str(home))
        target = InProcessWorkspaceLoadTarget(InProcessCodeLocationOrigin(origin, location_name="qlog"))
        with (
            dg.DagsterInstance.get() as instance,
            WorkspaceProcessContext(instance, target) as server,
        ):
            yield lambda query, **variables: dict(
                execute_dagster_graphql(server.create_request_context(), query, variables).data
            )


def name(node: dict[str, Any]) -> str:
    return str(node["assetKey"]["path"][-1])


def latest_facts(ask: Ask, asset: str) -> dict[str, Any]:
    """The metadata of an asset's latest materialization, by label."""
    made = ask(MATERIALIZATIONS, path=[asset])["assetOrError"]["assetMaterializations"]
    assert made, f"{asset} was never materialized"
    return {entry.pop("label"): next(iter(entry.values()), None) for entry in made[0]["metadataEntries"]}


def test_the_assets_are_listed_with_what_a_person_wants_to_know(ask: Ask) -> None:
    nodes = {name(node): node for node in ask(ASSETS)["assetNodes"]}
    chain = ("raw_log", "cleaned_log", "capped_log", "pool_augmented", "selected", "released_queries")
    for above, below in itertools.pairwise(chain):
        assert above in {key["path"][-1] for key in nodes[below]["dependencyKeys"]}
        assert "safelog_release" in nodes[below]["jobNames"] and nodes[below]["isPartitioned"]
        assert nodes[below]["partitionKeys"] == ["2006-03", "2006-04", "2006-05"]
    for node in nodes.values():
        assert node["description"] and node["kinds"] and node["owners"], name(node)
    # What the door drew is of one release for ever: no version of the code makes it stale.
    at_the_door = {asset for each in releasable() for asset in (each.draw_asset, *each.released_assets.values())}
    assert {name(node) for node in nodes.values() if not node["opVersion"]} == at_the_door
    assert {"selected", "released_queries", "zealous_selected"} <= at_the_door
    assert "ingest" in nodes["landing_batch"]["jobNames"]


def test_a_draw_says_what_it_cost_and_what_is_left(ask: Ask) -> None:
    facts = latest_facts(ask, "selected")
    assert facts["release id"].startswith(f"safelog-{MARCH}-") and facts["variant"] == "sound"
    assert float(facts["epsilon"]) == POLICY_EPSILON and float(facts["delta"]) == 1e-3
    assert float(facts["epsilon left"]) == 100 - POLICY_EPSILON and "delta left" in facts
    assert facts["charged by this run"] is True
    assert any(label.startswith("threshold") for label in facts) and facts["seconds"] > 0


@pytest.mark.parametrize("table", ["queries", "clicks", "transitions"])
def test_a_released_table_says_how_it_was_made_and_shows_its_first_rows(ask: Ask, table: str) -> None:
    facts = latest_facts(ask, f"released_{table}")
    assert facts["release id"] == latest_facts(ask, "selected")["release id"] and facts["state"] == "published"
    assert float(facts["epsilon"]) == POLICY_EPSILON and float(facts["delta"]) == 1e-3
    assert facts["parameter queries_per_user"] == "4" and facts["parameter clicks_per_user"] == "3"
    assert facts[f"threshold {table}"] >= 1 and facts["variant"] == "sound"
    assert float(facts["epsilon left"]) == 100 - POLICY_EPSILON
    assert facts["dagster/row_count"] >= 1 and facts["seconds"] > 0
    assert "charged by this run" not in facts, "the draw's run was; publishing never is"
    assert "| query" in facts["preview"] and Path(facts["path"]).is_dir()
    assert facts["noise standard deviation in users"] > 0 and "Every count has random noise" in facts["noise"]
    assert "| Number of users | Standard error |" in facts["errors by size"]


@pytest.mark.parametrize("asset", ["selected", "released_queries", "released_clicks", "released_transitions"])
def test_what_the_door_made_has_the_release_id_for_a_data_version(ask: Ask, asset: str) -> None:
    made = ask(MATERIALIZATIONS, path=[asset])["assetOrError"]["assetMaterializations"]
    tags = {tag["key"]: tag["value"] for tag in made[0]["tags"]}
    assert tags["dagster/data_version"] == latest_facts(ask, asset)["release id"]


def test_private_stages_say_how_much_and_how_long_and_show_no_rows(ask: Ask) -> None:
    for asset, limits in (
        ("raw_log", ()),
        ("cleaned_log", ()),
        ("capped_log", ("queries per user", "clicks per user")),
    ):
        facts = latest_facts(ask, asset)
        assert facts["dagster/row_count"] >= USERS and facts["seconds"] >= 0 and "preview" not in facts
        assert all(label in facts for label in limits)
    assert latest_facts(ask, "capped_log")["queries per user"] == "4"


def test_every_check_of_the_chain_passed_and_names_no_value(ask: Ask) -> None:
    found = {}
    for node in ask(CHECKS)["assetNodes"]:
        for check in node["assetChecksOrError"].get("checks", []):
            if check["executionForLatestMaterialization"]:
                found[check["name"]] = check
    assert {"rows_of_the_month", "normalised_rows", "contribution_limits"} <= set(found)
    for check in found.values():
        assert check["executionForLatestMaterialization"]["status"] == "SUCCEEDED"
    # Those that a user's rows can fail warn and stop nothing.
    assert {name for name, check in found.items() if not check["blocking"]} <= {
        "few_rows_rejected",
        "one_id_per_person",
    }


def test_nothing_that_the_server_tells_holds_a_private_value(ask: Ask) -> None:
    """Each of the forty people searched for something of their own; the pool and the released queries are public."""
    told = str(ask(LOGS)) + str(ask(CHECKS)) + str(ask(ASSETS))
    for node in ask(ASSETS)["assetNodes"]:
        told += str(ask(MATERIALIZATIONS, path=[name(node)]))
    assert "safelog_release" in told and "private thoughts" not in told and "private-thoughts" not in told
