"""A Firefox profile's `places.sqlite`: the searches and clicks of one month.

Queries are those in the addresses of result pages, by `search_urls`. Times are microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

from qlog_assets.crowd.browser_history import Visit, find_searches, open_copy
from qlog_assets.crowd.search_urls import ENGINES, SearchUrl
from qlog_assets.months import Month

BEGINNING = datetime(1970, 1, 1)
MARGIN = timedelta(days=1)
"""How far a click may be from the search it belongs to, at either end of the month."""

# Kinds of visits, from toolkit/components/places/nsINavHistoryService.idl.
EMBEDDED, FRAMED = 4, 8
REDIRECTS = (5, 6)
RELOADED = 9

VISITS = """
SELECT visits.id, visits.visit_date, places.url, visits.from_visit, visits.visit_type
FROM moz_historyvisits AS visits
JOIN moz_places AS places ON places.id = visits.place_id
WHERE visits.visit_date >= ? AND visits.visit_date < ?
ORDER BY visits.visit_date, visits.id
"""


def read_firefox(profile: Path, month: Month, beside: Path, added: Sequence[SearchUrl] = ()) -> pa.Table:
    """The searches of a month in a profile, a folder below `~/.mozilla/firefox`, or in its `places.sqlite`."""
    path = profile / "places.sqlite" if profile.is_dir() else profile
    with open_copy(path, "Firefox", beside) as connection:
        found = connection.execute(VISITS, (_ticks(month.start - MARGIN), _ticks(month.end + MARGIN)))
        visits = [
            Visit(
                number=number,
                time=BEGINNING + timedelta(microseconds=ticks),
                url=url,
                came_from=came_from or 0,
                is_redirect=kind in REDIRECTS,
                is_revisit=kind == RELOADED,
            )
            for number, ticks, url, came_from, kind in found
            if kind not in (EMBEDDED, FRAMED)
        ]
    return find_searches(visits, (*added, *ENGINES), month)


def _ticks(time: datetime) -> int:
    return (time - BEGINNING) // timedelta(microseconds=1)
