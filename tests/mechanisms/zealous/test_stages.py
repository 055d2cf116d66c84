"""What one user can move in ZEALOUS, counted through the very statements a release uses. Deterministic."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from qlog_assets.mechanisms.zealous.stages import CHOSEN_ITEMS, EVENTS, event_parameters
from qlog_assets.pipeline.cleaned_log import view_searches
from qlog_assets.privacy.gaussian import COUNT_UNIT, WEIGHT_UNIT, gaussian_budget, plan_weighted
from qlog_assets.privacy.parameters import exact
from qlog_assets.privacy.weighted import Contributions, exact_sums, shrunk_weights
from qlog_assets.storage.engine import DuckDBEngine

START = datetime(2006, 3, 1)
WORDS = ("cats", "dogs", "fish", "größe", "a|b", "=cmd", "weather")
PER_USER = 3


def log_of(users: int, seed: int) -> list[tuple[str, str, datetime, str | None]]:
    """Searches of one or two words within sessions, some with clicks; a few users with very many."""
    random = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        time = START
        for _ in range(int(random.integers(1, 40 if user % 5 == 0 else 8))):
            time += timedelta(minutes=int(random.choice([1, 5, 29, 31, 90])))
            query = " ".join(random.choice(WORDS, size=int(random.integers(1, 3)), replace=False))
            clicked = str(random.choice(["x.example", "y.example"])) if random.random() < 0.6 else None
            rows.append((f"u{user}", query, time, clicked))
    return rows


def chosen(
    rows: list[tuple[str, str, datetime, str | None]], kind: str, per_user: int = PER_USER
) -> list[tuple[str, ...]]:
    """(user, item…) rows of a kind, by the statements of the pipeline."""
    users, queries, times, urls = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    columns = {"user": pa.array(users, pa.string()), "query": pa.array(queries, pa.string())}
    log = pa.table({**columns, "time": pa.array(times, pa.timestamp("us")), "url": pa.array(urls, pa.string())})
    engine = DuckDBEngine(duckdb.connect())
    engine.connection.register("cleaned_log", log.append_column("rank", pa.nulls(log.num_rows, pa.int32())))
    view_searches(engine)
    engine.statement_table(EVENTS[kind], "events", **event_parameters(kind))
    return sorted(engine.run(CHOSEN_ITEMS, key="zealous 2006-03 ", items_per_user=per_user).fetchall())


def items_of(rows: list[tuple[str, ...]]) -> Counter[tuple[str, ...]]:
    return Counter(row[1:] for row in rows)


@pytest.mark.parametrize("kind", EVENTS)
def test_removing_any_user_moves_at_most_m_counts_by_one_and_nobody_elses(kind: str) -> None:
    rows = log_of(12, seed=7)
    whole = chosen(rows, kind)
    assert max(Counter(row[0] for row in whole).values()) == PER_USER  # the limit is felt
    for user in {row[0] for row in rows}:
        rest = chosen([row for row in rows if row[0] != user], kind)
        assert rest == [row for row in whole if row[0] != user]
        moved = items_of(whole)
        moved.subtract(items_of(rest))
        assert set(moved.values()) <= {0, 1}
        assert sum(moved.values()) <= PER_USER


@pytest.mark.parametrize("kind", EVENTS)
def test_the_choice_is_distinct_and_repeats_itself_whatever_the_order_of_rows(kind: str) -> None:
    rows = log_of(9, seed=3)
    first = chosen(rows, kind)
    assert len(set(first)) == len(first)
    assert chosen(rows[::-1], kind) == first


def test_a_user_within_the_limit_keeps_everything() -> None:
    rows = [("u", "cats dogs", START, None), ("u", "dogs cats", START + timedelta(minutes=1), "x.example")]
    assert chosen(rows, "keywords") == [("u", "cats"), ("u", "dogs")]
    assert chosen(rows, "pairs") == [("u", "cats dogs", "dogs cats")]
    assert chosen(rows, "clicks") == [("u", "dogs cats", "x.example")]


def test_a_pause_or_the_same_query_again_makes_no_pair() -> None:
    times = [START + timedelta(minutes=minutes) for minutes in (0, 31, 32)]
    rows = [("u", query, time, None) for query, time in zip(("cats", "dogs", "dogs"), times, strict=True)]
    assert chosen(rows, "pairs") == []


def test_items_are_chosen_evenly_from_early_and_late_searches() -> None:
    """200 users of 10 queries each, 3 kept: every place in time is kept by 60 on average. The key is fixed."""
    rows = [
        (f"u{user}", f"q{place}", START + timedelta(minutes=place), None) for user in range(200) for place in range(10)
    ]
    kept = items_of(chosen(rows, "queries"))
    assert min(kept.values()) > 35 and max(kept.values()) < 85


@pytest.mark.parametrize("method", ["weighted_gaussian", "sips"])
@pytest.mark.parametrize("kind", EVENTS)
def test_weights_of_one_user_stay_within_one_in_exact_integers(kind: str, method: str) -> None:
    """The L2 that the Gaussian noise is priced for, over every single-user removal: no more than W and √c."""
    whole = chosen(log_of(12, seed=11), kind, per_user=20)
    users = {name: number for number, name in enumerate(sorted({row[0] for row in whole}))}
    items = {item: number for number, item in enumerate(sorted(items_of(whole)))}
    pairs = np.array([(users[row[0]], items[row[1:]]) for row in whole])
    budget = gaussian_budget(exact("2.3"), exact("1e-6"), 0)
    plan = plan_weighted(method, 20, budget, set_share=exact("0.9"), counted_items_per_user=2)  # type: ignore[arg-type]
    assert plan.counting is not None
    for weights, limit in ((plan.rounds[0].weights, WEIGHT_UNIT**2), (None, 2 * COUNT_UNIT**2)):
        sums = sums_of(pairs, weights, len(items))
        for user in users.values():
            moved = sums - sums_of(pairs[pairs[:, 0] != user], weights, len(items))
            assert 0 < sum(int(step) ** 2 for step in moved) <= limit


def sums_of(pairs: np.ndarray, weights: tuple[int, ...] | None, size: int) -> np.ndarray:
    """What a round, or the counting step, adds up for each item before the noise."""
    rows = Contributions.of(pairs[:, 0], pairs[:, 1])
    degrees = rows.degrees()
    mine = np.array([0, *weights])[degrees] if weights is not None else shrunk_weights(np.maximum(degrees, 1), 2)
    return exact_sums(rows.names[rows.items], mine[rows.owners], size)
