"""The tables of a release of session logs."""

from __future__ import annotations

from qlog_assets.report.tables import QUERY_WORDS, USERS_WORDS, Column, TableLayout

SESSIONS = TableLayout(
    "sessions",
    (
        Column(
            "queries",
            "texts",
            "Two or more search queries in the order in which they were typed within a session, not necessarily one "
            "right after the other. Each is normalised: Unicode NFKC, case folded, single spaces.",
        ),
        Column("users", "integer", USERS_WORDS.format("typed the queries in this order within a session")),
    ),
    title="Sequences of queries",
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
TABLES = (SESSIONS, CLICKS)
