"""A log as search measures read it: queries, clicks and steps between queries, with a count each.

The log itself, what a mechanism released of it, and what a paper prints become the same three tables here, so that one
measure scores them all. A released table is recognised by its columns, so a new mechanism needs no entry anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.privacy.limits import SESSION_GAP_MINUTES
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition

QUERY, URL, NEXT, SEQUENCE, MADE_UP_USER = "query", "url", "next_query", "queries", "user"
HISTORY, WHOLE_SESSION = "history", "session"
"""Everything that a user typed, in no order; and the queries of a whole session in order, without its parts beside."""
COUNTS = ("users", "printed", "events", "count")
"""What a column of counts may be called; the first of these that a table has."""


@dataclass(frozen=True)
class SearchLog:
    """Three tables, each with a column `count` of doubles, at least 0: noise may leave a count below it.

    `queries` has query; `clicks` has query and url; `transitions` has query and next_query. Every query of clicks and
    transitions is among the queries. No row is there twice.
    """

    queries: pa.Table
    clicks: pa.Table
    transitions: pa.Table
    counted: Literal["users", "events"] | None = "users"
    """What the counts of queries are numbers of. None: of nothing that the log they are drawn from has, such as made-up
    users, or the table does not say it, or there is no table of queries and their counts are at least so many."""

    @classmethod
    def of_tables(cls, tables: Mapping[str, pa.Table]) -> SearchLog:
        """What a release holds, whatever its tables are called.

        Words alone, urls alone and hosts say nothing of a query and a page; they are left out. Of sequences the pairs
        count as steps: every longer one has its pairs beside it. A whole session has not, so its neighbours are steps;
        a history has none. Of a log of made-up users each row counts as often as it says. A query that is only in
        clicks or steps has the largest count that it has there: at least so many.
        """
        found: dict[str, list[pa.Table]] = {"queries": [], "clicks": [], "transitions": []}
        for table in tables.values():
            columns = set(table.column_names)
            if SEQUENCE in columns:
                found["transitions"].append(_steps(table))
                found["queries"].append(_queries_of_lists(table, SEQUENCE, "max"))
            elif WHOLE_SESSION in columns:
                found["transitions"].append(_neighbours(table))
                found["queries"].append(_queries_of_lists(table, WHOLE_SESSION, "max"))
            elif HISTORY in columns:
                # A user has one history: the users of several add up.
                found["queries"].append(_queries_of_lists(table, HISTORY, "sum"))
            elif {QUERY, URL} <= columns:
                if MADE_UP_USER in columns:
                    found["queries"].append(_made_up_queries(table))
                found["clicks"].append(_counted(table, [QUERY, URL]))
            elif {QUERY, NEXT} <= columns:
                found["transitions"].append(_counted(table, [QUERY, NEXT]))
            elif QUERY in columns and "host" not in columns:
                found["queries"].append(_counted(table, [QUERY]))
        return cls._joined(found, counted_in(tables))

    @classmethod
    def of_log(cls, engine: Engine, cleaned: Partition, count: Literal["users", "events"] = "users") -> SearchLog:
        """The log itself, with its numbers of users or of events."""
        view_cleaned(engine, cleaned)
        tables = {
            "queries": engine.arrow("studies/log_queries"),
            "clicks": engine.arrow("studies/log_clicks"),
            "transitions": engine.arrow("studies/log_transitions", session_gap_minutes=SESSION_GAP_MINUTES),
        }
        keys = {"queries": [QUERY], "clicks": [QUERY, URL], "transitions": [QUERY, NEXT]}
        return cls._joined({name: [_renamed(table, keys[name], count)] for name, table in tables.items()}, count)

    @classmethod
    def _joined(cls, found: Mapping[str, list[pa.Table]], counted: Literal["users", "events"] | None) -> SearchLog:
        clicks = _largest(found["clicks"], [QUERY, URL])
        transitions = _largest(found["transitions"], [QUERY, NEXT])
        mentioned = [
            clicks.select([QUERY, "count"]),
            transitions.select([QUERY, "count"]),
            transitions.select([NEXT, "count"]).rename_columns([QUERY, "count"]),
        ]
        queries = _largest(found["queries"], [QUERY])
        missing = _largest(mentioned, [QUERY]).join(queries.select([QUERY]), QUERY, join_type="left anti")
        return cls(pa.concat_tables([queries, missing.select(queries.column_names)]), clicks, transitions, counted)


def counted_in(tables: Mapping[str, pa.Table]) -> Literal["users", "events"] | None:
    """What a released table of queries alone says that it counts."""
    for table in tables.values():
        if QUERY in table.column_names and not {URL, NEXT, "host"} & set(table.column_names):
            name = count_column(table)
            return "users" if name == "users" else "events" if name == "events" else None
    return None


def count_column(table: pa.Table) -> str:
    """The column of a released table that holds its counts."""
    return next(name for name in COUNTS if name in table.column_names)


def _counted(table: pa.Table, keys: list[str]) -> pa.Table:
    """Keys and counts of a table in which a key may stand several times, as in a log of made-up users: added up."""
    renamed = _renamed(table, keys, count_column(table))
    return _grouped(renamed, keys, "sum")


def _renamed(table: pa.Table, keys: list[str], count: str) -> pa.Table:
    counts = pc.max_element_wise(table[count].cast(pa.float64()), pa.scalar(0.0))
    columns = {key: _texts(table[key]) for key in keys}
    return pa.table({**columns, "count": counts})


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())


def _largest(tables: list[pa.Table], keys: list[str]) -> pa.Table:
    """One table of several that count the same in their own ways."""
    empty = pa.table({**{key: pa.array([], pa.string()) for key in keys}, "count": pa.array([], pa.float64())})
    return _grouped(pa.concat_tables([empty, *tables]), keys, "max")


def _grouped(table: pa.Table, keys: list[str], by: str) -> pa.Table:
    grouped = table.group_by(keys, use_threads=False).aggregate([("count", by)])
    return grouped.rename_columns({f"count_{by}": "count"}).select([*keys, "count"])


def _steps(table: pa.Table) -> pa.Table:
    """The sequences of two different queries, as steps."""
    pairs = table.filter(pc.equal(pc.list_value_length(table[SEQUENCE]), 2))
    before, after = (pc.list_element(pairs[SEQUENCE], place) for place in (0, 1))
    steps = pa.table({QUERY: before, NEXT: after, "users": pairs[count_column(pairs)]})
    return _counted(steps.filter(pc.not_equal(before, after)), [QUERY, NEXT])


def _neighbours(table: pa.Table) -> pa.Table:
    """The steps within whole sessions, with the largest count of a session that holds them: users may be in several."""
    rows, texts = pc.list_parent_indices(table[WHOLE_SESSION]), pc.list_flatten(table[WHOLE_SESSION])
    before = max(len(texts) - 1, 0)
    counts = table[count_column(table)].take(rows)
    steps = pa.table({QUERY: texts[:before], NEXT: texts[1:], "users": counts[:before]})
    steps = steps.filter(pc.and_(pc.equal(rows[:before], rows[1:]), pc.not_equal(steps[QUERY], steps[NEXT])))
    return _grouped(_renamed(steps, [QUERY, NEXT], "users"), [QUERY, NEXT], "max")


def _queries_of_lists(table: pa.Table, column: str, by: str) -> pa.Table:
    """Every query of lists, with the largest count of a list that holds it, or with all of their counts."""
    rows = pc.list_parent_indices(table[column])
    named = pa.table({QUERY: pc.list_flatten(table[column]), "users": table[count_column(table)].take(rows)})
    return _grouped(_renamed(named, [QUERY], "users"), [QUERY], by)


def _made_up_queries(table: pa.Table) -> pa.Table:
    """Every query of a log of made-up users, with its number of made-up users."""
    people = table.group_by([MADE_UP_USER, QUERY], use_threads=False).aggregate([])
    counted = people.group_by([QUERY], use_threads=False).aggregate([(MADE_UP_USER, "count")])
    return _renamed(counted, [QUERY], f"{MADE_UP_USER}_count")
