"""What SQL counts of a central log is what every user's client would send of it, and the policies drawn from that."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import get_args

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.cli import qlog
from support.instances import MONTHS, POPULAR, PRIVATE_QUERY, USERS

from qlog_assets.crowd.jobs import COLUMNS, Application, encode
from qlog_assets.mechanisms.crowd.central_log import Counted, counts_of_searches
from qlog_assets.pipeline.cleaned_log import view_searches
from qlog_assets.storage.engine import DuckDBEngine

MARCH = MONTHS[0]
START = datetime(2006, 3, 1)
APPLICATIONS: tuple[Application, ...] = get_args(Application)
Row = tuple[str, int, str, str | None]
"""User, minute, normalised query, normalised url."""
HOSTS = {
    "http://a.example/x": "a.example",
    "http://me@a.example:80?q": "a.example",
    "b.example./y#z": "b.example",
    "http://[::1]:8080/": "[::1]",
    "//": "",
    "a:b": "",
    "c.example/a\tb": "c.example",
}


def engine_of(rows: list[Row]) -> DuckDBEngine:
    users, minutes, queries, urls = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    columns = {
        "user": pa.array(users, pa.string()),
        "query": pa.array(queries, pa.string()),
        "time": pa.array([START + timedelta(minutes=minute) for minute in minutes], pa.timestamp("us")),
        "rank": pa.nulls(len(rows), pa.int32()),
        "url": pa.array(urls, pa.string()),
    }
    engine = DuckDBEngine(duckdb.connect())
    engine.connection.register("cleaned_log", pa.table(columns))
    view_searches(engine)
    return engine


def counted(rows: list[Row], application: Application, limit: int | None, by: Counted) -> dict[tuple[str, ...], int]:
    """By the statements."""
    table = counts_of_searches(engine_of(rows), application, limit, by)
    assert table.column_names == [*COLUMNS[application], "users"]
    texts = zip(*(table[name].to_pylist() for name in COLUMNS[application]), strict=True)
    counts = dict(zip(texts, table["users"].to_pylist(), strict=True))
    assert len(counts) == table.num_rows
    return counts


def is_sendable(artifact: tuple[str, ...]) -> bool:
    try:
        encode(artifact)
    except ValueError:
        return False
    return True


def sent(rows: list[Row], application: Application) -> list[tuple[str, ...]]:
    """One user's artifacts, the most recent first, by the words of the rule."""
    searches = sorted((minute, query, url or "") for _, minute, query, url in rows)
    artifacts: list[tuple[str, ...]] = []
    if application == "queries":
        artifacts = [(query,) for _, query, _ in searches]
    elif application == "reformulations":
        artifacts = list(itertools.pairwise(query for query, _ in itertools.groupby(query for _, query, _ in searches)))
    for _, query, url in searches:
        if url and application == "clicks":
            artifacts.append((query, url))
        elif url and application == "click_hosts":
            artifacts.append((query, HOSTS[url]))
        elif url and application == "urls":
            artifacts.append((url,))
    return [artifact for artifact, _ in itertools.groupby(artifacts) if is_sendable(artifact)][::-1]


def counted_by_hand(
    rows: list[Row], application: Application, limit: int | None, by: Counted
) -> dict[tuple[str, ...], int]:
    counts: Counter[tuple[str, ...]] = Counter()
    for user in {row[0] for row in rows}:
        artifacts = sent([row for row in rows if row[0] == user], application)
        counts.update((artifacts if by == "instances" else list(dict.fromkeys(artifacts)))[:limit])
    return dict(counts)


ROWS = st.lists(
    st.tuples(
        st.sampled_from("uvw"),
        st.integers(0, 6),
        st.sampled_from(["cats", "dogs", "größe", "x" * 511]),
        st.sampled_from([None, *HOSTS]),
    ),
    max_size=25,
)


@pytest.mark.parametrize("application", APPLICATIONS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(rows=ROWS, limit=st.sampled_from([1, 2, 5, None]), by=st.sampled_from(["users", "instances"]))
@example(rows=[], limit=1, by="users")
def test_sql_counts_what_clients_would_send(
    application: Application, rows: list[Row], limit: int | None, by: Counted
) -> None:
    assert counted(rows, application, limit, by) == counted_by_hand(rows, application, limit, by)


def test_a_reformulation_needs_no_session_and_a_repeated_search_is_none() -> None:
    rows: list[Row] = [("u", 0, "cats", None), ("u", 1, "cats", "x.example"), ("u", 9000, "dogs", None)]
    assert counted(rows, "reformulations", None, "instances") == {("cats", "dogs"): 1}


@pytest.mark.parametrize("application", APPLICATIONS)
def test_removing_a_user_moves_at_most_d_counts_by_one(application: Application) -> None:
    urls = ["http://a.example/x", "b.example./y#z"]
    rows: list[Row] = [
        (f"u{user}", minute, f"query {((user + 1) * minute) % 7}", urls[(user + minute) % 2])
        for user in range(6)
        for minute in range(12)
    ]
    whole = counted(rows, application, 3, "users")
    for user in {row[0] for row in rows}:
        moved = Counter(whole)
        moved.subtract(counted([row for row in rows if row[0] != user], application, 3, "users"))
        assert set(moved.values()) <= {0, 1} and 0 < sum(moved.values()) <= 3


# Through the command, on a warehouse to which nobody ever sealed a report ---------------------------------------------

LOUD = ("--set", "epsilon=40", "--set", "delta=1e-3", "--set", "jobs=queries,reformulations,click_hosts")


def simulated(home: Path, variant: str, *settings: str) -> dict:
    facts: dict = qlog(home, "simulate", "crowd", "--month", MARCH, "--variant", variant, *settings, "--json").json
    return facts


@pytest.mark.parametrize("variant", ["sound", "gaussian"])
def test_what_is_released_is_simulated_on_a_log_without_any_report(ingested: Path, variant: str) -> None:
    facts = simulated(ingested, variant, *LOUD)
    assert facts["charged"] is False and set(facts["rows"]) == {"queries", "reformulations", "click_hosts"}
    rows = pq.read_table(Path(facts["path"]) / "queries.parquet").to_pylist()
    assert {row["query"] for row in rows} == set(POPULAR)
    pairs = pq.read_table(Path(facts["path"]) / "reformulations.parquet").to_pylist()
    assert ("weather", "train times") in {(row["query"], row["next_query"]) for row in pairs}


def test_the_papers_policies_print_what_they_may_and_count_what_they_may_not(ingested: Path) -> None:
    facts = simulated(ingested, "ft_u", "--set", f"threshold={USERS}")
    rows = pq.read_table(Path(facts["path"]) / "queries.parquet").to_pylist()
    assert {row["query"]: row["printed"] for row in rows} == dict.fromkeys(POPULAR, USERS)
    hidden = pq.read_table(Path(facts["path"]) / "queries_undecrypted.parquet").to_pylist()
    assert hidden == [{"instances": 1, "strings": USERS}], "everybody's own query is a string with its count"
    assert facts["label"] == "k-anonymity; not differential privacy"
    # k = 7 allows one artifact per user: her last one. 40 users are far above k, and the noise has scale 1/ln 10.
    facts = simulated(ingested, "dp_u", "--set", "threshold=7")
    rows = pq.read_table(Path(facts["path"]) / "queries.parquet").to_pylist()
    assert [row["query"] for row in rows] == [POPULAR[-1]] and abs(rows[0]["printed"] - USERS) < 20
    assert facts["parameters"]["epsilon"] == "2.302585092994046"
    # At k = 6 nothing may be released at the paper's δ, and nothing is drawn.
    assert simulated(ingested, "dp_a", "--set", "threshold=6")["rows"]["queries"] == 0


def test_a_private_query_of_one_user_is_in_no_simulated_release(ingested: Path) -> None:
    facts = simulated(ingested, "gaussian")
    texts = pq.read_table(Path(facts["path"]) / "queries.parquet")["query"].to_pylist()
    assert PRIVATE_QUERY.format(1) not in texts
