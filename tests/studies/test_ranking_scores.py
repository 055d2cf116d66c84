"""Scores of ranked lists: held against ir-measures on random lists, and the means that cannot flatter themselves."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, P, R, nDCG

from qlog_assets.studies.measures.bootstrap import mean_interval, paired_interval
from qlog_assets.studies.measures.ranking_scores import DEPTH, PAGE, QueryScores, score_rankings

URLS = 130
"""More than the deepest list has places."""
Case = tuple[list[list[int]], list[set[int]]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Lists of urls and sets of relevant urls, for some queries: some lists are empty, some right urls never found."""
    queries = draw(st.integers(1, 5))
    seed = np.random.default_rng(draw(st.integers(0, 2**32)))
    lengths = [draw(st.integers(0, URLS)) for _ in range(queries)]
    rights = [draw(st.integers(1, 30)) for _ in range(queries)]
    lists = [seed.permutation(URLS)[:length].tolist() for length in lengths]
    return lists, [set(seed.choice(URLS + 20, right, replace=False).tolist()) for right in rights]


def scored(case: Case) -> QueryScores:
    lists, rights = case
    asked = np.repeat(np.arange(len(lists)), [len(urls) for urls in lists])
    places = np.concatenate([np.arange(len(urls)) for urls in lists])
    hits = np.array([url in rights[query] for query, urls in enumerate(lists) for url in urls], bool)
    truths = np.array([len(right) for right in rights])
    return score_rankings(asked, places, hits, truths, np.array([bool(urls) for urls in lists]))


@settings(deadline=None, max_examples=60)
@given(cases())
def test_the_scores_are_those_of_ir_measures(case: Case) -> None:
    lists, rights = case
    measures = {
        "ndcg": nDCG @ PAGE,
        "average_precision": AP @ DEPTH,
        "precision": P @ PAGE,
        "recall": R @ PAGE,
    }
    judged = {str(query): {str(url): 1 for url in right} for query, right in enumerate(rights)}
    ranked = {
        str(query): {str(url): float(len(urls) - place) for place, url in enumerate(urls)}
        for query, urls in enumerate(lists)
    }
    expected = {(name, query): 0.0 for name in measures for query in range(len(lists))}
    for value in ir_measures.iter_calc(list(measures.values()), judged, ranked):
        name = next(name for name, measure in measures.items() if measure == value.measure)
        expected[name, int(value.query_id)] = value.value
    found = scored(case)
    assert {key: pytest.approx(found.of(key[0])[key[1]], abs=1e-9) for key in expected} == expected


def test_what_is_missing_counts_as_zero_only_where_it_says_so() -> None:
    """Two queries of four are answered: one perfectly, one with an empty list, which the paper counts, too."""
    found = score_rankings(
        np.array([1]), np.array([0]), np.array([True]), np.ones(4, int), np.array([False, True, True, False])
    )
    assert found.evaluated == 2
    assert (found.with_zeros("ndcg"), found.as_paper("ndcg")) == (0.25, 0.5)
    assert found.among("ndcg", np.array([False, True, False, False])) == 1
    assert found.among("ndcg", np.zeros(4, bool)) is None


def test_lists_of_nothing_score_nothing() -> None:
    nothing = np.empty(0, np.int64)
    found = score_rankings(nothing, nothing, nothing.astype(bool), np.ones(3, int), np.zeros(3, bool))
    assert found.with_zeros("average_precision") == 0 and found.as_paper("average_precision") is None


def test_an_interval_holds_the_mean_and_is_as_wide_as_the_spread_says() -> None:
    scores = np.random.default_rng(1).random(2_500)
    low, high = mean_interval(scores, 1)
    assert low < scores.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * scores.std() / 50, rel=0.1)


def test_pairs_are_surer_than_their_parts() -> None:
    """Two logs that differ by the same on every query differ for sure, however far queries are apart."""
    scores = np.random.default_rng(1).random(500)
    assert paired_interval(scores + 0.25, scores, 1) == pytest.approx((0.25, 0.25))
    assert paired_interval(scores, scores, 1) == (0, 0)
    assert paired_interval(scores[:300], scores[200:], 7) == paired_interval(scores[:300], scores[200:], 7)
    assert np.isnan(paired_interval(np.empty(0), np.empty(0), 1)).all()
