"""A small search engine on this machine, and a real Chromium with a profile of its own that searches there."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from support.browser import CHROMIUM

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Pages(BaseHTTPRequestHandler):
    """Result pages with links to two pages, straight and by a redirect; the pages link to a third one."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/leave":
            self.send_response(302)
            self.send_header("Location", parse_qs(parts.query)["to"][0])
            self.end_headers()
            return
        if parts.path == "/favicon.ico":
            self.send_error(404)
            return
        if parts.path == "/search":
            body = (
                "<!doctype html><a id=straight href='/first/page'>1</a> <a id=round href='/leave?to=/second/page'>2</a>"
            )
            body += " <a id=tab href='/third/page'>3</a>"
        else:
            body = "<!doctype html><a id=on href='/further'>on</a>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: requests hold queries."""


@dataclass(frozen=True)
class SearchEngine:
    address: str

    @property
    def pattern(self) -> str:
        return f"{self.address}/search?q="

    def results(self, query: str) -> str:
        return self.pattern + quote(query)


@contextmanager
def serving_results() -> Iterator[SearchEngine]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield SearchEngine(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def browse(profile: Path, engine: SearchEngine, searches: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Search in a profile, and click on results by their names: `straight`, `round`, `tab`, or `on` from the first."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            str(profile), executable_path=CHROMIUM, headless=True, args=list(QUIET)
        )
        page = context.pages[0]
        for query, clicks in searches:
            page.goto(engine.results(query))
            for click in clicks:
                if click == "tab":
                    with context.expect_page() as opened:
                        page.click("#tab", modifiers=["Control"])
                    opened.value.wait_for_load_state()
                    opened.value.close()
                elif click == "on":
                    page.click("#straight")
                    page.click("#on")
                    page.go_back()
                    page.go_back()
                else:
                    page.click(f"#{click}")
                    page.go_back()
        context.close()
