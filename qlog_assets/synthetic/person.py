"""World 2's planted person: one user whose log has the published numbers of AOL's user 4417749, and nothing of hers.

The CrowdLogging paper (Feild, Allan and Glatt 2011, section 4) tells them: 239 queries, 224 of them distinct; 237
reformulations, none twice; 136 clicks after queries, 132 of them distinct. 239 queries have 238 pairs of neighbours, so
one query stands right after itself and falls away as a repeat. She types names of sites that everybody types, searches
that some type and, in two fifths, an invented surname that nobody else types: what a release may show of one person
can be read off her.

Belongs here: what she types and clicks, and when. She searches in the log's first month alone, so that a study of one
month sees all of her.
"""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise

import numpy as np

from qlog_assets.synthetic.behaviour import DAY, SESSION_GAP
from qlog_assets.synthetic.planted import TypedRow
from qlog_assets.synthetic.typing_styles import capitalise, page_of_search
from qlog_assets.synthetic.world import SEARCHES, SITES, World, world

QUERIES, DISTINCT_QUERIES = 239, 224
CLICKS, DISTINCT_CLICKS = 136, 132
CLICKED_AGAIN = CLICKS - DISTINCT_CLICKS
TWICE_CLICKED = 16  # queries with clicks on two sites
CLICKED_SEARCHES = CLICKS - TWICE_CLICKED
ROWS_OF_THE_PERSON = QUERIES - CLICKED_SEARCHES + CLICKS

NAMES = 20  # of well-known sites
MISSPELT_NAMES = 2  # each right before the name itself, as the paper's "oggle" before "google"
BARE = 50
WORDED = 60
PRIVATE = DISTINCT_QUERIES - NAMES - MISSPELT_NAMES - BARE - WORDED
SURNAME = "arnsdotter"
PERSONS_OWN_QUERY = f"orsolya {SURNAME}"
"""What she alone types in every world 2: evaluation finds her by it, never by a user's number."""
_RELATIVES = ("orsolya", "casimir", "benedikta", "thaddea", "leopold", "ottoline", "ansgar", "rosalind")

SESSIONS = 60
LONGEST_PAUSE = 100  # seconds between two searches of a session


@dataclass(frozen=True)
class _Query:
    """A query with the two urls that may be clicked after it."""

    text: str
    urls: tuple[str, str]


def person_rows(rng: np.random.Generator, first_day: date, days: int) -> list[TypedRow]:
    """Everything she does within the first `days` days, in order."""
    typed, names = _order(rng, *_queries(rng))
    seen: set[str] = set()
    clicked = _clicked(rng, typed, names)
    rows: list[TypedRow] = []
    for query, moment in zip(typed, _times(rng, first_day, days), strict=True):
        again = query.text in seen
        seen.add(query.text)
        # A query that comes again, and whatever has a name in it, is typed with capitals.
        text = capitalise(query.text) if again or SURNAME in query.text else query.text
        urls = query.urls[: clicked.get((query.text, again), 0)]
        rows += [TypedRow(moment, text, (rank, url)) for rank, url in enumerate(urls, start=1)]
        rows += [] if urls else [TypedRow(moment, text)]
    return rows


def _queries(rng: np.random.Generator) -> tuple[list[list[_Query]], list[_Query]]:
    """Her distinct queries, each by itself or a misspelt name with the right one after it; and the names among them."""
    facts = world()
    named = [facts.topics[number] for number in facts.popularity[:NAMES]]
    names = [_Query(topic.name_forms[0][0], (topic.sites[0], topic.sites[1])) for topic in named]
    slips = [_Query(topic.name_forms[0][5], name.urls) for topic, name in zip(named, names, strict=True)]
    units = [[slip, name] for slip, name in zip(slips[:MISSPELT_NAMES], names, strict=False)]
    units += [[name] for name in names[MISSPELT_NAMES:]]
    searches = rng.permutation(len(facts.topics) * SEARCHES)[: BARE + WORDED]
    units += [[_search(facts, int(number), "")] for number in searches[:BARE]]
    places = rng.permutation(np.arange(1, 64))[:WORDED]
    units += [
        [_search(facts, int(number), _after(facts, int(number), int(place)))]
        for number, place in zip(searches[BARE:], places, strict=True)
    ]
    towns = facts.after[0][1:]
    about = [f"{name} {SURNAME}" for name in _RELATIVES]
    about += [f"{SURNAME} {towns[int(place)]}" for place in rng.permutation(len(towns))[: PRIVATE - len(about)]]
    units += [[_private(text)] for text in about]
    return units, names[MISSPELT_NAMES:]


def _search(facts: World, number: int, word: str) -> _Query:
    topic, place = facts.topics[number // SEARCHES], number % SEARCHES
    page = page_of_search(topic.searches[place])
    best = place * (SITES // SEARCHES)
    return _Query(f"{topic.searches[place]}{word}", (topic.sites[best] + page, topic.sites[best + 1] + page))


def _after(facts: World, number: int, place: int) -> str:
    return " " + facts.after[facts.topics[number // SEARCHES].after][place]


def _private(text: str) -> _Query:
    page = page_of_search(text)
    return _Query(text, (f"http://www.{SURNAME}-family.example{page}", f"http://www.{SURNAME}-letters.example{page}"))


def _order(
    rng: np.random.Generator, units: list[list[_Query]], names: list[_Query]
) -> tuple[list[_Query], list[_Query]]:
    """All her queries in order, and the names that come twice: one right after itself, which is the last of them.

    A repeat goes where it makes no step from one query to another a second time.
    """
    order = [units[int(place)] for place in rng.permutation(len(units))]
    twice = [names[int(place)] for place in rng.permutation(len(names))[: QUERIES - DISTINCT_QUERIES]]
    for name in twice[:-1]:
        longer = order
        while longer is order or not _steps_differ(longer):
            place = int(rng.integers(len(order) + 1))
            longer = [*order[:place], [name], *order[place:]]
        order = longer
    place = order.index([twice[-1]])
    typed = [query for unit in (*order[:place], [twice[-1]], *order[place:]) for query in unit]
    return typed, twice


def _steps_differ(order: list[list[_Query]]) -> bool:
    texts = [query.text for unit in order for query in unit]
    steps = list(pairwise(texts))
    return len(set(steps)) == len(steps) and all(one != other for one, other in steps)


def _clicked(rng: np.random.Generator, typed: list[_Query], twice: list[_Query]) -> dict[tuple[str, bool], int]:
    """How many urls are clicked after a query, by its text and whether it was typed before."""
    again = [name.text for name in twice[:CLICKED_AGAIN]]
    texts = [text for text in dict.fromkeys(query.text for query in typed) if text not in again]
    chosen = [texts[int(place)] for place in rng.permutation(len(texts))]
    first = [*again, *chosen][: CLICKED_SEARCHES - CLICKED_AGAIN]
    counts = {(text, False): 1 for text in first} | {(text, True): 1 for text in again}
    return counts | {(text, False): 2 for text in first[-TWICE_CLICKED:]}


def _times(rng: np.random.Generator, first_day: date, days: int) -> list[datetime]:
    """When each of her queries is typed: every session begins in the first third of a slot of its own.

    The slot of the shortest month has room for all of her queries in one session and for the silence after it.
    """
    slot = days * DAY // SESSIONS
    assert slot // 3 + QUERIES * LONGEST_PAUSE + SESSION_GAP < slot
    opens = np.sort(rng.permutation(np.arange(1, QUERIES))[: SESSIONS - 1])
    seconds: list[int] = []
    for session, size in enumerate(np.diff(opens, prepend=0, append=QUERIES)):
        begin = session * slot + int(rng.integers(slot // 3))
        pauses = rng.integers(20, LONGEST_PAUSE, int(size))
        seconds += [begin + int(pause) for pause in np.cumsum(pauses) - pauses[0]]
    midnight = datetime.combine(first_day, time())
    return [midnight + timedelta(seconds=second) for second in seconds]
