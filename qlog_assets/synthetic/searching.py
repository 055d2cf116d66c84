"""What is searched: the subject of every task and the wording of every search in it, as numbers.

Belongs here: interests, reformulation, site names, misspellings. Does not belong here: the words (`world.py`), the
rates (`behaviour.py`), clicks and times (`drawing.py`).
"""

from dataclasses import dataclass

import numpy as np

from qlog_assets.synthetic import behaviour as rates
from qlog_assets.synthetic.behaviour import SHAPES, Numbers, tables
from qlog_assets.synthetic.frame import Dice, Frame
from qlog_assets.synthetic.pieces import Pieces
from qlog_assets.synthetic.world import AFTER, BEFORE, DETAILS, NAME_FORMS, NAMED, SEARCHES, SITES, SPELLINGS

INTERESTS = 4
FAVOURITE_NAMES = 2
BARE, WORD_BEFORE = 0, 1  # places among the shapes
# Odd multipliers permute the query numbers of a search, so that the popular ones differ from search to search.
MIX_NUMBER = 0x2545F491
MIX_SEARCH = 0x9E3779B1


@dataclass(frozen=True)
class Tasks:
    """What each task is about, and which task each search belongs to."""

    of_search: Numbers
    opening: Numbers  # the first search of each task
    topic: Numbers
    head: Numbers  # place of its first search among the topic's
    by_name: Numbers  # begins with the name of a site
    name: Numbers  # that site
    again: Numbers  # begins with the search this user makes again and again


@dataclass(frozen=True)
class Searches:
    """What each search is about and how it is typed."""

    topic: Numbers
    by_name: Numbers  # looks for a site by its name
    best_place: Numbers  # place of the topic's site that answers best
    pieces: Numbers  # four piece numbers a search


def draw_tasks(dice: Dice, frame: Frame, users: int) -> Tasks:
    """Give every task a subject out of its user's interests or everybody's."""
    look = tables()
    opening = np.flatnonzero(frame.opens_task).astype(np.int32)
    size = len(opening)
    user = frame.user[opening]
    interests = look.topic[dice.draw(users * INTERESTS)]
    own_topic = interests[user * INTERESTS + dice.below(INTERESTS, size)]
    topic = np.where(dice.happens(rates.FROM_INTERESTS, size), own_topic, look.topic[dice.draw(size)])
    favourites = look.name[dice.draw(users * FAVOURITE_NAMES)]
    own_name = favourites[user * FAVOURITE_NAMES + dice.below(FAVOURITE_NAMES, size)]
    name = np.where(dice.happens(rates.FAVOURITE_NAME, size), own_name, look.name[dice.draw(size)])
    by_name = dice.happens(rates.LOOKS_FOR_NAME, size)
    again = dice.happens(rates.REPEATS_FAVOURITE, size) & ~by_name
    again_head = look.search[dice.draw(users)]
    return Tasks(
        of_search=np.cumsum(frame.opens_task, dtype=np.int32) - np.int32(1),
        opening=opening,
        topic=np.where(by_name, name // NAMED, np.where(again, interests[user * INTERESTS], topic)),
        head=np.where(again, again_head[user], look.search[dice.draw(size)]),
        by_name=by_name,
        name=name,
        again=again,
    )


def _query_numbers(dice: Dice, size: int) -> tuple[Numbers, Numbers]:
    """A shape and a popularity rank within it: octaves are equally likely, so the rank is Zipf-like."""
    look = tables()
    shape = look.shape[dice.draw(size)]
    octave = look.octave[shape * rates.FULL + dice.draw(size)]
    low = dice.below(1 << 31, size).astype(np.int32)
    top = (np.int32(1) << octave) >> 1  # octave 0 holds rank 0 alone, octave k the ranks from 2**(k-1) to 2**k - 1
    return shape, top | (low & (top - (top > 0)))


def _word_choice(shape: Numbers, rank: Numbers, search: Numbers) -> Numbers:
    """The words around a search as one number: after (9 bits), before (4), detail (10)."""
    bits = np.array([s.bits for s in SHAPES], dtype=np.uint32)[shape]
    keep = np.array([s.keep for s in SHAPES], dtype=np.uint32)[shape]
    shift = np.array([s.shift for s in SHAPES], dtype=np.uint32)[shape]
    one = np.uint32(1)
    mixed = rank.astype(np.uint32) * np.uint32(MIX_NUMBER) + search.astype(np.uint32) * np.uint32(MIX_SEARCH)
    mixed &= (one << bits) - one
    low = mixed & ((one << keep) - one)
    return (low | ((mixed ^ low) << shift)).astype(np.int32)


def _draw_wording(
    dice: Dice, frame: Frame, tasks: Tasks, users: int, still_name: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """For every search its number (topic and place), the words around it, and its spelling."""
    look = tables()
    size = len(frame.user)
    later = ~frame.opens_task
    topic = tasks.topic[tasks.of_search]
    sister = np.where(later, look.sister[dice.draw(size)], 0)
    search = topic * SEARCHES + (tasks.head[tasks.of_search] ^ sister)
    shape, rank = _query_numbers(dice, size)
    # What most people type next: the search's most popular wording, or what a site is best known for after its name.
    popular = later & dice.happens(rates.POPULAR_NEXT, size)
    shape[popular], rank[popular] = WORD_BEFORE, 0
    best_known = tasks.by_name[tasks.of_search] & ~still_name & dice.happens(rates.BEST_KNOWN_AFTER_NAME, size)
    shape[best_known], rank[best_known], search[best_known] = BARE, 0, topic[best_known] * SEARCHES
    again = tasks.again[tasks.of_search] & frame.opens_task
    own_shape, own_rank = _query_numbers(dice, users)
    shape = np.where(again, own_shape[frame.user], shape)
    rank = np.where(again, own_rank[frame.user], rank)
    words = _word_choice(shape, rank, search)
    # Going back to the task's first query, or typing the last one again with its spelling put right.
    misspelt = dice.happens(rates.MISSPELLS, size)
    source = np.arange(size, dtype=np.int32)
    returns = later & dice.happens(rates.REPEATS_TASK, size)
    source[returns] = tasks.opening[tasks.of_search[returns]]
    corrects = later & dice.happens(rates.CORRECTS, size)
    corrects[1:] &= misspelt[:-1]
    source[corrects] = np.flatnonzero(corrects) - 1
    spelling = np.where(misspelt & ~corrects, 1 + dice.below(SPELLINGS - 1, size), 0)
    return search[source], words[source], spelling


def draw_searches(dice: Dice, frame: Frame, users: int, pieces: Pieces) -> Searches:
    """Word every search, by subject or by the name of a site."""
    look = tables()
    size = len(frame.user)
    tasks = draw_tasks(dice, frame, users)
    topic = tasks.topic[tasks.of_search]
    by_name = tasks.by_name[tasks.of_search] & (frame.opens_task | dice.happens(rates.KEEPS_NAME, size))
    search, words, spelling = _draw_wording(dice, frame, tasks, users, by_name)
    typed = np.empty((size, 4), dtype=np.int32)
    typed[:, 0] = pieces.before + look.before[topic] * BEFORE + ((words >> 9) & (BEFORE - 1))
    typed[:, 1] = pieces.searches + search * SPELLINGS + spelling
    typed[:, 2] = pieces.after + look.after[topic] * AFTER + (words & (AFTER - 1))
    typed[:, 3] = pieces.details + look.after[topic] * DETAILS + (words >> 13)

    named = np.flatnonzero(by_name)
    form = look.name_form[dice.draw(len(named))]
    # Whoever types a name again goes from the plain name to its address, or from anything else to the plain name.
    turned = np.flatnonzero(~frame.opens_task[named] & dice.happens(rates.TURNS_NAME, len(named)))
    form[turned] = np.where(form[turned - 1] == 0, 1, 0)
    name = tasks.name[tasks.of_search[named]]
    typed[named] = pieces.empty
    typed[named, 1] = pieces.names + name * NAME_FORMS + form
    dashes = np.flatnonzero(dice.happens(rates.IS_DASH, size))
    typed[dashes] = pieces.empty
    typed[dashes, 1] = pieces.dash
    best_place = (search % SEARCHES) * (SITES // SEARCHES)
    best_place[named] = name % NAMED
    return Searches(topic, by_name, best_place, typed)
