"""The public facts of the synthetic world: its topics, sites, searches and spellings, the same for every seed.

Belongs here: reading `vocabulary.txt`, the names of sites, misspellings, which topic a query or url belongs to, and the
public lists (site directory, query list) that a release may use as its pool; of world 3 also its ambiguous words and
portals. Does not belong here: anything drawn at random or anything a person in the log did; that is `behaviour.py` and
`planted.py`.
"""

import zlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

TOPICS = 256
SEARCHES = 8  # searches of a topic; a power of two, as every size below, so that a query number splits by its bits
SITES = 16  # sites of a topic
BEFORE = 16  # words that can stand before a search, the empty one included
AFTER = 512  # words that can stand after it, the empty one included
DETAILS = 1024  # what can stand last, the empty one included
SPELLINGS = 4  # the right one and three wrong ones
NAMED = 2  # sites of a topic that people look for by name
NAME_FORMS = 8  # ways of typing such a name
STATES = 50  # the first words of the list of places
PORTAL_TOPIC = (
    TOPICS  # world 3: portals answer many topics and are themselves of none of these, but of one of their own
)
BEFORE_LISTS = ("travel", "buy", "service", "info", "health", "media")
AFTER_LISTS = ("places", "things")

# What a search engine's head looks like: these topics come first in popularity, the rest follow in a fixed mixed order.
FAMOUS = (
    *("search", "mail", "maps", "auctions", "friends", "weather", "phonebook", "lyrics", "jobs", "movies", "headlines"),
    *(
        "dating",
        "puzzles",
        "sportsnews",
        "realestate",
        "flights",
        "coupons",
        "horoscopes",
        "arcade",
        "usedcars",
        "hotels",
    ),
    *("tvshows", "banks", "reference", "ringtones", "greetings", "baseball", "cards", "phones", "names"),
)


@dataclass(frozen=True)
class Topic:
    """One subject people search for. `searches` are its plain searches, `sites` the urls that answer them."""

    number: int
    name: str
    category: str
    searches: tuple[str, ...]
    sites: tuple[str, ...]
    site_names: tuple[str, ...]
    before: int  # index into BEFORE_LISTS
    after: int  # index into AFTER_LISTS
    name_forms: tuple[tuple[str, ...], ...]  # of its NAMED best-known sites


@dataclass(frozen=True)
class AmbiguousWord:
    """What people type when they mean one of two topics."""

    text: str
    topics: tuple[int, int]


@dataclass(frozen=True)
class World:
    """Every list of words, padded with the empty word where a query may do without one."""

    topics: tuple[Topic, ...]
    before: tuple[tuple[str, ...], ...]
    after: tuple[tuple[str, ...], ...]
    details: tuple[tuple[str, ...], ...]
    popularity: tuple[int, ...]  # topic numbers, the most popular first
    ambiguous: tuple[AmbiguousWord, ...]  # world 3; a topic has one of them or none
    portals: tuple[str, ...]  # world 3: urls, one for each category
    portal_of_topic: tuple[int, ...]


def _sections() -> dict[str, list[str]]:
    text = resources.files(__package__).joinpath("vocabulary.txt").read_text(encoding="utf-8")
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("["):
            lines = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections


def _words(lines: list[str]) -> list[str]:
    return [word.strip() for line in lines for word in line.split(",")]


def misspellings(text: str) -> tuple[str, str, str]:
    """Three slips of the fingers: a letter dropped, two neighbours swapped, a letter doubled, in the longest word."""
    words = text.split(" ")
    which = max(range(len(words)), key=lambda i: len(words[i]))
    word = words[which]
    middle = len(word) // 2
    swap = next((i for i in range(middle, len(word) - 1) if word[i] != word[i + 1]), 0)
    forms = (
        word[:middle] + word[middle + 1 :],
        word[:swap] + word[swap + 1] + word[swap] + word[swap + 2 :],
        word[:-2] + word[-2] * 2 + word[-1],
    )
    dropped, swapped, doubled = (" ".join([*words[:which], form, *words[which + 1 :]]) for form in forms)
    return dropped, swapped, doubled


def _name_forms(joined: str, split: str) -> tuple[str, ...]:
    return (joined, f"{joined}.example", f"www.{joined}.example", split, f"{joined} login", *misspellings(joined))


def _topic(number: int, line: str, heading: str, endings: list[str]) -> Topic:
    _, category, before, after = heading.split()
    title, searches = line.split(":")
    slug, brand = title.split()
    # 15 endings of 32, starting elsewhere for every topic, so that an ending says nothing about the topic.
    others = [endings[(5 * number + place) % len(endings)] for place in range(SITES - 1)]
    names = (brand.replace("|", ""), *(slug + ending for ending in others))
    splits = (brand.replace("|", " "), *(f"{slug} {ending}" for ending in others))
    return Topic(
        number=number,
        name=slug,
        category=category,
        searches=tuple(_words([searches])),
        sites=tuple(f"http://www.{name}.example" for name in names),
        site_names=names,
        before=BEFORE_LISTS.index(before.removeprefix("before=")),
        after=AFTER_LISTS.index(after.removeprefix("after=")),
        name_forms=tuple(_name_forms(names[place], splits[place]) for place in range(NAMED)),
    )


@lru_cache(maxsize=1)
def world() -> World:
    """The one synthetic world, read once."""
    sections = _sections()
    endings = _words(sections["site endings"])
    found: list[Topic] = []
    for heading, lines in sections.items():
        if heading.startswith("category "):
            found += [_topic(len(found) + place, line, heading, endings) for place, line in enumerate(lines)]
    firsts = ["", *_words(sections["detail first"])]
    seconds = ["", *_words(sections["detail second"])]
    after_words = tuple(("", *_words(sections[f"after {name}"])) for name in AFTER_LISTS)
    # After a place comes its state and what is wanted there; after a thing often a second one ("cookies lemon honey").
    states = after_words[0][: 1 + STATES]
    at_a_place = tuple(
        f"{where} {first}".strip()
        for first in firsts[: DETAILS // 64]
        for where in (*states, *_words(sections["detail where"]))
    )
    of_a_thing = tuple(f"{first} {second}".strip() for second in seconds[:16] for first in firsts)
    details = (at_a_place, (*after_words[1], *of_a_thing))
    by_name = {topic.name: topic.number for topic in found}
    famous = [by_name[name] for name in FAMOUS]
    rest = [number for step in range(TOPICS) if (number := (step * 89 + 7) % TOPICS) not in famous]
    before_words = tuple(("", *_words(sections[f"before {name}"])) for name in BEFORE_LISTS)
    categories = list(dict.fromkeys(topic.category for topic in found))
    return World(
        topics=tuple(found),
        before=before_words,
        after=after_words,
        details=details,
        popularity=(*famous, *rest),
        ambiguous=tuple(_ambiguous_word(line, by_name) for line in sections["ambiguous"]),
        portals=tuple(f"http://www.{category}portal.example" for category in categories),
        portal_of_topic=tuple(categories.index(topic.category) for topic in found),
    )


def _ambiguous_word(line: str, topic_by_name: dict[str, int]) -> AmbiguousWord:
    text, meanings = line.split(":")
    first, second = meanings.split()
    return AmbiguousWord(text, (topic_by_name[first], topic_by_name[second]))


def topics() -> tuple[Topic, ...]:
    """The true topics, for evaluation."""
    return world().topics


@lru_cache(maxsize=1)
def _topic_by_search() -> dict[str, int]:
    known: dict[str, int] = {}
    for topic in topics():
        for search in topic.searches:
            known[search] = topic.number
        for forms in topic.name_forms:
            known.update((form, topic.number) for form in forms)
    for topic in topics():
        for search in topic.searches:
            for slip in misspellings(search):
                known.setdefault(slip, topic.number)
    return known


def topic_of_query(query: str) -> int | None:
    """The topic a query of the synthetic log is about; None for what belongs to none (`-`, a planted string).

    The search comes first in a query, save for the words put before it, so the earliest and then longest match is it.
    Of an ambiguous word of world 3 it is the first of the two topics; `topics_of_query` has both.
    """
    if query in _ambiguous_topics():
        return _ambiguous_topics()[query][0]
    known = _topic_by_search()
    words = query.split(" ")
    for start in range(min(len(words), 5)):
        for end in range(min(len(words), start + 5), start, -1):
            topic = known.get(" ".join(words[start:end]))
            if topic is not None:
                return topic
    return None


@lru_cache(maxsize=1)
def _ambiguous_topics() -> dict[str, tuple[int, int]]:
    return {word.text: word.topics for word in world().ambiguous}


def topics_of_query(query: str) -> tuple[int, ...]:
    """Every topic a query may be about: two for an ambiguous word of world 3, else the one of `topic_of_query` or none.

    An ambiguous word is one only by itself; nobody types it with other words.
    """
    topic = topic_of_query(query)
    return _ambiguous_topics().get(query, () if topic is None else (topic,))


@lru_cache(maxsize=1)
def _topic_by_url() -> dict[str, int]:
    portals = dict.fromkeys(world().portals, PORTAL_TOPIC)
    return portals | {url: topic.number for topic in topics() for url in topic.sites}


def topic_of_url(url: str) -> int | None:
    """The topic of a site or of a page of it, PORTAL_TOPIC for a portal of world 3; None for any other url."""
    return _topic_by_url().get("/".join(url.split("/")[:3]))


def site_directory(world_version: int = 1) -> list[str]:
    """Every site of the synthetic world, sorted: the public url list of a release that needs one."""
    portals = world().portals if world_version == 3 else ()
    return sorted([*(url for topic in topics() for url in topic.sites), *portals])


def _is_known_to_the_public(query: str) -> bool:
    # A fixed tenth is missing, as in any real list: popular queries outside the pool must exist for tests to see them.
    return zlib.crc32(query.encode()) % 10 != 0


def public_queries(world_version: int = 1) -> list[str]:
    """Plausible queries that a public phrase list would hold, sorted: a pool. The same whatever log is drawn.

    Site names, plain searches, searches with a word before them, and searches with one of the first 64 words after
    them, in world 3 its ambiguous words; nine tenths of those; never a misspelling.
    """
    facts = world()
    pool = {word.text for word in facts.ambiguous} if world_version == 3 else set()
    for topic in facts.topics:
        for forms in topic.name_forms:
            pool.update(forms[:5])
        for search in topic.searches:
            pool.update(f"{word} {search}".strip() for word in facts.before[topic.before])
            pool.update(f"{search} {word}".strip() for word in facts.after[topic.after][:64])
    return sorted(query for query in pool if _is_known_to_the_public(query))
