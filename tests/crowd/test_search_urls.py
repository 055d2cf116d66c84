"""Result pages by their addresses: common engines, engines that a person adds, and everything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qlog_assets.crowd.search_urls import ENGINES, SearchUrl, find_query, parse_search_url
from qlog_assets.errors import QlogError


@pytest.mark.parametrize(
    ("address", "query"),
    [
        ("https://www.google.com/search?client=x&q=Green+tea", "Green tea"),
        ("https://google.co.uk/search?q=tea", "tea"),
        ("https://duckduckgo.com/?q=caf%C3%A9&ia=web", "café"),
        ("https://search.yahoo.com/search?p=tea", "tea"),
        ("https://www.bing.com/search?q=tea&first=11", "tea"),
        ("https://www.google.com/search?q=", None),
        ("https://www.google.com/maps?q=tea", None),
        ("https://google.com.evil.example/search?q=tea", None),
        ("https://notgoogle.com/search?q=tea", None),
        ("ftp://www.google.com/search?q=tea", None),
        ("https://tea.example/?q=tea", None),
        ("http://[/search?q=tea", None),
        ("", None),
    ],
)
def test_a_query_is_found_on_result_pages_of_known_engines_alone(address: str, query: str | None) -> None:
    assert find_query(address, ENGINES) == query


def test_an_engine_is_added_by_the_address_of_its_result_page() -> None:
    engine = parse_search_url("http://127.0.0.1:8000/find?lang=en&text=")
    assert engine == SearchUrl("127.0.0.1:8000", "/find", "text")
    assert find_query("http://127.0.0.1:8000/find?text=tea&page=2", [engine]) == "tea"
    assert find_query("http://127.0.0.1:8001/find?text=tea", [engine]) is None


@pytest.mark.parametrize("text", ["", "tea", "https://tea.example/", "https://tea.example/?q=tea", "http://[x/?q="])
def test_what_is_no_result_page_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(QlogError, match="--search-url") as refused:
        parse_search_url(text)
    assert "tea.example" not in str(refused.value)


@given(st.text())
def test_no_text_is_too_odd_to_be_an_address(text: str) -> None:
    assert find_query(text, ENGINES) is None or "?" in text
    assert find_query(f"https://www.google.com/search?{text}", ENGINES) != ""
