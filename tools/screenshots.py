"""Takes the pictures of docs/pictures from a release made for them: Dagster's pages, a datasheet, the index.

Run by `make screenshots`: it makes the demo on a small log in a directory that goes away, serves it with `qlog ui`, and
drives Chromium as the browser tests do, with their support code. `python -m tools.screenshots DIRECTORY` writes the
pictures elsewhere.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from support.browser import open_page
from support.launchpad import SLOW_MACHINE, open_launchpad, pick, write
from support.server import Server, environment_of, qlog_ui

from tools.pages import DOCS
from tools.pictures import save

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Page

PICTURES = DOCS / "pictures"
ROWS = 300_000
MONTH = "2006-03"
WIDE, TALL = {"width": 1400, "height": 1000}, {"width": 1000, "height": 900}
GRAPH, LINEAGE = {"width": 1900, "height": 960}, {"x": 545, "y": 110, "width": 1295, "height": 850}
"""The graph's page, and the part of it that is the graph."""
ASKED = "resources:\n  policy:\n    config:\n      safelog:\n        epsilon: 1\n"
"""What an operator may write into the launchpad: a smaller price than the policy's."""


def main() -> None:
    written = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "warehouse"
        home.mkdir(mode=0o700)
        qlog = str(Path(sys.executable).with_name("qlog"))
        subprocess.run([qlog, "demo", "--rows", str(ROWS)], env=environment_of(home), check=True)
        with qlog_ui(home) as server, open_page(server) as page:
            for name, picture in take(server, page, home):
                save(picture, path := written / f"{name}.png")
                print(f"{path.name}: {path.stat().st_size:,} bytes")


def take(server: Server, page: Page, home: Path) -> Iterator[tuple[str, bytes]]:
    """Each picture with its name, as soon as the page shows what it should."""
    page.set_viewport_size(GRAPH)
    page.goto(f"{server.address}/asset-groups?expanded=global@global:log,global@global:safelog")
    for shown in ("raw_log", "capped_log", "selected", "released_queries"):
        page.get_by_text(shown, exact=True).first.wait_for(timeout=SLOW_MACHINE)
    page.wait_for_timeout(10_000)  # what is materialized turns green after the graph is drawn
    yield "graph", settled(page, LINEAGE)
    page.set_viewport_size(WIDE)
    page.goto(f"{server.address}/assets/released_queries?view=partitions&partition={MONTH}")
    for shown in ("epsilon left", "release id", "preview"):
        page.get_by_text(shown, exact=True).first.wait_for(timeout=SLOW_MACHINE)
    yield "release", settled(page)
    open_launchpad(server, page, "safelog_release")
    pick(page, MONTH)
    write(page, ASKED)
    yield "launchpad", settled(page)
    # Public files are opened from the disk, as somebody who downloaded them would.
    browser = page.context.browser
    assert browser is not None
    public = browser.new_page(viewport=TALL)
    released = home / "released"
    (datasheet,) = {path.resolve() for path in released.glob(f"safelog/{MONTH}/*/datasheet.html")}
    public.goto(datasheet.as_uri())
    yield "datasheet", settled(public)
    if (index := released / "index.html").is_file():
        public.goto(index.as_uri())
        yield "index", settled(public)


def settled(page: Page, part: FloatRect | None = None) -> bytes:
    """The page, or a part of it, once nothing moves any more and nothing is pointed at."""
    page.mouse.move(0, 0)
    page.wait_for_timeout(2_000)
    return page.screenshot() if part is None else page.screenshot(clip=part)


if __name__ == "__main__":
    main()
