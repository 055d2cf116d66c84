"""Small tables for every statement of `sql/`, full of what engines may see differently: ties, NULLs, letters of all
kinds, white space, lines' ends and texts that differ in a byte."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

START = datetime(2006, 3, 5, 12)
USERS = ("7", "ann", "bob", "ünal", "李", "Zoe", "_x", "longer name")
QUERIES = (
    "weather",
    "news",
    "chess",
    "größe",
    "東京 天気",
    "fish and chips",
    "a",
    "a b",
    "aa",
    "naïve|2:3",
    "🂡 card",
    "ｗide",
    "weather in paris",
)
URLS = (None, "http://a.example", "http://b.example/x", "http://c.example:80/?q=1", "ftp://me@[::1]:8/x", "d.example.")
RAW_QUERIES = (
    *QUERIES,
    "Weather ",
    " news",
    "fish  and\tchips",
    "-",
    " ",
    "",
    "x\n",
    "GRÖSSE",
    "ﬁsh",
    "tab\there",
    "two\n\nlines",
    "\x1cseparated\x1f",
    "ends in space \n",
    "$5 (cash)",
    "back\\slash",
    "it's",
)
RAW_URLS = (
    *URLS,
    "http://A.example/",
    "HTTP://B.Example/X/y/ ",
    "",
    "/",
    " c.example//",
    "http://é.example/É/",
    "x\ny/",
    "http://d.example/a b/\n",
)
LOG = pa.schema(
    [
        ("user", pa.string()),
        ("query", pa.string()),
        ("time", pa.timestamp("us")),
        ("rank", pa.int32()),
        ("url", pa.string()),
    ]
)


def log_rows(seed: int, queries: tuple[str, ...], urls: tuple[str | None, ...], rows: int = 400) -> pa.Table:
    """A log in which few distinct times make ties the rule."""
    choose, made = random.Random(seed), []
    at = dict.fromkeys(USERS, START)
    for _ in range(rows):
        user = choose.choice(USERS)
        at[user] += choose.choice([timedelta(0), timedelta(seconds=1), timedelta(minutes=30), timedelta(hours=2)])
        url = choose.choice(urls)
        rank = None if url is None or choose.random() < 0.2 else choose.randrange(1, 4)
        made.append((user, choose.choice(queries), at[user], rank, url))
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(zip(*made, strict=True), LOG, strict=True)], schema=LOG
    )


def contributions(seed: int, *columns: str) -> pa.Table:
    """Who holds which item, each once. An item's first text decides the others."""
    choose = random.Random(seed)
    held = sorted({(choose.choice(USERS), choose.choice(QUERIES)) for _ in range(60)})
    others = {name: [f"{text} {name}" for _, text in held] for name in columns}
    texts = others | {columns[0]: [text for _, text in held]}
    if "keyword" in texts:
        texts["keyword"] = [text.split()[0] for _, text in held]
    return pa.table({"user": [user for user, _ in held], **texts})


def base_tables() -> dict[str, pa.Table]:
    """What statements read that no statement makes."""
    own = pa.table(
        [["bob"], ["bob's own"], pa.array([START], pa.timestamp("us")), pa.nulls(1, pa.int32()), [None]], LOG
    )
    cleaned = pa.concat_tables([log_rows(1, QUERIES, URLS), own])
    items = ("query", "url", "keyword", *(f"q{number}" for number in range(1, 11)))
    sent = contributions(9, "query", "artifact")
    ids = pa.table({"query": list(QUERIES[:7]), "query_id": pa.array(range(7), pa.int64())})
    places = [(1, 2, None, 2), (1, 3, None, 3), (2, 3, None, 3), (1, 2, 3, 3)]
    none = pa.nulls(len(places), pa.int32())
    chosen_places = {f"p{n + 1}": pa.array([row[n] for row in places], pa.int32()) for n in range(3)}
    chosen_places |= {f"p{n}": none for n in range(4, 11)}
    return {
        "raw_log": log_rows(2, RAW_QUERIES, RAW_URLS),
        "cleaned_log": cleaned,
        "whole_log": cleaned,
        "compared": cleaned,
        "written": cleaned,
        "people_left_out": pa.table({"user": ["ann"]}),
        "copied_rows": log_rows(3, QUERIES, URLS, 5),
        "person": pa.table({"user": ["bob"]}),
        "normalised_queries": pa.table({"raw": ["GRÖSSE", "ﬁsh"], "normalised": ["grösse", "fish"]}),
        "normalised_urls": pa.table({"raw": ["http://é.example/É/"], "normalised": ["http://é.example/É"]}),
        "accepted": pa.table({"application": ["queries"] * 3, "serial": [b"\x00\xff", b"a", b"\x10"]}),
        "artifacts": pa.table({"query": ["b", "a", "ü"], "users": pa.array([3, 5, 2], pa.int64())}),
        "jobs": pa.table(
            {
                "application": ["queries", "urls"],
                "policy": ["modern", "modern"],
                "accounts": pa.array([9, 9], pa.int64()),
                "tokens_per_account": pa.array([2, 2], pa.int64()),
            }
        ),
        "tokens": pa.table({"application": ["queries", "queries", "none"], "serial": ["a", "a", "b"]}),
        "found": pa.table({"query": ["x", "y"], "users": pa.array([1, 2], pa.int64())}),
        "mined": pa.table(
            {
                "user": list(USERS),
                "query": ["a", "b\tc", "", "d\n", "long" * 9, "ü", "e", "f"],
                "place": pa.array(range(8), pa.int64()),
            }
        ),
        "sent": sent.append_column("place", pa.array(range(len(sent)), pa.int64())),
        "drawn_artifacts": pa.table({"artifact_id": [4, 2], "printed": [7, 8]}),
        "capped_clicks": contributions(4, "query", "url").append_column(
            "time", pa.array([START] * len(contributions(4, "query", "url")), pa.timestamp("us"))
        ),
        "chosen": pa.table({"position": [0, 1], "file_row": [3, 1]}),
        "chosen_places": pa.table({**chosen_places, "last_place": pa.array([row[3] for row in places], pa.int32())}),
        "chosen_rows": pa.table({"place": [0, 1], "list_row": [2, 0], "row_number": [5, 3]}),
        "contributions": contributions(5, *items),
        "events": contributions(6, "query", "url"),
        "domain_queries": pa.table({"query": list(QUERIES[:9]), "query_id": pa.array(range(9), pa.int32())}),
        "drawn_items": pa.table({"item_id": [3, 1], "users": [30, 10], "deviation": [0.5, 2.0]}),
        "earlier_rows": pa.table(
            {
                "query": list(QUERIES[:6]),
                "next_query": list(QUERIES[3:9]),
                "url": [f"{text} url" for text in QUERIES[:6]],
                "count": pa.array(range(6), pa.int64()),
            }
        ),
        "held_items": pa.table({"user": ["a", "b", "b"], "item": ["x", "x", "y"], "searches": [1, 2, 3]}),
        "printed_items": pa.table({"item": ["x"]}),
        "known_items": pa.table({"query": ["a", "nobody's", "news"], "position": [0, 1, 2]}),
        "listed_items": pa.table(
            {"query": ["chess", "a", "nobody else's", "aa"], "file_row_number": pa.array(range(4), pa.int64())}
        ),
        "unheld_items": pa.table({"query": ["nobody's"], "item_id": pa.array([99], pa.int64())}),
        "made_up": pa.table({"user_id": [0, 0, 1], "place": [0, 1, 1], "events": [2, 1, 4]}),
        "named_pairs": pa.table({"place": [0, 1, 2], "item_id": pa.array([4, 0, 2], pa.int64())}),
        "sampled": pa.table({"user_id": [0, 1], "pair_id": [0, 1], "events": [3, 4]}),
        "pool": pa.table({"query": [*QUERIES[:5], "pool only", "Ω"]}),
        "public_list": pa.table(
            {
                "query": ["a", "b", "b", ""],
                "url": ["x", "y", "y", None],
                "pool_id": pa.array([0, 1, 3, -1], pa.int64()),
                "url_id": pa.array([0, 1, 2, 3], pa.int64()),
            }
        ),
        "rejected_rows": pa.table(
            {
                "file": ["f"] * 4,
                "line": pa.array([1, 2, 3, None], pa.int64()),
                "reason": ["not_a_search", "no query", "no query", "Secret words"],
            }
        ),
        "releasable_urls": pa.table({"url": [f"{text} url" for text in QUERIES[:4]]}),
        "released_queries": pa.table({"query": list(QUERIES[:7])}),
        "released_ids": ids,
        "url_list": pa.table(
            {"url": [f"{text} url" for text in QUERIES[:5]], "url_id": pa.array(range(5), pa.int64())}
        ),
        "degree_weights": pa.table({"degree": pa.array(range(1, 40), pa.int64()), "user_weight": range(80, 41, -1)}),
        "wanted_items": pa.table({"item_id": pa.array([6, 0, 3], pa.int64()), "place": [2, 0, 1]}),
        "wanted_queries": pa.table({"query_id": pa.array([2, 0], pa.int32())}),
        "wanted_texts": pa.table({"query": ["news", "unheard of", "a"], "place": [0, 1, 2]}),
        "whole_rows": pa.table(
            {"item_id": [0, 0, 1, 1, 2], "query": ["a", "b", "a", "b", "c"]},
        ),
    }


GIVEN = frozenset(base_tables())
"""Tables that are handed in, also where a statement has the same name."""

PARAMETERS: dict[str, Any] = {
    "k": 2,
    "print_events": False,
    "count_events": True,
    "session_gap_minutes": 30,
    "table_name": "queries",
    "items_per_user": 2,
    "key": "zealous 2006-03 ",
    "application": "queries",
    "share_threshold": 2,
    "artifacts_per_user": 2,
    "artifact_bytes": 20,
    "month_start": datetime(2006, 3, 1),
    "month_end": datetime(2006, 3, 7),
    "rows_read": 10,
    "rows_accepted": 6,
    "clicks_per_user": 3,
    "queries_per_user": 4,
    "transitions_per_user": 3,
    "any_url": False,
    "min_frequency": 2,
    "month": "2006-03",
    "pairs_per_user": 5,
    "pairs_only": False,
    "part": 0,
    "parts": 2,
    "with_repeats": False,
    "sessions_per_user": 3,
    "queries_per_session": 4,
    "in_domain": True,
    "collapse_repeats": True,
    "users": 3,
    "least_queries": 20,
    "planted_query": "chess",
    "first_tenth": 2,
    "last_tenth": 7,
    "tested": True,
    "by_record": True,
    "query": "news",
    "accounts": 2,
    "sessions": 4,
}
