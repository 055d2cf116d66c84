"""How mechanisms use steered selection: everything public gets noise whether held or not, and tables share one budget.

The attacks call the primitive themselves; what the mechanisms hand to it is looked at here.
"""

from __future__ import annotations

import pydoc
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.door import APRIL, MARCH, door_at, warehouse_at
from support.instances import POLICY, Prepared, copy_warehouse, edit_policy

from qlog_assets.mechanisms import steered_tables
from qlog_assets.mechanisms.contributions import name_items, view_items
from qlog_assets.mechanisms.register import mechanism, releasable
from qlog_assets.mechanisms.sessions.noise import NO_QUERY
from qlog_assets.mechanisms.steered_tables import KnownRows, draw_steered_items, name_drawn, number_known
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG
from qlog_assets.pipeline.stage import Work, make_stages
from qlog_assets.privacy.gaussian import GaussianBudget, gaussian_budget
from qlog_assets.privacy.holdings import Holdings
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.steered import PublicItems, SteeredDraw, release_steered
from qlog_assets.storage.answers import as_arrays
from qlog_assets.storage.engine import Engine

BUDGET = gaussian_budget(Fraction(3000), Fraction(1, 1000))
STEERED = [each.name for each in releasable() if each.may_be_steered]


@dataclass
class Spy:
    """Hands everything on to the primitive and remembers what it was."""

    calls: list[tuple[int, PublicItems, GaussianBudget, Fraction]] = field(default_factory=list)
    held: list[np.ndarray] = field(default_factory=list)

    def install(self, patch: pytest.MonkeyPatch) -> Spy:
        original = steered_tables.release_held

        def spied(
            source: RandomSource, held: Holdings, public: PublicItems, budget: GaussianBudget, part: Fraction
        ) -> SteeredDraw:
            self.calls.append((held.size, public, budget, part))
            self.held.append(np.unique(np.concatenate([part.items for part in held.holders(np.arange(held.size))])))
            return original(source, held, public, budget, part)

        patch.setattr(steered_tables, "release_held", spied)
        return self


@pytest.fixture
def engine(home: Path) -> Iterator[Engine]:
    with Engine.open(warehouse_at(home)) as opened:
        yield opened


def test_known_and_listed_items_that_nobody_holds_are_drawn_like_the_others(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = ["aa", "bb", "cc", "zz"]
    rows = [(f"user {number}", query) for number in range(50) for query in held] + [("user 1", "only me")]
    pool = tmp_path / "pool.parquet"
    pq.write_table(pa.table({"query_id": range(4), "query": ["aa", "bb", "nobody's", "gone"]}), pool)
    known = KnownRows(pa.table({"query": ["gone", "bb"]}), np.array([7, 9]))
    spy = Spy().install(monkeypatch)
    users, queries = zip(*rows, strict=True)
    with engine.table("typed", pa.table({"user": users, "query": queries})):
        view_items(engine, "typed")
        drawn, lists = draw_steered_items(engine, SeededRandom(1), BUDGET, Fraction(1), known, [pool])
        named = name_drawn(engine, drawn, lists)
    ((items, public, _, _),) = spy.calls
    # Five queries are held, one known and one listed besides:
    # `aa` and the unheld one are listed, `bb` and `gone` known.
    assert items == 7 and public.known_users.tolist() == [7, 9]
    assert len(public.known) == 2 and len(public.listed) == 2
    assert len(set(public.known) - set(spy.held[0])) == 1 and len(set(public.listed) - set(spy.held[0])) == 1
    assert set(named["query"].to_pylist()) == set(held)


@pytest.mark.parametrize("seed", range(6))
def test_an_engine_that_is_asked_for_few_pairs_draws_what_pairs_in_memory_draw(
    engine: Engine, tmp_path: Path, seed: int
) -> None:
    """Known and listed items among them, users of all sizes, and one who holds known items alone."""
    generator = np.random.default_rng(seed)
    users, queries = generator.zipf(1.4, 4_000) % 400, generator.zipf(1.3, 4_000) % 500
    rows = sorted({(f"u{user}", f"q{query:03}") for user, query in zip(users, queries, strict=True)} | {("v", "q001")})
    known_texts = [f"q{number:03}" for number in (1, 7, 300, 700)] if seed % 2 else []
    pool = tmp_path / "pool.parquet"
    pq.write_table(pa.table({"query": [f"q{number:03}" for number in range(2, 600, 5) if number != 7]}), pool)
    known = KnownRows(pa.table({"query": pa.array(known_texts, pa.string())}), np.full(len(known_texts), 40))
    budget = gaussian_budget(Fraction(8), Fraction(1, 100))
    owners, texts = zip(*rows, strict=True)
    with engine.table("typed", pa.table({"user": owners, "query": texts})):
        view_items(engine, "typed")
        drawn, lists = draw_steered_items(engine, SeededRandom(seed), budget, Fraction(1), known, [pool])
        pairs = engine.arrays("contributions/numbered_contributions")
        numbers = number_known(engine, known)
    held = len(set(texts) | set(known_texts))
    size = held + int((lists.ids >= held).sum())
    public = PublicItems(numbers, known.users, lists.ids)
    expected = release_steered(SeededRandom(seed), pairs["user_id"], pairs["item_id"], size, public, budget)
    assert len(drawn.items) > 3
    assert np.array_equal(drawn.items, expected.items) and np.array_equal(drawn.users, expected.users)
    assert np.array_equal(drawn.deviations, expected.deviations)


def test_nobody_else_decides_the_order_of_two_items(engine: Engine) -> None:
    """What breaks ties between two of a user's items: their texts, however many hold them."""
    rows = [("u", "b"), ("u", "a"), ("u", "10"), ("u", "9")]
    for more in ([], [(f"v{number}", "b") for number in range(9)], [(f"v{number}", "a") for number in range(20)]):
        users, queries = zip(*rows, *more, strict=True)
        with engine.table("typed", pa.table({"user": users, "query": queries})):
            view_items(engine, "typed")
            draw_steered_items(engine, SeededRandom(1), BUDGET)
            numbered = counted_texts(engine)
        assert numbered == ["10", "9", "a", "b"]


def counted_texts(engine: Engine) -> list[str]:
    """The texts of all items in the order of their numbers."""
    items = int(engine.row("contributions/count_counted_items")["items"])
    named = name_items(engine, np.arange(items), np.arange(items))
    return named.sort_by("users")["query"].to_pylist()


def test_nobody_else_decides_the_order_of_two_sequences(engine: Engine) -> None:
    """By the numbers of their queries as numbers: 9 comes before 10 whoever else holds either."""
    columns = [f"q{place}" for place in range(1, 11)]

    def row(user: str, *queries: int) -> tuple[str | int, ...]:
        return (user, *queries, *[NO_QUERY] * (10 - len(queries)))

    rows = [row("u", 10, 2), row("u", 9, 11), row("u", 9, 2), row("u", 100, 1)]
    for more in ([], [row(f"v{number}", 10, 2) for number in range(9)], [row(f"v{n}", 100, 1) for n in range(20)]):
        table = pa.table(dict(zip(["user", *columns], zip(*rows, *more, strict=True), strict=True)))
        with engine.table("held", table):
            view_items(engine, "held")
            draw_steered_items(engine, SeededRandom(1), BUDGET, weighed="sessions/weighed_sequences")
            named = name_items(engine, np.arange(4), np.arange(4)).sort_by("users")
        assert list(zip(named["q1"].to_pylist(), named["q2"].to_pylist(), strict=True)) == [
            (9, 2),
            (9, 11),
            (10, 2),
            (100, 1),
        ]


def test_in_how_many_parts_sums_and_pairs_come_changes_nothing_but_the_noise(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without noise, so that what is named follows from the log; with it, every item has noise once. A user who is in
    two parts would give twice."""
    rows = [(f"u{user}", f"q{query:03}") for user in range(60) for query in range(0, 200, user % 9 + 1)]
    pool = tmp_path / "pool.parquet"
    pq.write_table(pa.table({"query": [f"q{number:03}" for number in range(150, 260, 4)]}), pool)
    known = KnownRows(pa.table({"query": ["q000", "q004", "q999"]}), np.array([60, 30, 7]))
    noised: list[int] = []

    def no_noise(source: object, variance: object, size: int) -> np.ndarray:
        noised.append(size)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("qlog_assets.privacy.steered.discrete_gaussian", no_noise)
    users, queries = zip(*rows, strict=True)
    found = []
    with engine.table("typed", pa.table({"user": users, "query": queries})):
        view_items(engine, "typed")
        for at_once in (1 << 22, 50, 7, 1):
            monkeypatch.setattr("qlog_assets.storage.engine.ROWS_AT_ONCE", at_once)
            noised.clear()
            drawn, _ = draw_steered_items(engine, SeededRandom(1), BUDGET, Fraction(1), known, [pool])
            found.append((sum(noised), drawn.items.tolist(), drawn.users.tolist()))
    assert len(found[0][1]) > 10
    assert found.count(found[0]) == len(found)


@pytest.mark.parametrize(
    "computed", ["qlog_assets.privacy.steered.steer_weights", "qlog_assets.privacy.scaled_counts.shared_values"]
)
def test_want_of_memory_in_a_later_part_is_told_as_that(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, computed: str
) -> None:
    """It spares the charge. An answer that stays open would have DuckDB say something else when a table is let go."""
    monkeypatch.setattr("qlog_assets.storage.engine.ROWS_AT_ONCE", 20)
    original: Any = pydoc.locate(computed)
    parts = 0

    def wanting(*given: Any) -> Any:
        nonlocal parts
        parts += 1
        if parts == 2:
            raise MemoryError
        return original(*given)

    monkeypatch.setattr(computed, wanting)
    with pytest.raises(MemoryError):
        draw_of_twenty_users(engine)
    assert parts == 2


def draw_of_twenty_users(engine: Engine) -> None:
    """While tables have names that are let go behind the draw, or behind what ends it."""
    rows = [(f"u{user}", f"q{query}") for user in range(20) for query in range(9 + user % 3)]
    users, queries = zip(*rows, strict=True)
    typed = pa.table({"user": users, "query": queries})
    with engine.table("typed", typed), engine.table("another", typed):
        view_items(engine, "typed")
        draw_steered_items(engine, SeededRandom(1), gaussian_budget(Fraction(2), Fraction(1, 100)))


@pytest.mark.parametrize("column", ["weight", "place"])
@pytest.mark.parametrize("ending", [MemoryError, pa.ArrowMemoryError, KeyboardInterrupt])
def test_what_ends_the_reading_of_a_later_part_is_told_as_that(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, column: str, ending: type[BaseException]
) -> None:
    monkeypatch.setattr("qlog_assets.storage.engine.ROWS_AT_ONCE", 3)
    parts = 0

    def broken_off(rows: pa.Table) -> dict[str, np.ndarray]:
        nonlocal parts
        parts += column in rows.column_names
        if parts == 2:
            raise ending
        return as_arrays(rows)

    monkeypatch.setattr("qlog_assets.storage.answers.as_arrays", broken_off)
    with pytest.raises(ending):
        draw_of_twenty_users(engine)
    assert parts == 2


def test_pairs_that_are_not_sorted_by_user_are_told_as_that(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qlog_assets.storage.engine.ROWS_AT_ONCE", 20)

    def turned_round(rows: pa.Table) -> dict[str, np.ndarray]:
        step = -1 if "place" in rows.column_names else 1
        return {name: values[::step] for name, values in as_arrays(rows).items()}

    monkeypatch.setattr("qlog_assets.storage.answers.as_arrays", turned_round)
    with pytest.raises(RuntimeError, match="not sorted by user_id"):
        draw_of_twenty_users(engine)


@pytest.mark.slow
@pytest.mark.parametrize("name", STEERED)
def test_a_steered_month_counts_all_rows_of_the_month_before_and_its_tables_share_what_is_charged(
    prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By the door, as a release does it: March, then April by what March published."""
    home = copy_warehouse(prepared("ingested"), tmp_path / "home")
    (home / "policy.toml").write_text(POLICY.partition("[safelog]")[0], encoding="utf-8")
    settings = 'epsilon = 60\ndelta = "1e-3"'
    edit_policy(home, top="", **{name: settings}, budget="epsilon = 1000\ndelta = 0.1")
    door = door_at(home)
    warehouse, drawn_by = warehouse_at(home), mechanism(name)
    with Engine.open(warehouse) as engine:
        for month in (MARCH, APRIL):
            section = door.policy.stage_parameters(drawn_by)
            work = Work(warehouse, engine, month, section, door.policy.lists, book=door.book)
            make_stages((CLEANED_LOG, *drawn_by.stages), work, {"raw_log": warehouse.current("raw_log", month)})
    spy = Spy().install(monkeypatch)
    door.draw(name, MARCH)
    published = door.publish(name, MARCH)
    first = len(spy.calls)
    receipt = door.draw(name, APRIL)
    for calls in (spy.calls[:first], spy.calls[first:]):
        assert calls
        budgets = {budget: sum(part for *_, each, part in calls if each == budget) for *_, budget, _ in calls}
        assert all(shared <= 1 for shared in budgets.values())
        proven = receipt.guarantee.proven
        assert proven is not None
        assert sum(budget.epsilon for budget in budgets) <= Fraction(proven.epsilon)
        assert sum(budget.delta for budget in budgets) <= Fraction(proven.delta)
    assert all(len(public.known) == 0 for _, public, _, _ in spy.calls[:first])
    released = [count_items(pq.read_table(path)) for path in published.path.glob("*.parquet")]
    assert sorted(len(public.known) for _, public, _, _ in spy.calls[first:]) == sorted(released)
    assert max(released) > 0


def count_items(table: pa.Table) -> int:
    """How many items a released table prints. In a log of made-up users those are its pairs."""
    rows = table.select(["query", "url"]) if "user" in table.column_names else table.select(table.column_names[:-2])
    return len({str(row) for row in rows.to_pylist()})
