"""What one user can move in session logs, counted through the very statements a release uses. Deterministic."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from itertools import combinations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qlog_assets.mechanisms.sessions import draw, noise
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.mechanisms.sessions.stages import session_limits
from qlog_assets.pipeline.released_domain import numbered
from qlog_assets.storage.engine import DuckDBEngine

START = datetime(2006, 3, 1)
WORDS = ("cats", "dogs", "größe", "a|b", '=cmd "x"')
Log = list[tuple[str, str, datetime]]


def log_of(users: int, seed: int) -> Log:
    """Searches around the half hour that ends a session, many of them repeated, some at one time; rows in any order."""
    random = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        time = START
        for _ in range(int(random.integers(1, 40 if user % 5 == 0 else 9))):
            time += timedelta(seconds=int(random.choice([0, 0, 60, 1799, 1800, 1801, 9000])))
            rows.append((f"u{user}", str(random.choice(WORDS)), time))
    random.shuffle(rows)
    return [(str(user), str(query), time) for user, query, time in rows]


def engine_with(rows: Log) -> DuckDBEngine:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    log = pa.table(
        {
            "user": pa.array(columns[0], pa.string()),
            "query": pa.array(columns[1], pa.string()),
            "time": pa.array(columns[2], pa.timestamp("us")),
        }
    )
    engine = DuckDBEngine(duckdb.connect())
    engine.connection.register("cleaned_log", log)
    return engine


def kept(rows: Log, chosen: SessionParameters) -> dict[str, list[list[str]]]:
    """Each user's kept sessions, by the statement of the stage."""
    engine = engine_with(rows)
    draw.keep_sessions(engine, chosen, collapse=chosen.collapse_repeats)
    found: dict[str, list[list[str]]] = {}
    ordered = 'SELECT "user", "session", query FROM kept_sessions ORDER BY "user", "session", place'
    for user, session, query in engine.connection.execute(ordered).fetchall():
        sessions = found.setdefault(user, [])
        if len(sessions) < session:
            sessions.append([])
        sessions[session - 1].append(query)
    return found


def counted(rows: Log, chosen: SessionParameters, *, with_repeats: bool = False) -> Counter[tuple[str, ...]]:
    """Items and how many users hold them, by the statements of a draw."""
    engine = engine_with(rows)
    draw.keep_sessions(engine, chosen, collapse=chosen.collapse_repeats)
    draw.number_sessions(engine, chosen, pairs_only=chosen.items == "pairs")
    found: Counter[tuple[str, ...]] = Counter()
    for items, users in draw.count_sessions(engine, with_repeats=with_repeats):
        table = draw.name_sessions(engine, items, users)
        for queries, number in zip(table["queries"].to_pylist(), users.tolist(), strict=True):
            assert tuple(queries) not in found
            found[tuple(queries)] = number
    return found


def by_hand(rows: Log, chosen: SessionParameters) -> dict[str, list[list[str]]]:
    """The rules as the documentation words them."""
    found = {}
    for user in {row[0] for row in rows}:
        mine = sorted({(time, query.encode(), query) for owner, query, time in rows if owner == user})
        split: list[list[str]] = []
        for position, (time, _, query) in enumerate(mine):
            if position == 0 or time - mine[position - 1][0] > timedelta(minutes=chosen.session_gap_minutes):
                split.append([])
            if not (chosen.collapse_repeats and split[-1] and split[-1][-1] == query):
                split[-1].append(query)
        several = [session for session in split if len(session) >= 2]
        if several:
            found[user] = [session[: chosen.queries_per_session] for session in several[: chosen.sessions_per_user]]
    return found


def items_by_hand(sessions: dict[str, list[list[str]]], chosen: SessionParameters, repeats: bool) -> Counter:
    found: Counter = Counter()
    for mine in sessions.values():
        sizes = range(2, (2 if chosen.items == "pairs" else chosen.queries_per_session) + 1)
        held = Counter(item for session in mine for size in sizes for item in combinations(session, size))
        found.update(held if repeats else held.keys())
    return found


LIMITS = st.builds(
    SessionParameters,
    sessions_per_user=st.integers(1, 3),
    queries_per_session=st.integers(2, 5),
    items=st.sampled_from(["pairs", "subsequences"]),
    collapse_repeats=st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, derandomize=True)
@given(chosen=LIMITS, seed=st.integers(0, 10**6), repeats=st.booleans())
def test_statements_keep_and_count_what_the_rules_say(chosen: SessionParameters, seed: int, repeats: bool) -> None:
    rows = log_of(8, seed)
    expected = by_hand(rows, chosen)
    assert kept(rows, chosen) == expected
    assert counted(rows, chosen, with_repeats=repeats) == items_by_hand(expected, chosen, repeats)


@settings(max_examples=4, deadline=None, derandomize=True)
@given(chosen=LIMITS, seed=st.integers(0, 10**6))
def test_statements_agree_with_the_pure_functions(chosen: SessionParameters, seed: int) -> None:
    """The audits hold the pure functions to their claims; what is released is counted by SQL."""
    rows = sorted(set(log_of(8, seed)), key=lambda row: (row[0], row[2], row[1].encode()))
    words = sorted({row[1] for row in rows})
    users = np.array([int(row[0][1:]) for row in rows])
    seconds = np.array([(row[2] - START).total_seconds() for row in rows])
    queries = np.array([words.index(row[1]) for row in rows])
    numbers = noise.segment(users, seconds)
    if chosen.collapse_repeats:
        stays = noise.collapse_repeats(numbers, queries)
        users, numbers, queries = users[stays], numbers[stays], queries[stays]
    limited = noise.limit_sessions(users, numbers, queries, chosen.sessions_per_user, chosen.queries_per_session)
    items, counts = noise.count_items(noise.session_items(*limited, pairs_only=chosen.items == "pairs")[1])
    found = {
        tuple(words[query] for query in item if query != noise.NO_QUERY): count
        for item, count in zip(items.tolist(), counts.tolist(), strict=True)
    }
    assert counted(rows, chosen) == Counter(found)


@pytest.mark.parametrize("collapse", [True, False])
def test_the_clicks_of_one_search_do_not_make_it_several_queries(collapse: bool) -> None:
    """A log has a row per click, all of the search's own time; a next page is a row of a later time."""
    later = START + timedelta(minutes=1)
    rows = [("u1", "a", START), ("u1", "a", START), ("u1", "b", START), ("u1", "b", START), ("u1", "b", later)]
    chosen = SessionParameters(collapse_repeats=collapse, queries_per_session=5)
    assert kept(rows, chosen) == {"u1": [["a", "b"] if collapse else ["a", "b", "b"]]}
    assert kept(rows[:2], chosen) == {}


@pytest.mark.slow
@settings(max_examples=4, deadline=None, derandomize=True)
@given(chosen=LIMITS, seed=st.integers(0, 10**6))
def test_removing_any_user_moves_at_most_delta_counts_by_one_and_nobody_elses(
    chosen: SessionParameters, seed: int
) -> None:
    rows = log_of(6, seed)
    sessions, whole = kept(rows, chosen), counted(rows, chosen)
    for user in {row[0] for row in rows}:
        others = [row for row in rows if row[0] != user]
        assert kept(others, chosen) == {owner: mine for owner, mine in sessions.items() if owner != user}
        moved = Counter(whole)
        moved.subtract(counted(others, chosen))
        assert set(moved.values()) <= {0, 1}
        assert sum(moved.values()) <= chosen.items_per_user


def pairs_over(rows: Log, chosen: SessionParameters, public: list[str]) -> Counter[tuple[int, int]]:
    """Counts of pairs of public queries, by the statements of stage and draw."""
    engine = engine_with(rows)
    with engine.table("domain_queries", numbered(public)):
        limits = session_limits(chosen, collapse=chosen.collapse_repeats, in_domain=True)
        engine.statement_table("sessions/kept_sessions", **limits)
        draw.number_sessions(engine, chosen, pairs_only=True)
        engine.statement_table("sessions/held_subsequences")
        return Counter({(before, after): held for before, after, held in engine.run("sessions/pair_counts").fetchall()})


@pytest.mark.slow
@settings(max_examples=4, deadline=None, derandomize=True)
@given(chosen=LIMITS.map(lambda each: each.with_changes(items="pairs")), seed=st.integers(0, 10**6))
def test_removing_any_user_moves_at_most_delta_pairs_over_a_release_by_one(
    chosen: SessionParameters, seed: int
) -> None:
    rows, public = log_of(6, seed), sorted(WORDS[1:])
    whole = pairs_over(rows, chosen, public)
    for user in {row[0] for row in rows}:
        moved = Counter(whole)
        moved.subtract(pairs_over([row for row in rows if row[0] != user], chosen, public))
        assert set(moved.values()) <= {0, 1} and sum(moved.values()) <= chosen.items_per_user
    inside = [row for row in rows if row[1] in public]
    expected = items_by_hand(by_hand_in(rows, inside, chosen), chosen, repeats=False)
    named = {(public[before], public[after]): held for (before, after), held in whole.items()}
    assert named == {pair: held for pair, held in expected.items() if pair[0] != pair[1]}


def by_hand_in(rows: Log, inside: Log, chosen: SessionParameters) -> dict[str, list[list[str]]]:
    """The rules on rows that are left of sessions which all rows decide: gaps are those of the whole log."""
    found = {}
    for user in {row[0] for row in inside}:
        times = sorted(time for owner, _, time in rows if owner == user)
        gap = timedelta(minutes=chosen.session_gap_minutes)
        starts = [time for place, time in enumerate(times) if place == 0 or time - times[place - 1] > gap]
        split: dict[datetime, list[str]] = {}
        seen = set()
        for _, query, time in sorted(
            (row for row in inside if row[0] == user), key=lambda row: (row[2], row[1].encode())
        ):
            mine = split.setdefault(max(start for start in starts if start <= time), [])
            if (time, query) not in seen and not (chosen.collapse_repeats and mine and mine[-1] == query):
                mine.append(query)
            seen.add((time, query))
        several = [session for session in split.values() if len(session) >= 2]
        if several:
            found[user] = [session[: chosen.queries_per_session] for session in several[: chosen.sessions_per_user]]
    return found


def test_parts_hold_every_item_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log too large for one go is counted in parts; each item is in one of them, with all of its users."""
    chosen = SessionParameters(sessions_per_user=3, queries_per_session=4, items="subsequences")
    rows = log_of(20, seed=4)
    whole = counted(rows, chosen)
    monkeypatch.setattr(draw, "ITEMS_AT_ONCE", 50)
    assert counted(rows, chosen) == whole and len(whole) > 50


# What real logs hold ------------------------------------------------------------------------------------------------


def minutes(*at: float) -> list[datetime]:
    return [START + timedelta(minutes=minute) for minute in at]


def test_a_user_of_ten_thousand_sessions_and_one_of_five_hundred_queries_are_cut() -> None:
    many = [
        ("busy", f"q{place}", START + timedelta(hours=hour, minutes=place))
        for hour in range(10_000)
        for place in (0, 1)
    ]
    long = [("long", f"q{place}", START + timedelta(minutes=place)) for place in range(500)]
    found = kept(many + long, SessionParameters(sessions_per_user=2, queries_per_session=3))
    assert found == {"busy": [["q0", "q1"], ["q0", "q1"]], "long": [["q0", "q1", "q2"]]}


def test_searches_of_one_time_are_one_session_in_the_order_of_their_bytes() -> None:
    rows = [("u", query, START) for query in ("dogs", "cats", "äpfel")]
    assert kept(rows, SessionParameters()) == {"u": [["cats", "dogs", "äpfel"]]}
    assert kept(rows[::-1], SessionParameters()) == {"u": [["cats", "dogs", "äpfel"]]}


def test_a_clock_that_jumps_back_orders_a_session_by_its_times_whatever_the_order_of_rows() -> None:
    rows = [("u", query, time) for query, time in zip("abc", minutes(10, 5, 20), strict=True)]
    assert kept(rows, SessionParameters()) == {"u": [["b", "a", "c"]]}


def test_a_pause_of_just_the_gap_ends_no_session_and_a_longer_one_does() -> None:
    chosen = SessionParameters(sessions_per_user=2)
    rows = [("u", query, time) for query, time in zip("abcd", minutes(0, 30, 60.1, 61), strict=True)]
    assert kept(rows, chosen) == {"u": [["a", "b"], ["c", "d"]]}
    assert kept(rows, chosen.with_changes(session_gap_minutes=31)) == {"u": [["a", "b", "c"]]}


def test_the_next_page_of_results_is_no_second_query_unless_the_paper_is_followed() -> None:
    rows = [("u", query, time) for query, time in zip("aab", minutes(0, 1, 2), strict=True)]
    assert kept(rows, SessionParameters()) == {"u": [["a", "b"]]}
    assert kept(rows, SessionParameters(collapse_repeats=False)) == {"u": [["a", "a", "b"]]}
    # Repeats fall away before sessions are counted: one that is only a query and its next pages takes no place.
    alone = [
        ("v", "a", START),
        ("v", "a", START + timedelta(minutes=1)),
        *(("v", q, START + timedelta(hours=5)) for q in "bc"),
    ]
    assert kept(alone, SessionParameters()) == {"v": [["b", "c"]]}


def test_a_log_of_single_searches_has_no_items() -> None:
    assert counted([("u", "a", START), ("v", "b", START)], SessionParameters()) == Counter()
    assert counted([], SessionParameters()) == Counter()
