"""`qlog ui` on a real server: a release launched over GraphQL, and what a browser shows of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.browser import picture
from support.cli import qlog
from support.instances import MONTHS, POLICY_EPSILON, Prepared, copy_warehouse
from support.server import LAUNCH, Server

if TYPE_CHECKING:
    from playwright.sync_api import Page

MARCH, APRIL = MONTHS
REPOSITORIES = """
query { repositoriesOrError { ... on RepositoryConnection { nodes {
    jobs { name } schedules { name } sensors { name }
} } } }
"""
REPOSITORY = {"repositoryLocationName": "qlog_assets.definitions", "repositoryName": "__repository__"}
START = "mutation Start($schedule: ScheduleSelector!) { startSchedule(scheduleSelector: $schedule) { __typename } }"
STOP = "mutation Stop($id: String!) { stopRunningSchedule(id: $id) { __typename } }"
STATE = """
query State($schedule: ScheduleSelector!) { scheduleOrError(scheduleSelector: $schedule) {
    ... on Schedule { scheduleState { id } }
} }
"""
CHECK = """
query { assetNodes(assetKeys: [{path: ["privacy_budget"]}]) { assetChecksOrError { ... on AssetChecks { checks {
    name executionForLatestMaterialization { evaluation { description } }
} } } } }
"""


@pytest.fixture(scope="module")
def home(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_warehouse(prepared("released"), tmp_path_factory.mktemp("ui") / "warehouse")


@pytest.mark.slow
def test_the_server_knows_jobs_schedules_and_sensors(server: Server) -> None:
    (found,) = server.ask(REPOSITORIES)["repositoriesOrError"]["nodes"]
    names = {kind: {entry["name"] for entry in entries} for kind, entries in found.items()}
    assert {"ingest", "safelog_release", "safelog_simulation", "zealous_study", "audit"} <= names["jobs"]
    assert "safelog_monthly" in names["schedules"] and "landing_files" in names["sensors"]


@pytest.mark.slow
def test_a_release_launched_in_the_launchpad_is_charged_once_and_refused_with_other_parameters(
    server: Server, home: Path
) -> None:
    """The same job as the command line's, on the same instance: either sees what the other did."""
    status, said = server.wait(server.launch("safelog_release", APRIL))
    assert status == "SUCCESS", said
    charges = qlog(home, "ledger", "--json").json["charges"]
    assert [(charge["month"], charge["epsilon"]) for charge in charges] == [
        (MARCH, POLICY_EPSILON),
        (APRIL, POLICY_EPSILON),
    ]
    assert qlog(home, "release", "safelog", "--month", APRIL, "--json").json["charged"] is False
    other = {"resources": {"policy": {"config": {"safelog": {"threshold": 11}}}}}
    status, said = server.wait(server.launch("safelog_release", APRIL, other))
    assert status == "SUCCESS" and "Refused: " in said and "`again: REASON` in the run's config" in said
    assert len(qlog(home, "ledger", "--json").json["charges"]) == 2
    assert qlog(home, "audit", "--json").json["ok"] is True


@pytest.mark.slow
def test_a_schedule_that_was_switched_on_makes_its_months_ones_that_can_be_lost(server: Server) -> None:
    """ZEALOUS was never released here: without its schedule nobody misses a month of it."""
    assert "zealous" not in lost_months(server)
    selector = {**REPOSITORY, "scheduleName": "zealous_monthly"}
    started = server.ask(START, schedule=selector)["startSchedule"]["__typename"]
    assert started == "ScheduleStateResult"
    assert "zealous: 2006-03 to 2006-05: neither a release nor a recorded reason" in lost_months(server)
    server.ask(STOP, id=server.ask(STATE, schedule=selector)["scheduleOrError"]["scheduleState"]["id"])


def lost_months(server: Server) -> str:
    """What the check says after one more run of the job `budget`."""
    params = {"selector": {**REPOSITORY, "pipelineName": "budget"}, "runConfigData": {}}
    run = server.ask(LAUNCH, params=params)["launchRun"]["run"]["runId"]
    status, said = server.wait(run)
    assert status == "SUCCESS", said
    (node,) = server.ask(CHECK)["assetNodes"]
    (check,) = node["assetChecksOrError"]["checks"]
    assert check["name"] == "no_month_lost"
    return str(check["executionForLatestMaterialization"]["evaluation"]["description"])


@pytest.mark.browser
def test_a_browser_shows_the_asset_graph(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/asset-groups?expanded=global@global:log,global@global:safelog")
    for name in ("raw_log", "capped_log", "selected", "released_queries"):
        page.get_by_text(name, exact=True).first.wait_for(timeout=60_000)
    picture(page, "graph")


@pytest.mark.browser
def test_a_browser_shows_a_release_with_its_cost_and_its_first_rows(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/assets/released_queries?view=partitions&partition={MARCH}")
    for text in ("epsilon left", "release id", "preview"):
        page.get_by_text(text, exact=True).first.wait_for(timeout=60_000)
    picture(page, "released-queries")
    assert page.get_by_text(f"safelog-{MARCH}-").count() >= 1
