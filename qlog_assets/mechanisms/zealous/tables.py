"""The tables of a ZEALOUS release."""

from __future__ import annotations

from qlog_assets.mechanisms.safelog.tables import CLICKS

KEYWORDS = TableLayout(
    "keywords",
    (
        Column("keyword", "text", "A word of a search query, normalised like the query."),
        Column("users", "integer", _USERS.format("typed a query with the word")),
    ),
)


PAIRS = TableLayout(
    "pairs",
    (
        Column("query", "text", _QUERY),
        Column("next_query", "text", "Another query, which followed it in the same session."),
        Column("users", "integer", _USERS.format("typed the second query right after the first")),
    ),
)


ALL_CLICKS = TableLayout("clicks", (Column("query", "text", _QUERY), *CLICKS.columns[1:]))
"""Clicks of any query, whether a table of queries holds it or not."""
