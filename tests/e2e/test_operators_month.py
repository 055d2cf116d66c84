"""An operator's month in a browser, from a file in the landing zone to a withdrawn release, by pages and buttons alone.

What the pages are asked to show is what an operator looks for: the batch and its check, ε, δ and what is left, the
preview, why something was refused. docs/month.md walks the same month by command.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.browser import open_page, picture
from support.cli import qlog
from support.door import charges
from support.instances import edit_policy
from support.launchpad import SLOW_MACHINE, launch, open_launchpad, pick, write
from support.library import MAP, write_library_log
from support.server import RUN_SECONDS, Server, qlog_ui

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
MAY = "2024-05"
POLICY = f'dataset = "library"\nfirst = "{MAY}"\nlast = "{MAY}"\nhas_urls = false\n[safelog]\nepsilon = 1.5\n'
PARTITIONS = """
query Partitions($asset: [String!]!) { assetNodeOrError(assetKey: {path: $asset}) { ... on AssetNode {
    assetPartitionStatuses { __typename
        ... on DefaultPartitionStatuses { materializedPartitions failedPartitions }
        ... on TimePartitionStatuses { ranges { status startKey } }
    }
} } }
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("month") / "warehouse"
    home.mkdir()
    (home / "policy.toml").write_text(POLICY, encoding="utf-8")
    return home


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QLOG_LANDING_SECONDS", "5")
        with qlog_ui(home) as running:
            yield running


def drop_file(home: Path) -> None:
    """Put a log into the landing zone as somebody would: its column map first, then the file in one move."""
    folder = home / "landing" / "table"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "searches.csv.columns.toml").write_text(MAP, encoding="utf-8")
    written = home.parent / "searches.csv"
    write_library_log(written)
    shutil.move(written, folder / "searches.csv")


def switch_sensor_on(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/locations/qlog_assets.definitions/sensors/landing_files")
    page.locator("label:has(input[type=checkbox])").first.click(timeout=SLOW_MACHINE)


def wait_for_batch(server: Server) -> str:
    until = time.monotonic() + RUN_SECONDS
    while time.monotonic() < until:
        statuses = server.ask(PARTITIONS, asset=["landing_batch"])["assetNodeOrError"]["assetPartitionStatuses"]
        assert not statuses["failedPartitions"]
        if statuses["materializedPartitions"]:
            return str(statuses["materializedPartitions"][0])
        time.sleep(0.5)
    raise AssertionError("the sensor ingested nothing")


def open_asset(server: Server, page: Page, asset: str, partition: str) -> None:
    page.goto(f"{server.address}/assets/{asset}?view=partitions&partition={partition}")


def failed_months(server: Server, asset: str) -> list[str]:
    statuses = server.ask(PARTITIONS, asset=[asset])["assetNodeOrError"]["assetPartitionStatuses"]
    return [each["startKey"] for each in statuses["ranges"] if each["status"] == "FAILED"]


def shows(page: Page, *texts: str) -> None:
    for text in texts:
        page.get_by_text(text).first.wait_for(timeout=SLOW_MACHINE)


def test_an_operators_month(server: Server, home: Path) -> None:
    with open_page(server) as page:
        # A file lands, the sensor reads it, and its page says what became of it.
        switch_sensor_on(server, page)
        drop_file(home)
        batch = wait_for_batch(server)
        open_asset(server, page, "landing_batch", batch)
        shows(page, "rows accepted", "3600", "searches.csv")
        picture(page, "month-batch")
        page.goto(f"{server.address}/assets/landing_batch?view=checks")
        shows(page, "rows_accounted_for", "few_rows_rejected")
        picture(page, "month-checks")

        # The month is picked and launched; its pages show cost, what is left, and the first rows.
        open_launchpad(server, page, "safelog_release")
        pick(page, MAY)
        status, said = launch(server, page, "safelog_release")
        assert status == "SUCCESS", said
        (charge,) = charges(home)
        open_asset(server, page, "released_queries", MAY)
        shows(page, "epsilon left", "10.5", "delta left", "preview", charge.release_id)
        picture(page, "month-released")

        # Asked again it is served; nothing is charged.
        open_launchpad(server, page, "safelog_release")
        pick(page, MAY)
        assert launch(server, page, "safelog_release")[0] == "SUCCESS"
        assert len(charges(home)) == 1

        # The policy changes: the request is refused, says why on the draw's page, and nothing turns red.
        edit_policy(home, safelog="epsilon = 1.25")
        open_launchpad(server, page, "safelog_release")
        pick(page, MAY)
        status, said = launch(server, page, "safelog_release")
        assert status == "SUCCESS" and "differs in parameter epsilon (1.5, now 1.25)" in said
        # The page scrolls to the run's end; who looks for the reason types into the filter above the log.
        page.get_by_placeholder("Filter").first.fill("refused")
        shows(page, "refused, nothing was done")
        picture(page, "month-refused-run")
        page.goto(f"{server.address}/assets/selected?view=events&partition={MAY}")
        shows(page, "differs in parameter epsilon (1.5, now 1.25)")
        picture(page, "month-refused")
        assert [failed_months(server, asset) for asset in ("capped_log", "selected", "released_queries")] == [[]] * 3
        assert len(charges(home)) == 1

        # It is withdrawn; the files are gone, and a tombstone says to everybody what it may.
        page.goto(f"{server.address}/locations/qlog_assets.definitions/jobs/withdraw_release/playground")
        page.locator(".CodeMirror").first.wait_for(timeout=SLOW_MACHINE)
        reason = "a title in it was under embargo"
        told = f"reason: {reason}, public_text: A corrected one follows"
        write(page, f"ops: {{withdraw: {{config: {{release: {charge.release_id}, {told}}}}}}}")
        status, said = launch(server, page, "withdraw_release")
        assert status == "SUCCESS", said
        picture(page, "month-withdrawn")
    (stone,) = (home / "released" / "safelog" / MAY).iterdir()
    assert stone.name == f"{charge.release_id}.withdrawn.json" and reason not in stone.read_text(encoding="utf-8")
    assert "A corrected one follows" in stone.read_text(encoding="utf-8")
    assert qlog(home, "audit", "--json").json["ok"] is True
