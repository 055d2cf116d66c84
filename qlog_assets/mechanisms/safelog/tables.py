"""The tables of a Safelog release."""

from __future__ import annotations

QUERIES = TableLayout(
    "queries",
    (
        Column("query", "text", _QUERY),
        Column("users", "integer", _USERS.format("typed the query")),
    ),
)


CLICKS = TableLayout(
    "clicks",
    (
        Column("query", "text", "A query of the table of queries."),
        Column("url", "text", "The address that was clicked among the results of the query."),
        Column("users", "integer", _USERS.format("clicked the address after the query")),
    ),
)


TRANSITIONS = TableLayout(
    "transitions",
    (
        Column("query", "text", "A query of the table of queries."),
        Column("next_query", "text", "The query that followed it in the same session; another one of the same table."),
        Column("users", "integer", _USERS.format("typed the second query right after the first")),
    ),
)


LAYOUTS = {layout.name: layout for layout in (QUERIES, CLICKS, TRANSITIONS)}
