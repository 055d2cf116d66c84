"""Whether the database still refuses changed rows: the triggers that were made with the ledger.

They are seat belts against an honest mistake, and nothing that a determined hand respects. That one is gone is worth
knowing all the same: nobody drops it by accident.
"""

from __future__ import annotations

import sqlalchemy as sa

from qlog_assets.ledger.store import EVENTS, Store, seat_belts


def missing_guards(store: Store) -> list[str]:
    """The triggers that are gone, switched off or say something else; empty if none is."""
    with store.reading() as connection:
        dialect = connection.dialect.name
        there = _sqlite_triggers(connection) if dialect == "sqlite" else _postgresql_triggers(connection)
    wanted = {text.split()[2].removesuffix("()"): text for text in seat_belts(EVENTS.name, store.keeper)[dialect]}
    return [name for name, text in wanted.items() if there.get(name) != (text if dialect == "sqlite" else _body(text))]


def _sqlite_triggers(connection: sa.Connection) -> dict[str, str]:
    rows = connection.execute(
        sa.text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = :table"),
        {"table": EVENTS.name},
    )
    return {str(row.name): str(row.sql) for row in rows}


def _postgresql_triggers(connection: sa.Connection) -> dict[str, str]:
    triggers = connection.execute(
        sa.text(
            "SELECT tgname FROM pg_trigger WHERE tgrelid = CAST(:table AS regclass) AND NOT tgisinternal "
            "AND tgenabled <> 'D'"
        ),
        {"table": EVENTS.name},
    )
    functions = connection.execute(
        sa.text(
            "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = "
            "(SELECT relnamespace FROM pg_class WHERE oid = CAST(:table AS regclass))"
        ),
        {"table": EVENTS.name},
    )
    return {name: "" for (name,) in triggers} | {name: text.strip() for name, text in functions}


def _body(text: str) -> str:
    """What a function of PostgreSQL's does; nothing for a trigger, whose own text the database rewrites."""
    return text.split("$$")[1].strip() if "$$" in text else ""
