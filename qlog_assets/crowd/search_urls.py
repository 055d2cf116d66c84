"""Which addresses are result pages of a search engine: host, path, and the parameter that holds the query.

A fixed public list and what a person adds to it. Each address is judged by itself; nothing here opens a history.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from qlog_assets.errors import QlogError

COUNTRY = r"[a-z]{2,3}(\.[a-z]{2})?"
"""What stands for `*` at the end of a host: `com`, `de`, `co.uk`."""


@dataclass(frozen=True)
class SearchUrl:
    """The result pages of one engine. A host that ends in `.*` is the engine of every country."""

    host: str
    path: str
    parameter: str

    def query_in(self, host: str, path: str, parameters: Sequence[tuple[str, str]]) -> str | None:
        """The query of an address that was taken apart, if it is a result page of this engine."""
        if path.rstrip("/") != self.path.rstrip("/") or not self._has_host(host):
            return None
        return next((value for name, value in parameters if name == self.parameter and value.strip()), None)

    def _has_host(self, host: str) -> bool:
        if not self.host.endswith(".*"):
            return host in (self.host, f"www.{self.host}")
        return re.fullmatch(r"(www\.)?" + re.escape(self.host[:-1]) + COUNTRY, host) is not None


ENGINES = (
    SearchUrl("google.*", "/search", "q"),
    SearchUrl("bing.com", "/search", "q"),
    SearchUrl("duckduckgo.com", "/", "q"),
    SearchUrl("html.duckduckgo.com", "/html", "q"),
    SearchUrl("search.yahoo.com", "/search", "p"),
    SearchUrl("search.yahoo.co.jp", "/search", "p"),
    SearchUrl("yandex.*", "/search", "text"),
    SearchUrl("baidu.com", "/s", "wd"),
    SearchUrl("sogou.com", "/web", "query"),
    SearchUrl("search.naver.com", "/search.naver", "query"),
    SearchUrl("search.brave.com", "/search", "q"),
    SearchUrl("ecosia.org", "/search", "q"),
    SearchUrl("startpage.com", "/do/search", "query"),
    SearchUrl("startpage.com", "/sp/search", "query"),
    SearchUrl("qwant.com", "/", "q"),
    SearchUrl("kagi.com", "/search", "q"),
    SearchUrl("mojeek.com", "/search", "q"),
    SearchUrl("search.aol.com", "/aol/search", "q"),
    SearchUrl("ask.com", "/web", "q"),
)
"""The engines that many people use, by the addresses of their result pages."""


def parse_search_url(text: str) -> SearchUrl:
    """An engine as a person adds it, such as `http://127.0.0.1:8000/search?q=`: the parameter without a value is the
    query's."""
    parts = _split(text)
    names = [name for name, value in parse_qsl(parts[2], keep_blank_values=True) if not value] if parts else []
    if parts is None or not parts[0] or len(names) != 1:
        raise QlogError(
            "--search-url: write the address of a result page with the query left out, such as "
            "https://search.example/find?q="
        )
    return SearchUrl(parts[0], parts[1], names[0])


def find_query(address: str, engines: Sequence[SearchUrl]) -> str | None:
    """The query that an address asks one of the engines for, as it was typed; None if it is no result page."""
    parts = _split(address)
    if parts is None:
        return None
    host, path, query = parts
    # Taken apart only where an engine could want it: a history is mostly other pages.
    if not query:
        return None
    try:
        parameters = parse_qsl(query, keep_blank_values=True)
    except ValueError:  # more parameters than anybody sends
        return None
    return next((found for engine in engines if (found := engine.query_in(host, path, parameters)) is not None), None)


def _split(address: str) -> tuple[str, str, str] | None:
    """Host with its port, path and parameters of a web address; None if it is none."""
    try:
        parts = urlsplit(address)
    except ValueError:  # brackets that are no address
        return None
    if parts.scheme not in ("http", "https"):
        return None
    return parts.netloc.rpartition("@")[2].lower(), parts.path or "/", parts.query
