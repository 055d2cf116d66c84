"""Query suggestion, on logs small enough to work out by hand, and held against a plain reading of Eq. 10 and 11."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from qlog_assets.studies.measures.suggestion import Reading, Suggester, pairs_of
from qlog_assets.studies.measures.suggestion_scores import (
    Questions,
    Scores,
    answer,
    answered_by_all,
    prefixes_of,
    score,
)

Sequences = list[tuple[tuple[str, ...], int]]
Clicks = list[tuple[str, str, int]]

SESSIONS: Sequences = [(("a", "b"), 6), (("a", "c"), 3), (("a", "b", "c"), 2), (("b", "a"), -4), (("a", "a"), 50)]
CLICKS: Clicks = [("a", "u", 3), ("a", "v", 4), ("d", "u", 5), ("e", "v", 1), ("f", "w", 9), ("b", "v", -7)]


def sessions_table(rows: Sequences) -> pa.Table:
    queries, users = [list(sequence) for sequence, _ in rows], [count for _, count in rows]
    return pa.table({"queries": pa.array(queries, pa.list_(pa.string())), "users": pa.array(users, pa.int64())})


def clicks_table(rows: Clicks) -> pa.Table:
    names = ("query", "url", "users")
    types = (pa.string(), pa.string(), pa.int64())
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {name: pa.array(list(column), kind) for name, kind, column in zip(names, types, columns, strict=True)}
    )


def suggested(suggester: Suggester, query: str, weight: float, count: int = 5) -> list[tuple[str, float]]:
    numbers = suggester.numbers(pa.array([query]))
    found = suggester.suggest(numbers[numbers >= 0], weight, count)
    return list(zip(suggester.queries.take(pa.array(found.suggested)).to_pylist(), found.scores.tolist(), strict=True))


# By hand --------------------------------------------------------------------------------------------------------------


def test_the_flow_counts_any_later_query_in_every_released_sequence() -> None:
    """From a: b 6 + 2, c 3 + 2, and the step to itself is none: 8 and 5 of 13. (b, a) has a count below zero."""
    suggester = Suggester.from_release(sessions_table(SESSIONS), None)
    assert suggested(suggester, "a", 0) == [("b", pytest.approx(8 / 13)), ("c", pytest.approx(5 / 13))]
    assert suggested(suggester, "b", 0) == [("c", 1)]
    assert suggested(suggester, "c", 0) == []


def test_the_flow_of_pairs_alone_leaves_longer_sequences_out() -> None:
    suggester = Suggester.from_release(sessions_table(SESSIONS), None, "pairs")
    assert suggested(suggester, "a", 0) == [("b", pytest.approx(6 / 9)), ("c", pytest.approx(3 / 9))]
    assert suggested(suggester, "b", 0) == []


def test_queries_are_alike_by_the_cosine_of_their_clicks() -> None:
    """a = (3, 4)/5, d = u, e = v: 3/5 and 4/5. f shares no url, b has clicks below zero: neither is like a."""
    suggester = Suggester.from_release(None, clicks_table(CLICKS))
    assert suggested(suggester, "a", 1) == [("e", pytest.approx(0.8)), ("d", pytest.approx(0.6))]
    assert suggested(suggester, "f", 1) == [] and suggested(suggester, "b", 1) == []


def test_lambda_weighs_clicks_against_sessions() -> None:
    """λ = ¼ after a: b ¾·8/13, c ¾·5/13, e ¼·4/5, d ¼·3/5."""
    suggester = Suggester.from_release(sessions_table(SESSIONS), clicks_table(CLICKS))
    assert suggested(suggester, "a", 0.25) == [
        ("b", pytest.approx(6 / 13)),
        ("c", pytest.approx(3.75 / 13)),
        ("e", pytest.approx(0.2)),
        ("d", pytest.approx(0.15)),
    ]
    assert [text for text, _ in suggested(suggester, "a", 0.25, count=2)] == ["b", "c"]


def test_equal_scores_go_by_text_whatever_the_order_of_the_rows() -> None:
    rows: Sequences = [(("a", name), 3) for name in ("ö", "z", "c", "d", "b", "y", "x")]
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        found = suggested(Suggester.from_release(sessions_table(rows), None), "a", 0.5)
        assert [text for text, _ in found] == ["b", "c", "d", "x", "y"]


def test_precision_and_recall_over_every_prefix() -> None:
    """Session 4: a | b, c, b: two of {b, c} hit; b | c, b: one of two, since b does not follow itself; c: no answer.

    Session 7: unknown | a: no answer; a | b: one hit of one.
    """
    suggester = Suggester.from_release(sessions_table(SESSIONS), None)
    prefixes = prefixes_of(np.array([4, 4, 4, 4, 7, 7, 7]), pa.array(["a", "b", "c", "b", "unknown", "a", "b"]))
    assert prefixes.sessions.tolist() == [4, 4, 4, 7, 7] and prefixes.truths.tolist() == [2, 2, 1, 2, 1]
    answers = answer(suggester, prefixes, 0)
    assert answers.hits.tolist() == [2, 1, 0, 0, 1]
    assert answers.answered.tolist() == [True, True, False, False, True]
    # Hits 2, 1 and 1 of five; apart from their mean, 4/15, session 4 is off by 1/15 and session 7 by -1/15.
    assert score(prefixes, answers, answers.answered) == Scores(
        pytest.approx(4 / 15), pytest.approx(math.sqrt(2) / 15 / 3), pytest.approx((1 + 0.5 + 1) / 3), 3, 2
    )


def test_logs_are_also_compared_on_what_all_of_them_answer() -> None:
    prefixes = prefixes_of(np.array([1, 1, 1]), pa.array(["a", "b", "c"]))
    logs = [Suggester.from_release(sessions_table(rows), None) for rows in (SESSIONS, SESSIONS[:1])]
    answers = [answer(log, prefixes, 0) for log in logs]
    assert answered_by_all(answers).tolist() == [True, False]
    assert score(prefixes, answers[0], answered_by_all(answers)) == Scores(0.4, 0.0, 1.0, 1, 1)
    assert score(prefixes, answers[1], np.zeros(2, bool)) == Scores(None, None, None, 0, 0)


def test_lambda_is_the_one_with_most_hits_and_of_equals_the_middle_one() -> None:
    suggester = Suggester.from_release(sessions_table([(("a", "b"), 3)]), clicks_table([("a", "u", 1), ("c", "u", 1)]))
    grid = (0.0, 0.3, 0.5, 0.7, 1.0)
    for session, best in ((["a", "b"], 0.5), (["a", "c"], 0.7), (["a", "z"], 0.5), (["a", "b", "c"], 0.5)):
        prefixes = prefixes_of(np.zeros(len(session)), pa.array(session))
        assert Questions.put(suggester, prefixes, 1 if len(session) == 2 else 5).choose_weight(grid) == best


def test_a_log_without_anything_answers_nothing() -> None:
    prefixes = prefixes_of(np.array([1, 1]), pa.array(["a", "b"]))
    for sessions, clicks in ((None, None), (sessions_table([]), clicks_table([]))):
        answers = answer(Suggester.from_release(sessions, clicks), prefixes, 0.5)
        assert not answers.answered.any() and not answers.hits.any()
    nothing = prefixes_of(np.empty(0, np.int64), pa.array([], pa.string()))
    log = Suggester.from_release(sessions_table(SESSIONS), None)
    assert score(nothing, answer(log, nothing, 0.5), np.empty(0, bool)).prefixes == 0


# Against a plain reading ----------------------------------------------------------------------------------------------


def plain_suggestions(
    sessions: Sequences, clicks: Clicks, reading: Reading, weight: float, count: int
) -> dict[str, list[str]]:
    """Eq. 10 as a person would read it, with dictionaries."""
    edges: dict[str, Counter[str]] = defaultdict(Counter)
    for sequence, users in sessions:
        if reading == "all" or len(sequence) == 2:
            for before, after in combinations(sequence, 2):
                if before != after:
                    edges[before][after] += max(users, 0)
    vectors: dict[str, Counter[str]] = defaultdict(Counter)
    for query, url, users in clicks:
        vectors[query][url] += max(users, 0)
    known = {query for sequence, _ in sessions for query in sequence} | {query for query, _, _ in clicks}
    found = {}
    for query in known:
        scores = {}
        for other in known - {query}:
            left, right = vectors[query], vectors[other]
            length = math.sqrt(sum(n * n for n in left.values()) * sum(n * n for n in right.values()))
            cosine = sum(left[url] * right[url] for url in left) / length if length else 0
            degree = sum(edges[query].values())
            scores[other] = round(weight * cosine + (1 - weight) * (edges[query][other] / degree if degree else 0), 12)
        ranked = sorted(
            (other for other in scores if scores[other] > 0), key=lambda other: (-scores[other], other.encode())
        )
        found[query] = ranked[:count]
    return found


@pytest.mark.parametrize("seed", range(8))
def test_sparse_suggestions_and_scores_equal_a_plain_reading_on_random_logs(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Blocks of a few queries, so that what is cut and put together again is part of what is tested.
    monkeypatch.setattr("qlog_assets.studies.measures.suggestion.ENTRIES_AT_ONCE", 20)
    chance = random.Random(seed)
    words = [f"q{number}" for number in range(12)]
    sessions: Sequences = [
        (tuple(chance.choices(words, k=chance.randint(2, 4))), chance.randint(-2, 6))
        for _ in range(chance.randint(0, 40))
    ]
    clicks: Clicks = [
        (chance.choice(words), f"u{chance.randint(0, 5)}", chance.randint(-2, 6)) for _ in range(chance.randint(0, 40))
    ]
    tests = [chance.choices([*words, "unknown"], k=chance.randint(1, 6)) for _ in range(30)]
    numbers = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
    prefixes = prefixes_of(numbers, pa.array([query for test in tests for query in test]))
    for reading in ("all", "pairs"):
        suggester = Suggester.from_release(sessions_table(sessions), clicks_table(clicks), reading)  # type: ignore[arg-type]
        for weight in (0, 0.3, 1):
            plain = plain_suggestions(sessions, clicks, reading, weight, 3)  # type: ignore[arg-type]
            assert {query: [text for text, _ in suggested(suggester, query, weight, 3)] for query in plain} == plain
            answers = answer(suggester, prefixes, weight, 3)
            asked = [(test[place], set(test[place + 1 :])) for test in tests for place in range(len(test) - 1)]
            hits = [len(set(plain.get(query, [])) & later) for query, later in asked]
            assert answers.hits.tolist() == hits
            assert answers.answered.tolist() == [bool(plain.get(query)) for query, _ in asked]
            assert prefixes.truths.tolist() == [len(later) for _, later in asked]


def test_a_long_sequence_holds_each_of_its_pairs() -> None:
    pairs = pairs_of(sessions_table([(("a", "b", "c", "d"), 2), (("x", "y"), 1)]))
    found = sorted(zip(pairs["query"].to_pylist(), pairs["next_query"].to_pylist(), strict=True))
    assert found == [*combinations("abcd", 2), ("x", "y")]
