"""Query suggestion from a log (Zhang and Yang 2017, section 4): what may follow a query, by sessions and by clicks.

Sessions make a query-flow graph: e(q, r) counts r anywhere after q, not only next. Clicks make a vector of urls for
each query, and two queries are alike by the cosine of theirs. Eq. 10 adds the two with a weight λ on the clicks. Counts
come in as they were released; a noisy one below zero counts as zero. How good suggestions are is `suggestion_scores`.

Everything is sparse, and only queries that are asked for are multiplied: a month has a million queries. scipy is
imported where it is used: Dagster loads every study, and would wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.errors import ParameterError

if TYPE_CHECKING:
    from scipy import sparse

Reading = Literal["all", "pairs"]
"""`all`: a pair counts in every released sequence that holds it, so a pair of a longer one counts again and again, as
in the paper. `pairs`: sequences of two queries alone."""
READINGS: tuple[Reading, ...] = ("all", "pairs")
SUGGESTIONS = 5
"""How many suggestions the paper looks at."""
DIGITS = 12
"""Scores are compared to so many digits: the order in which a sum was added up must not break a tie."""
ENTRIES_AT_ONCE = 4_000_000
"""Entries of a product of click vectors that are held at once: some 100 MB."""
PAIRS = pa.schema([("query", pa.string()), ("next_query", pa.string()), ("users", pa.float64())])


@dataclass(frozen=True)
class Candidates:
    """What may be suggested after some queries: which of them, what, and the two scores that λ weighs."""

    asked: np.ndarray
    """The place of the query in what was asked."""
    suggested: np.ndarray
    """The number of the query that may follow."""
    cosine: np.ndarray
    flow: np.ndarray


@dataclass(frozen=True)
class Suggestions:
    """The best candidates under one λ: by the query asked, best first."""

    asked: np.ndarray
    suggested: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Suggester:
    """A log as two graphs over its queries."""

    queries: pa.Array
    """Sorted by their bytes, so that the lower of two numbers is the earlier text: ties fall to it."""
    flow: sparse.csr_array
    """e(q, r)/d(q), without steps from a query to itself."""
    clicks: sparse.csr_array
    """Queries by urls, each row of length 1."""

    @classmethod
    def from_release(cls, sessions: pa.Table | None, clicks: pa.Table | None, reading: Reading = "all") -> Suggester:
        """From tables as they are released: `queries` (a list) and `users`; `query`, `url` and `users`."""
        return cls.from_counts(None if sessions is None else pairs_of(sessions, reading), clicks)

    @classmethod
    def from_counts(cls, pairs: pa.Table | None, clicks: pa.Table | None) -> Suggester:
        """From counted pairs (`query`, `next_query`, `users`) and clicks; None where there are none."""
        parts = [] if pairs is None else [texts(pairs, "query"), texts(pairs, "next_query")]
        parts += [] if clicks is None else [texts(clicks, "query")]
        queries = sorted_texts(parts)
        nothing, shape = np.empty(0, np.int64), (len(queries), len(queries))
        flow, vectors = (count_matrix(nothing, nothing, nothing, each) for each in (shape, (len(queries), 0)))
        if pairs is not None:
            befores, afters = (number(queries, texts(pairs, name)) for name in ("query", "next_query"))
            several = befores != afters
            flow = count_matrix(befores[several], afters[several], weights(pairs)[several], shape)
        if clicks is not None:
            urls = sorted_texts([texts(clicks, "url")])
            rows, columns = number(queries, texts(clicks, "query")), number(urls, texts(clicks, "url"))
            vectors = count_matrix(rows, columns, weights(clicks), (len(queries), len(urls)))
        return cls(queries, divide_rows(flow, flow.sum(axis=1)), divide_rows(vectors, norms(vectors)))

    def numbers(self, asked: pa.Array) -> np.ndarray:
        """The numbers of queries, -1 for those that the log does not hold."""
        return number(self.queries, asked)

    def candidates(self, numbers: np.ndarray, count: int = SUGGESTIONS) -> Candidates:
        """Whatever can be among the best `count` suggestions under any λ; `numbers` are of known queries.

        That is whoever follows in a session, and of all others the `count` that are most alike by clicks: among those λ
        changes no order.
        """
        numbers = np.asarray(numbers, np.int64)
        if numbers.min(initial=0) < 0:
            raise ParameterError("suggestions are made for queries that the log holds: leave the others out")
        turned = self.clicks.T.tocsr()
        found = [self._candidates(start, part, turned, count) for start, part in self._blocks(numbers)]
        return Candidates(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def suggest(self, numbers: np.ndarray, weight: float, count: int = SUGGESTIONS) -> Suggestions:
        """The best `count` suggestions for known queries, λ = `weight`."""
        return rank(self.candidates(numbers, count), weight, count)

    def _blocks(self, numbers: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """The queries asked, cut where their products would grow too large to hold."""
        sharing = np.bincount(self.clicks.indices, minlength=self.clicks.shape[1])
        entries = (self.clicks != 0).astype(np.int64) @ sharing
        blocks = np.cumsum(entries[numbers]) // ENTRIES_AT_ONCE
        cuts = np.flatnonzero(np.diff(blocks)) + 1
        yield from zip([0, *cuts.tolist()], np.split(numbers, cuts), strict=True)

    def _candidates(
        self, start: int, numbers: np.ndarray, turned: sparse.csr_array, count: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Places, suggested queries, cosines and flows for one block of queries."""
        alike = self.clicks[numbers] @ turned
        following = self.flow[numbers].tocoo()
        alike.sort_indices()
        asked = np.repeat(np.arange(len(numbers)), np.diff(alike.indptr))
        key = asked * np.int64(len(self.queries)) + alike.indices
        followed = following.row * np.int64(len(self.queries)) + following.col
        # The product is sorted by query asked and query found, so the flow's pairs are looked up in it.
        places = np.minimum(np.searchsorted(key, followed), max(len(key) - 1, 0))
        both = key[places] == followed if len(key) else np.zeros(len(followed), bool)
        cosine = np.zeros(len(followed))
        cosine[both] = alike.data[places[both]]
        others = alike.indices != numbers[asked]
        others[places[both]] = False
        others &= alike.data > 0
        asked, found, scores = asked[others], alike.indices[others], alike.data[others]
        kept = best(asked, scores, count)
        return (
            start + np.concatenate([following.row, asked[kept]]),
            np.concatenate([following.col, found[kept]]),
            np.concatenate([cosine, scores[kept]]),
            np.concatenate([following.data, np.zeros(len(kept))]),
        )


def rank(candidates: Candidates, weight: float, count: int = SUGGESTIONS) -> Suggestions:
    """Eq. 10: λ·cosine + (1 - λ)·flow, the best `count` of each query asked, ties by text. Nothing scores 0."""
    scores = np.round(weight * candidates.cosine + (1 - weight) * candidates.flow, DIGITS)
    order = np.lexsort((candidates.suggested, candidates.asked))
    order = order[scores[order] > 0]
    kept = order[best(candidates.asked[order], scores[order], count)]
    return Suggestions(candidates.asked[kept], candidates.suggested[kept], scores[kept])


def best(groups: np.ndarray, scores: np.ndarray, count: int) -> np.ndarray:
    """The places of the highest `count` scores of each group, best first; groups are sorted, ties fall to the first."""
    order = np.lexsort((-np.round(scores, DIGITS), groups))
    ranked = groups[order]
    firsts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if ranked.size else np.empty(0, np.int64)
    lengths = np.diff(np.r_[firsts, ranked.size])
    return order[np.arange(ranked.size) - np.repeat(firsts, lengths) < count]


def pairs_of(sessions: pa.Table, reading: Reading = "all") -> pa.Table:
    """Every pair of an earlier and a later query in released sequences, with the sequence's count."""
    lists = in_one_piece(sessions["queries"])
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    queries, starts = lists.flatten(), np.cumsum(lengths) - lengths
    counts, longest = weights(sessions), int(lengths.max(initial=0))
    parts = [PAIRS.empty_table()]
    for later in range(1, longest):
        for earlier in range(later):
            held = (lengths > later) if reading == "all" else (lengths == 2) & (later == 1)
            columns = [queries.take(pa.array(starts[held] + place)) for place in (earlier, later)]
            parts.append(pa.table([*columns, counts[held]], schema=PAIRS))
    return pa.concat_tables(parts)


def texts(table: pa.Table, column: str) -> pa.ChunkedArray:
    return table[column].cast(pa.string())


def weights(table: pa.Table) -> np.ndarray:
    """Released counts as weights: noise may take one below zero, and fewer than nobody is nobody."""
    return np.maximum(table["users"].to_numpy().astype(float), 0)


def in_one_piece(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


def sorted_texts(parts: list[pa.ChunkedArray]) -> pa.Array:
    """Each text once, sorted by its bytes."""
    found = pc.unique(pa.concat_arrays([pa.array([], pa.string()), *(part.unique() for part in parts)]))
    return found.take(pc.sort_indices(found))


def number(known: pa.Array, asked: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """The place of each text among the known ones, -1 where it is none of them."""
    return np.asarray(pc.fill_null(pc.index_in(asked, value_set=known), -1).to_numpy(), np.int64)


def count_matrix(rows: np.ndarray, columns: np.ndarray, counts: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """Counts added up by row and column, without the zeros."""
    from scipy import sparse

    matrix = sparse.coo_array((counts, (rows, columns)), shape=shape).tocsr()
    matrix.eliminate_zeros()
    return matrix


def norms(matrix: sparse.csr_array) -> np.ndarray:
    return np.sqrt(matrix.multiply(matrix).sum(axis=1))


def divide_rows(matrix: sparse.csr_array, by: np.ndarray) -> sparse.csr_array:
    """Each row divided by a number; a row without entries stays so."""
    scaled = matrix.copy()
    scaled.data = scaled.data / np.repeat(np.where(by > 0, by, 1), np.diff(matrix.indptr))
    return scaled
