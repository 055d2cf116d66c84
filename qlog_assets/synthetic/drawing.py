"""Drawing one block of users: from rows per user to the piece numbers of every line, with numpy only.

Belongs here: clicks, times and the putting together of a block. Does not belong here: rates and tables
(`behaviour.py`), what is searched (`searching.py`), text (`pieces.py`), canaries (`planted.py`). A block reads nothing
of another block: its own generator, its own users. So memory is that of one block, whatever the size of the log.
"""

from dataclasses import dataclass

import numpy as np

from qlog_assets.synthetic import behaviour as rates
from qlog_assets.synthetic.ambiguity import click_portals, draw_ambiguous, say_ambiguously
from qlog_assets.synthetic.behaviour import DAY, SESSION_GAP, Numbers, tables
from qlog_assets.synthetic.frame import Dice, Frame, draw_frame
from qlog_assets.synthetic.pieces import RANKS, Pieces, click_number, site_number
from qlog_assets.synthetic.searching import Searches, draw_searches
from qlog_assets.synthetic.typing_styles import draw_spaces, draw_styles
from qlog_assets.synthetic.world import SEARCHES, SITES, TOPICS


def draw_clicks(dice: Dice, frame: Frame, searches: Searches, pieces: Pieces) -> tuple[Numbers, Numbers]:
    """The click piece of every row, and which rows are requests for a next page."""
    look = tables()
    size = len(frame.rows)
    draws = dice.draw(size)
    clicked = draws < np.where(searches.by_name, rates.CLICKS_NAME, rates.CLICKS_SEARCH)
    some = (frame.rows * dice.draw(size).astype(np.int32)) >> 16  # 0 … rows - 1 further clicks, the rest next pages
    more = np.where(dice.happens(rates.ALL_MORE_ARE_CLICKS, size), frame.rows - 1, some)
    clicks = np.where(clicked, 1 + more, 0).astype(np.int32)[frame.search_of_row]
    is_click = frame.place_in_search < clicks
    turns_page = ~is_click & (frame.place_in_search > 0)

    rows = np.flatnonzero(is_click).astype(np.int32)
    search = frame.search_of_row[rows]
    on_top = (searches.by_name & dice.happens(rates.CLICKS_NAMED_SITE, size))[search]
    rank = np.where(on_top, 0, look.rank[dice.draw(size)][search]) + frame.place_in_search[rows]
    np.minimum(rank, RANKS - 1, out=rank)  # people click down the list
    # The results of a search are its topic's sites in an order of its own: the best one first, then its neighbours.
    place = rank ^ searches.best_place[search]
    astray = dice.happens(rates.CLICKS_ASTRAY, len(rows))
    topic = np.where(astray, dice.draw(len(rows)) & (TOPICS - 1), searches.topic[search])
    clicked_pieces = np.full(len(frame.search_of_row), pieces.no_click, dtype=np.int32)
    clicked_pieces[rows] = pieces.clicks + click_number(site_number(topic, place), rank)
    return clicked_pieces, turns_page


def draw_ends(dice: Dice, frame: Frame, searches: Searches, clicks: Numbers, pieces: Pieces) -> Numbers:
    """How every line ends in world 2: with the page of the clicked site that answers the search, or its front page."""
    ends = np.full(len(clicks), pieces.ends, dtype=np.int32)
    rows = np.flatnonzero(clicks != pieces.no_click)
    search = frame.search_of_row[rows]
    ends[rows] += dice.happens(rates.SLASH_AT_END, len(rows))
    topic = (clicks[rows] - pieces.clicks) // (RANKS * SITES)
    # A site of another topic has no page for this search, and whoever looks for a site by name wants its front page.
    answers = (topic == searches.topic[search]) & ~searches.by_name[search]
    paged = np.flatnonzero(answers & dice.happens(rates.CLICKS_PAGE, len(rows)))
    number = searches.topic[search[paged]] * SEARCHES + searches.best_place[search[paged]] // (SITES // SEARCHES)
    ends[rows[paged]] = pieces.ends + 2 + number
    return ends


def draw_times(dice: Dice, frame: Frame, turns_page: Numbers, days: int) -> Numbers:
    """Seconds since the first day of every row: sessions more than half an hour apart, pauses inside them shorter."""
    look = tables()
    size = len(frame.user)
    step = np.where(turns_page, 6 + (dice.draw(len(turns_page)) & 127), 0).astype(np.int64)
    step[frame.first_row] = np.where(frame.opens_session, 0, look.pause[dice.draw(size)])
    clock = np.cumsum(step)
    opening = np.flatnonzero(frame.opens_session)
    begins = frame.first_row[opening]
    ends = np.append(begins[1:], len(step)) - 1
    # The room a session takes: itself and the silence after it.
    room = clock[ends] - clock[begins] + SESSION_GAP + 1
    user = frame.user[opening].astype(np.int64)
    horizon = days * DAY
    start = dice.below(days, len(opening)) * DAY + look.second[dice.draw(len(opening))] + dice.below(60, len(opening))
    start = np.sort(user * horizon + start) - user * horizon
    room_before = np.cumsum(room) - room
    first = np.flatnonzero(np.diff(user, prepend=-1))
    room_before -= np.repeat(room_before[first], np.diff(first, append=len(user)))
    # Push a session back until the one before it is over; then pull the last ones forward to end within the range.
    lane = user << 40
    start = np.maximum.accumulate(start - room_before + lane) - lane + room_before
    last = np.append(first[1:], len(user)) - 1
    room_after = np.repeat(room_before[last] + room[last], np.diff(first, append=len(user))) - room_before
    np.minimum(start, horizon - room_after, out=start)
    session = np.cumsum(frame.opens_session) - 1
    return clock + (start - clock[begins])[session][frame.search_of_row]


@dataclass(frozen=True)
class Block:
    """The lines of one block of users, as piece numbers, and what was counted on the way."""

    lines: Numbers
    searches: int
    clicks: int


def draw_block(rng: np.random.Generator, rows_of_user: Numbers, pieces: Pieces, days: int) -> Block:
    """Draw everything these users did."""
    dice = Dice(rng)
    frame = draw_frame(dice, rows_of_user)
    searches = draw_searches(dice, frame, len(rows_of_user), pieces)
    clicks, turns_page = draw_clicks(dice, frame, searches, pieces)
    times = draw_times(dice, frame, turns_page, days)
    day = times // DAY
    lines = np.empty((len(times), pieces.pieces_of_a_line), dtype=np.int32)
    lines[:, 0] = pieces.users + frame.user_of_row
    lines[:, 1:5] = np.take(searches.pieces, frame.search_of_row, axis=0)
    lines[:, 5] = pieces.days + day
    lines[:, 6] = pieces.seconds + (times - day * DAY)
    lines[:, 7] = clicks
    # What other worlds have comes last of all draws, so that up to here they all draw the same.
    if pieces.is_ambiguous:
        said = draw_ambiguous(dice, searches, pieces)
        lines[:, 1:5] = np.take(say_ambiguously(searches, said, pieces), frame.search_of_row, axis=0)
        lines[:, 7] = click_portals(dice, frame, searches, said, clicks, pieces)
    if pieces.typed_raw:
        style = draw_styles(dice, frame.user, len(rows_of_user))
        lines[:, 1:5] += (style * pieces.query_parts)[frame.search_of_row, np.newaxis]
        spaced = draw_spaces(dice, len(frame.user))[frame.search_of_row]
        lines[:, 5] += np.where(spaced, pieces.days_after_space - pieces.days, 0)
        lines[:, 8] = draw_ends(dice, frame, searches, clicks, pieces)
    return Block(lines, len(frame.user), int(np.count_nonzero(clicks != pieces.no_click)))
