"""Whole histories and whole sessions under k-anonymity: who is printed, and what is learned of whoever is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.door import MARCH, warehouse_at

from qlog_assets.mechanisms.baselines.draw import print_histories, print_sessions
from qlog_assets.mechanisms.baselines.inference import Inference, infer
from qlog_assets.storage.engine import Engine

Log = Mapping[str, tuple[tuple[str, int], ...]]
"""Each user's queries, with the minute of each."""


@pytest.fixture
def engine(home: Path) -> Iterator[Engine]:
    with Engine.open(warehouse_at(home)) as opened:
        yield opened


def searches(log: Log) -> pa.Table:
    rows = [
        (user, query, datetime(2006, 3, 1) + timedelta(minutes=at))
        for user, typed in log.items()
        for query, at in typed
    ]
    users, queries, times = zip(*rows, strict=True)
    return pa.table({"user": list(users), "query": list(queries), "time": list(times)})


def histories(engine: Engine, log: Log, k: int) -> dict[tuple[str, ...], int]:
    with engine.table("cleaned_queries", searches(log)):
        return {tuple(row["history"]): row["printed"] for row in print_histories(engine, k).to_pylist()}


def sessions(engine: Engine, log: Log, k: int) -> dict[tuple[str, ...], int]:
    with engine.table("cleaned_queries", searches(log)):
        return {tuple(row["session"]): row["printed"] for row in print_sessions(engine, k).to_pylist()}


LOG: Log = {
    "1": (("b", 0), ("a", 5), ("b", 900)),
    "2": (("a", 0), ("b", 5)),
    "3": (("a", 0), ("b", 5), ("c", 6)),
    "4": (("c", 0),),
}


def test_a_history_is_a_set_and_is_printed_only_if_k_users_have_no_more_and_no_less(engine: Engine) -> None:
    assert histories(engine, LOG, 2) == {("a", "b"): 2}
    assert histories(engine, LOG, 1) == {("a", "b"): 2, ("a", "b", "c"): 1, ("c",): 1}
    assert histories(engine, LOG, 3) == {}


def test_a_session_is_a_sequence_that_ends_with_silence_and_forgets_repeats(engine: Engine) -> None:
    log: Log = {
        "1": (("a", 0), ("a", 1), ("b", 31), ("c", 62)),  # 31 minutes of silence before c, 30 before b
        "2": (("a", 0), ("b", 1), ("a", 100), ("b", 101)),
        "3": (("b", 0), ("a", 1)),
    }
    assert sessions(engine, log, 1) == {("a", "b"): 2, ("b", "a"): 1, ("c",): 1}
    assert sessions(engine, log, 2) == {("a", "b"): 2}


def test_one_user_who_repeats_a_session_is_one_user(engine: Engine) -> None:
    assert sessions(engine, {"1": (("a", 0), ("a", 100), ("a", 200))}, 2) == {}


def inferred(engine: Engine, *items: tuple[str, ...]) -> Inference:
    lists = pa.array([list(item) for item in items], pa.list_(pa.string()))
    return infer(engine, pa.table({"history": lists, "printed": [50] * len(items)}))


def test_a_query_that_all_printed_groups_share_is_learned_and_one_that_some_lack_is_not(engine: Engine) -> None:
    alike = inferred(engine, ("known", "sensitive"), ("known", "other", "sensitive"))
    assert alike.betrayed_by == {"known": 1, "sensitive": 1, "other": 2}
    assert (alike.known, alike.betraying, alike.items, alike.homogeneous) == (3, 3, 2, 2)
    mixed = inferred(engine, ("known", "sensitive"), ("known",))
    assert mixed.betrayed_by == {"sensitive": 1}  # who typed the sensitive one typed the known one, and not vice versa
    assert (mixed.items, mixed.homogeneous) == (1, 1)


def test_groups_of_one_query_and_groups_with_nothing_in_common_betray_nothing(engine: Engine) -> None:
    assert inferred(engine, ("a",), ("b",)).betraying == 0
    assert inferred(engine, ("a", "b"), ("b", "c"), ("c", "a")).homogeneous == 0
    assert inferred(engine) == Inference(0, 0, 0, 0, {})


def test_a_session_that_comes_back_to_its_query_counts_it_once(engine: Engine) -> None:
    assert inferred(engine, ("a", "b", "a")).betrayed_by == {"a": 1, "b": 1}


@pytest.mark.parametrize(("variant", "column"), [("histories", "history"), ("sessions", "session")])
def test_whole_items_are_simulated_like_every_baseline_and_promise_nothing(
    ingested: Path, variant: str, column: str
) -> None:
    words = ("simulate", "baselines", "--month", MARCH, "--variant", variant, "--set", "k=1", "--json")
    facts = qlog(ingested, *words).json
    assert facts["claimed"] is None and facts["proven"] is None and "learns it with certainty" in facts["gaps"][-1]
    table = pq.read_table(Path(facts["path"]) / f"{variant}.parquet")
    assert table.num_rows and min(table["printed"].to_pylist()) >= 1 and pa.types.is_list(table[column].type)
