"""A made-up log of the size of the paper's, or of another, for tests, figures and the benchmark of solvers.

Nobody lived in it: activity is log-normal, pairs are drawn by Zipf's law, and a user often repeats a click. Without its
unique pairs the paper's own log has 1,980 users, 6,043 pairs and 53,067 events (its Table 3).
"""

from __future__ import annotations

import numpy as np

from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.mechanisms.sanitized.programme import drop_unique_pairs

SEED = 2012
USERS, PAIRS, EVENTS = 2045, 12_600, 58_000
"""Before unique pairs are dropped. Chosen so that what is left is of the paper's size."""
ZIPF_EXPONENT = 0.8
REPEATED = 0.3
ACTIVITY_SPREAD = 1.2


def make_instance(users: int = USERS, pairs: int = PAIRS, events: int = EVENTS, seed: int = SEED) -> PairCounts:
    """A log without its unique pairs; what is left of users and pairs is numbered from 0 without a gap."""
    generator = np.random.default_rng(seed)
    activity = generator.lognormal(0, ACTIVITY_SPREAD, users)
    clicks = generator.multinomial(events, activity / activity.sum())
    owner = np.repeat(np.arange(users, dtype=np.int32), clicks)
    ends = np.cumsum(np.arange(1, pairs + 1) ** -ZIPF_EXPONENT)
    pair = np.searchsorted(ends, generator.random(events) * ends[-1]).astype(np.int32)
    pair = pair[first_clicks(generator, clicks)]
    found, times_clicked = np.unique(owner.astype(np.int64) * pairs + pair, return_counts=True)
    shared = drop_unique_pairs(PairCounts(found // pairs, found % pairs, times_clicked))
    return PairCounts(
        np.unique(shared.users, return_inverse=True)[1], np.unique(shared.pairs, return_inverse=True)[1], shared.events
    )


def first_clicks(generator: np.random.Generator, clicks: np.ndarray) -> np.ndarray:
    """For each click, the click that it repeats, however many repetitions lie between; itself where it repeats none."""
    events = int(clicks.sum())
    numbers = np.arange(events, dtype=np.int32)
    earlier = numbers - np.repeat((np.cumsum(clicks) - clicks).astype(np.int32), clicks)
    repeats = (generator.random(events) < REPEATED) & (earlier > 0)
    back = 1 + (generator.random(events) * earlier).astype(np.int32)
    source = np.where(repeats, numbers - np.minimum(back, earlier), numbers)
    while not np.array_equal(source, again := source[source]):
        source = again
    return source
