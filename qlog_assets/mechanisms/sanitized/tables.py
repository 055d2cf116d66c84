"""The table of a sanitized log."""

from __future__ import annotations

from qlog_assets.report.tables import QUERY_WORDS, Column, TableLayout

LOG = TableLayout(
    "log",
    (
        Column(
            "user", "integer", "The number of a made-up user, from 1 on. No such user lived, and no real one has it."
        ),
        Column("query", "text", QUERY_WORDS),
        Column("url", "text", "The address that the made-up user clicked among the results of the query."),
        Column("count", "integer", "How often the made-up user did so that month."),
        Column("month", "text", "The month of the release, such as 2006-03."),
    ),
    count=None,
    title="A log of made-up users",
)
TABLES = (LOG,)
