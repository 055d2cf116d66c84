"""How good ranked lists are: nDCG@10 (Eq. 12 of Safelog's paper), average precision, precision and recall.

Per tested query, so that two logs can be compared on the same queries. A log that knows few queries answers few, and
the easy ones: its mean over what it answers flatters it. So every mean is there three times: with zero for what is
missing, over what is answered, and over queries that somebody else chose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PAGE = 10
"""Results on a page: nDCG, precision and recall look so far."""
DEPTH = 100
"""Results in a list: average precision looks so far. The paper names no depth."""
MEASURES = ("ndcg", "average_precision", "precision", "recall")


@dataclass(frozen=True)
class QueryScores:
    """The scores of every tested query, in the order of the tested queries; 0 where it was not answered."""

    answered: np.ndarray
    """Whether the log holds the query. The paper evaluates these alone, those without any result among them."""
    ndcg: np.ndarray
    average_precision: np.ndarray
    precision: np.ndarray
    recall: np.ndarray

    @property
    def evaluated(self) -> int:
        """How many queries are answered."""
        return int(self.answered.sum())

    def of(self, measure: str) -> np.ndarray:
        """One measure, query by query."""
        scores: np.ndarray = getattr(self, measure)
        return scores

    def with_zeros(self, measure: str) -> float | None:
        """The mean over all tested queries: zero for those that the log does not hold."""
        return self.among(measure, np.ones(len(self.answered), bool))

    def as_paper(self, measure: str) -> float | None:
        """The mean over the answered queries, as the paper has it."""
        return self.among(measure, self.answered)

    def among(self, measure: str, mask: np.ndarray) -> float | None:
        """The mean over some of the tested queries. None: there are none of them."""
        return float(self.of(measure)[mask].mean()) if mask.any() else None


def score_rankings(
    asked: np.ndarray, places: np.ndarray, hits: np.ndarray, truths: np.ndarray, answered: np.ndarray
) -> QueryScores:
    """The scores of lists that stand one below the other: by query, best first.

    `asked` is the number of the tested query, `places` the place in its list from 0 on, `hits` whether the url there is
    relevant. `truths` has the number of relevant urls for each tested query, at least 1, found or not.
    """
    queries = len(truths)
    listed = places < DEPTH
    asked, places, hits = asked[listed], places[listed], hits[listed].astype(float)
    discounts = 1 / np.log2(np.arange(PAGE) + 2)
    on_page = np.where(places < PAGE, hits, 0.0)
    ideal = np.cumsum(discounts)[np.minimum(truths, PAGE) - 1]
    gained = np.bincount(asked, on_page * discounts[np.minimum(places, PAGE - 1)], queries)
    found_by_place = hits * _found_so_far(places, hits) / (places + 1)
    found_on_page = np.bincount(asked, on_page, queries)
    return QueryScores(
        answered=answered,
        ndcg=gained / ideal,
        average_precision=np.bincount(asked, found_by_place, queries) / truths,
        precision=found_on_page / PAGE,
        recall=found_on_page / truths,
    )


def _found_so_far(places: np.ndarray, hits: np.ndarray) -> np.ndarray:
    """How many relevant urls a list holds up to each of its places."""
    summed = np.cumsum(hits)
    starts = np.arange(len(places)) - places
    return summed - (summed[starts] - hits[starts])
