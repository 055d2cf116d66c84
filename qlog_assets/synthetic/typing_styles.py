"""World 2's raw spellings: capitals and spaces as people type them, and the path of the page that answers a search.

Normalised (`sources.normalise`) every style is the same query: what differs is what a log holds before it is cleaned.
Does not belong here: misspellings, which are other queries (`world.py`), and the rates (`behaviour.py`).
"""

import re
from collections.abc import Callable

import numpy as np

from qlog_assets.synthetic import behaviour as rates
from qlog_assets.synthetic.behaviour import Numbers
from qlog_assets.synthetic.frame import Dice

_FIRST_LETTERS = re.compile(r"(?:^| )[a-z]")


def as_it_is(text: str) -> str:
    return text


def capitalise(text: str) -> str:
    """A capital at the beginning of each word."""
    return _FIRST_LETTERS.sub(lambda found: found[0].upper(), text)


def widen(text: str) -> str:
    """Two spaces for one."""
    return text.replace(" ", "  ")


STYLES: tuple[Callable[[str], str], ...] = (as_it_is, capitalise, str.upper, widen)
"""How a query may be typed; the first leaves it in small letters with single spaces."""


def page_of_search(search: str) -> str:
    """The path of a site's page about a search."""
    return "/" + search.replace(" ", "-")


def draw_styles(dice: Dice, user: Numbers, users: int) -> Numbers:
    """The place among STYLES of every search: its user's habit, or small letters."""
    habit = np.searchsorted(np.array(rates.HABITS), dice.draw(users), side="right").astype(np.int32)
    return np.where(dice.happens(rates.KEEPS_HABIT, len(user)), habit[user], 0).astype(np.int32)


def draw_spaces(dice: Dice, size: int) -> Numbers:
    """Which searches have a space at the end."""
    return dice.happens(rates.SPACE_AT_END, size)
