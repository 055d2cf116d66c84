"""World 3's ambiguous searches and clicks on portals: one word for two topics, one site for a category of topics.

Belongs here: which searches are typed so, and which clicks go there. Does not belong here: the words and the portals
themselves (`world.py`), the rates (`behaviour.py`). A search keeps the topic that its person means, and so do clicks.
"""

import numpy as np

from qlog_assets.synthetic import behaviour as rates
from qlog_assets.synthetic.behaviour import Numbers, tables
from qlog_assets.synthetic.frame import Dice, Frame
from qlog_assets.synthetic.pieces import RANKS, Pieces
from qlog_assets.synthetic.searching import Searches
from qlog_assets.synthetic.world import SITES


def draw_ambiguous(dice: Dice, searches: Searches, pieces: Pieces) -> Numbers:
    """Which searches are typed as the ambiguous word of their topic."""
    rate = np.where(searches.by_name, rates.WORD_FOR_NAME, rates.WORD_FOR_SUBJECT)
    said = dice.draw(len(rate)) < rate
    return said & (tables().ambiguous[searches.topic] >= 0) & (searches.pieces[:, 1] != pieces.dash)


def say_ambiguously(searches: Searches, said: Numbers, pieces: Pieces) -> Numbers:
    """The four pieces of every search, the word in place of those that are typed so."""
    typed = searches.pieces.copy()
    typed[said] = pieces.empty
    typed[said, 1] = pieces.ambiguous + tables().ambiguous[searches.topic[said]]
    return typed


def click_portals(
    dice: Dice, frame: Frame, searches: Searches, said: Numbers, clicks: Numbers, pieces: Pieces
) -> Numbers:
    """The click piece of every row, some of them on the portal of the clicked site's category, at the same rank.

    After an ambiguous word no click goes astray: on words so frequent, in a large log, stray clicks alone would link
    the sites of all of them.
    """
    rows = np.flatnonzero(clicks != pieces.no_click)
    search = frame.search_of_row[rows]
    site, rank = np.divmod(clicks[rows] - pieces.clicks, RANKS)
    site = np.where(said[search], searches.topic[search] * SITES + site % SITES, site)
    portal = dice.happens(rates.CLICKS_PORTAL, len(rows))
    place = np.where(portal, tables().portal[site // SITES], site)
    turned = clicks.copy()
    turned[rows] = np.where(portal, pieces.portals, pieces.clicks) + place * RANKS + rank
    return turned
