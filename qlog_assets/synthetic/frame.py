"""The dice, and the frame of a block: which row belongs to which search, task, session and user.

Belongs here: draws of whole numbers and the cutting of rows. Does not belong here: what is searched (`searching.py`),
when and with which click (`drawing.py`).
"""

from dataclasses import dataclass

import numpy as np

from qlog_assets.synthetic import behaviour as rates
from qlog_assets.synthetic.behaviour import Numbers


class Dice:
    """Draws of 16 bits, each fresh: a rate comes true, or a table is looked up."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def draw(self, size: int) -> Numbers:
        return self._rng.integers(0, rates.FULL, size, dtype=np.uint16)

    def happens(self, rate: int, size: int) -> Numbers:
        return self.draw(size) < rate

    def below(self, bound: int, size: int) -> Numbers:
        """Whole numbers below a bound of at most 2**31 (a power of two or small beside it: bias is of no matter)."""
        words = self._rng.integers(0, 1 << 32, size, dtype=np.uint32).astype(np.int64)
        return (words * bound) >> 32


@dataclass(frozen=True)
class Frame:
    """Which row belongs to which search, which search to which task, session and user. Rows and searches in order."""

    user_of_row: Numbers
    search_of_row: Numbers
    place_in_search: Numbers  # of each row, from 0
    first_row: Numbers  # of each search
    rows: Numbers  # of each search
    user: Numbers  # of each search
    opens_session: Numbers  # of each search
    opens_task: Numbers  # of each search


def draw_frame(dice: Dice, rows_of_user: Numbers) -> Frame:
    """Cut each user's rows into searches, tasks and sessions."""
    users = len(rows_of_user)
    total = int(rows_of_user.sum())
    first_of_user = np.cumsum(rows_of_user) - rows_of_user
    user_of_row = np.repeat(np.arange(users, dtype=np.int32), rows_of_user)
    opens = dice.happens(rates.OPENS_SEARCH, total)
    opens[first_of_user] = True
    search_of_row = np.cumsum(opens, dtype=np.int32) - np.int32(1)
    first_row = np.flatnonzero(opens).astype(np.int32)
    searches = len(first_row)
    opens_session = dice.happens(rates.OPENS_SESSION, searches)
    opens_session[search_of_row[first_of_user]] = True
    return Frame(
        user_of_row=user_of_row,
        search_of_row=search_of_row,
        place_in_search=np.arange(total, dtype=np.int32) - first_row[search_of_row],
        first_row=first_row,
        rows=np.diff(first_row, append=np.int32(total)),
        user=user_of_row[first_row],
        opens_session=opens_session,
        opens_task=opens_session | dice.happens(rates.OPENS_TASK, searches),
    )
