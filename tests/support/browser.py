"""A real browser on a running UI: Playwright drives Chromium. Pictures are kept where QLOG_SCREENSHOTS says."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from support.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
SCREENSHOTS = os.environ.get("QLOG_SCREENSHOTS")
"""A folder to keep pictures in, to be looked at."""


@contextmanager
def open_page(server: Server) -> Iterator[Page]:
    """A page in a browser of its own that asks nobody but the server."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 900})
        page.goto(server.opened)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        yield page
        browser.close()
        strangers = [url for url in asked if not url.startswith((server.address, "data:", "blob:", "ws://127.0.0.1"))]
        assert strangers == [], "the UI asks nobody else"


def picture(page: Page, name: str) -> None:
    if SCREENSHOTS:
        page.screenshot(path=f"{SCREENSHOTS}/{name}.png")
