"""What several draws of one log print of one person: which of their items, how often, with which counts, how linked."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.studies.person.person import KINDS, Person
from qlog_assets.studies.search_log import HISTORY, MADE_UP_USER, NEXT, QUERY, SEQUENCE, URL, WHOLE_SESSION, SearchLog

Item = tuple[str, ...]
SEVERAL = (HISTORY, WHOLE_SESSION, SEQUENCE)
"""The columns that hold several queries of one person."""


@dataclass
class Seen:
    """What was printed of a person, draw by draw."""

    person: Person
    draws: int = 0
    counts: dict[str, dict[Item, list[float]]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    """For each kind and item of theirs that was printed: its counts."""
    own: list[int] = field(default_factory=list)
    """How many of the queries that nobody else typed were printed."""
    guessed: int = 0
    """In how many draws the guessed query was printed."""
    linked: list[int] = field(default_factory=list)
    """How many of their queries stood together."""
    least: list[int] = field(default_factory=list)
    """The least count of a query, whosever it is, in draws that print any."""
    kinds: frozenset[str] = frozenset()
    """What the system prints at all."""
    links_users: bool = False
    """Whether it prints all queries of one user, real or made up, together."""

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Look at one more draw."""
        log = SearchLog.of_tables(tables)
        found = {"queries": log.queries, "clicks": log.clicks, "transitions": log.transitions}
        for kind, keys in KINDS.items():
            theirs = found[kind].join(self.person.items[kind], keys, join_type="left semi")
            for row in theirs.to_pylist():
                self.counts[kind].setdefault(tuple(row[key] for key in keys), []).append(row["count"])
        printed = set(pc.filter(self.person.queries, pc.is_in(self.person.queries, log.queries[QUERY])).to_pylist())
        self.own.append(len(printed & self.person.own))
        self.guessed += self.person.guessed in printed
        self.linked.append(longest_linked(tables, self.person.queries))
        columns = {column for table in tables.values() for column in table.column_names}
        self.kinds = frozenset(kinds_of(columns))
        self.links_users = bool(columns & {HISTORY, MADE_UP_USER})
        if log.queries.num_rows:
            self.least.append(round(pc.min(log.queries["count"]).as_py()))
        self.draws += 1

    def probability(self, kind: str, item: Item) -> float:
        """In which share of the draws an item of theirs was printed."""
        return len(self.counts[kind].get(item, ())) / self.draws

    def average(self, kind: str) -> float:
        """How many of their items are printed on average."""
        return sum(map(len, self.counts[kind].values())) / self.draws

    @property
    def least_count(self) -> int | None:
        """The least count that a reader typically finds; None where nothing is printed."""
        return max(1, statistics.median_low(self.least)) if self.least else None

    @property
    def guess_confirmed(self) -> float:
        return self.guessed / self.draws

    @property
    def any_own(self) -> float:
        """In which share of the draws any query is printed that nobody else typed."""
        return sum(count > 0 for count in self.own) / self.draws

    @property
    def deviation(self) -> float | None:
        """By how much the counts of one item typically differ from draw to draw; None where too little was printed.

        The median over items that at least half of the draws print: the smallest would be small by chance.
        """
        often = [
            counts
            for by_item in self.counts.values()
            for counts in by_item.values()
            if len(counts) >= max(2, self.draws / 2)
        ]
        return statistics.median(map(statistics.stdev, often)) if often else None


def kinds_of(columns: set[str]) -> list[str]:
    """The kinds of items that a release with these columns holds."""
    needed = {
        "queries": QUERY in columns or bool(columns & set(SEVERAL)),
        "clicks": {QUERY, URL} <= columns,
        "transitions": NEXT in columns or bool(columns & {SEQUENCE, WHOLE_SESSION}),
    }
    return [kind for kind in KINDS if needed[kind]]


def longest_linked(tables: Mapping[str, pa.Table], queries: pa.Array) -> int:
    """How many different queries out of some stand together in one printed row, or with one printed user."""
    longest = 0
    for table in tables.values():
        together = _together(table)
        if together is None:
            continue
        theirs = together.filter(pc.is_in(together[QUERY], queries))
        counted = theirs.group_by("group", use_threads=False).aggregate([(QUERY, "count_distinct")])
        longest = max(longest, pc.max(counted[f"{QUERY}_count_distinct"]).as_py() or 0)
    return longest


def _together(table: pa.Table) -> pa.Table | None:
    """Each query of a printed table with the number of the row, or with the user, that it stands with."""
    columns = set(table.column_names)
    several = next((name for name in SEVERAL if name in columns), None)
    if several is not None:
        groups, queries = pc.list_parent_indices(table[several]), pc.list_flatten(table[several])
    elif QUERY not in columns:
        return None
    elif MADE_UP_USER in columns:
        groups, queries = table[MADE_UP_USER], table[QUERY]
    else:
        rows = pa.chunked_array([pa.array(range(table.num_rows), pa.int64())])
        both = [table[name].cast(pa.string()) for name in (QUERY, NEXT) if name in columns]
        groups = pa.chunked_array([chunk for _ in both for chunk in rows.chunks])
        queries = pa.chunked_array([chunk for each in both for chunk in each.chunks], pa.string())
    return pa.table({"group": groups, QUERY: queries.cast(pa.string())})
