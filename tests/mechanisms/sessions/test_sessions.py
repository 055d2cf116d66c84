"""Session items and releases, against enumeration by hand and the numbers of specification 4."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from qlog_assets.attacks.auditor import sensitivity
from qlog_assets.mechanisms.sessions import noise as sessions
from qlog_assets.mechanisms.sessions.paper import release_items_paper
from qlog_assets.privacy.histogram import stability_threshold
from qlog_assets.privacy.randomness import SeededRandom

Log = dict[str, list[tuple[int, int]]]
"""user -> (second, query) in the order of time"""


def random_log(seed: int, users: int = 60) -> Log:
    """Users with sessions of any length, few queries so that sessions repeat themselves, gaps around half an hour."""
    generator = np.random.default_rng(seed)
    log: Log = {}
    for user in range(users):
        seconds = np.cumsum(generator.choice([60, 1799, 1800, 1801, 9000], size=generator.integers(1, 12)))
        log[f"user {user}"] = [(int(second), int(generator.integers(4))) for second in seconds]
    return log


def by_hand(log: Log, most_sessions: int, most_queries: int, repeats: bool, pairs_only: bool = False) -> Counter:
    counted: Counter = Counter()
    for events in log.values():
        split: list[list[int]] = []
        for position, (second, query) in enumerate(events):
            if position == 0 or second - events[position - 1][0] > 1800:
                split.append([])
            split[-1].append(query)
        mine: Counter = Counter()
        for session in [session[:most_queries] for session in split if len(session) >= 2][:most_sessions]:
            for size in range(2, 3 if pairs_only else len(session) + 1):
                mine.update(combinations(session, size))
        counted.update(mine if repeats else mine.keys())
    return counted


def by_mechanism(log: Log, most_sessions: int, most_queries: int, repeats: bool, pairs_only: bool = False) -> Counter:
    users = np.repeat(np.arange(len(log)), [len(events) for events in log.values()])
    events = np.array([event for events in log.values() for event in events]).reshape(-1, 2)
    numbers = sessions.segment(users, events[:, 0])
    kept = sessions.limit_sessions(users, numbers, events[:, 1], most_sessions, most_queries)
    items, counts = sessions.count_items(sessions.session_items(*kept, repeats, pairs_only)[1])
    return Counter(
        {
            tuple(query for query in item if query != sessions.NO_QUERY): count
            for item, count in zip(items.tolist(), counts.tolist(), strict=True)
        }
    )


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize(("most_sessions", "most_queries"), [(1, 2), (1, 4), (2, 3), (3, 5)])
def test_items_are_all_ordered_subsequences_of_the_kept_sessions(
    repeats: bool, most_sessions: int, most_queries: int
) -> None:
    log = random_log(most_queries)
    arguments = most_sessions, most_queries, repeats
    assert by_mechanism(log, *arguments) == by_hand(log, *arguments)


def test_pairs_alone_are_the_items_of_length_two() -> None:
    log = random_log(9)
    assert by_mechanism(log, 2, 4, repeats=False, pairs_only=True) == by_hand(log, 2, 4, False, pairs_only=True)


@pytest.mark.parametrize(("most_sessions", "most_queries", "most_items"), [(1, 3, 4), (1, 4, 11), (2, 3, 8)])
def test_no_user_moves_distinct_items_further_than_the_paper_s_delta(
    most_sessions: int, most_queries: int, most_items: int
) -> None:
    """Δ = l_s(2^l_q - 1 - l_q) bounds L1 either way; only distinct items keep every single count within 1."""
    log = random_log(3)
    distinct = sensitivity(lambda part: by_mechanism(part, most_sessions, most_queries, False), log)
    repeated = sensitivity(lambda part: by_mechanism(part, most_sessions, most_queries, True), log)
    assert distinct["l1"] <= most_items and distinct["linf"] == 1
    assert repeated["l1"] <= most_items and repeated["linf"] > 1


def test_a_repeating_session_holds_one_pair_six_times() -> None:
    log: Log = {"X": [(0, 7), (1, 7), (2, 7), (3, 7)]}
    assert by_mechanism(log, 1, 4, repeats=True) == Counter({(7, 7): 6, (7, 7, 7): 4, (7, 7, 7, 7): 1})
    assert by_mechanism(log, 1, 4, repeats=False) == Counter({(7, 7): 1, (7, 7, 7): 1, (7, 7, 7, 7): 1})


def test_the_worked_threshold_of_the_sound_release_is_18() -> None:
    """specification 4.3 G3: one draw, Δ = 4, b = 1, δ = 2.25e-7."""
    assert stability_threshold(4, Fraction(1), Fraction("2.25e-7")) == 18


def test_an_empty_log_has_no_items() -> None:
    nothing = np.empty(0, np.int64)
    kept = sessions.limit_sessions(nothing, sessions.segment(nothing, nothing), nothing, 1, 3)
    assert sessions.session_items(*kept)[0].size == 0


def test_paper_release_draws_twice_and_sound_release_once() -> None:
    """What the sound release prints reaches its threshold; the paper's second draw may fall below it. Seeded."""
    printed = release_items_paper(SeededRandom(1), np.full(2000, 20), 5.0, 20.0)
    assert (printed.counts < 20).any() and 800 < printed.indices.size < 1200
    sound = sessions.release_items(SeededRandom(1), np.full(2000, 20), 1, Fraction(5), Fraction(1, 1000), at_least=40)
    assert sound.users.min() == 40
