"""What one user can move in a sanitized log, counted through the very statements a release uses. Deterministic."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qlog_assets.mechanisms.contributions import count_items, item_counts, item_holders, view_items
from qlog_assets.mechanisms.sanitized import draw
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.mechanisms.sanitized.stages import CHOSEN_PAIRS, CLICKED_PAIRS, choice_key
from qlog_assets.storage.engine import DuckDBEngine

Log = list[tuple[str, str, str]]
Pair = tuple[str, str]


def log_of(users: int, seed: int) -> Log:
    """Clicks of few pairs, many of them repeated, and some users with many more than the others."""
    random = np.random.default_rng(seed)
    return [
        (f"u{user}", f"q{random.integers(4)}", f"http://{random.integers(3)}.example")
        for user in range(users)
        for _ in range(int(random.integers(1, 30 if user % 4 == 0 else 6)))
    ]


def engine_with(rows: Log, chosen: SanitizedParameters) -> DuckDBEngine:
    """An engine whose table `kept` is what the stage writes of these clicks."""
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    names = ("user", "query", "url")
    engine = DuckDBEngine(duckdb.connect())
    clicks = {name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)}
    engine.connection.register("cleaned_clicks", pa.table(clicks))
    engine.statement_view(CLICKED_PAIRS)
    engine.connection.execute("CREATE TEMP VIEW events AS SELECT * FROM clicked_pairs")
    engine.statement_table(CHOSEN_PAIRS, "kept", key=choice_key("2006-03"), items_per_user=chosen.pairs_per_user)
    view_items(engine, "kept")
    count_items(engine)
    return engine


def kept(rows: Log, chosen: SanitizedParameters) -> dict[str, set[Pair]]:
    found: dict[str, set[Pair]] = {}
    for user, *pair in engine_with(rows, chosen).connection.execute('SELECT "user", query, url FROM kept').fetchall():
        assert tuple(pair) not in found.setdefault(user, set())
        found[user].add((pair[0], pair[1]))
    return found


def counted(rows: Log, chosen: SanitizedParameters) -> tuple[Counter, Counter, Counter]:
    """Users of pairs, users by how many pairs they hold, and users of pairs of pairs, where all pairs are named."""
    engine = engine_with(rows, chosen)
    texts = engine.connection.execute("SELECT query, url FROM counted_items ORDER BY item_id").fetchall()
    pairs = Counter(dict(zip(texts, item_counts(engine).tolist(), strict=True)))
    lengths = draw.count_lengths(engine, chosen)
    assert lengths.size == chosen.pairs_per_user
    places = np.arange(len(texts))
    with engine.table("named_pairs", pa.table({"place": places, "item_id": places})):
        linked = draw.count_associations(engine)
    together = Counter(
        {
            frozenset((texts[one], texts[other])): users
            for one, other, users in zip(
                linked.first.tolist(), linked.second.tolist(), linked.users.tolist(), strict=True
            )
        }
    )
    assert len(item_holders(engine)[0]) == sum(pairs.values())
    return pairs, Counter(dict(enumerate(lengths.tolist(), 1))), together


LIMITS = st.integers(1, 6).map(lambda limit: SanitizedParameters(pairs_per_user=limit))


@settings(max_examples=4, deadline=None, derandomize=True)
@given(chosen=LIMITS, seed=st.integers(0, 10**6))
def test_statements_keep_a_users_own_pairs_and_count_them_as_by_hand(chosen: SanitizedParameters, seed: int) -> None:
    rows = log_of(9, seed)
    held = kept(rows, chosen)
    for user in {row[0] for row in rows}:
        clicked = {(query, url) for owner, query, url in rows if owner == user}
        assert held[user] <= clicked and len(held[user]) == min(len(clicked), chosen.pairs_per_user)
    pairs, lengths, together = counted(rows, chosen)
    assert pairs == Counter(pair for mine in held.values() for pair in mine)
    assert +lengths == Counter(len(mine) for mine in held.values())
    assert together == Counter(frozenset(two) for mine in held.values() for two in combinations(mine, 2))


@pytest.mark.slow
@settings(max_examples=5, deadline=None, derandomize=True)
@given(chosen=LIMITS, seed=st.integers(0, 10**6))
def test_removing_any_user_moves_no_more_counts_than_the_guarantee_pays_for(
    chosen: SanitizedParameters, seed: int
) -> None:
    rows = log_of(7, seed)
    held, (pairs, lengths, together) = kept(rows, chosen), counted(rows, chosen)
    for user in {row[0] for row in rows}:
        others = [row for row in rows if row[0] != user]
        assert kept(others, chosen) == {owner: mine for owner, mine in held.items() if owner != user}
        limits = (chosen.pairs_per_user, 1, chosen.associations_per_user)
        for whole, rest, most in zip((pairs, lengths, together), counted(others, chosen), limits, strict=True):
            moved = Counter(whole)
            moved.subtract(rest)
            assert set(moved.values()) <= {0, 1}
            assert sum(moved.values()) <= most
        assert sum(lengths.values()) - 1 == sum(counted(others, chosen)[1].values())


def test_only_named_pairs_are_counted_together() -> None:
    rows = [(user, query, "http://a.example") for user in ("u", "v") for query in ("x", "y", "z")]
    engine = engine_with(rows, SanitizedParameters())
    with engine.table("named_pairs", pa.table({"place": [0, 1], "item_id": [0, 2]})):
        linked = draw.count_associations(engine)
    assert (linked.first.tolist(), linked.second.tolist(), linked.users.tolist()) == ([0], [1], [2])


def test_a_log_without_clicks_has_no_pairs_and_a_histogram_of_zeros() -> None:
    assert counted([], SanitizedParameters(pairs_per_user=3)) == (Counter(), Counter({1: 0, 2: 0, 3: 0}), Counter())
