"""The lock of `qlog ui` in a real browser: strangers' pages against somebody who is logged in, and that person."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

import pytest
from support.cli import qlog
from support.instances import MONTHS, Prepared, copy_warehouse
from support.server import LAUNCH, RUN_SECONDS, Server, cookie_from, qlog_ui

from qlog_assets.processes import user_name
from qlog_assets.ui.passwords import write_password

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
STRANGER = "stranger.example"
"""A name that the browser takes for this machine: a site of its own, and what DNS rebinding does."""
JOB = "/locations/qlog_assets.definitions/jobs/safelog_release"
WORK = """
query {
    runsOrError { ... on Runs { results { runId jobName } } }
    partitionBackfillsOrError { ... on PartitionBackfills { results { id } } }
}
"""
PARAMS = {
    "selector": {
        "repositoryLocationName": "qlog_assets.definitions",
        "repositoryName": "__repository__",
        "pipelineName": "safelog_release",
    },
    "runConfigData": {},
    "executionMetadata": {"tags": [{"key": "dagster/partition", "value": MONTHS[0]}]},
}
QUESTION = {"query": LAUNCH, "variables": {"params": PARAMS}}
ADDRESS = "/graphql?" + urlencode({"query": LAUNCH, "variables": json.dumps({"params": PARAMS})})

# Each returns a word for what came of it; none of them may matter.
ATTACKS = """
async ({target, address, question}) => {
  const said = {}, body = JSON.stringify(question);
  const settle = (work) => Promise.race([work, new Promise((done) => setTimeout(done, 5000, "nothing"))]);
  const frame = (name) => { const made = document.createElement("iframe"); made.name = name;
    document.body.append(made); return new Promise((done) => made.addEventListener("load", () => done("loaded"))); };
  const fetched = (where, more) => settle(fetch(target + where, {credentials: "include", ...more}).then(
    async (answer) => answer.type === "opaque" ? "opaque" : answer.status + (await answer.text()), () => "refused"));
  said.image = await settle(new Promise((done) => { const made = new Image(); made.onload = () => done("shown");
    made.onerror = () => done("refused"); made.src = target + address; }));
  said.script = await settle(new Promise((done) => { const made = document.createElement("script");
    made.onload = () => done("ran"); made.onerror = () => done("refused"); made.src = target + address;
    document.body.append(made); }));
  for (const [name, method, kind] of [["form get", "get", ""], ["form", "post", "application/x-www-form-urlencoded"],
      ["form text", "post", "text/plain"], ["form data", "post", "multipart/form-data"]]) {
    const loaded = frame(name), form = document.createElement("form");
    Object.assign(form, {method, action: target + address, target: name}); if (kind) form.enctype = kind;
    const parts = method === "get" ? Object.fromEntries(new URLSearchParams(address.split("?")[1]))
      : {[body.slice(0, -1) + ',"x":"']: '"}'};
    for (const [key, value] of Object.entries(parts)) { const input = document.createElement("input");
      Object.assign(input, {type: "hidden", name: key, value}); form.append(input); }
    document.body.append(form); form.submit(); said[name] = await settle(loaded);
  }
  said["fetch get"] = await fetched(address, {mode: "no-cors"});
  said["fetch simple"] = await fetched(address, {method: "POST", mode: "no-cors", body,
    headers: {"Content-Type": "text/plain"}});
  said["fetch read"] = await fetched(address, {method: "POST", body, headers: {"Content-Type": "text/plain"}});
  said["fetch asks first"] = await fetched("/graphql", {method: "POST", body,
    headers: {"Content-Type": "application/json"}});
  said["fetch reports"] = await fetched("/report_asset_materialization/selected?data_version=1",
    {method: "POST", mode: "no-cors", body: "{}"});
  said.beacon = navigator.sendBeacon(target + address, new Blob([body], {type: "text/plain"}));
  said.websocket = await settle(new Promise((done) => {
    const made = new WebSocket(target.replace("http", "ws") + "/graphql", "graphql-ws");
    made.onopen = () => { made.send(JSON.stringify({type: "connection_init"}));
      made.send(JSON.stringify({type: "start", id: "1", payload: question})); done("opened"); };
    made.onerror = () => done("refused"); }));
  return said;
}
"""
REFUSED = {
    "image": "refused",
    "script": "refused",
    "fetch get": "refused",
    "fetch simple": "refused",
    "fetch read": "refused",
    "fetch asks first": "refused",
    "fetch reports": "refused",
    "websocket": "refused",
}
"""What a stranger's page hears where it hears anything; CORP turns even answers that nobody can read into failures."""

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def home(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_warehouse(prepared("ingested"), tmp_path_factory.mktemp("lock") / "warehouse")


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Server]:
    with qlog_ui(home) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        rules = f"--host-resolver-rules=MAP {STRANGER} 127.0.0.1"
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", rules])
        yield browser
        browser.close()


@pytest.fixture
def victim(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    """Somebody's browser, in which she is logged in."""
    with browser.new_context(viewport={"width": 1600, "height": 900}) as context:
        page = context.new_page()
        page.goto(server.opened)
        page.close()
        yield context


class Blank(BaseHTTPRequestHandler):
    """A stranger's page; the test runs the stranger's script in it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>look at this</title><body>")

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@contextmanager
def another_port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Blank) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        yield stranger.server_address[1]
        stranger.shutdown()


def launched(server: Server) -> list[str]:
    """Runs and backfills that were launched here; the log was ingested before, by the command line."""
    work = server.ask(WORK)
    runs = [run["runId"] for run in work["runsOrError"]["results"] if run["jobName"] != "ingest"]
    return runs + [fill["id"] for fill in work["partitionBackfillsOrError"]["results"]]


@pytest.fixture
def nothing_launched(server: Server, home: Path) -> Iterator[None]:
    """Whatever a test tries: afterwards there is no run, backfill or charge that was not there before."""

    def work() -> tuple[list[str], object]:
        return launched(server), qlog(home, "ledger", "--json").json["charges"]

    before = work()
    yield
    assert work() == before


@pytest.mark.usefixtures("nothing_launched")
@pytest.mark.parametrize(
    "name", [STRANGER, "localhost", "127.0.0.1"], ids=["another site", "localhost", "another port"]
)
def test_a_strangers_page_launches_nothing_in_the_browser_of_somebody_logged_in(
    victim: BrowserContext, server: Server, name: str
) -> None:
    with another_port() as port:
        page = victim.new_page()
        answers: list[tuple[str, int]] = []
        page.on("response", lambda answer: answers.append((answer.url, answer.status)))
        page.goto(f"http://{name}:{port}/")
        given = {"target": server.address, "address": ADDRESS, "question": QUESTION}
        said = page.evaluate(ATTACKS, given)
        assert {key: said[key] for key in REFUSED} == REFUSED
        reached = [status for url, status in answers if url.startswith(server.address)]
        assert reached and all(status >= 400 for status in reached), answers
        page.close()
    cookies = {cookie["name"] for cookie in victim.cookies()}
    assert f"qlog-ui-{urlsplit(server.address).port}" in cookies, "she was logged in all the time"


@pytest.mark.usefixtures("nothing_launched")
@pytest.mark.parametrize("name", [STRANGER, "127.0.0.1"], ids=["another site", "another port"])
def test_a_link_on_a_strangers_page_launches_nothing(victim: BrowserContext, server: Server, name: str) -> None:
    """A click leads here with all rights of a page: only what is in the address could do harm."""
    with another_port() as port:
        page = victim.new_page()
        page.goto(f"http://{name}:{port}/")
        page.evaluate("(to) => { location.href = to }", server.address + ADDRESS)
        page.wait_for_url(f"{server.address}/**")
        page.close()


@pytest.mark.usefixtures("nothing_launched")
def test_a_name_that_was_made_to_point_here_is_refused(victim: BrowserContext, server: Server) -> None:
    """DNS rebinding: the stranger's page has the server's own address and port, under the stranger's name."""
    page = victim.new_page()
    answer = page.goto(f"http://{STRANGER}:{urlsplit(server.address).port}/")
    assert answer is not None and answer.status == 400


def test_no_page_is_shown_in_a_strangers_frame(victim: BrowserContext, server: Server) -> None:
    with another_port() as port:
        for name in (STRANGER, "127.0.0.1"):
            page = victim.new_page()
            page.goto(f"http://{name}:{port}/")
            for path in ("/", "/login", JOB):
                refused = page.expect_response(lambda answer: answer.url.startswith(server.address))
                with refused as answer:
                    page.set_content(f'<iframe src="{server.address}{path}" width="900" height="600"></iframe>')
                assert answer.value.status == 403, "browsers say that it is for a frame"
                assert answer.value.header_value("x-frame-options") == "DENY", "and would not show it anyway"
                (frame,) = page.frames[1:]
                assert frame.locator("#root, form, nav").count() == 0
            page.close()


def test_nobody_gets_anything_without_logging_in(browser: Browser, server: Server) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{server.address}/assets/selected?view=lineage")
        assert urlsplit(page.url).path == "/login"
        page.get_by_label("Token").fill("a guess")
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("alert").wait_for()
        page.get_by_label("Token").fill(server.opened.partition("token=")[2])
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{server.address}/assets/selected?view=lineage")
    for path, body in {
        "/server_info": None,
        "/graphql": b"{}",
        "/logs/a/b.out": None,
        "/notebook": None,
        "/download_debug/1": None,
        "/report_asset_materialization/selected": b"{}",
        "/report_asset_check/selected": b"{}",
        "/report_asset_observation/selected": b"{}",
    }.items():
        status, text = server.request(path, body, Origin=server.address, Content_Type="application/json")
        assert (status, text) == (401, "log in first: open /login\n"), path


def released(page: Page, server: Server) -> None:
    """Release both months by clicks, as a person does it."""
    page.goto(f"{server.address}{JOB}")
    page.get_by_text("Materialize all").first.click(timeout=60_000)
    months = page.get_by_placeholder("ex: ")
    months.fill(", ".join(MONTHS))
    months.press("Tab")
    page.get_by_role("button", name="Launch").last.click()


def test_who_opened_the_printed_address_can_do_everything_and_stands_in_the_ledger(
    victim: BrowserContext, server: Server, home: Path
) -> None:
    page = victim.new_page()
    addresses: list[str] = []
    page.on("framenavigated", lambda frame: addresses.append(frame.url))
    page.goto(server.opened)
    page.get_by_text("Deployment", exact=True).first.wait_for(timeout=60_000)
    assert addresses and not any("token" in address for address in addresses)
    released(page, server)
    until = time.monotonic() + RUN_SECONDS
    while len(found := launched(server)) < len(MONTHS) + 1:
        assert time.monotonic() < until, f"of a backfill and its runs there is only {found}"
        page.wait_for_timeout(500)
    *runs, _ = found
    assert {server.wait(run)[0] for run in runs} == {"SUCCESS"}
    charges = qlog(home, "ledger", "--json").json["charges"]
    assert {(charge["month"], charge["who"]) for charge in charges} == {
        (month, f"{user_name()} (ui)") for month in MONTHS
    }
    token = server.opened.partition("token=")[2]
    assert server.log.read_text(encoding="utf-8", errors="replace").count(token) == 1, "printed once, logged never"


@pytest.mark.slow
def test_a_user_of_the_password_file_stands_in_the_ledger(prepared: Prepared, tmp_path: Path) -> None:
    home = copy_warehouse(prepared("ingested"), tmp_path / "warehouse")
    users = tmp_path / "users"
    write_password(users, "alice", "correct horse")
    form = {"name": "alice", "password": "correct horse"}
    with qlog_ui(home, "--passwords", str(users), login=lambda opened: cookie_from(opened, form)) as server:
        assert "token" not in server.opened
        forged = [{"key": "qlog/asked_by", "value": "root"}, {"key": "qlog/asked_by_proof", "value": "x"}]
        params = {**PARAMS, "executionMetadata": {"tags": [*PARAMS["executionMetadata"]["tags"], *forged]}}  # type: ignore[index]
        answer = server.ask(LAUNCH, params=params)["launchRun"]
        status, said = server.wait(answer["run"]["runId"])
        assert status == "SUCCESS", said
    (charge,) = qlog(home, "ledger", "--json").json["charges"]
    assert charge["who"] == "alice (ui)"
    assert qlog(home, "audit", "--json").json["ok"] is True
