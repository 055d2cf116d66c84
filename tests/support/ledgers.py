"""Tools for tests of the ledger: a standard data set and request, a hand that tampers, a lock that is held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from qlog_assets.ledger import Budget, Charge, Ledger

DATASET = "default"


def opened(place: str, epsilon: str = "3", delta: str = "1e-5", **options: Any) -> Ledger:
    """A ledger with the standard data set; what the tests' processes open for themselves."""
    ledger = Ledger.open(place, **options)
    ledger.ensure_dataset(DATASET, Budget(epsilon, delta))  # type: ignore[arg-type]
    return ledger


def request(**changes: Any) -> dict[str, Any]:
    """A request for March 2006 that costs ε = 1 and δ = 1e-6, with some of it changed."""
    standard = {
        "dataset": DATASET,
        "month": "2006-03",
        "mechanism": "safelog",
        "variant": "sound",
        "mechanism_version": 1,
        "parameters": {"threshold": 100, "selection_scale": "10"},
        "inputs": {"capped_log": "c" * 64, "pool": "d" * 64},
        "epsilon": "1",
        "delta": "1e-6",
    }
    return {**standard, **changes}


def published(ledger: Ledger, **changes: Any) -> Charge:
    """A release taken through its whole life."""
    charge, _ = ledger.reserve(**request(**changes))
    ledger.record_draw(charge.release_id, "1" * 64)
    return ledger.record_publication(charge.release_id, "2" * 64)


@contextmanager
def hand_in(place: str) -> Iterator[sa.Connection]:
    """A connection of somebody who goes round the ledger, with its seat belts cut."""
    engine = sa.create_engine(place if "://" in place else f"sqlite:///{place}")
    with engine.begin() as connection:
        if connection.dialect.name == "sqlite":
            names = connection.scalars(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).all()
            for name in names:
                connection.execute(sa.text(f"DROP TRIGGER {name}"))
        else:
            connection.execute(sa.text("ALTER TABLE events DISABLE TRIGGER USER"))
        yield connection
    engine.dispose()


@contextmanager
def held_lock(place: str, broken: bool = False) -> Iterator[None]:
    """Another process's open write transaction; `broken` if its server is gone at the end of the block."""
    engine = sa.create_engine(place if "://" in place else f"sqlite:///{place}", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        sqlite = connection.dialect.name == "sqlite"
        connection.execute(sa.text("BEGIN IMMEDIATE" if sqlite else "BEGIN"))
        if not sqlite:
            connection.execute(sa.text("LOCK TABLE events IN EXCLUSIVE MODE"))
        yield
        if broken:
            connection.invalidate()
        else:
            connection.execute(sa.text("ROLLBACK"))
    engine.dispose()
