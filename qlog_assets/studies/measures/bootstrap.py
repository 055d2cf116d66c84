"""How sure a mean over tested queries is: 95 % intervals by drawing the queries again, in pairs for two logs."""

from __future__ import annotations

import numpy as np

RUNS = 1000
TAILS = (2.5, 97.5)
CELLS_AT_ONCE = 10_000_000
"""Numbers of draws that are held at once: 80 MB."""


def paired_interval(first: np.ndarray, second: np.ndarray, seed: int, runs: int = RUNS) -> tuple[float, float]:
    """The 95 % interval of the mean of `first - second`, over the same queries in the same order."""
    return mean_interval(np.asarray(first, float) - np.asarray(second, float), seed, runs)


def mean_interval(scores: np.ndarray, seed: int, runs: int = RUNS) -> tuple[float, float]:
    """The 95 % interval of a mean. Of no query at all there is no mean: both ends are not a number.

    A mean depends on how often each value was drawn and on nothing else, and those numbers are multinomial: 110,000
    queries have few different scores, so this is a draw of hundreds of numbers instead of 110,000.
    """
    if len(scores) == 0:
        return float("nan"), float("nan")
    values, times = np.unique(scores, return_counts=True)
    generator = np.random.default_rng(seed)
    at_once = max(1, CELLS_AT_ONCE // len(values))
    means = np.concatenate(
        [
            generator.multinomial(len(scores), times / len(scores), min(at_once, runs - done)) @ values / len(scores)
            for done in range(0, runs, at_once)
        ]
    )
    low, high = np.percentile(means, TAILS)
    return float(low), float(high)
