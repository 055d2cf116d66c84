"""Warehouses prepared for tests of the door: all materialized up to the draw, and a draw that nobody published."""

from __future__ import annotations

from pathlib import Path

from support.door import MARCH, door_at, warehouse_at
from support.instances import MAKERS, make_ingested
from support.stages import Stages

from qlog_assets.ledger import Book, Ledger
from qlog_assets.months import Month
from qlog_assets.pipeline.raw_log import assemble_raw_log
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine


def build_chain(home: Path, month: Month = MARCH, ledger: Ledger | None = None, **changes: object) -> None:
    """Materialize a month's private partitions, as the assets do; `changes` are Safelog parameters."""
    warehouse, policy = warehouse_at(home), Policy.load(home / "policy.toml")
    policy = policy.with_changes(safelog=policy.section("safelog").with_changes(**changes))
    book = Book(ledger or Ledger.open(warehouse.ledger_url), policy.dataset)
    raw, _ = assemble_raw_log(warehouse, month, book=book)
    with Engine.open(warehouse) as engine:
        stages = Stages(warehouse, engine, book=book)
        cleaned, _ = stages.clean(month, raw)
        capped, _ = stages.cap(month, cleaned, policy.section("safelog"))
        stages.augment(month, capped, policy)


def make_chained(home: Path) -> None:
    make_ingested(home)
    build_chain(home)


def make_drawn(home: Path) -> None:
    make_chained(home)
    door_at(home).draw("safelog", MARCH)


MAKERS |= {"chained": make_chained, "drawn": make_drawn}
