"""The pieces of text that lines are made of, and the joining of pieces into bytes.

A line of the log is always the same eight pieces: user, four parts of the query, day, time of day, and the click (or
its absence) with the end of the line. In world 2 the end is a ninth piece, because it holds the page of the site that
was clicked, and the parts of a query lie there once for each way of typing. All pieces lie in one Arrow column, so that
one `take` of piece numbers, line after line, leaves exactly the bytes of the file in the column's data buffer. That is
what makes the generator fast: no string is ever built for a row. Belongs here: text and where it lies. Does not belong
here: what anybody searches.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from itertools import accumulate
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.synthetic.behaviour import Numbers
from qlog_assets.synthetic.typing_styles import STYLES, page_of_search
from qlog_assets.synthetic.world import SITES, misspellings, world

RANKS = 16
USER_DIGITS = 8
FIRST_USER = 10_000_000
USER_STEP = 17  # numbers with gaps between them, as in the real log
_USER_WIDTH = USER_DIGITS + 1
Index = TypeVar("Index", int, Numbers)


class Pieces:
    """The pool of pieces for one range of days and for blocks of at most so many users.

    `typed_raw` is what world 2 has and world 1 has not: capitals and spaces in queries, and urls with paths.
    `ambiguous` is what world 3 has: words of two topics, and portals.
    """

    def __init__(
        self, first_day: date, days: int, users_per_block: int, *, typed_raw: bool = False, ambiguous: bool = False
    ) -> None:
        facts = world()
        texts: list[str] = []

        def add(more: list[str]) -> int:
            start = len(texts)
            texts.extend(more)
            return start

        # The empty piece is the first: a part of a query that is not there.
        self.empty = add([""])
        self.dash = add(["-"])
        self.before = add([word + " " if word else "" for words in facts.before for word in words])
        self.after = add([" " + word if word else "" for words in facts.after for word in words])
        self.details = add([" " + word if word else "" for words in facts.details for word in words])
        self.searches = add(
            [form for topic in facts.topics for search in topic.searches for form in (search, *misspellings(search))]
        )
        self.names = add([form for topic in facts.topics for forms in topic.name_forms for form in forms])
        self.is_ambiguous = ambiguous
        self.ambiguous = add([word.text for word in facts.ambiguous] if ambiguous else [])
        self.typed_raw = typed_raw
        self.query_parts = len(texts)
        if typed_raw:
            # The same parts once more for each other way of typing, in the same order: a style is a distance.
            plain = list(texts)
            for style in STYLES[1:]:
                add([style(text) for text in plain])
        dates = [f"\t{first_day + timedelta(days=day)} " for day in range(days)]
        self.days = add(dates)
        self.days_after_space = add([" " + day for day in dates]) if typed_raw else self.days
        self.seconds = add([f"{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}\t" for s in range(86_400)])
        end = "" if typed_raw else "\n"
        self.no_click = add(["\t" + end])

        def clicked(urls: Iterable[str]) -> list[str]:
            return [f"{rank}\t{url}{end}" for url in urls for rank in range(1, RANKS + 1)]

        self.clicks = add(clicked(url for topic in facts.topics for url in topic.sites))
        self.portals = add(clicked(facts.portals if ambiguous else ()))
        self.ends = len(texts)
        if typed_raw:
            add(["\n", "/\n"])
            add([f"{page_of_search(search)}\n" for topic in facts.topics for search in topic.searches])
        self.pieces_of_a_line = 9 if typed_raw else 8
        self.users = len(texts)

        fixed = "".join(texts).encode("ascii")
        ends = list(accumulate((len(text) for text in texts), initial=0))
        users_end = len(fixed) + users_per_block * _USER_WIDTH
        offsets = np.concatenate(
            [np.array(ends, dtype=np.int32), np.arange(len(fixed) + _USER_WIDTH, users_end + 1, _USER_WIDTH)]
        ).astype(np.int32)
        data = np.full(users_end, ord("\t"), dtype=np.uint8)
        data[: len(fixed)] = np.frombuffer(fixed, dtype=np.uint8)
        # The users' pieces are the last and all equally wide: each block overwrites them in place.
        self._user_digits = data[len(fixed) :].reshape(users_per_block, _USER_WIDTH)[:, :USER_DIGITS]
        self._pool = pa.Array.from_buffers(
            pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )

    def name_users(self, first_index: int, users: int) -> None:
        """Let the users' pieces be those of the users numbered from first_index on."""
        numbers = user_number(np.arange(first_index, first_index + users, dtype=np.int64))
        for digit in range(USER_DIGITS - 1, -1, -1):
            numbers, last = np.divmod(numbers, 10)
            self._user_digits[:users, digit] = last + ord("0")

    def join(self, lines: Numbers) -> memoryview:
        """The bytes of these lines; `lines` holds `pieces_of_a_line` piece numbers for each."""
        taken = pc.take(self._pool, pa.array(lines.reshape(-1)), boundscheck=False)
        end = int(np.frombuffer(taken.buffers()[1], dtype=np.int32)[len(taken)])
        return memoryview(taken.buffers()[2])[:end]


def click_number(site: Numbers, rank: Numbers) -> Numbers:
    """Where the click on a site (topic * SITES + place) at a rank (from 0) lies among the clicks."""
    return site * RANKS + rank


def site_number(topic: Numbers, place: Numbers) -> Numbers:
    """The number of a topic's site."""
    return topic * SITES + place


def user_number(index: Index) -> Index:
    """The number by which the log calls its index-th user."""
    return FIRST_USER + USER_STEP * index
