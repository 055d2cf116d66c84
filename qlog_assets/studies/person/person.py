"""What one person typed and clicked, and what an attacker's accounts repeat of it. Held in memory alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.pipeline.cleaned_log import view_cleaned, view_searches
from qlog_assets.privacy.limits import SESSION_GAP_MINUTES
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.person.who import find_users
from qlog_assets.studies.search_log import NEXT, QUERY, URL
from qlog_assets.studies.study import StudyWork, cleaned_month

KINDS = {"queries": [QUERY], "clicks": [QUERY, URL], "transitions": [QUERY, NEXT]}
"""What is looked for in a release, with the columns that tell one item from another."""


@dataclass(frozen=True)
class Person:
    """One user of a month. Nothing of it is ever shown: `repr` leaves all of it out."""

    users: pa.Table = field(repr=False)
    """The id, in a column `user`."""
    items: dict[str, pa.Table] = field(repr=False)
    """Their different queries, clicked pairs and steps."""
    own: frozenset[str] = field(repr=False)
    """Queries that nobody else typed."""
    guessed: str = field(repr=False)
    """The query that an attacker guesses: one of the rarest."""
    session_rows: pa.Table = field(repr=False)
    """The raw rows of a session with the guessed query."""
    all_rows: pa.Table = field(repr=False)
    """All of their raw rows."""

    @property
    def queries(self) -> pa.Array:
        return self.items["queries"][QUERY].combine_chunks()


def find_person(work: StudyWork) -> Person | None:
    """The person that the settings name; None where a named person has not searched in the month."""
    assert work.month is not None
    users, engine = find_users(work), work.engine
    raw = work.warehouse.partition("raw_log", work.month, work.reads["raw_log"])
    cleaned = cleaned_month(work)
    with engine.table("person", users):
        view_cleaned(engine, cleaned)
        rows = engine.arrow("studies/person_cleaned_rows")
        if not rows.num_rows:
            return None
        engine.statement_table("studies/person_queries")
        session = engine.row("studies/person_session", session_gap_minutes=SESSION_GAP_MINUTES)
        alone = engine.arrow("studies/person_own_queries")
        with raw.verifying():
            engine.view("raw_log", raw.files("log"))
            everything = engine.arrow("studies/person_raw_rows")
    within = pc.and_(
        pc.greater_equal(everything["time"], pa.scalar(session["first_time"], everything["time"].type)),
        pc.less_equal(everything["time"], pa.scalar(session["last_time"], everything["time"].type)),
    )
    return Person(
        users=users,
        items=_items(work.warehouse, rows),
        own=frozenset(alone[QUERY].to_pylist()),
        guessed=session["guessed"],
        session_rows=everything.filter(within),
        all_rows=everything,
    )


def _items(warehouse: Warehouse, rows: pa.Table) -> dict[str, pa.Table]:
    """What somebody's rows hold, by the statements that read a whole log."""
    with Engine.open(warehouse) as engine, engine.table("cleaned_log", rows):
        view_searches(engine)
        found = {
            "queries": engine.arrow("studies/log_queries"),
            "clicks": engine.arrow("studies/log_clicks"),
            "transitions": engine.arrow("studies/log_transitions", session_gap_minutes=SESSION_GAP_MINUTES),
        }
    return {kind: found[kind].select(keys) for kind, keys in KINDS.items()}
