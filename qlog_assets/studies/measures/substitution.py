"""Query substitution: ranked substitutes from released pairs, measured against those that the raw log gives.

A substitute of a query is what people typed next in the same session, the most users first. For each query the raw log
gives a ranking and grades (its users); a release gives another ranking. Written here with numpy: three measures on
rankings of at most ten do not earn a dependency with a compiled extension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Ranking = Mapping[str, Sequence[tuple[str, float]]]
"""For each query its substitutes with their counts, in any order."""


@dataclass(frozen=True)
class Substitutions:
    """Means over all queries that have a substitute in the raw log; a query without a released one scores 0."""

    queries: int
    coverage: float
    """The share of queries with at least one released substitute."""
    precision: float
    average_precision: float
    ndcg: float


def ranked(substitutes: Sequence[tuple[str, float]], depth: int) -> list[str]:
    """The best substitutes, by count and then by text."""
    return [text for text, _ in sorted(substitutes, key=lambda item: (-item[1], item[0]))[:depth]]


def compare(raw: Ranking, released: Ranking, depth: int = 10) -> Substitutions:
    """Measure released substitutes at a depth; relevant is what the raw log ranks within the same depth."""
    scores = []
    for query, substitutes in raw.items():
        grades = dict(substitutes)
        relevant = set(ranked(substitutes, depth))
        offered = ranked(released.get(query, ()), depth)
        scores.append(
            (
                bool(offered),
                precision(offered, relevant, depth),
                average_precision(offered, relevant),
                ndcg(offered, grades, depth),
            )
        )
    if not scores:
        return Substitutions(0, 0.0, 0.0, 0.0, 0.0)
    means = np.mean(np.array(scores, dtype=float), axis=0)
    return Substitutions(len(scores), *(float(mean) for mean in means))


def precision(offered: Sequence[str], relevant: set[str], depth: int) -> float:
    """Hits over the places that could be filled: a query of two substitutes is done with two."""
    return sum(text in relevant for text in offered) / min(depth, max(len(relevant), 1))


def average_precision(offered: Sequence[str], relevant: set[str]) -> float:
    hits = np.array([text in relevant for text in offered], dtype=float)
    if not hits.any():
        return 0.0
    return float((hits * np.cumsum(hits) / np.arange(1, len(hits) + 1)).sum() / len(relevant))


def ndcg(offered: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Discounted users of the offered substitutes over those of the best order there is."""
    discounts = 1 / np.log2(np.arange(2, depth + 2))
    gains = np.array([grades.get(text, 0.0) for text in offered])
    ideal = np.sort(np.array(list(grades.values()), dtype=float))[::-1][:depth]
    best = float((ideal * discounts[: len(ideal)]).sum())
    return float((gains * discounts[: len(gains)]).sum()) / best if best else 0.0
