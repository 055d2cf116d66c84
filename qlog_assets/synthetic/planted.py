"""The canaries: private-looking strings that exactly one user of a synthetic log types, again and again, and clicks.

Belongs here: making the strings, their private sites and the rows in which they are typed. A test that finds one of
them in anything published has found a leak. None is a real person's: names are invented, card numbers begin as test
cards do, phone numbers lie in the range kept for fiction, social security numbers in an area never issued.
"""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

import numpy as np

from qlog_assets.synthetic.behaviour import DAY, FULL, tables
from qlog_assets.synthetic.world import NAMED, topics

KINDS = ("email", "card", "phone", "ssn", "name")
ROWS_OF_A_CANARY = 7
FEWEST, MOST = len(KINDS), 40
STREAM = 1  # keeps the canaries' draws apart from those of the log's blocks

_FIRST = ("orvella", "tamsin", "jorrit", "maribeth", "lysander", "philippa", "cordwin", "evadne")
_ONSET = ("quist", "vor", "hald", "brom", "tress", "wick", "garr", "zell", "morv", "pell", "dusk", "fenn")
_MIDDLE = ("a", "e", "i", "o", "an", "er", "il", "un")
_CODA = ("gaard", "dsen", "wright", "sby", "tovic", "mere", "quill", "strom", "vanner", "ckel", "thwaite", "zano")


@dataclass(frozen=True)
class Canary:
    """One planted string, what it is shaped like, and the private-looking site its user clicks."""

    kind: str
    query: str
    url: str


def default_count(rows: int) -> int:
    """How many canaries a log of this size has: one of each kind at least, forty from 20,000 rows on."""
    return max(FEWEST, min(MOST, rows // 500))


def luhn_digit(digits: str) -> int:
    """The check digit that makes a card number valid."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return -total % 10


def _one(kind: str, rng: np.random.Generator) -> Canary:
    def pick(words: tuple[str, ...]) -> str:
        return words[int(rng.integers(len(words)))]

    def digits(size: int) -> str:
        return "".join(str(digit) for digit in rng.integers(0, 10, size))

    first, last = pick(_FIRST), pick(_ONSET) + pick(_MIDDLE) + pick(_CODA) + pick(("", "son", "berg", "ova"))
    url = f"http://www.{first}-{last}-{digits(4)}.example"
    if kind == "email":
        return Canary(kind, f"{first}.{last}{digits(3)}@mailbox.example", url)
    if kind == "card":
        number = "400000" + digits(9)
        number += str(luhn_digit(number))
        return Canary(kind, " ".join(number[i : i + 4] for i in range(0, 16, 4)), url)
    if kind == "phone":
        return Canary(kind, f"{2 + int(rng.integers(8))}{digits(2)}-555-01{digits(2)}", url)
    if kind == "ssn":
        return Canary(kind, f"666-{10 + int(rng.integers(90))}-{1000 + int(rng.integers(9000))}", url)
    return Canary(kind, f"{first} {last}", url)


def plant(rows: int, seed: int, count: int | None = None) -> list[Canary]:
    """The canaries of the log of so many rows and this seed, all different, the kinds in turn."""
    wanted = default_count(rows) if count is None else count
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM,)))
    found: dict[str, Canary] = {}
    while len(found) < wanted:
        canary = _one(KINDS[len(found) % len(KINDS)], rng)
        found.setdefault(canary.query, canary)
    return list(found.values())


def canaries(rows: int, seed: int, count: int | None = None) -> list[str]:
    """The strings planted in the log of this size and seed, each typed by one user only."""
    return [canary.query for canary in plant(rows, seed, count)]


@dataclass(frozen=True)
class TypedRow:
    """One row of a canary's user, without the user."""

    time: datetime
    query: str
    click: tuple[int, str] | None = None

    def text(self) -> str:
        rank, url = self.click or ("", "")
        return f"{self.query}\t{self.time:%Y-%m-%d %H:%M:%S}\t{rank}\t{url}"


def canary_rows(canary: Canary, rng: np.random.Generator, first_day: date, days: int) -> list[TypedRow]:
    """What the canary's user did: typed it in three sessions, clicked, and looked for a well-known site in between."""
    third = days * DAY // 3
    begin = datetime.combine(first_day, time())
    one, two, three = (begin + timedelta(seconds=part * third + int(rng.integers(third - 7200))) for part in range(3))
    name = int(tables().name[int(rng.integers(FULL))])
    topic, place = topics()[name // NAMED], name % NAMED
    popular, site = topic.name_forms[place][0], topic.sites[place]
    return [
        TypedRow(one, canary.query),
        TypedRow(one + timedelta(seconds=41), canary.query, (1, canary.url)),
        TypedRow(two, canary.query, (1, canary.url)),
        TypedRow(two, canary.query, (3, site)),
        TypedRow(three, popular, (1, site)),
        TypedRow(three + timedelta(seconds=65), canary.query, (1, canary.url)),
        TypedRow(three + timedelta(seconds=190), popular),
    ]
