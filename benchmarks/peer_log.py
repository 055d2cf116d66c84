"""The peers' task: a log of Zipf queries by log-normal users, the same for every library. It makes the log and no more.

Five million rows, 100,000 users, 1.4 million distinct queries, the most frequent of which has 1 % of the rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

ROWS, USERS = 5_000_000, 100_000
DISTINCT, HEAD = 1_400_000, 0.01
SEED = 20241
SYLLABLES = np.array([*map("".join, zip(*[iter("bacodifugehajikolumenopiqurosutaviwoxezu")] * 2, strict=True))])


def zipf(size: int, exponent: float) -> np.ndarray:
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    return weights / weights.sum()


def exponent_of(size: int) -> float:
    """The exponent at which the first of `size` queries has its share of the rows."""
    low, high = 0.3, 1.3
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if zipf(size, middle)[0] > HEAD else (middle, high)
    return middle


def popularity() -> np.ndarray:
    """Query probabilities for which a log of ROWS rows holds about DISTINCT different queries."""
    low, high = float(DISTINCT), 2e7
    for _ in range(14):
        size = int((low + high) / 2)
        law = zipf(size, exponent_of(size))
        low, high = (low, size) if (1 - np.exp(-ROWS * law)).sum() > DISTINCT else (size, high)
    return law


def names(ranks: np.ndarray) -> np.ndarray:
    """A pronounceable text for each rank, different for different ranks."""
    mixed = (ranks * np.int64(2654435761)) & 0xFFFFFF
    first, second, third, fourth = (SYLLABLES[(mixed // 20**place) % 20] for place in range(4))
    words = np.char.add(np.char.add(first, second), np.char.add(" ", np.char.add(third, fourth)))
    return np.char.add(np.char.add(words, " "), ranks.astype("U8"))


def peer_log(rows: int = ROWS, users: int = USERS) -> pa.Table:
    """The log: user and query, in the order of time."""
    random = np.random.default_rng(SEED)
    law = popularity()
    typed = np.searchsorted(_cumulated(law), random.random(rows)).astype(np.int64)
    activity = random.lognormal(0, 1.2, users)
    owners = np.searchsorted(_cumulated(activity / activity.sum()), random.random(rows)).astype(np.int64)
    ranks, places = np.unique(typed, return_inverse=True)
    texts = pa.array(names(ranks), pa.string()).take(pa.array(places))
    return pa.table({"user": pa.array(owners).cast(pa.string()), "query": texts})


def _cumulated(law: np.ndarray) -> np.ndarray:
    total = np.cumsum(law)
    total[-1] = 1
    return total
