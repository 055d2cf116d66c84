"""Mining: what one person's log gives for each application, in which order, and what is never sent."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qlog_assets.crowd.aggregation import NORMALISE
from qlog_assets.crowd.browser_history import SEARCHES
from qlog_assets.crowd.client_settings import OptOut
from qlog_assets.crowd.jobs import ARTIFACT_BYTES, COLUMNS, Application, decode, encode
from qlog_assets.crowd.mining import choose, host_of, mine

START = datetime(2006, 3, 1)
APPLICATIONS: tuple[Application, ...] = tuple(COLUMNS)


def table(*rows: tuple[int, str | None, str | None]) -> pa.Table:
    """Searches by the second of their time."""
    found = [{"time": START + timedelta(seconds=second), "query": query, "url": url} for second, query, url in rows]
    return pa.Table.from_pylist(found, schema=SEARCHES)


QUERIES = st.one_of(st.sampled_from(["Tea", "tea ", " green  TEA", "-", "", "pot", "ﬁne"]), st.text(max_size=12))
URLS = st.one_of(
    st.none(),
    st.sampled_from(["http://Tea.example/", "HTTP://tea.example/a/b", "https://me@pot.example:8080/x?y#z", "", "/"]),
    st.text(max_size=20),
)
LOGS = st.lists(st.tuples(st.integers(0, 6), QUERIES, URLS), max_size=25)


def test_queries_come_newest_first_normalised_and_without_successive_duplicates() -> None:
    log = table((3, "pot", None), (1, "Green  Tea", None), (2, "green tea", None), (4, "GREEN TEA ", None))
    assert mine(log, "queries") == [("green tea",), ("pot",), ("green tea",)]


def test_reformulations_are_adjacent_different_queries_however_long_the_pause() -> None:
    month = 30 * 24 * 3600
    log = table((0, "oggle", None), (1, "Oggle", "http://a.example"), (month, "google", None), (month + 1, "tea", None))
    assert mine(log, "reformulations") == [("google", "tea"), ("oggle", "google")]


def test_clicks_hosts_and_urls_come_from_the_rows_that_name_a_url() -> None:
    log = table(
        (0, "tea", "HTTP://Tea.example/Green/"),
        (1, "tea", None),
        (2, "Pot", "http://you@pot.example:81/A"),
        (3, "pot", "http://pot.example:81/B"),
    )
    assert mine(log, "clicks") == [
        ("pot", "http://pot.example:81/B"),
        ("pot", "http://you@pot.example:81/A"),
        ("tea", "http://tea.example/Green"),
    ]
    assert mine(log, "click_hosts") == [("pot", "pot.example"), ("tea", "tea.example")]
    assert mine(log, "urls")[-1] == ("http://tea.example/Green",)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://tea.example", "tea.example"),
        ("tea.example/a", "tea.example"),
        ("https://tea.example:8080?x", "tea.example"),
        ("https://a:b@tea.example#x", "tea.example"),
        ("http://[::1]:80/x", "[::1]"),
        ("http://tea.example./x", "tea.example"),
        ("http:///x", ""),
    ],
)
def test_a_host_has_neither_scheme_nor_port_nor_name(url: str, host: str) -> None:
    assert host_of(url) == host


@given(LOGS, st.sampled_from(APPLICATIONS), st.randoms())
def test_the_order_of_the_rows_in_the_file_changes_nothing(
    rows: list[tuple[int, str, str | None]], application: Application, chance: object
) -> None:
    shuffled = list(rows)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert mine(table(*rows), application) == mine(table(*shuffled), application)


@given(LOGS, st.sampled_from(APPLICATIONS))
def test_every_artifact_can_be_sent_and_is_its_own_normalisation(
    rows: list[tuple[int, str, str | None]], application: Application
) -> None:
    for artifact in mine(table(*rows), application):
        assert decode(encode(artifact), application) == artifact
        for column, text in zip(COLUMNS[application], artifact, strict=True):
            assert NORMALISE[column](text) == text, "otherwise the aggregation would drop it"


@given(LOGS, st.sampled_from(APPLICATIONS))
def test_no_two_successive_artifacts_are_the_same(
    rows: list[tuple[int, str, str | None]], application: Application
) -> None:
    artifacts = mine(table(*rows), application)
    assert all(newer != older for newer, older in itertools.pairwise(artifacts))


@given(LOGS, st.sampled_from(APPLICATIONS), st.integers(1, 5))
def test_one_more_older_row_never_displaces_what_is_chosen(
    rows: list[tuple[int, str, str | None]], application: Application, limit: int
) -> None:
    log, with_older = table(*rows), table((-5, "an older query", "http://older.example"), *rows)
    chosen = choose(mine(log, application), limit, "users")
    assert choose(mine(with_older, application), limit, "users")[: len(chosen)] == chosen


@given(st.lists(st.sampled_from("abcd")), st.integers(1, 6))
def test_at_most_d_are_chosen_and_different_ones_where_users_are_counted(letters: list[str], limit: int) -> None:
    artifacts = [(letter,) for letter in letters]
    assert choose(artifacts, limit, "instances") == artifacts[:limit]
    different = choose(artifacts, limit, "users")
    assert len(different) == len(set(different)) == min(limit, len(set(artifacts)))
    assert different == sorted(different, key=artifacts.index)


def test_an_artifact_that_no_report_holds_leaves_its_place_to_an_older_one() -> None:
    long = "x" * (ARTIFACT_BYTES + 1)
    log = table((0, "tea", None), (1, long, None), (2, "pot", "http://pot.example/a\tb"))
    assert choose(mine(log, "queries"), 2, "users") == [("pot",), ("tea",)]
    assert mine(log, "reformulations") == [] and mine(log, "clicks") == []


def test_what_is_opted_out_takes_no_place_and_joins_no_neighbours() -> None:
    log = table((0, "tea", "http://tea.example"), (1, "my name", "http://me.example"), (2, "pot", None))

    def private(text: str) -> bool:
        return "name" in text

    assert mine(log, "queries", private) == [("pot",), ("tea",)]
    assert mine(log, "reformulations", private) == [], "tea was not followed by pot"
    assert mine(log, "clicks", private) == [("tea", "http://tea.example")]
    assert mine(log, "urls", private) == [("http://tea.example",)], "the url of an opted-out query stays, too"
    assert mine(log, "click_hosts", lambda text: "tea.example" in text) == [("my name", "me.example")]
    assert mine(log, "click_hosts", lambda text: text == "tea.example") == [("my name", "me.example")]


@pytest.mark.parametrize("shape", [str, str.upper])
def test_a_query_that_led_to_a_url_which_is_opted_out_of_stays_wherever_it_stands(shape: Callable[[str], str]) -> None:
    """Whose bank it is, the query that was typed before tells as well as the address."""
    log = table(
        (0, "tea", "http://tea.example"),
        (1, "how to hide debts", None),
        (2, "how to hide debts", shape("http://mybank.example/login")),
        (3, "how to hide debts", "http://debts.example"),
        (4, "pot", None),
        (5, "How to hide  debts", None),
    )
    opted_out = OptOut(patterns=("mybank",)).leaves_out
    assert mine(log, "queries", opted_out) == [("pot",), ("tea",)]
    assert mine(log, "reformulations", opted_out) == []
    assert mine(log, "clicks", opted_out) == [("tea", "http://tea.example")]
    assert mine(log, "click_hosts", opted_out) == [("tea", "tea.example")]
    assert mine(log, "urls", opted_out) == [("http://tea.example",)]


def test_opt_outs_see_a_text_as_it_was_written_and_as_it_would_leave() -> None:
    log = table((0, "Groß", "HTTP://Tea.example/"), (1, "gross", "http://tea.example"), (2, "pot", None))
    for seen in ("Groß", "gross"):
        assert ("gross", "pot") not in mine(log, "reformulations", seen.__eq__)
    assert mine(log, "queries", "Groß".__eq__) == [("pot",), ("gross",)]
    assert mine(log, "urls", "HTTP://Tea.example/".__eq__) == [], "both come from one query"
    apart = table((0, "Groß", "HTTP://Tea.example/"), (1, "pot", "http://tea.example"))
    assert mine(apart, "urls", "HTTP://Tea.example/".__eq__) == [("http://tea.example",)]
    assert mine(log, "urls", "http://tea.example".__eq__) == []
