"""Search on a log's clicks and steps, in the three ways of Safelog's paper: which urls are found for held-out queries.

- `random_walk`: a walker starts at the query. It stays with probability 0.1, or follows a click or a step to another
  query, by their counts. Urls keep the walker; they are ranked by how likely it is there after ten steps.
- `impact_walk`: the same, with a url the more attractive the more clicks it has: F = 1 + ln(1 + clicks).
- `implicit_feedback`: urls by their clicks in the log (rank O), mixed with the rank I at which the engine showed them
  to whoever clicked: λ/(I + 1) + (1 - λ)/(O + 1). The paper takes I from the clicks that it tests on, which also say
  what is right: that is leaky. `train` takes it from the log that the release was drawn from.

What is right for a query is what was clicked for it in the held-out log. Everything is sparse, in batches of queries,
and ties go by the url's bytes. scipy is imported where it is used: Dagster loads every study, and would wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.errors import ParameterError
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.studies.measures.ranking_scores import DEPTH, QueryScores, score_rankings
from qlog_assets.studies.measures.suggestion import best, count_matrix, number, sorted_texts
from qlog_assets.studies.search_log import SearchLog

if TYPE_CHECKING:
    from scipy import sparse

ALGORITHMS = ("random_walk", "impact_walk", "implicit_feedback")
FeedbackRank = Literal["test", "train"]
STAYING = 0.1
"""s: the probability of the self-loop."""
STEPS = 10
"""Steps of the walk. The paper names no number."""
FEEDBACK = 0.6
"""λ: what the engine's own rank weighs."""
LEAST_PROBABILITY = 1e-4
"""A query that holds less of the walker is left out of the next step: ten steps reach most of a log's queries, nearly
all of them with next to nothing."""
QUERIES_AT_ONCE = 1_000


@dataclass(frozen=True)
class TestedClicks:
    """Held-out queries with at least one click, and what was clicked for each of them."""

    __test__ = False  # its name begins as those of pytest's classes do

    queries: pa.Array
    """Sorted by their bytes."""
    urls: pa.Array
    """Every clicked url, sorted by its bytes."""
    query_ids: np.ndarray
    """The pairs: the number of the query, of the url, and the best rank at which it was clicked (0: unknown)."""
    url_ids: np.ndarray
    ranks: np.ndarray
    shown: pa.Table | None = None
    """The same of the log that releases are drawn from, as query, url and rank, where the honest feedback is asked."""

    @classmethod
    def of_log(cls, engine: Engine, cleaned: Partition, trained: Partition | None = None) -> TestedClicks:
        """The clicks of a held-out log; with those of the log that is drawn from, for the honest feedback."""
        shown = None if trained is None else _clicks_of(engine, trained)
        return cls.of_clicks(_clicks_of(engine, cleaned), shown)

    @classmethod
    def of_clicks(cls, clicks: pa.Table, shown: pa.Table | None = None) -> TestedClicks:
        """From tables of query, url and rank, each pair once."""
        queries, urls = (sorted_texts([clicks[name].cast(pa.string())]) for name in ("query", "url"))
        if shown is not None:
            shown = shown.filter(pc.is_in(shown["query"], value_set=queries))
        return cls(
            queries,
            urls,
            number(queries, clicks["query"].cast(pa.string())),
            number(urls, clicks["url"].cast(pa.string())),
            _ranks(clicks),
            shown,
        )

    @property
    def truths(self) -> np.ndarray:
        """How many urls were clicked for each query."""
        return np.bincount(self.query_ids, minlength=len(self.queries))

    def holds(self, query_ids: np.ndarray, urls: pa.Array) -> np.ndarray:
        """Whether each url was clicked for the query beside it."""
        found = number(self.urls, urls)
        wide = np.int64(len(self.urls))
        clicked = np.isin(query_ids * wide + found, self.query_ids * wide + self.url_ids)
        return clicked & (found >= 0)


@dataclass(frozen=True)
class ClickGraph:
    """A log as edges with weights: from queries to urls, and to other queries."""

    queries: pa.Array
    urls: pa.Array
    """Sorted by their bytes: the lower of two numbers is the earlier text, and ties fall to it."""
    clicks: sparse.csr_array
    transitions: sparse.csr_array

    @classmethod
    def of_log(cls, log: SearchLog) -> ClickGraph:
        queries = pc.unique(log.queries["query"])
        urls = sorted_texts([log.clicks["url"]])
        befores, afters = (number(queries, log.transitions[name]) for name in ("query", "next_query"))
        # A step from a query to itself is none: the self-loop has a probability of its own.
        moves = befores != afters
        return cls(
            queries,
            urls,
            count_matrix(
                number(queries, log.clicks["query"]),
                number(urls, log.clicks["url"]),
                log.clicks["count"].to_numpy(),
                (len(queries), len(urls)),
            ),
            count_matrix(
                befores[moves],
                afters[moves],
                log.transitions["count"].to_numpy()[moves],
                (len(queries), len(queries)),
            ),
        )

    def probabilities(self, impact: bool) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Of one step of the walk: to queries, the query itself among them, and to urls."""
        from scipy import sparse

        totals = self.clicks.sum(axis=1) + self.transitions.sum(axis=1)
        shares = sparse.diags_array(np.divide(1 - STAYING, totals, out=np.zeros(len(totals)), where=totals > 0))
        to_queries = shares @ self.transitions + STAYING * sparse.eye_array(len(totals), format="csr")
        to_urls = shares @ self.clicks
        if impact:
            to_urls = to_urls @ sparse.diags_array(1 + np.log1p(self.clicks.sum(axis=0)))
            # Divided by the sum of the row, which the sum of all impact factors would fall out of.
            scale = sparse.diags_array(1 / (to_queries.sum(axis=1) + to_urls.sum(axis=1)))
            to_queries, to_urls = scale @ to_queries, scale @ to_urls
        return to_queries.tocsr(), to_urls.tocsr()


@dataclass(frozen=True)
class Ranking:
    """Ranked urls one below the other: the number of the tested query, the place from 0 on, and the url."""

    asked: np.ndarray
    places: np.ndarray
    urls: pa.Array


def score_retrieval(
    log: SearchLog, tested: TestedClicks, algorithm: str, *, feedback_rank: FeedbackRank = "test"
) -> QueryScores:
    """Every tested query searched in a log, and the scores of what was found."""
    answered = number(log.queries["query"].combine_chunks(), tested.queries) >= 0
    ranking = rank_urls(log, tested, algorithm, feedback_rank=feedback_rank)
    hits = tested.holds(ranking.asked, ranking.urls)
    return score_rankings(ranking.asked, ranking.places, hits, tested.truths, answered)


def rank_urls(log: SearchLog, tested: TestedClicks, algorithm: str, *, feedback_rank: FeedbackRank = "test") -> Ranking:
    """What a log finds for tested queries, at most a hundred urls each. Queries that it does not hold have none."""
    if algorithm not in ALGORITHMS:
        raise ParameterError(f"no retrieval by {algorithm!r}: choose one of {', '.join(ALGORITHMS)}")
    if algorithm == "implicit_feedback":
        return _rank_by_feedback(log, tested, feedback_rank)
    graph = ClickGraph.of_log(log)
    numbers = number(graph.queries, tested.queries)
    known = np.flatnonzero(numbers >= 0)
    found = [
        (known[start + asked], places, urls)
        for start, asked, places, urls in _walk(graph, numbers[known], impact=algorithm == "impact_walk")
    ]
    asked, places, urls = (np.concatenate(each) for each in zip(_NOTHING, *found, strict=True))
    return Ranking(asked, places, graph.urls.take(pa.array(urls)))


_NOTHING = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def _walk(
    graph: ClickGraph, numbers: np.ndarray, *, impact: bool
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Batches of walks from some queries: the batch's start, then places in it, ranks and urls."""
    from scipy import sparse

    to_queries, to_urls = graph.probabilities(impact)
    for start in range(0, len(numbers), QUERIES_AT_ONCE):
        batch = numbers[start : start + QUERIES_AT_ONCE]
        walkers = sparse.csr_array(
            (np.ones(len(batch)), batch, np.arange(len(batch) + 1)), shape=(len(batch), len(graph.queries))
        )
        visits = walkers
        for _ in range(STEPS - 1):
            walkers = walkers @ to_queries
            walkers.data[walkers.data < LEAST_PROBABILITY] = 0
            walkers.eliminate_zeros()
            visits = visits + walkers
        # Urls keep who comes: what they hold in the end is what came from the queries in each of the steps.
        arrived = visits @ to_urls
        arrived.sort_indices()
        asked = np.repeat(np.arange(len(batch)), np.diff(arrived.indptr))
        kept = best(asked, arrived.data, DEPTH)
        yield start, asked[kept], places_in_groups(asked[kept]), arrived.indices[kept].astype(np.int64)


def _rank_by_feedback(log: SearchLog, tested: TestedClicks, feedback_rank: FeedbackRank) -> Ranking:
    """Every clicked pair of the log for a tested query; a count that noise took to 0 is the last of its list."""
    asked = number(tested.queries, log.clicks["query"])
    urls = sorted_texts([log.clicks["url"]])
    url_ids, counts = number(urls, log.clicks["url"]), log.clicks["count"].to_numpy()
    order = np.flatnonzero(asked >= 0)
    order = order[np.lexsort((url_ids[order], -counts[order], asked[order]))]
    asked, url_ids = asked[order], url_ids[order]
    by_clicks = 1 / (places_in_groups(asked) + 2)
    ranks = _feedback_ranks(tested, feedback_rank, asked, url_ids, urls)
    scores = np.where(ranks > 0, FEEDBACK / (ranks + 1) + (1 - FEEDBACK) * by_clicks, by_clicks)
    by_url = np.lexsort((url_ids, asked))
    kept = by_url[best(asked[by_url], scores[by_url], DEPTH)]
    return Ranking(asked[kept], places_in_groups(asked[kept]), urls.take(pa.array(url_ids[kept])))


def _feedback_ranks(
    tested: TestedClicks, feedback_rank: FeedbackRank, asked: np.ndarray, url_ids: np.ndarray, urls: pa.Array
) -> np.ndarray:
    """The rank at which each url was clicked for the query beside it; 0 where it never was, or nobody knows."""
    if feedback_rank == "test":
        query_ids, clicked, ranks = tested.query_ids, number(urls, tested.urls)[tested.url_ids], tested.ranks
    elif tested.shown is not None:
        query_ids = number(tested.queries, tested.shown["query"])
        clicked, ranks = number(urls, tested.shown["url"]), _ranks(tested.shown)
    else:
        raise ParameterError("feedback_rank: train needs the clicks of the log that is drawn from")
    held = clicked >= 0
    wide = np.int64(len(urls))
    keys, ranks = query_ids[held] * wide + clicked[held], ranks[held]
    if not len(keys):
        return np.zeros(len(asked), np.int64)
    order = np.argsort(keys)
    places = np.minimum(np.searchsorted(keys, asked * wide + url_ids, sorter=order), len(keys) - 1)
    found = order[places]
    return np.where(keys[found] == asked * wide + url_ids, ranks[found], 0)


def places_in_groups(groups: np.ndarray) -> np.ndarray:
    """0, 1, 2, … within each run of equal numbers."""
    if not len(groups):
        return np.empty(0, np.int64)
    starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    return np.arange(len(groups)) - np.repeat(starts, np.diff(np.r_[starts, len(groups)]))


def _clicks_of(engine: Engine, cleaned: Partition) -> pa.Table:
    view_cleaned(engine, cleaned, transitions=False)
    clicks = engine.arrow("studies/log_clicks")
    return pa.table({"query": clicks["query"], "url": clicks["url"], "rank": clicks["best_rank"]})


def _ranks(clicks: pa.Table) -> np.ndarray:
    return np.asarray(pc.fill_null(clicks["rank"].cast(pa.int64()), 0).to_numpy(), np.int64)
