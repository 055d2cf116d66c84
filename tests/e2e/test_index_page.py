"""The index of all releases as a reader uses it: from a folder and a plain web server, with the search and without."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.catalogues import PUBLIC_TEXT, write_example_index
from support.inspection import open_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


def shown(page: Page, selector: str) -> int:
    return sum(element.is_visible() for element in page.query_selector_all(selector))


def test_the_search_finds_tables_by_every_word_and_gives_everything_back(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.goto(write_example_index(tmp_path).as_uri())
    tables, articles = shown(page, "li[data-words]"), shown(page, "article")
    assert tables == 9 and articles == 5
    page.fill("#words", "CLICKS 2006-05 safelog")
    assert (shown(page, "li[data-words]"), shown(page, "article"), shown(page, ".month")) == (1, 1, 1)
    assert page.inner_text("#found") == "1 table"
    page.fill("#words", "skipped")
    assert (shown(page, "li[data-words]"), shown(page, "article")) == (0, 1)
    page.fill("#words", "")
    assert (shown(page, "li[data-words]"), shown(page, "article")) == (tables, articles)
    page.close()


def test_without_scripts_everything_is_there_but_the_search(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(write_example_index(tmp_path).as_uri())
    assert page.is_hidden("#filter") and shown(page, "li[data-words]") == 9
    assert PUBLIC_TEXT in page.inner_text("main")
    context.close()


def test_a_plain_web_server_serves_it_and_nobody_else_is_asked(browser: Browser, tmp_path: Path) -> None:
    write_example_index(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    page = browser.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.goto(address)
    page.fill("#words", "queries")
    assert shown(page, "li[data-words]") == 3
    assert said == [] and [url for url in asked if not url.startswith("data:")] == [address]
    page.close()
    server.shutdown()
    server.server_close()
