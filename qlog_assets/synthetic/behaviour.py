"""How the people of the synthetic log behave: who is active, when, what they search, reformulate, misspell and click.

Belongs here: rates, the tables that draws are looked up in, and the plan of how many rows each user has. Does
not belong here: words (`world.py`), bytes (`pieces.py`), files (`writing.py`). Draws are whole numbers, compared with
rates or looked up in tables of whole numbers: a seed means the same log whatever the processor's floating point does.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import exp
from statistics import NormalDist

import numpy as np

from qlog_assets.privacy.limits import SESSION_GAP_MINUTES
from qlog_assets.synthetic.world import NAMED, TOPICS, world

Numbers = np.ndarray

# The published marginals of the AOL log (its readme): 36,389,567 lines, 657,426 users, 21,011,340 new searches,
# 7,887,022 next-page requests, 19,442,629 clicks, 10,154,742 distinct queries.
AOL_ROWS = 36_389_567
AOL_USERS = 657_426
AOL_SEARCHES = 21_011_340

SESSION_GAP = 60 * SESSION_GAP_MINUTES  # in seconds
DAY = 86_400
FULL = 1 << 16  # draws are 16 bits wide; a rate is a whole number out of this


def _rate(share: float) -> int:
    return round(share * FULL)


# A user's first row opens a search by itself, the others do so at this rate, and together that is AOL's share.
OPENS_SEARCH = _rate((AOL_SEARCHES - AOL_USERS) / (AOL_ROWS - AOL_USERS))
OPENS_SESSION = _rate(0.40)  # of the searches after a user's first
OPENS_TASK = _rate(0.28)  # of the searches inside a session: a new subject
CLICKS_SEARCH = _rate(0.518)  # searches for a subject that get a click,
CLICKS_NAME = _rate(0.75)  # and searches for a site by name; together AOL's clicks
ALL_MORE_ARE_CLICKS = _rate(0.72)  # of clicked searches: every further row is a click, not a next page
FROM_INTERESTS = _rate(0.50)  # tasks about one of the user's own four interests
LOOKS_FOR_NAME = _rate(0.29)  # tasks that begin with the name of a site
FAVOURITE_NAME = _rate(0.30)  # of those: one of the user's own two favourite sites
KEEPS_NAME = _rate(0.40)  # later searches of such a task that still type the name
TURNS_NAME = _rate(0.75)  # of those: from the name to the address or back, the others type it anyhow
BEST_KNOWN_AFTER_NAME = _rate(0.40)  # of the rest of such a task: the first search of the site's topic
POPULAR_NEXT = _rate(0.12)  # later searches of a task worded as most people word them
REPEATS_FAVOURITE = _rate(0.03)  # tasks that begin with the one search this user makes again and again
REPEATS_TASK = _rate(0.05)  # later searches of a task that repeat its first one
KEEPS_SEARCH = (12, 3, 1)  # of sixteen reformulations: same search other words, its sister, another of the topic
MISSPELLS = _rate(0.05)
CORRECTS = _rate(0.60)  # misspelt searches that are followed by the same one spelt right
IS_DASH = _rate(0.004)  # what AOL logged as "-"
CLICKS_ASTRAY = _rate(0.05)  # clicks on a site of some other topic
CLICKS_NAMED_SITE = _rate(0.85)  # clicks after a site's name that go to that site, on top
CLICKS_PAGE = _rate(0.75)  # world 2, of clicks after a search for a subject: on the site's page about it
SLASH_AT_END = _rate(0.20)  # world 2, of clicks on a front page: logged with a slash at the end
HABITS = (_rate(0.70), _rate(0.88), _rate(0.95))  # world 2: users who type small letters, Capitals, ALL CAPITALS;
KEEPS_HABIT = _rate(0.75)  # the rest type wide spaces. Searches that are typed by habit, the others in small letters
SPACE_AT_END = _rate(0.02)  # world 2: searches with a space at the end
# World 3: searches for a site by its name, and for a subject, that are typed as the topic's ambiguous word, if it has
# one; and clicks that go to the portal of the topic's category. Fitted so that the clusters of sites of the log itself
# are .8 to .9 pure, with a click threshold and without one, at any size (see the package's docstring).
WORD_FOR_NAME = _rate(0.65)
WORD_FOR_SUBJECT = _rate(0.65)
CLICKS_PORTAL = _rate(0.06)
POSITION_BIAS = (420, 120, 85, 60, 50, 42, 36, 32, 29, 30)  # first clicks by rank, of about a thousand
NAME_FORM_WEIGHTS = (560, 190, 100, 60, 30, 25, 20, 15)
SEARCH_WEIGHTS = (30, 20, 14, 11, 8, 7, 6, 4)  # the searches of a topic
HOURS = (50, 34, 23, 16, 12, 13, 20, 33, 46, 56, 63, 67, 69, 70, 71, 72, 73, 74, 77, 82, 86, 84, 77, 64)
ROWS_SPREAD = 1.5  # standard deviation of the logarithm of a user's rows: a tenth of the users have over half of them
MOST_ROWS_A_MONTH = 1_700  # of one user: sessions of half an hour's distance must fit into the shortest month


@dataclass(frozen=True)
class Shape:
    """How a query is worded around its search: its number has `bits` bits, drawn between two octaves of popularity.

    The low `keep` bits choose the word after the search (9) and the word before it (4); what is above moves `shift` up.
    """

    weight: int
    bits: int
    lowest: int
    keep: int
    shift: int


# Bare, with a word before, after, both, after and detail, all three. Weights in thousandths, fitted together with the
# octaves so that distinct queries per row come to AOL's 0.279 at AOL's size (see the package's docstring).
SHAPES = (
    Shape(weight=105, bits=0, lowest=0, keep=0, shift=0),
    Shape(weight=60, bits=4, lowest=0, keep=0, shift=9),
    Shape(weight=50, bits=9, lowest=0, keep=9, shift=0),
    Shape(weight=55, bits=13, lowest=3, keep=13, shift=0),
    Shape(weight=400, bits=19, lowest=7, keep=9, shift=4),
    Shape(weight=330, bits=23, lowest=11, keep=13, shift=0),
)


@dataclass(frozen=True)
class Tables:
    """Look-up tables from a 16-bit draw to what it stands for."""

    topic: Numbers
    name: Numbers
    name_form: Numbers
    search: Numbers
    sister: Numbers
    shape: Numbers
    octave: Numbers  # one row of 65,536 draws for each shape
    rank: Numbers
    pause: Numbers  # seconds between two searches of a session
    second: Numbers  # time of day at which a session begins
    before: Numbers  # by topic
    after: Numbers  # by topic
    ambiguous: Numbers  # by topic, the number of its ambiguous word or -1
    portal: Numbers  # by topic


def _share_out(weights: Numbers, size: int = FULL) -> Numbers:
    """A table of `size` entries in which entry i appears in proportion to weights[i]."""
    ends = np.floor(np.cumsum(weights) / np.sum(weights) * size + 0.5).astype(np.int64)
    return np.repeat(np.arange(len(weights)), np.diff(ends, prepend=0))


def _zipf(size: int, offset: float, exponent: float) -> Numbers:
    return (np.arange(size) + 1 + offset) ** -exponent


@lru_cache(maxsize=1)
def tables() -> Tables:
    """The tables, made once."""
    facts = world()
    popularity = np.array(facts.popularity)
    topic_weights = np.zeros(TOPICS)
    topic_weights[popularity] = _zipf(TOPICS, 2, 0.8)
    name_weights = np.zeros((TOPICS, NAMED))
    name_weights[popularity, 0] = _zipf(TOPICS, 0.3, 0.85)
    name_weights[:, 1] = name_weights[:, 0] / 8
    ambiguous = np.full(TOPICS, -1, dtype=np.int32)
    for number, word in enumerate(facts.ambiguous):
        ambiguous[list(word.topics)] = number
    normal = NormalDist()
    middles = [(place + 0.5) / 4096 for place in range(4096)]
    # Between searches: half a minute to two in the middle, bounded well below the gap that ends a session.
    pause = np.array([min(1500, max(4, round(60 * exp(1.1 * normal.inv_cdf(u))))) for u in middles])
    hours = np.repeat(np.array(HOURS), 60)
    octaves = [_share_out(np.arange(shape.bits + 1) >= shape.lowest) for shape in SHAPES]
    return Tables(
        topic=_share_out(topic_weights).astype(np.int32),
        name=_share_out(name_weights.reshape(-1)).astype(np.int32),
        name_form=_share_out(np.array(NAME_FORM_WEIGHTS)).astype(np.int32),
        search=_share_out(np.array(SEARCH_WEIGHTS)).astype(np.int32),
        sister=_share_out(np.array([*KEEPS_SEARCH, 0, 0, 0, 0, 0])).astype(np.int32),
        shape=_share_out(np.array([shape.weight for shape in SHAPES])).astype(np.int32),
        octave=np.concatenate(octaves).astype(np.int32),
        rank=_share_out(np.array(POSITION_BIAS)).astype(np.int32),
        pause=np.repeat(pause, 16).astype(np.int32),
        second=(_share_out(hours) * 60).astype(np.int32),
        before=np.array([topic.before for topic in facts.topics], dtype=np.int32),
        after=np.array([topic.after for topic in facts.topics], dtype=np.int32),
        ambiguous=ambiguous,
        portal=np.array(facts.portal_of_topic, dtype=np.int32),
    )


def rows_of_users(rng: np.random.Generator, rows: int, users: int, months: int) -> Numbers:
    """Rows of each user, at least one, exactly `rows` together: quantiles of a lognormal in random order."""
    size = min(users, 1 << 15)
    normal = NormalDist()
    quantiles = [round(1000 * exp(ROWS_SPREAD * normal.inv_cdf((place + 0.5) / size))) for place in range(size)]
    weights = np.array(quantiles, dtype=np.int64)
    most = MOST_ROWS_A_MONTH * months * users * int(weights.mean()) // rows
    weights = rng.permutation(np.minimum(weights, max(most, 1))[np.arange(users) * size // users])
    ends = np.cumsum(weights) * (rows - users) // int(weights.sum())
    return 1 + np.diff(ends, prepend=0)
