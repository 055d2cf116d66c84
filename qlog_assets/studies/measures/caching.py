"""Index caching: how many of the words people look up a cache holds that was filled by a released keyword histogram.

A search engine keeps the posting lists of some words in memory. Each word's list has a size, the cache has a capacity,
and it is filled by looked-up times a unit of size, the best first (Baeza-Yates et al.). Pure functions on arrays.
"""

from __future__ import annotations

import numpy as np


def fill_cache(counts: np.ndarray, sizes: np.ndarray, capacity: float) -> np.ndarray:
    """The words to keep, as positions: by count over size, as long as they fit; a word that does not fit is passed."""
    worth = np.lexsort((np.arange(len(counts)), -np.asarray(counts) / sizes))
    kept, used = [], 0.0
    for word in worth:
        if counts[word] > 0 and used + sizes[word] <= capacity:
            kept.append(word)
            used += sizes[word]
    return np.array(kept, dtype=np.int64)


def fill_slots(counts: np.ndarray, slots: int) -> np.ndarray:
    """The entries to keep where all are of one size, such as pages of results: those with the largest counts above 0;
    of equals, the first."""
    order = np.argsort(-np.asarray(counts), kind="stable")[:slots]
    return order[np.asarray(counts)[order] > 0]


def hit_rate(kept: np.ndarray, lookups: np.ndarray) -> float:
    """The share of looked-up words that the cache holds; `lookups` is how often each word was looked up."""
    total = lookups.sum()
    return float(lookups[kept].sum() / total) if total else 0.0
