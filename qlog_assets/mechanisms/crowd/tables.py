"""The tables of a CrowdLogging release, one per job."""

from __future__ import annotations

from qlog_assets.report.tables import QUERY_WORDS, Column, TableLayout

USERS_WORDS = "Noisy number of different users whose clients reported that they {} that month, within the limits."

QUERIES = TableLayout(
    "queries",
    (
        Column("query", "text", QUERY_WORDS),
        Column("users", "integer", USERS_WORDS.format("typed the query")),
    ),
    title="Queries",
)
REFORMULATIONS = TableLayout(
    "reformulations",
    (
        Column("query", "text", QUERY_WORDS),
        Column("next_query", "text", "The next query that was another one, however much later."),
        Column("users", "integer", USERS_WORDS.format("typed the second query after the first")),
    ),
    title="Reformulations",
)
CLICKS = TableLayout(
    "clicks",
    (
        Column("query", "text", QUERY_WORDS),
        Column("url", "text", "The address that was opened among the results of the query."),
        Column("users", "integer", USERS_WORDS.format("opened the address after the query")),
    ),
    title="Opened addresses",
)
CLICK_HOSTS = TableLayout(
    "click_hosts",
    (
        Column("query", "text", QUERY_WORDS),
        Column("host", "text", "The host of an address that was opened among the results of the query."),
        Column("users", "integer", USERS_WORDS.format("opened an address of the host after the query")),
    ),
    title="Hosts of opened addresses",
)
URLS = TableLayout(
    "urls",
    (
        Column("url", "text", "An address that was opened among the results of any query."),
        Column("users", "integer", USERS_WORDS.format("opened the address")),
    ),
    title="Addresses alone",
)
TABLES = (QUERIES, REFORMULATIONS, CLICKS, CLICK_HOSTS, URLS)
LAYOUTS = {layout.name: layout for layout in TABLES}
