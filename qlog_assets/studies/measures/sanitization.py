"""How much of a log a sanitized one keeps: size, frequent pairs, supports, diversity, and each user's own counts.

Pure functions on arrays over the pairs of a log without its unique pairs. What they find of a private log is private.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qlog_assets.mechanisms.sanitized.noise import PairCounts


@dataclass(frozen=True)
class KeptSupport:
    """How one output compares with its log. What only an output with events has is None where there is none."""

    size: int
    precision: float | None
    """The share of pairs that are frequent in the output which are frequent in the log."""
    recall: float | None
    """The share of pairs that are frequent in the log which are frequent in the output."""
    distance_sum: float | None
    """Σ |x/|O| - c/|D|| over the pairs that are frequent in the log."""
    distance_mean: float | None
    diversity: float
    """The share of the log's pairs that have an event in the output."""


def frequent_pairs(events: np.ndarray, minimum_support: float) -> np.ndarray:
    """Which pairs have at least this share of all events."""
    return (events > 0) & (events >= minimum_support * events.sum())


def compare(events: np.ndarray, counts: np.ndarray, minimum_support: float) -> KeptSupport:
    """Measure output counts against the events of the log; the output's size is the one that came out."""
    size, before = int(counts.sum()), frequent_pairs(events, minimum_support)
    kept = int(np.count_nonzero(counts)) / max(events.size, 1)
    if size == 0:
        return KeptSupport(0, None, 0.0 if before.any() else None, None, None, kept)
    after = frequent_pairs(counts, minimum_support)
    both = int((before & after).sum())
    distances = np.abs(counts / size - events / events.sum())[before]
    return KeptSupport(
        size=size,
        precision=both / int(after.sum()) if after.any() else None,
        recall=both / int(before.sum()) if before.any() else None,
        distance_sum=float(distances.sum()),
        distance_mean=float(distances.mean()) if before.any() else None,
        diversity=kept,
    )


def difference_ratios(log: PairCounts, output: PairCounts, pairs: np.ndarray) -> np.ndarray:
    """Equation (10), per (query, url, user) of the chosen pairs: |x/|O| - c/|D|| / (c/|D|). 1 where a user is gone.

    `pairs` says of each pair whether it is looked at.
    """
    size = max(int(output.events.sum()), 1)
    width = int(log.pairs.max(initial=0)) + 1
    keys, drawn = log.users * width + log.pairs, output.users * width + output.pairs
    order = np.argsort(keys)
    found = np.zeros(keys.size)
    found[order[np.searchsorted(keys, drawn, sorter=order)]] = output.events
    looked = pairs[log.pairs]
    support = log.events[looked] / max(int(log.events.sum()), 1)
    return np.abs(found[looked] / size - support) / support
