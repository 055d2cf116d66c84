"""Public pages in a real browser: light and dark, wide and as narrow as a phone, held against WCAG by axe-core.

A page is added by a function that writes it into a folder and says where it lies, registered with `public_page`;
`tests/e2e/test_public_pages.py` opens every one of them. axe-core comes with the package axe-playwright-python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.browser import CHROMIUM, SCREENSHOTS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCHEMES = ("light", "dark")
WIDTHS = (1280, 390)
"""A screen, and a phone held upright."""
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

PageWriter = Callable[[Path], Path]
PAGES: dict[str, PageWriter] = {}


def public_page(name: str) -> Callable[[PageWriter], PageWriter]:
    """Register a page by a function that writes it below a folder and returns its path."""

    def register(writer: PageWriter) -> PageWriter:
        PAGES[name] = writer
        return writer

    return register


@dataclass
class Inspection:
    """What a page did in a browser that a public page does not do; all of it empty if nothing."""

    strangers: list[str] = field(default_factory=list)
    """Addresses it asked for besides files below its own folder."""
    console: list[str] = field(default_factory=list)
    overflowing: list[str] = field(default_factory=list)
    """Where the page itself has to be scrolled sideways."""
    violations: list[str] = field(default_factory=list)
    """What axe-core found, with the rule and the element."""


@contextmanager
def open_browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def inspect_page(browser: Browser, address: str, own: str, name: str = "page") -> Inspection:
    """Open an address in every scheme and width. `own` is how addresses begin that the page may ask for."""
    from axe_playwright_python.sync_playwright import Axe

    found = Inspection()
    for scheme in SCHEMES:
        for width in WIDTHS:
            label = f"{name}-{scheme}-{width}"
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            asked: list[str] = []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.on("console", lambda message, label=label: found.console.append(f"{label}: {message.text}"))
            page.on("pageerror", lambda error, label=label: found.console.append(f"{label}: {error}"))
            page.goto(address)
            # Before axe, which adds a script of its own to the page.
            found.strangers += [url for url in asked if not url.startswith((own, "data:"))]
            if not page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
                found.overflowing.append(label)
            if SCREENSHOTS:
                page.screenshot(path=f"{SCREENSHOTS}/{label}.png", full_page=True)
            options: dict[str, Any] = {"runOnly": RULES, "resultTypes": ["violations"]}
            violations = Axe().run(page, options=options).response["violations"]
            found.violations += [
                f"{label}: {rule['id']} at {node['html'][:120]}" for rule in violations for node in rule["nodes"]
            ]
            context.close()
    return found
