"""What the tests of the UI share: a server on the module's own `home`, and a page in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.browser import open_page
from support.server import Server, qlog_ui

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Server]:
    with qlog_ui(home) as running:
        yield running


@pytest.fixture
def page(server: Server) -> Iterator[Page]:
    with open_page(server) as page:
        yield page
