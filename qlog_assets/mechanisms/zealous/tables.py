"""The tables of a ZEALOUS release, one per kind of items."""

from __future__ import annotations

from qlog_assets.report.tables import QUERY_WORDS, USERS_WORDS, Column, TableLayout

KEYWORDS = TableLayout(
    "keywords",
    (
        Column("keyword", "text", "A word of a search query, normalised like the query."),
        Column("users", "integer", USERS_WORDS.format("typed a query with the word")),
    ),
    title="Words",
)
QUERIES = TableLayout(
    "queries",
    (
        Column("query", "text", QUERY_WORDS),
        Column("users", "integer", USERS_WORDS.format("typed the query")),
    ),
    title="Queries",
)
PAIRS = TableLayout(
    "pairs",
    (
        Column("query", "text", QUERY_WORDS),
        Column("next_query", "text", "Another query, which followed it in the same session."),
        Column("users", "integer", USERS_WORDS.format("typed the second query right after the first")),
    ),
    title="Pairs of queries",
)
CLICKS = TableLayout(
    "clicks",
    (
        Column("query", "text", QUERY_WORDS),
        Column("url", "text", "The address that was clicked among the results of the query."),
        Column("users", "integer", USERS_WORDS.format("clicked the address after the query")),
    ),
    title="Clicked addresses",
)
TABLES = (KEYWORDS, QUERIES, PAIRS, CLICKS)
