"""Who holds which item, as steered selection asks for it: what each item's holders give to it, and the pairs of a few.

A log's pairs may be too many for the memory of one process. Most items are looked at once, as a sum; what users give to
the others follows from each user's own pairs, so that they are asked for some users at a time. `HeldPairs` has all in
memory; where an engine counts, it is asked (`mechanisms/steered_tables`). No noise is drawn here.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.gaussian import WEIGHT_UNIT
from qlog_assets.privacy.scaled_counts import MOST_ITEMS_OF_ONE
from qlog_assets.privacy.weighted import Contributions, exact_sums

MOST_ITEMS = MOST_ITEMS_OF_ONE
"""M: how many items one user may hold. T₁ hides all of them; a lower limit would lower it by a tenth."""


class Holdings(Protocol):
    """What a draw asks about users and items."""

    @property
    def size(self) -> int:
        """How many items there are: they are the numbers below it, held by somebody or not."""

    def even_sums(self) -> Generator[np.ndarray, None, None]:
        """The sums of ⌊W/√t⌋ over the holders of each item, where t counts a user's items that are not known; those of
        known items do not matter. All items in order, so many at a time. To be closed where it is not taken to its end:
        an engine may wait for that."""

    def holders(self, items: np.ndarray) -> Generator[Contributions, None, None]:
        """The pairs of some items, which are numbered by their places there. Some users at a time, and each user once:
        with all of the user's pairs. To be closed like the sums."""


@dataclass(frozen=True)
class HeldPairs:
    """Holdings in memory."""

    pairs: Contributions
    known: np.ndarray

    @property
    def size(self) -> int:
        return len(self.pairs.names)

    def even_sums(self) -> Generator[np.ndarray, None, None]:
        known = np.zeros(self.size, dtype=bool)
        known[self.known] = True
        unknown = self.pairs.where(~known[self.pairs.items])
        yield even_sums(unknown)

    def holders(self, items: np.ndarray) -> Generator[Contributions, None, None]:
        yield pairs_within(self.pairs, items)


def even_sums(contributions: Contributions) -> np.ndarray:
    """What all users together give to each item where each gives the same to all of the user's own."""
    return exact_sums(contributions.items, even_weights(contributions), len(contributions.names))


def even_weights(contributions: Contributions) -> np.ndarray:
    """⌊W/√t⌋ for each pair of a user of t items."""
    degrees, inverse = np.unique(contributions.degrees(), return_inverse=True)
    return weights_of(degrees)[inverse][contributions.owners]


def weights_of(degrees: np.ndarray) -> np.ndarray:
    """⌊W/√t⌋ for users of so many items."""
    if len(degrees) and degrees.max() > MOST_ITEMS:
        raise ParameterError(f"one user holds more than {MOST_ITEMS:,} items: limit them before")
    return np.array([math.isqrt(WEIGHT_UNIT**2 // max(int(degree), 1)) for degree in degrees], dtype=np.int64)


def pairs_within(contributions: Contributions, chosen: np.ndarray) -> Contributions:
    """The pairs of a set of items, numbered by their places in it."""
    place = np.full(len(contributions.names), -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    places = place[contributions.items]
    kept = places >= 0
    return Contributions(contributions.owners[kept], places[kept], chosen)
