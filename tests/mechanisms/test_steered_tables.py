"""How mechanisms use steered selection: everything public gets noise whether held or not, and tables share one budget.

The attacks call the primitive themselves; what the mechanisms hand to it is looked at here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.door import APRIL, MARCH, door_at, warehouse_at
from support.instances import POLICY, Prepared, copy_warehouse, edit_policy

from qlog_assets.mechanisms import steered_tables
from qlog_assets.mechanisms.contributions import count_items_of
from qlog_assets.mechanisms.register import mechanism, releasable
from qlog_assets.mechanisms.steered_tables import KnownRows, draw_steered_items, name_drawn
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG
from qlog_assets.pipeline.stage import Work, make_stages
from qlog_assets.privacy.gaussian import GaussianBudget, gaussian_budget
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.steered import PublicItems, SteeredDraw
from qlog_assets.storage.engine import Engine

BUDGET = gaussian_budget(Fraction(3000), Fraction(1, 1000))
STEERED = [each.name for each in releasable() if each.may_be_steered]


@dataclass
class Spy:
    """Hands everything on to the primitive and remembers what it was."""

    calls: list[tuple[int, PublicItems, GaussianBudget, Fraction]] = field(default_factory=list)
    held: list[np.ndarray] = field(default_factory=list)

    def install(self, patch: pytest.MonkeyPatch) -> Spy:
        original = steered_tables.release_steered

        def spied(
            source: RandomSource,
            user_ids: np.ndarray,
            item_ids: np.ndarray,
            items: int,
            public: PublicItems,
            budget: GaussianBudget,
            part: Fraction,
        ) -> SteeredDraw:
            self.calls.append((items, public, budget, part))
            self.held.append(np.unique(item_ids))
            return original(source, user_ids, item_ids, items, public, budget, part)

        patch.setattr(steered_tables, "release_steered", spied)
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
        count_items_of(engine, "typed")
        drawn, lists = draw_steered_items(engine, SeededRandom(1), BUDGET, Fraction(1), known, [pool])
        named = name_drawn(engine, drawn, lists)
    ((items, public, _, _),) = spy.calls
    # Five queries are held, one known and one listed besides:
    # `aa` and the unheld one are listed, `bb` and `gone` known.
    assert items == 7 and public.known_users.tolist() == [7, 9]
    assert len(public.known) == 2 and len(public.listed) == 2
    assert len(set(public.known) - set(spy.held[0])) == 1 and len(set(public.listed) - set(spy.held[0])) == 1
    assert set(named["query"].to_pylist()) == set(held)


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
