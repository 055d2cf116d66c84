"""The tables of a Safelog release."""

from __future__ import annotations

from qlog_assets.report.tables import QUERY_WORDS, USERS_WORDS, Column, TableLayout

QUERIES = TableLayout(
    "queries",
    (
        Column("query", "text", QUERY_WORDS),
        Column("users", "integer", USERS_WORDS.format("typed the query")),
    ),
    title="Queries",
)
CLICKS = TableLayout(
    "clicks",
    (
        Column("query", "text", "A query of the table of queries."),
        Column("url", "text", "The address that was clicked among the results of the query."),
        Column("users", "integer", USERS_WORDS.format("clicked the address after the query")),
    ),
    title="Clicked addresses",
)
TRANSITIONS = TableLayout(
    "transitions",
    (
        Column("query", "text", "A query of the table of queries."),
        Column("next_query", "text", "The query that followed it in the same session; another one of the same table."),
        Column("users", "integer", USERS_WORDS.format("typed the second query right after the first")),
    ),
    title="One query after another",
)
TABLES = (QUERIES, CLICKS, TRANSITIONS)
