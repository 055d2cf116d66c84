"""Noise on domains too large to build: the cells nobody holds whose noise reaches a threshold, drawn directly.

Belongs here: the draw of specification 7 and the numbering of ordered pairs. Cells are numbers in [0, domain_size);
what a cell stands for (a pool query, a pair of released queries) is the caller's. Support cells, those with users, get
ordinary noise in `histogram`; the two are merged and sorted there, so that order does not tell them apart.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.noise import checked_scale, discrete_laplace, discrete_laplace_tail
from qlog_assets.privacy.noise_tables import CHUNK
from qlog_assets.privacy.numbers import binomial, laplace_survival
from qlog_assets.privacy.randomness import RandomSource

# Cells are numbered in 64 bits with a sign. That is every ordered pair of 2**31 items, more texts than one Arrow array
# can hold: how many items were released depends on the noise, so no number of them that can be had may be refused.
LARGEST_DOMAIN = 1 << 62
# What a release may hold: 16 bytes a cell, so 3.2 GB. A domain that would print more needs a higher threshold.
LARGEST_EXPECTED_CELLS = 200_000_000
# Above this share of passing cells it is quicker to give every zero cell its noise than to choose some. The share
# depends on scale and threshold only, so the choice tells nothing; the work stays within four draws a released cell.
DENSE_SHARE = Fraction(1, 4)


def draw_zero_cells(
    source: RandomSource, scale: Fraction, threshold: int, domain_size: int, support: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The cells of [0, domain_size) outside `support` whose discrete Laplace noise is ≥ threshold, and that noise.

    `support` holds sorted distinct cells. Cells come back sorted. Time and memory are O(released + support).

    Exact: each of the M zero cells passes on its own with p = P[X ≥ threshold]. So the number that pass is
    Binomial(M, p), given the number every set of that size is equally likely, and given the set the values are
    independent draws of X given X ≥ threshold; each of the three is drawn exactly.
    """
    scale = checked_scale(scale)
    if not 0 <= domain_size <= LARGEST_DOMAIN:
        raise ParameterError(f"a domain has between 0 and {LARGEST_DOMAIN} cells")
    support = _checked_support(support, domain_size)
    zeros = domain_size - len(support)
    survival = partial(laplace_survival, scale, threshold)
    share = survival(64)[1]
    if zeros * share > LARGEST_EXPECTED_CELLS:
        raise ParameterError(
            f"about {float(zeros * share):.2g} cells without users would pass the threshold {threshold}: "
            f"more than {LARGEST_EXPECTED_CELLS} cannot be released; raise the threshold"
        )
    if share >= DENSE_SHARE:
        ranks, values = _dense(source, scale, threshold, zeros)
    else:
        ranks = _distinct(source, zeros, binomial(source, zeros, survival))
        values = discrete_laplace_tail(source, scale, threshold, len(ranks))
    return _outside(support, ranks), values


def _checked_support(support: np.ndarray, domain_size: int) -> np.ndarray:
    support = np.asarray(support, dtype=np.int64)
    if len(support) and (support[0] < 0 or support[-1] >= domain_size or not (np.diff(support) > 0).all()):
        raise ParameterError("support cells are distinct, sorted, and inside the domain")
    return support


def _dense(source: RandomSource, scale: Fraction, threshold: int, zeros: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise for every zero cell in turn, keeping what passes."""
    ranks, values = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start in range(0, zeros, CHUNK):
        noise = discrete_laplace(source, scale, min(CHUNK, zeros - start))
        passing = np.flatnonzero(noise >= threshold)
        ranks.append(passing + start)
        values.append(noise[passing])
    return np.concatenate(ranks), np.concatenate(values)


def _distinct(source: RandomSource, bound: int, count: int) -> np.ndarray:
    """A uniformly chosen set of `count` distinct numbers in [0, bound), sorted.

    These are the first `count` distinct numbers of an endless uniform sequence, a set that no number is preferred in:
    each round draws exactly as many as are missing, so it can never draw past the last one needed.
    """
    if count == 0:
        return np.empty(0, dtype=np.int64)
    chosen = _sorted_distinct(source.integers(bound, count))
    added = np.empty(0, dtype=np.int64)
    while len(chosen) + len(added) < count:
        missing = count - len(chosen) - len(added)
        added = _sorted_distinct(np.concatenate([added, source.integers(bound, missing)]))
        places = np.minimum(np.searchsorted(chosen, added), len(chosen) - 1)
        added = added[chosen[places] != added]
    # A stable sort merges the two sorted runs instead of sorting the larger one again.
    return np.sort(np.concatenate([chosen, added]), kind="stable") if len(added) else chosen


def _sorted_distinct(values: np.ndarray) -> np.ndarray:
    values.sort()
    new = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return values[new]


def _outside(support: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """The cells whose sorted ranks among those outside `support` are given: a rank moves up by the support before it.

    The i-th support cell has support[i] - i zero cells before it, so it lies before the zero cell of rank r exactly
    when support[i] - i ≤ r: it moves up every rank from the first such r on.
    """
    moves = np.searchsorted(ranks, support - np.arange(len(support)), side="left")
    shift = np.bincount(moves, minlength=len(ranks) + 1)[: len(ranks)]
    np.cumsum(shift, out=shift)
    return shift + ranks


def encode_pairs(first: np.ndarray, second: np.ndarray, items: int) -> np.ndarray:
    """The cells of ordered pairs (i, j), i ≠ j, of `items` items: the i-th row of items - 1 cells leaves j = i out."""
    first, second = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    _check_items(items)
    inside = (first >= 0) & (first < items) & (second >= 0) & (second < items) & (first != second)
    if first.shape != second.shape or not inside.all():
        raise ParameterError("a pair is two different items of the list")
    return first * (items - 1) + second - (second > first)


def decode_pairs(cells: np.ndarray, items: int) -> tuple[np.ndarray, np.ndarray]:
    """The ordered pairs of cells of the domain [0, items·(items - 1)): the inverse of `encode_pairs`."""
    cells = np.asarray(cells, dtype=np.int64)
    _check_items(items)
    if len(cells) and (cells.min() < 0 or cells.max() >= items * (items - 1)):
        raise ParameterError("a cell lies inside the domain of ordered pairs")
    if not len(cells):
        return cells, cells.copy()
    first, second = np.divmod(cells, items - 1)
    second += second >= first
    return first, second


def _check_items(items: int) -> None:
    if items < 0 or items * (items - 1) > LARGEST_DOMAIN:
        raise ParameterError(f"a domain of ordered pairs has at most {LARGEST_DOMAIN} cells")
