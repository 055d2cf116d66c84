"""Users who never lived: dealt out pairs in given numbers, by noisy tables and random bits alone.

Post-processing: nothing here has seen a log. Every event of the given counts is dealt to some user, so that both the
size and how often each pair occurs are kept to the event.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.weighted import shuffled_within


@dataclass(frozen=True)
class Associations:
    """Pairs that are held together: two numbers of pairs, and the noisy number of users who hold both."""

    first: np.ndarray
    second: np.ndarray
    users: np.ndarray


def draw_activity(source: RandomSource, lengths: np.ndarray, users: int) -> np.ndarray:
    """How many clicks each made-up user has at first, in proportion to a noisy histogram (cell i: i + 1), exactly.

    Where noise left the histogram empty, every length is as likely as any other.
    """
    weights = lengths if np.sum(lengths) else np.ones_like(lengths)
    ends = np.cumsum(weights)
    return 1 + np.searchsorted(ends, source.integers(int(ends[-1]), users), side="right")


def share_events(source: RandomSource, activity: np.ndarray, size: int) -> np.ndarray:
    """`size` events among users in proportion to their activity: whole shares first, the rest by lot among clicks.

    The activity itself where it comes to `size`.
    """
    whole, rest = divmod(size, int(activity.sum()))
    events = activity * whole
    if rest:
        clicks = np.repeat(np.arange(activity.size), activity)
        events = events + np.bincount(clicks[shuffled(source, clicks.size)[:rest]], minlength=activity.size)
    return events


def deal(
    source: RandomSource,
    counts: np.ndarray,
    held_by: np.ndarray,
    activity: np.ndarray,
    associations: Associations | None = None,
) -> PairCounts:
    """A log in which pair i occurs `counts[i]` times, dealt to users by their activity; users count from 0.

    Without associations any order of the events is as likely as any other. With them see `deal_linked`; `held_by` are
    the noisy numbers of users of the pairs.
    """
    size = int(np.sum(counts))
    stock = np.repeat(np.arange(counts.size), counts)[shuffled(source, size)]
    # Whoever is served last finds less that goes together: by lot, so that a user's number tells nothing.
    served = shuffled(source, activity.size)
    events = share_events(source, activity, size)[served]
    owners = np.repeat(served, events)
    if associations is not None and associations.users.size:
        stock = deal_linked(source, stock, counts, held_by, events, associations)
    rows, number = np.unique(owners * max(counts.size, 1) + stock, return_counts=True)
    users, pairs = np.divmod(rows, max(counts.size, 1))
    return PairCounts(users, pairs, number.astype(np.int64))


def deal_linked(
    source: RandomSource,
    stock: np.ndarray,
    counts: np.ndarray,
    held_by: np.ndarray,
    events: np.ndarray,
    associations: Associations,
) -> np.ndarray:
    """The events in the order in which users get them: a user's next pair goes with the one before it, if it can.

    A first-order chain. After pair i the next one is k with probability a_ik / max(n_i, Σ_k a_ik), n_i the noisy users
    of i and a_ik those of both: always one that goes with i where a holder of i holds one such pair or more on average.
    Otherwise, and where k is used up or is the user's already, it is the next of the shuffled stock. Pairs that chains
    take often are used up before the last users are served.
    """
    partners, ends, bounds = _chains(associations, held_by)
    left = counts.tolist()
    shuffled_stock = iter(stock.tolist())
    lots = iter(source.integers(1 << 62, stock.size).tolist())
    dealt = []

    def next_of_stock() -> int:
        return next(pair for pair in shuffled_stock if left[pair] > 0)

    for number in events[events > 0].tolist():
        mine: set[int] = set()
        before = -1
        for _ in range(number):
            lot, pair = next(lots), -1
            if before >= 0 and before in partners:
                # 2**62 is far beyond any bound: what the remainder favours is below one in a billion.
                place = int(np.searchsorted(ends[before], lot % bounds[before], side="right"))
                if place < len(partners[before]):
                    pair = partners[before][place]
            if pair < 0 or left[pair] == 0 or pair in mine:
                pair = next_of_stock()
            left[pair] -= 1
            mine.add(pair)
            dealt.append(pair)
            before = pair
    return np.array(dealt, np.int64)


def _chains(
    associations: Associations, held_by: np.ndarray
) -> tuple[dict[int, list[int]], dict[int, np.ndarray], dict[int, int]]:
    """By pair: what goes with it, the ends of its partners' shares, and what they are shares of."""
    here = np.concatenate([associations.first, associations.second])
    there = np.concatenate([associations.second, associations.first])
    users = np.concatenate([associations.users, associations.users])
    order = np.lexsort([there, here])
    here, there, users = here[order], there[order], users[order]
    partners, ends, bounds = {}, {}, {}
    pairs, starts = np.unique(here, return_index=True)
    for pair, mine, shares in zip(
        pairs.tolist(), np.split(there, starts[1:]), np.split(users, starts[1:]), strict=True
    ):
        partners[pair], ends[pair] = mine.tolist(), np.cumsum(shares)
        bounds[pair] = max(int(ends[pair][-1]), int(held_by[pair]))
    return partners, ends, bounds


def shuffled(source: RandomSource, size: int) -> np.ndarray:
    """A uniform order of so many."""
    return shuffled_within(source, np.zeros(size, np.int64))
