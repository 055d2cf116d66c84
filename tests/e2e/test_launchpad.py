"""Dagster's launchpad in a browser: it opens empty, a month is picked, and *Launch Run* launches what is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.browser import picture
from support.crowd_epochs import job_of, seal
from support.door import charges, warehouse_at
from support.instances import MONTHS, Prepared, copy_warehouse, edit_policy
from support.launchpad import SLOW_MACHINE, launch, open_launchpad, pick, write, written
from support.server import Server

from qlog_assets.ledger import Ledger
from qlog_assets.mechanisms.register import releasable, simulated
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import batches
from qlog_assets.policy import Policy
from qlog_assets.studies.register import studies

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

MARCH, APRIL = MONTHS
SIMULATIONS = [f"{mechanism.name}_simulation" for mechanism in simulated()]
STUDIES = [f"{study.name.replace('-', '_')}_study" for study in studies() if study.per_month]
MONTHLY = (*(f"{mechanism.name}_release" for mechanism in releasable()), "safelog_simulation", "zealous_study")
"""Launched: every release, and a simulation and a study for all that are made alike."""
OPENED = sorted({*SIMULATIONS, *STUDIES} - set(MONTHLY))
"""Opened; what they do is tested by the command."""
WITH_CONFIG = ("withdraw_release",)
"""These are launched by the walk of an operator's month."""
UNPARTITIONED = ("audit", "budget", *(f"{study.name}_study" for study in studies() if not study.per_month))
JOBS = """
query { repositoriesOrError { ... on RepositoryConnection { nodes { jobs { name } } } } }
"""


@pytest.fixture(scope="module")
def home(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = copy_warehouse(prepared("ingested"), tmp_path_factory.mktemp("pad") / "warehouse")
    asked = Policy.load(home / "policy.toml").section("crowd")
    limits = {name: getattr(asked, name) for name in ("artifacts_per_user", "share_threshold")}
    # Nobody reads a log for CrowdLogging: its month is what people's own machines sent.
    month = Month(MARCH)
    sent = {f"account {number}": [("weather",)] for number in range(8)}
    seal(home, month, {job_of("queries", month, **limits): sent})
    return home


def test_every_job_is_launched_by_a_test_below(server: Server) -> None:
    (found,) = server.ask(JOBS)["repositoriesOrError"]["nodes"]
    ours = {job["name"] for job in found["jobs"] if not job["name"].startswith("__")}
    assert ours == {*MONTHLY, *OPENED, *UNPARTITIONED, *WITH_CONFIG, "ingest", "skip_month", "withdraw_batch"}


@pytest.mark.parametrize("job", MONTHLY)
def test_a_month_is_picked_and_launched(server: Server, page: Page, job: str) -> None:
    open_launchpad(server, page, job)
    assert written(page) == "{}", "nothing is prefilled"
    pick(page, MARCH)
    status, said = launch(server, page, job)
    picture(page, f"launched-{job}")
    assert status == "SUCCESS", said


def test_every_other_job_of_a_month_opens_empty_and_without_errors(server: Server, page: Page) -> None:
    for job in OPENED:
        open_launchpad(server, page, job)
        assert written(page) == "{}", job


def test_a_batch_is_picked_and_ingested(server: Server, page: Page, home: Path) -> None:
    (batch,) = batches(warehouse_at(home))
    open_launchpad(server, page, "ingest")
    assert written(page) == "{}"
    pick(page, batch.provenance.month)
    status, said = launch(server, page, "ingest")
    assert status == "SUCCESS", said


def test_a_month_is_skipped_for_a_reason_that_is_typed(server: Server, page: Page, home: Path) -> None:
    """The only job that cannot be launched as it opens: an auditor reads the reason."""
    page.goto(f"{server.address}/locations/qlog_assets.definitions/jobs/skip_month/playground")
    page.locator(".CodeMirror").first.wait_for(timeout=SLOW_MACHINE)
    assert written(page) == "{}"
    write(page, "ops: {skip: {config: {reason: nothing was logged, mechanism: zealous}}}")
    pick(page, "2006-05")
    status, said = launch(server, page, "skip_month")
    assert status == "SUCCESS", said
    (skip,) = Ledger.read(warehouse_at(home).ledger_url).skips("small")
    assert (skip.month, skip.mechanism, skip.reason) == ("2006-05", "zealous", "nothing was logged")
    assert skip.run_id


@pytest.mark.parametrize("job", UNPARTITIONED)
def test_a_job_without_partitions_is_launched_as_it_opens(server: Server, page: Page, job: str) -> None:
    open_launchpad(server, page, job)
    assert written(page) == "{}"
    status, said = launch(server, page, job)
    assert status == "SUCCESS", said


def test_decimals_may_be_typed_in_any_way_and_the_policy_is_read_when_the_run_starts(
    server: Server, page: Page, home: Path
) -> None:
    """Picking a month rewrites what was typed; and between opening and launching the owner edits the policy."""
    open_launchpad(server, page, "safelog_release")
    write(page, "resources: {policy: {config: {safelog: {delta: 1E-6, click_scale: 2.5}}}}")
    pick(page, APRIL)
    page.get_by_text("No errors", exact=True).wait_for(timeout=SLOW_MACHINE)
    picture(page, "launchpad")
    edit_policy(home, safelog="threshold = 11")
    status, said = launch(server, page, "safelog_release")
    assert status == "SUCCESS", said
    (charge,) = (charge for charge in charges(home) if charge.month == APRIL)
    assert (charge.parameters["delta"], charge.parameters["click_scale"]) == ("1E-6", "2.5")
    assert charge.parameters["threshold"] == 11, "the policy is that of the run, not of the code's loading"


def test_what_only_the_policy_file_may_say_is_refused_with_that_sentence(
    server: Server, page: Page, home: Path
) -> None:
    before = len(charges(home))
    open_launchpad(server, page, "zealous_release")
    write(page, "resources: {policy: {config: {settings: {budget.epsilon: 1000000}}}}")
    pick(page, APRIL)
    status, said = launch(server, page, "zealous_release")
    assert status == "FAILURE" and "come from the policy file alone" in said
    open_launchpad(server, page, "zealous_release")
    write(page, "resources: {policy: {config: {zealous: {epsilon: 201}}}}")
    status, said = launch(server, page, "zealous_release")
    assert status == "SUCCESS" and "Refused: " in said and "one release may cost ε = 2 at most" in said
    assert len(charges(home)) == before
