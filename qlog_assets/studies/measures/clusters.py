"""Clusters of sites by the queries that lead to them (Safelog, "Exploring Web Mining"), and how pure they are.

Eq. 14: two sites are as similar as the smaller of the two shares of their clicks that come from queries they have in
common. Single link, cut at a similarity of one half, is the connected components of the graph of pairs that are at
least so similar. The result is that of comparing all pairs; the work is not, for a month has a million sites. scipy is
imported where it is used: Dagster loads every study, and would wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from qlog_assets.studies.measures.suggestion import count_matrix, number, sorted_texts, texts
from qlog_assets.synthetic import PORTAL_TOPIC, topic_of_url, topics_of_query

if TYPE_CHECKING:
    from scipy import sparse

ENTRIES_AT_ONCE = 4_000_000
"""Entries of a sparse matrix that are held at once: some 100 MB."""


@dataclass(frozen=True)
class Clusters:
    """The sites that were clicked, sorted by their bytes, and the number of the cluster of each."""

    sites: pa.Array
    labels: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """How many sites each cluster has."""
        return np.bincount(self.labels)


@dataclass(frozen=True)
class Purity:
    """How many sites belong to the topic that most sites of their cluster have; None where there is nothing to judge.

    A cluster of one site is pure by construction, so the same is said of the clusters of two sites or more. Sites
    without a known topic are in none of the numbers but `largest`.
    """

    purity: float | None
    sites: int
    clusters: int
    linked_purity: float | None
    """Over clusters of at least two sites that have a topic."""
    linked_sites: int
    linked_clusters: int
    largest: int
    """Sites of the largest cluster."""


def cluster_sites(clicks: pa.Table, least_count: float = 0.0, most_sites: int | None = None) -> Clusters:
    """Single-link clusters of the urls of counted clicks (`query`, `url`, `count`), cut at similarity one half.

    A pair of query and url counts as clicked if its count is above 0 and at least `least_count`: the click threshold
    takes out pairs before anything is added up. With `most_sites`, only so many sites are clustered, those with most
    clicks; of equals the first by bytes.
    """
    from scipy import sparse

    counts = clicks["count"].to_numpy().astype(float)
    clicked = clicks.filter(pa.array((counts > 0) & (counts >= least_count)))
    sites, queries = (sorted_texts([texts(clicked, name)]) for name in ("url", "query"))
    places = number(sites, texts(clicked, "url")), number(queries, texts(clicked, "query"))
    matrix = count_matrix(*places, clicked["count"].to_numpy().astype(float), (len(sites), len(queries)))
    if most_sites is not None and most_sites < len(sites):
        chosen = np.sort(np.argsort(-matrix.sum(axis=1), kind="stable")[:most_sites])
        matrix, sites = matrix[chosen], sites.take(pa.array(chosen))
    known = _components(len(sites), *_ruling_queries(matrix), len(queries))
    found = [np.empty((2, 0), np.int64), *_similar_pairs(matrix, known)]
    pairs = known[np.concatenate(found, axis=1)]
    joined = sparse.coo_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(len(sites), len(sites)))
    return Clusters(sites, _relabel(sparse.csgraph.connected_components(joined, directed=False)[1][known]))


def purity(clusters: Clusters, topics: Mapping[str, int]) -> Purity:
    """How pure clusters are against known topics, by url."""
    known = [topics.get(url) for url in clusters.sites.to_pylist()]
    judged = np.array([topic is not None for topic in known], bool)
    truth = np.array([topic for topic in known if topic is not None], np.int64)
    labels = clusters.labels[judged]
    # How often each topic occurs in each cluster, and of each cluster the largest of these and the sum.
    pairs, times = np.unique(np.stack([labels, truth]), axis=1, return_counts=True)
    cells = np.zeros((2, int(clusters.labels.max(initial=-1)) + 1), np.int64)
    np.maximum.at(cells[0], pairs[0], times)
    np.add.at(cells[1], pairs[0], times)
    right, sizes = cells
    linked = sizes >= 2
    return Purity(
        purity=_share(right.sum(), sizes.sum()),
        sites=int(sizes.sum()),
        clusters=int((sizes > 0).sum()),
        linked_purity=_share(right[linked].sum(), sizes[linked].sum()),
        linked_sites=int(sizes[linked].sum()),
        linked_clusters=int(linked.sum()),
        largest=int(clusters.sizes.max(initial=0)),
    )


def synthetic_topics(clusters: Clusters) -> dict[str, int]:
    """The true topics of those sites that are of the synthetic world; empty for a real log."""
    found = ((url, topic_of_url(url)) for url in clusters.sites.to_pylist())
    return {url: topic for url, topic in found if topic is not None}


def without_stray_clicks(clicks: pa.Table) -> pa.Table:
    """The clicks of a synthetic log on sites of a topic that the query may mean, and on portals.

    Asks for the topics of every query: for a log of few queries, as a release is.
    """
    queries, sites = (sorted_texts([texts(clicks, name)]) for name in ("query", "url"))
    # A query has two topics at most; one that has fewer has no site for the others.
    meant = [(*topics_of_query(query), -1, -1)[:2] for query in queries.to_pylist()]
    offered = np.array([-2 if (topic := topic_of_url(url)) is None else topic for url in sites.to_pylist()], np.int64)
    asked = np.array(meant, np.int64).reshape(-1, 2)[number(queries, texts(clicks, "query"))]
    found = offered[number(sites, texts(clicks, "url"))]
    return clicks.filter(pa.array((asked == found[:, np.newaxis]).any(axis=1) | (found == PORTAL_TOPIC)))


def _share(part: np.integer, whole: np.integer) -> float | None:
    return float(part / whole) if whole else None


def _relabel(labels: np.ndarray) -> np.ndarray:
    """Numbers from 0 in the order of the first site, whatever order they were found in."""
    _, firsts, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(firsts))[inverse]


def _rows_of(matrix: sparse.csr_array) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _ruling_queries(matrix: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Sites, and a query each that brings at least half of the site's clicks.

    Two sites with the same such query are similar by it alone: those pairs, most of a log's, need not be looked at.
    """
    sites = _rows_of(matrix)
    ruling = 2 * matrix.data >= matrix.sum(axis=1)[sites]
    return sites[ruling], matrix.indices[ruling]


def _components(count: int, sites: np.ndarray, queries: np.ndarray, query_count: int) -> np.ndarray:
    """Sites that are connected by way of queries; numbers below `count`."""
    from scipy import sparse

    size = count + query_count
    graph = sparse.coo_array((np.ones(len(sites)), (sites, count + queries)), shape=(size, size))
    return _relabel(sparse.csgraph.connected_components(graph, directed=False)[1][:count])


def _similar_pairs(matrix: sparse.csr_array, known: np.ndarray) -> Iterator[np.ndarray]:
    """Pairs of similar sites that are not known to be connected, all but those that another pair stands for.

    Order all queries by how many sites they lead to, and call rare of a site the first of its queries that bring more
    than half of its clicks together. If the rarest query that two sites have in common is not a rare one of both, then
    one of the two has less than half of its clicks from common queries. So only pairs with a common rare query are
    compared. And sites with a single query, the same one, are alike in every way: one stands for all.
    """
    rare = _rare_queries(matrix, _stands_for_others(matrix))
    sharing = np.bincount(rare.indices, minlength=rare.shape[1])
    entries = rare @ sharing
    blocks = np.cumsum(entries) // ENTRIES_AT_ONCE
    turned = rare.T.tocsr()
    for block in np.split(np.arange(rare.shape[0]), np.flatnonzero(np.diff(blocks)) + 1):
        candidates = (rare[block] @ turned).tocoo()
        first, second = block[candidates.row], candidates.col
        apart = (first < second) & (known[first] != known[second])
        yield from _compare(matrix, first[apart], second[apart])


def _stands_for_others(matrix: sparse.csr_array) -> np.ndarray:
    """True for sites with several queries, and for the first site of each query among those that have no other."""
    single = np.flatnonzero(np.diff(matrix.indptr) == 1)
    kept = np.ones(matrix.shape[0], bool)
    kept[single] = False
    kept[single[np.unique(matrix.indices[matrix.indptr[single]], return_index=True)[1]]] = True
    return kept


def _rare_queries(matrix: sparse.csr_array, kept: np.ndarray) -> sparse.csr_array:
    """Sites by their rare queries, without queries that lead to one site only: they make no pair."""
    from scipy import sparse

    sites = _rows_of(matrix)
    degrees = np.bincount(matrix.indices, minlength=matrix.shape[1])
    order = np.lexsort((matrix.indices, degrees[matrix.indices], sites))
    clicks = matrix.data[order]
    before = np.cumsum(clicks) - clicks
    before -= before[matrix.indptr[:-1]][sites] if len(before) else 0
    entries = order[(2 * before <= matrix.sum(axis=1)[sites]) & kept[sites]]
    entries = entries[degrees[matrix.indices[entries]] > 1]
    ones = np.ones(len(entries), np.int64)
    return sparse.coo_array((ones, (sites[entries], matrix.indices[entries])), shape=matrix.shape).tocsr()


def _compare(matrix: sparse.csr_array, first: np.ndarray, second: np.ndarray) -> Iterator[np.ndarray]:
    """Those of the pairs whose similarity is at least one half, some at a time."""
    lengths, totals = np.diff(matrix.indptr), matrix.sum(axis=1)
    pattern = matrix.copy()
    pattern.data = np.ones_like(pattern.data)
    parts = np.cumsum(lengths[first] + lengths[second]) // ENTRIES_AT_ONCE
    for part in np.split(np.arange(len(first)), np.flatnonzero(np.diff(parts)) + 1):
        one, other = first[part], second[part]
        similar = np.ones(len(part), bool)
        for site, beside in ((one, other), (other, one)):
            similar &= 2 * matrix[site].multiply(pattern[beside]).sum(axis=1) >= totals[site]
        yield np.stack([one[similar], other[similar]])
