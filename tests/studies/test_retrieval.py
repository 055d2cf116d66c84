"""Retrieval on a log: by hand, against a plain walk over all nodes, and whether better releases score better."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qlog_assets.errors import ParameterError
from qlog_assets.studies.measures import retrieval
from qlog_assets.studies.measures.ranking_scores import MEASURES
from qlog_assets.studies.measures.retrieval import ALGORITHMS, TestedClicks, rank_urls, score_retrieval
from qlog_assets.studies.search_log import SearchLog

Edges = dict[tuple[str, str], float]


def search_log(clicks: Edges, transitions: Edges, queries: tuple[str, ...] = ()) -> SearchLog:
    def columns(edges: Edges, second: str) -> pa.Table:
        texts = {name: pa.array([key[at] for key in edges], pa.string()) for at, name in enumerate(("query", second))}
        return pa.table({**texts, "count": pa.array(list(edges.values()), pa.float64())})

    named = pa.table({"query": pa.array(queries, pa.string()), "count": pa.array([1.0] * len(queries), pa.float64())})
    return SearchLog.of_tables(
        {"queries": named, "clicks": columns(clicks, "url"), "transitions": columns(transitions, "next_query")}
    )


def held_out_clicks(clicks: dict[tuple[str, str], int | None], shown: Edges | None = None) -> TestedClicks:
    def columns(edges: dict[tuple[str, str], int | None]) -> pa.Table:
        texts = {name: pa.array([key[at] for key in edges], pa.string()) for at, name in enumerate(("query", "url"))}
        return pa.table({**texts, "rank": pa.array(list(edges.values()), pa.int64())})

    return TestedClicks.of_clicks(columns(clicks), None if shown is None else columns(shown))


def found(log: SearchLog, tested: TestedClicks, algorithm: str, **how: str) -> dict[str, list[str]]:
    ranking = rank_urls(log, tested, algorithm, **how)
    lists: dict[str, list[str]] = defaultdict(list)
    for asked, url in zip(ranking.asked.tolist(), ranking.urls.to_pylist(), strict=True):
        lists[tested.queries[asked].as_py()].append(url)
    return dict(lists)


# By hand --------------------------------------------------------------------------------------------------------------


def test_a_walk_reaches_what_was_clicked_after_the_next_query() -> None:
    """From a: u by 9 of 10, or by b, whose walkers all click v. Nothing leads from a to w."""
    log = search_log({("a", "u"): 9, ("b", "v"): 4, ("c", "w"): 5}, {("a", "b"): 1, ("b", "b"): 70})
    assert found(log, held_out_clicks({("a", "v"): 1}), "random_walk") == {"a": ["u", "v"]}


def test_impact_draws_the_walk_to_what_many_click() -> None:
    """For a, u has 3 clicks and v 2, but v has a thousand more after other queries: 3·(1 + ln 4) < 2·(1 + ln 1003)."""
    log = search_log({("a", "u"): 3, ("a", "v"): 2, ("b", "v"): 1000}, {})
    tested = held_out_clicks({("a", "u"): 1})
    assert found(log, tested, "random_walk") == {"a": ["u", "v"]}
    assert found(log, tested, "impact_walk") == {"a": ["v", "u"]}


def test_feedback_mixes_the_rank_of_the_click_with_that_of_the_counts() -> None:
    """Counts rank u, v, w: 1/2, 1/3, 1/4. v was clicked at 1 in the test: .6/2 + .4/3 = .433; in training w was."""
    log = search_log({("a", "u"): 9, ("a", "v"): 5, ("a", "w"): 2}, {})
    tested = held_out_clicks({("a", "v"): 1, ("a", "x"): 1, ("a", "u"): None}, {("a", "w"): 1, ("b", "u"): 1})
    assert found(log, tested, "implicit_feedback") == {"a": ["u", "v", "w"]}
    # w: .6/2 + .4/4 = .4, between u's .5 and v's .333.
    assert found(log, tested, "implicit_feedback", feedback_rank="train") == {"a": ["u", "w", "v"]}
    low = held_out_clicks({("a", "u"): 50, ("a", "v"): 1})
    assert found(log, low, "implicit_feedback") == {"a": ["v", "w", "u"]}


def test_equal_urls_go_by_their_bytes() -> None:
    log = search_log({("a", url): 3 for url in ("é", "b", "Z", "a")}, {})
    for algorithm in ALGORITHMS:
        assert found(log, held_out_clicks({("a", "q"): 1}), algorithm) == {"a": ["Z", "a", "b", "é"]}


def test_a_query_without_clicks_is_evaluated_and_one_that_is_missing_is_not() -> None:
    log = search_log({("a", "u"): 3}, {}, ("a", "b"))
    tested = held_out_clicks({("a", "u"): 1, ("b", "u"): 1, ("c", "u"): 1})
    for algorithm in ALGORITHMS:
        scores = score_retrieval(log, tested, algorithm)
        assert scores.answered.tolist() == [True, True, False]
        assert scores.ndcg.tolist() == [1, 0, 0]


def test_an_empty_release_scores_zero_and_answers_nothing() -> None:
    tested = held_out_clicks({("a", "u"): 1})
    for algorithm in ALGORITHMS:
        scores = score_retrieval(SearchLog.of_tables({}), tested, algorithm)
        assert scores.evaluated == 0 and scores.with_zeros("ndcg") == 0


def test_what_cannot_be_asked_is_refused() -> None:
    log, tested = search_log({("a", "u"): 3}, {}), held_out_clicks({("a", "u"): 1})
    with pytest.raises(ParameterError, match="random_walk"):
        score_retrieval(log, tested, "pagerank")
    with pytest.raises(ParameterError, match="train"):
        score_retrieval(log, tested, "implicit_feedback", feedback_rank="train")


# Against a plain walk -------------------------------------------------------------------------------------------------


def plain_walk(clicks: Edges, transitions: Edges, start: str, *, impact: bool) -> dict[str, float]:
    """The probabilities of urls after ten steps, one dictionary per node: the paper's formulas, letter by letter."""
    edges: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for (query, url), count in clicks.items():
        edges[query]["url", url] = count
    for (query, after), count in transitions.items():
        if query != after:
            edges[query]["query", after] = count
    clicked: dict[str, float] = defaultdict(float)
    for (_, url), count in clicks.items():
        clicked[url] += count
    at: dict[tuple[str, str], float] = {("query", start): 1.0}
    for _ in range(retrieval.STEPS):
        arrived: dict[tuple[str, str], float] = defaultdict(float)
        for (kind, node), share in at.items():
            if kind == "url":
                arrived[kind, node] += share
                continue
            total = sum(edges[node].values())
            step = {to: 0.9 * count / total for to, count in edges[node].items() if total}
            step["query", node] = 0.1
            if impact:
                factors = {to: 1 + math.log(1 + clicked[to[1]]) if to[0] == "url" else 1 for to in step}
                weighted = {to: step[to] * factors[to] / sum(factors.values()) for to in step}
                step = {to: weight / sum(weighted.values()) for to, weight in weighted.items()}
            for to, probability in step.items():
                arrived[to] += share * probability
        at = arrived
    return {url: share for (kind, url), share in at.items() if kind == "url" and share > 0}


NAMES = [f"q{place}" for place in range(8)]
EDGES = st.dictionaries(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), st.integers(0, 50), max_size=25)


@settings(deadline=None, max_examples=60)
@given(EDGES, EDGES, st.booleans())
def test_the_sparse_walk_is_the_plain_one(clicks: Edges, transitions: Edges, impact: bool) -> None:
    log = search_log(clicks, transitions, tuple(NAMES))
    tested = held_out_clicks({(name, "u"): 1 for name in NAMES})
    algorithm = "impact_walk" if impact else "random_walk"
    with mock.patch.object(retrieval, "LEAST_PROBABILITY", 0):
        every_walker = found(log, tested, algorithm)
    most_walkers = found(log, tested, algorithm)
    for name in NAMES:
        exact = plain_walk(clicks, transitions, name, impact=impact)
        # Each of eight queries loses less than that in each of nine steps: urls this near may trade places.
        lost = len(NAMES) * (retrieval.STEPS - 1) * retrieval.LEAST_PROBABILITY
        for lists, slack in ((every_walker, 1e-9), (most_walkers, lost)):
            urls = lists.get(name, [])
            assert all(exact[before] >= exact[after] - slack for before, after in pairwise(urls))
            assert all(share <= slack for url, share in exact.items() if url not in urls)


# Better releases score better -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("feedback_rank", ["test", "train"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_a_perfect_release_outranks_a_useless_one_in_every_score(algorithm: str, feedback_rank: str, seed: int) -> None:
    """Perfect: the held-out clicks themselves. Useless: the same queries with urls that nobody clicked for them."""
    chance = np.random.default_rng(seed)
    queries, urls = [f"q{place}" for place in range(20)], [f"u{place}" for place in range(60)]
    pairs = {
        (query, url): int(chance.integers(1, 40)) for query in queries for url in chance.choice(urls, 3, replace=False)
    }
    others = {(query, url): 40.0 for query in queries for url in chance.choice(urls, 3, replace=False)}
    wrong = {pair: count for pair, count in others.items() if pair not in pairs}
    tested = held_out_clicks(dict.fromkeys(pairs, 1), dict.fromkeys(others, 1))
    perfect, useless = (
        score_retrieval(search_log(clicks, {}, tuple(queries)), tested, algorithm, feedback_rank=feedback_rank)
        for clicks in ({pair: float(count) for pair, count in pairs.items()}, wrong)
    )
    everything = np.ones(len(queries), bool)
    for measure in MEASURES:
        assert perfect.with_zeros(measure) > useless.with_zeros(measure) == 0
        assert perfect.as_paper(measure) > useless.as_paper(measure)
        assert perfect.among(measure, everything) > useless.among(measure, everything)
    assert perfect.with_zeros("ndcg") == perfect.with_zeros("average_precision") == pytest.approx(1)
