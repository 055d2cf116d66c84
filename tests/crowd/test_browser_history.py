"""Browser histories: searches and clicks from visits, with a real Chromium and with Firefox's tables."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.search_engine import browse, serving_results

from qlog_assets.crowd.browser_history import Visit, find_searches
from qlog_assets.crowd.chromium import read_chromium
from qlog_assets.crowd.firefox import read_firefox
from qlog_assets.crowd.mining import mine
from qlog_assets.crowd.search_urls import ENGINES, parse_search_url
from qlog_assets.errors import QlogError
from qlog_assets.months import Month

MARCH = Month("2006-03")
RESULTS = "https://www.google.com/search?q="


def at(minute: int) -> datetime:
    return datetime(2006, 3, 2, 10) + timedelta(minutes=minute)


def test_a_click_is_the_end_of_the_redirects_that_began_on_a_result_page() -> None:
    visits = [
        Visit(1, at(0), RESULTS + "tea", 0),
        Visit(2, at(1), "https://www.google.com/url?sa=t", 1),
        Visit(3, at(1), "https://tea.example/green", 2, is_redirect=True),
        Visit(4, at(2), "https://tea.example/basket", 3),
        Visit(5, at(3), "https://elsewhere.example", 0),
        Visit(6, at(4), "file:///home/me/tea.html", 1),
    ]
    rows = find_searches(visits, ENGINES, MARCH).to_pylist()
    assert [(row["time"], row["query"], row["url"]) for row in rows] == [
        (at(0), "tea", None),
        (at(0), "tea", "https://tea.example/green"),
    ]


def test_going_back_to_results_is_no_new_search_and_its_clicks_belong_to_the_first() -> None:
    visits = [
        Visit(1, at(0), RESULTS + "tea", 0),
        Visit(2, at(1), RESULTS + "pot", 1),
        Visit(3, at(2), RESULTS + "tea", 0, is_revisit=True),
        Visit(4, at(3), "https://tea.example", 3),
        Visit(5, at(4), "https://tea.example", 3, is_revisit=True),
    ]
    table = find_searches(visits, ENGINES, MARCH)
    assert mine(table, "queries") == [("pot",), ("tea",)]
    assert mine(table, "reformulations") == [("tea", "pot")]
    assert [row["time"] for row in table.to_pylist() if row["url"]] == [at(0)]


def test_only_the_searches_of_the_month_are_read_and_visits_in_a_ring_end() -> None:
    visits = [
        Visit(1, datetime(2006, 2, 28, 23, 59), RESULTS + "before", 0),
        Visit(2, datetime(2006, 4, 1), RESULTS + "after", 0),
        Visit(3, at(0), "https://a.example", 4, is_redirect=True),
        Visit(4, at(0), "https://b.example", 3, is_redirect=True),
        Visit(5, at(1), "https://c.example", 5, is_redirect=True),
    ]
    assert find_searches(visits, ENGINES, MARCH).num_rows == 0


PAGES = st.sampled_from([RESULTS + "tea", RESULTS + "pot", "https://tea.example", "https://pot.example", "about:blank"])
VISITS = st.lists(st.tuples(st.integers(0, 5), PAGES, st.integers(0, 9), st.booleans(), st.booleans()), max_size=9)


@given(VISITS)
def test_every_row_belongs_to_a_search_that_was_made_and_every_click_to_another_page(
    visits: list[tuple[int, str, int, bool, bool]],
) -> None:
    """Whatever a history says of who came from where."""
    known = [Visit(number, at(minute), *rest) for number, (minute, *rest) in enumerate(visits, 1)]
    made = {(visit.time, visit.url.removeprefix(RESULTS)) for visit in known if visit.url.startswith(RESULTS)}
    for row in find_searches(known, ENGINES, MARCH).to_pylist():
        assert (row["time"], row["query"]) in made
        assert row["url"] in (None, "https://tea.example", "https://pot.example")


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """A Firefox history with the columns that are read: a search, a redirect to a page, a frame."""
    (tmp_path / "firefox").mkdir()
    with sqlite3.connect(tmp_path / "firefox" / "places.sqlite") as connection:
        connection.execute("CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url LONGVARCHAR)")
        connection.execute(
            """CREATE TABLE moz_historyvisits
               (id INTEGER PRIMARY KEY, from_visit INTEGER, place_id INTEGER, visit_date INTEGER, visit_type INTEGER)"""
        )
        start = int(at(0).replace(tzinfo=UTC).timestamp() * 1_000_000)
        pages = [(RESULTS + "green+tea", 0, 2), ("https://t.example", 1, 1), ("https://tea.example/", 2, 6)]
        for number, (url, came_from, kind) in enumerate([*pages, ("https://frame.example", 1, 8)], 1):
            connection.execute("INSERT INTO moz_places VALUES (?, ?)", (number, url))
            visit = (number, came_from, number, start + number, kind)
            connection.execute("INSERT INTO moz_historyvisits VALUES (?, ?, ?, ?, ?)", visit)
    connection.close()
    return tmp_path / "firefox"


def test_firefox_gives_its_searches_and_clicks(places: Path, tmp_path: Path) -> None:
    table = read_firefox(places, MARCH, tmp_path)
    assert mine(table, "clicks") == [("green tea", "https://tea.example")]
    assert read_firefox(places / "places.sqlite", MARCH.next(), tmp_path).num_rows == 0
    assert [path.name for path in tmp_path.iterdir()] == ["firefox"], "no copy is left"


def test_a_file_that_is_no_history_is_one_line_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "History").write_text("a secret of somebody\n" * 100, encoding="utf-8")
    for read in (read_chromium, read_firefox):
        with pytest.raises(QlogError, match="is no history") as refused:
            read(tmp_path / "History", MARCH, tmp_path)
        assert "secret" not in str(refused.value)
    with pytest.raises(QlogError, match="no such file"):
        read_chromium(tmp_path / "nowhere", MARCH, tmp_path)


@pytest.mark.browser
def test_a_real_chromium_profile_gives_the_searches_and_clicks_that_were_made(tmp_path: Path) -> None:
    profile, today = tmp_path / "profile", Month.containing(datetime.now(UTC).date())
    with serving_results() as engine:
        searches = [("Tea Pot", ["straight", "round"]), ("green tea", ["tab"]), ("Green  Tea", []), ("cups", ["on"])]
        browse(profile, engine, searches)
        added = [parse_search_url(engine.pattern)]
    history = profile / "Default"
    # A browser that runs holds a lock on its history: it is read all the same, and is not written.
    locked = sqlite3.connect(history / "History", isolation_level=None)
    locked.execute("BEGIN EXCLUSIVE")
    before = (history / "History").read_bytes()
    table = read_chromium(history, today, tmp_path, added)
    assert (history / "History").read_bytes() == before
    locked.close()
    assert mine(table, "queries") == [("cups",), ("green tea",), ("tea pot",)]
    assert mine(table, "reformulations") == [("green tea", "cups"), ("tea pot", "green tea")]
    assert mine(table, "clicks") == [
        ("cups", f"{engine.address}/first/page"),
        ("green tea", f"{engine.address}/third/page"),
        ("tea pot", f"{engine.address}/second/page"),
        ("tea pot", f"{engine.address}/first/page"),
    ]
    assert mine(read_chromium(history, Month.numbered(today.number - 2), tmp_path, added), "queries") == []

    # What the address bar searched is known by the browser itself, whatever the engine is.
    assert read_chromium(history, today, tmp_path).num_rows == 0
    with sqlite3.connect(history / "History") as connection:
        connection.execute(
            """INSERT INTO keyword_search_terms (keyword_id, url_id, term, normalized_term)
               SELECT 2, id, 'Cups', 'cups' FROM urls WHERE url LIKE '%q=cups'"""
        )
    connection.close()
    known = read_chromium(history, today, tmp_path)
    assert mine(known, "clicks") == [("cups", f"{engine.address}/first/page")]
