"""Public pages as tests read them: strictly, every tag known and closed in order, no address that leads elsewhere."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

ALLOWED_TAGS = frozenset(
    (
        *("html", "head", "meta", "title", "style", "script", "body", "main", "header", "nav", "section", "article"),
        *("h1", "h2", "h3", "p", "div", "span", "strong", "code", "pre", "a", "bdi", "blockquote", "ul", "ol", "li"),
        *("dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td"),
        *("svg", "g", "rect", "text", "line", "polyline", "circle"),
    )
)
VOID_TAGS = {"meta"}
LOADING = {"src", "srcset", "action", "style", "background", "formaction", "ping"}


class Page(HTMLParser):
    """Reads a page strictly; collects its attributes, its words and its blocks of data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.data: list[Any] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED_TAGS, tag
        # The one script there may be is a block of data, which no browser runs.
        assert tag != "script" or attrs == [("type", "application/ld+json")]
        self.attributes += attrs
        if tag not in VOID_TAGS and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED_TAGS, tag
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            self.data.append(json.loads(data))
        elif "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    def assert_loads_nothing(self) -> None:
        """No attribute that loads or runs something; links lead to places on the page."""
        names = {name for name, _ in self.attributes}
        assert not names & LOADING
        assert not [name for name in names if name.startswith("on")]
        assert all((value or "").startswith("#") for name, value in self.attributes if name == "href")
