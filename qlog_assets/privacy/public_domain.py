"""Noisy counts of a public domain too large to build: all cells are noised, few of those that nobody holds are shown.

The domain's items are public before anything is drawn (released queries, a public list), so nothing here costs δ. The
thresholds are post-processing: they decide how many fakes a table holds, never how private it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qlog_assets.privacy.histogram import Released, public_histogram
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.zero_domain import draw_zero_cells

MOST_FAKES = 1_000_000
"""How many untouched cells a table may be expected to have."""
QUERIES_PER_FAKE = 20
"""Of pairs of queries, at most one for so many public queries may be expected to come from noise alone, unless the
policy sets their threshold: one fake in all is next to nothing in a table of thousands, and most of a table of two."""


@dataclass(frozen=True)
class DomainDraw:
    """What was released of a public domain: rows of the support by index, and cells nobody touched by cell id."""

    support: Released
    cells: np.ndarray
    cell_users: np.ndarray


def few_fakes_threshold(cells: int, scale: Fraction, fakes: int = 1) -> int:
    """The threshold at which about `fakes` of `cells` untouched cells are released: b·ln(cells / (2·fakes)).

    Post-processing, so a float may compute it: it decides how many fakes there are, never how private the release is.
    """
    return max(1, math.ceil(float(scale) * math.log(max(cells, 2 * fakes) / (2 * fakes))))


def mostly_real_threshold(queries: int, scale: Fraction) -> int:
    """The threshold at which noise alone makes at most one transition for every `QUERIES_PER_FAKE` released queries.

    Each of n(n-1) pairs that nobody made passes T with probability a^T/(1+a), a = e^(-1/b). n(n-1)·a^T/(1+a) <= n/20
    holds from T = b·ln(20(n-1)/(1+a)) on. It reads the number of released queries, which is public by then, and b.
    """
    decay = math.exp(-1 / float(scale))
    return max(1, math.ceil(float(scale) * math.log(QUERIES_PER_FAKE * (queries - 1) / (1 + decay))))


def usable_threshold(wanted: int | None, cells: int, scale: Fraction) -> int:
    """The wanted threshold, or one for about one fake; never so low that fakes fill the disk.

    A draw that failed here would have to be drawn again after part of it was seen: so it is not let fail.
    """
    return max(wanted or few_fakes_threshold(cells, scale), few_fakes_threshold(cells, scale, MOST_FAKES))


def draw_public(
    source: RandomSource, cells: np.ndarray, users: np.ndarray, domain: int, scale: Fraction, threshold: int
) -> DomainDraw:
    """The cells of a domain whose noisy count reaches the threshold: `cells` and `users` are those that somebody holds,
    the others are drawn as what they are. Costs items per user over the scale."""
    support = public_histogram(source, users, scale, threshold)
    zero_cells, zero_users = draw_zero_cells(source, scale, threshold, domain, np.sort(cells))
    return DomainDraw(support, zero_cells, zero_users)
