"""How good suggestions are: Precision@5 and Recall@5 over every prefix of test sessions (Zhang and Yang 2017, Eq. 11).

After each query of a session but its last, suggestions are asked for, and right is whatever comes later in the session.
A log *answers* a prefix if it has at least one suggestion for it. Logs answer different prefixes, the easy ones first,
so means over what each one answers compare nothing: the same mean over what all of them answer stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from qlog_assets.studies.measures.suggestion import (
    SUGGESTIONS,
    Candidates,
    Suggester,
    Suggestions,
    count_matrix,
    in_one_piece,
    rank,
)

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True)
class Prefixes:
    """Every prefix of some sessions."""

    sessions: np.ndarray
    """The number of the session that a prefix is of."""
    queries: pa.Array
    """The last query of each prefix: the one that suggestions are asked for."""
    later_prefixes: np.ndarray
    """Each prefix as often as it has different later queries,"""
    later_queries: pa.Array
    """and these queries."""

    @property
    def truths(self) -> np.ndarray:
        """How many different queries come later, by prefix."""
        return np.bincount(self.later_prefixes, minlength=len(self.sessions))


@dataclass(frozen=True)
class Answers:
    """What one log answered: by prefix, how many suggestions it gave and how many of them came true."""

    given: np.ndarray
    hits: np.ndarray

    @property
    def answered(self) -> np.ndarray:
        return self.given > 0


@dataclass(frozen=True)
class Scores:
    """Means over some prefixes; None where there are none."""

    precision: float | None
    error: float | None
    """The standard error of the precision, by sessions: prefixes of one session go right or wrong together."""
    recall: float | None
    prefixes: int
    sessions: int


def prefixes_of(sessions: np.ndarray, queries: pa.Array) -> Prefixes:
    """The prefixes of sessions, given as one row per query: the session's number, ascending, and the query in order."""
    sessions, queries = np.asarray(sessions), in_one_piece(queries)
    if not len(sessions):
        return Prefixes(np.empty(0, np.int64), queries, np.empty(0, np.int64), queries)
    ends = np.searchsorted(sessions, sessions, side="right")
    rows = np.arange(len(sessions))
    left = ends - rows - 1
    asked = np.flatnonzero(left > 0)
    repeated = np.repeat(np.arange(len(asked)), left[asked])
    offsets = np.arange(len(repeated)) - np.repeat(np.cumsum(left[asked]) - left[asked], left[asked])
    later = rows[asked][repeated] + 1 + offsets
    encoded = queries.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    known = len(encoded.dictionary)
    different = np.unique(repeated * known + codes[later])
    return Prefixes(
        sessions[asked],
        queries.take(pa.array(asked)),
        different // known,
        encoded.dictionary.take(pa.array(different % known)),
    )


def answer(suggester: Suggester, prefixes: Prefixes, weight: float, count: int = SUGGESTIONS) -> Answers:
    """What a log suggests for every prefix, held against what came later."""
    return Questions.put(suggester, prefixes, count).answer(weight)


@dataclass(frozen=True)
class Questions:
    """Prefixes put to one log, with what it may suggest found once, so that every λ is cheap to try."""

    prefixes: Prefixes
    asked: np.ndarray
    """By prefix, the place of its query among the different known ones, -1 where the log does not know it."""
    different: int
    known: int
    candidates: Candidates
    truth: sparse.csr_array
    count: int

    @classmethod
    def put(cls, suggester: Suggester, prefixes: Prefixes, count: int = SUGGESTIONS) -> Questions:
        numbers = suggester.numbers(prefixes.queries)
        different = np.unique(numbers[numbers >= 0])
        asked = np.where(numbers >= 0, np.searchsorted(different, numbers), -1)
        later = suggester.numbers(prefixes.later_queries)
        known = later >= 0
        rows, columns = prefixes.later_prefixes[known], later[known]
        shape = (len(prefixes.sessions), len(suggester.queries))
        truth = count_matrix(rows, columns, np.ones(len(rows)), shape)
        candidates = suggester.candidates(different, count)
        return cls(prefixes, asked, len(different), len(suggester.queries), candidates, truth, count)

    def answer(self, weight: float) -> Answers:
        """Suggestions and hits by prefix, λ = `weight`."""
        suggested = rank(self.candidates, weight, self.count)
        given, hits = (np.zeros(len(self.asked), np.int64) for _ in range(2))
        told = np.flatnonzero(self.asked >= 0)
        rows = self._matrix(suggested)[self.asked[told]]
        given[told] = np.diff(rows.indptr)
        hits[told] = np.round(rows.multiply(self.truth[told]).sum(axis=1)).astype(np.int64)
        return Answers(given, hits)

    def choose_weight(self, grid: Sequence[float]) -> float:
        """The λ of a grid with the most hits over all prefixes; of equals, the one nearest to one half.

        Hits, not means: what is answered depends on λ, and an answer fewer must not look like an answer better.
        """
        hits = [(int(self.answer(weight).hits.sum()), -abs(weight - 0.5), -weight) for weight in grid]
        return grid[max(range(len(grid)), key=hits.__getitem__)]

    def _matrix(self, suggested: Suggestions) -> sparse.csr_array:
        ones = np.ones(len(suggested.asked))
        return count_matrix(suggested.asked, suggested.suggested, ones, (self.different, self.known))


def score(prefixes: Prefixes, answers: Answers, among: np.ndarray, count: int = SUGGESTIONS) -> Scores:
    """Precision and recall over the prefixes of a mask: hits by `count`, and by what came later."""
    if not among.any():
        return Scores(None, None, None, 0, 0)
    hits = answers.hits[among]
    precisions, recalls = hits / count, hits / prefixes.truths[among]
    sessions, of_session = np.unique(prefixes.sessions[among], return_inverse=True)
    apart = np.bincount(of_session, precisions - precisions.mean())
    error = float(np.sqrt((apart**2).sum()) / len(hits))
    return Scores(float(precisions.mean()), error, float(recalls.mean()), len(hits), len(sessions))


def answered_by_all(every: Sequence[Answers]) -> np.ndarray:
    """The prefixes that each of several logs answers."""
    return np.logical_and.reduce([answers.answered for answers in every])
