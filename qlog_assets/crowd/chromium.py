"""A Chromium profile's `History`: the searches and clicks of one month.

Queries are those that the browser knows from its address bar (keyword_search_terms), and the addresses of result pages
by `search_urls`. Times are microseconds since 1601; the upper bits of a transition say how a visit came about.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

from qlog_assets.crowd.browser_history import Visit, columns_of, find_searches, open_copy
from qlog_assets.crowd.search_urls import ENGINES, SearchUrl
from qlog_assets.months import Month

BEGINNING = datetime(1601, 1, 1)
MARGIN = timedelta(days=1)
"""How far a click may be from the search it belongs to, at either end of the month."""

# Bits of a transition, from ui/base/page_transition_types.h.
KIND = 0xFF
SUBFRAMES = (3, 4)
"""Pages inside pages: nobody asked for them."""
RELOADED = 8
FORWARD_BACK = 0x0100_0000
REDIRECTS = 0x4000_0000 | 0x8000_0000
"""By the page itself, and by its server."""

VISITS = """
SELECT visits.id, visits.visit_time, urls.url, visits.from_visit, {opener}, visits.transition, terms.term
FROM visits
JOIN urls ON urls.id = visits.url
LEFT JOIN (SELECT url_id, max(term) AS term FROM keyword_search_terms GROUP BY url_id) AS terms
    ON terms.url_id = urls.id
WHERE visits.visit_time >= ? AND visits.visit_time < ?
ORDER BY visits.visit_time, visits.id
"""


def read_chromium(profile: Path, month: Month, beside: Path, added: Sequence[SearchUrl] = ()) -> pa.Table:
    """The searches of a month in a profile, a folder such as `~/.config/chromium/Default`, or in its `History`."""
    path = profile / "History" if profile.is_dir() else profile
    with open_copy(path, "Chromium", beside) as connection:
        opener = "visits.opener_visit" if "opener_visit" in columns_of(connection, "visits") else "0"
        found = connection.execute(
            VISITS.format(opener=opener), (_ticks(month.start - MARGIN), _ticks(month.end + MARGIN))
        )
        visits = [_visit(*row) for row in found if row[5] & KIND not in SUBFRAMES]
    return find_searches(visits, (*added, *ENGINES), month)


def _visit(
    number: int, ticks: int, url: str, came_from: int | None, opener: int | None, transition: int, term: str | None
) -> Visit:
    return Visit(
        number=number,
        time=BEGINNING + timedelta(microseconds=ticks),
        url=url,
        # A link that opens a tab of its own comes from its opener.
        came_from=came_from or opener or 0,
        is_redirect=bool(transition & REDIRECTS),
        is_revisit=transition & KIND == RELOADED or bool(transition & FORWARD_BACK),
        term=term,
    )


def _ticks(time: datetime) -> int:
    return (time - BEGINNING) // timedelta(microseconds=1)
