"""The three objectives on a histogram alone: whole counts of the asked size, without any user's constraint.

From counts per pair and a size to counts that add up to it: post-processing where the counts are noisy. Whole-number
arithmetic throughout.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def aim(
    counts: np.ndarray,
    objective: str,
    size: int,
    minimum_support: Fraction = Fraction(0),
    queries: np.ndarray | None = None,
) -> np.ndarray:
    """Counts of `size` events in all, best at the objective; none where the histogram is empty.

    `output_size` keeps every pair's share. `frequent_pairs` brings the shares of pairs of at least `minimum_support` as
    near to the histogram's as whole numbers can; the others keep their proportions in what is left. `diversity` gives
    every pair an event, the most frequent first, before any pair gets another; with `queries`, the query of each pair,
    every query's most frequent pair comes before any second pair.
    """
    weights = np.maximum(np.asarray(counts, np.int64), 0)
    total = int(weights.sum())
    if total == 0 or size <= 0:
        return np.zeros_like(weights)
    if objective == "output_size":
        return apportion(weights, size)
    if objective == "frequent_pairs":
        return _nearest_supports(weights, size, minimum_support)
    if objective == "diversity":
        return _one_each(weights, size, queries)
    raise ValueError(f"no objective {objective!r}")


def apportion(weights: np.ndarray, size: int, total: int | None = None) -> np.ndarray:
    """`size` in proportion to whole weights, by largest remainder: nearest in L1. Of equals the first gets more.

    `total` is what the weights are shares of, where that is more than their sum; they must be able to take all.
    """
    total = int(weights.sum()) if total is None else total
    if total == 0:
        return np.zeros_like(weights)
    whole, rest = _shares(weights, size, total)
    whole[np.argsort([-part for part in rest], kind="stable")[: size - int(whole.sum())]] += 1
    return whole


def _shares(weights: np.ndarray, size: int, total: int) -> tuple[np.ndarray, list[int]]:
    """Each weight's share of `size`, rounded down, and what is left of it in parts of `total`."""
    parts = [divmod(weight * size, total) for weight in weights.tolist()]
    return np.array([whole for whole, _ in parts], np.int64), [rest for _, rest in parts]


def _nearest_supports(weights: np.ndarray, size: int, minimum_support: Fraction) -> np.ndarray:
    """Each frequent pair at the whole number nearest to its share of `size`; infrequent pairs share the rest."""
    total = int(weights.sum())
    is_frequent = np.array([weight >= minimum_support * total for weight in weights.tolist()], bool)
    ours, others = np.where(is_frequent, weights, 0), np.where(is_frequent, 0, weights)
    whole, rest = _shares(ours, size, total)
    nearest = whole + np.array([2 * part > total for part in rest])
    left = size - int(nearest.sum())
    if left >= 0 and others.any():
        return nearest + apportion(others, left)
    # Either rounding up took more than there is, or nobody else can take the rest.
    return apportion(ours, size, total)


def _one_each(weights: np.ndarray, size: int, queries: np.ndarray | None) -> np.ndarray:
    held = np.flatnonzero(weights)
    order = held[np.argsort(-weights[held], kind="stable")]
    if queries is not None:
        _, first = np.unique(np.asarray(queries)[order], return_index=True)
        later = np.ones(order.size, bool)
        later[first] = False
        order = np.concatenate([order[~later], order[later]])
    whole = np.zeros_like(weights)
    each, more = divmod(size, order.size)
    whole[order] = each
    whole[order[:more]] += 1
    return whole
