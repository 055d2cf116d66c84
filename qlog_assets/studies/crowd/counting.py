"""What the clients of a log would send, counted by artifact: SQL in, arrays out. Private; no id leaves this module.

The statements that mine and limit are the mechanism's (`sql/crowd/`). Texts and users become numbers first, so that a
study can count again and again under another limit d.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qlog_assets.crowd.jobs import Application
from qlog_assets.mechanisms.crowd.central_log import NO_LIMIT, SENT, Counted, make_sendable
from qlog_assets.pipeline.cleaned_log import view_searches
from qlog_assets.privacy.limits import SESSION_GAP_MINUTES
from qlog_assets.storage.engine import Engine
from qlog_assets.synthetic import PERSONS_OWN_QUERY

INSTANCES = "crowd_instances"


@dataclass(frozen=True)
class Person:
    """The planted person's artifacts of one application, by number; none where the log has no such person."""

    artifacts: np.ndarray
    instances: int


@dataclass(frozen=True)
class Sent:
    """What was sent under one limit: artifacts by number, ascending, and the reports of each."""

    limit: int
    artifacts: np.ndarray
    reports: np.ndarray


class Mined:
    """One application's artifacts of the log that the engine calls `cleaned_log`, as numbers in the engine's tables."""

    def __init__(self, engine: Engine, application: Application) -> None:
        self.engine = engine
        make_sendable(engine, application)
        engine.statement_table("studies/crowd_users", planted_query=PERSONS_OWN_QUERY)
        engine.statement_table("studies/crowd_texts")
        engine.statement_table("studies/crowd_instances")
        engine.drop("sendable_artifacts")
        engine.drop("crowd_texts")
        self.users = engine.count("crowd_users")
        self.instances = self._count_all("instances")
        """All instances of each artifact; an artifact's number is its place here."""
        self.held_by = self._count_all("users")
        """Users of each artifact, in the same places."""
        hers = engine.arrays("studies/crowd_planted")
        self.person = Person(hers["artifact"].astype(np.int64), int(hers["instances"].sum()))

    def _count_all(self, counted: Counted) -> np.ndarray:
        self._send(counted, NO_LIMIT)
        return self._read("studies/crowd_counts")["reports"].astype(np.int64)

    def _read(self, name: str) -> dict[str, np.ndarray]:
        """What a statement reads of the table `sent`, which then goes: a large log's is gigabytes."""
        rows = self.engine.arrays(name)
        self.engine.drop("sent")
        return rows

    def _send(self, counted: Counted, limit: int) -> None:
        """Make the table `sent` of what clients send under a limit, by the mechanism's own statement."""
        self.engine.view_as("sendable_artifacts", INSTANCES)
        self.engine.statement_table(SENT[counted], "sent", artifacts_per_user=limit)
        # Its name is that of the table of texts, which the next application makes.
        self.engine.drop("sendable_artifacts")

    def sent(self, counted: Counted, limits: Sequence[int]) -> Iterator[Sent]:
        """What is sent under each limit, the smallest first.

        Clients are asked once, with the largest limit: the newest d artifacts of a user are among the newest D of a
        larger D, so what a limit adds to the one before it is added to the counts.
        """
        if not limits:
            return
        self._send(counted, max(limits))
        rows = self._read("studies/crowd_newest")
        order = np.argsort(rows["newest"], kind="stable")
        newest, artifacts = rows["newest"][order], rows["artifact"][order]
        reports = np.zeros(len(self.instances), np.int64)
        counted_rows = 0
        for limit in sorted(set(limits)):
            end = int(np.searchsorted(newest, limit, side="right"))
            reports += np.bincount(artifacts[counted_rows:end], minlength=len(reports))
            counted_rows = end
            held = np.flatnonzero(reports)
            yield Sent(limit, held, reports[held])


def view_users(engine: Engine, files: Sequence[Path]) -> None:
    """Let `cleaned_log` be the month's log, whose users have ids."""
    engine.view("cleaned_log", files)
    view_searches(engine)


def view_sessions(engine: Engine, files: Sequence[Path]) -> None:
    """Let `cleaned_log` be the month's log with each session as a user of its own."""
    engine.view("whole_log", files)
    engine.statement_table("studies/crowd_sessions", "part_of_log", session_gap_minutes=SESSION_GAP_MINUTES)
    engine.statement_view("studies/cleaned_log")
    view_searches(engine)


def view_pilot(engine: Engine, files: Sequence[Path], users: int, least_queries: int) -> None:
    """Let `cleaned_log` be that of a few users who search a lot."""
    engine.view("whole_log", files)
    engine.statement_table("studies/crowd_pilot", "part_of_log", users=users, least_queries=least_queries)
    engine.statement_view("studies/cleaned_log")
    view_searches(engine)
