"""The docs site as `make docs-site` built it, in a browser: it asks nobody else, is read by everybody, and is searched.

Run by `make test-site`, which builds it first.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.inspection import inspect_page, open_browser

from qlog_assets.settings import CHECKOUT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.site

SITE = CHECKOUT / ".cache" / "site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.glob("**/*.html"))
KINDS = ("index.html", "docs/tutorial.html", "docs/days/lawyer.html", "docs/mechanisms/zealous.html", "docs/api.html")
"""One page of each kind: prose, commands, figures, pictures, code."""
LOADED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=\"?([^\"\s>]+)")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """A test's output is not the place for a list of requests."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site behind a plain web server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as running:
        yield running


def test_every_page_of_the_docs_is_on_the_site() -> None:
    written = {page.relative_to(CHECKOUT).with_suffix(".html") for page in (CHECKOUT / "docs").glob("**/*.md")}
    # MkDocs makes a folder's README the page of the folder.
    wanted = {path.with_name("index.html") if path.name == "README.html" else path for path in written}
    assert {path.as_posix() for path in wanted} <= set(PAGES)


def test_no_page_loads_anything_from_elsewhere() -> None:
    for page in PAGES:
        outside = [at for at in LOADED.findall((SITE / page).read_text(encoding="utf-8")) if re.match(r"\w+:|//", at)]
        assert [at for at in outside if not at.startswith("data:")] == [], page


@pytest.mark.parametrize("page", KINDS)
def test_a_page_is_read_in_light_and_dark_on_a_screen_and_a_phone(browser: Browser, address: str, page: str) -> None:
    found = inspect_page(browser, f"{address}/{page}", address, page.replace("/", "-"))
    assert (found.strangers, found.console, found.overflowing, found.violations) == ([], [], [], [])


@pytest.mark.parametrize("served", [True, False], ids=["from a server", "from a disk"])
def test_what_is_searched_for_is_found(browser: Browser, address: str, served: bool) -> None:
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{address}/docs/month.html" if served else (SITE / "docs" / "month.html").as_uri())
    page.get_by_placeholder("Search").first.press_sequentially("tombstone")
    found = page.locator(".md-search-result__link").first
    found.wait_for(timeout=60_000)
    found.click()
    page.wait_for_url(re.compile(r"\?h="))
    assert "tombstone" in page.locator("main").inner_text().lower()
    assert said == []
    page.close()


def test_a_link_from_page_to_page_leads_to_its_heading(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/docs/days/auditor.html")
    page.get_by_role("link", name="witness").first.click()
    page.wait_for_url(re.compile(r"/docs/security\.html#rollback-the-witness$"))
    page.locator("#rollback-the-witness").wait_for()
    page.close()


def test_a_file_of_the_repository_that_a_page_names_is_there() -> None:
    assert Path(SITE / "deploy" / "qlog.env").read_bytes() == (CHECKOUT / "deploy" / "qlog.env").read_bytes()
