"""ZEALOUS' stage: a few items of each kind per user, chosen by a keyed rule among that user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qlog_assets.checks.memory import memoize_by_content
from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.pipeline.stage import Inputs, Stage, Work
from qlog_assets.privacy.limits import SESSION_GAP_MINUTES
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts

EVENTS = {
    "keywords": "zealous/events_keywords",
    "queries": "zealous/events_queries",
    "pairs": "zealous/events_pairs",
    "clicks": "zealous/events_clicks",
}
"""The kinds of items and the statement of each kind's events."""
CHOSEN_ITEMS = "contributions/chosen_items"


def event_parameters(kind: str) -> dict[str, int]:
    """What the statement of a kind's events is given."""
    return {"session_gap_minutes": SESSION_GAP_MINUTES} if kind == "pairs" else {}


def write_zealous_items(work: Work, inputs: Inputs, directory: Path) -> dict[str, TableFacts]:
    # The month is part of the key, so that a user's choices of two months are no more alike than chance makes them.
    choice: dict[str, Any] = {"key": f"zealous {work.month} ", "items_per_user": work.parameters.items_per_user}
    cleaned = inputs["cleaned_log"]
    with cleaned.verifying():
        view_cleaned(work.engine, cleaned)
        return {
            kind: work.engine.write(
                CHOSEN_ITEMS,
                directory / f"{kind}.parquet",
                events=statement,
                digest=True,
                **choice,
                **event_parameters(kind),
            )
            for kind, statement in EVENTS.items()
        }


@memoize_by_content
def inspect_zealous_items(engine: Engine, partition: Partition) -> CheckResult:
    """Whether no user holds more items of a kind than this very partition was made with, and nothing twice."""
    import pandas as pd

    counts = []
    for kind in EVENTS:
        engine.view("contributions", partition.files(kind))
        counts.append(engine.frame("contributions/check_contributions", table_name=kind))
    limits = {"items_per_user": partition.provenance.parameters["items_per_user"]}
    return run_suite("zealous/zealous_items", {"table": pd.concat(counts)}, parameters=limits)


ZEALOUS_ITEMS = Stage(
    name="zealous_items",
    description="What each user may contribute: a few of their distinct keywords, queries, pairs of queries and "
    "clicks, chosen by a keyed rule. Reads one user's rows at a time, so one user changes no other user's rows.",
    reads=("cleaned_log",),
    write=write_zealous_items,
    statements=(CHOSEN_ITEMS, "log/cleaned_queries", "log/cleaned_clicks", "log/following_queries", *EVENTS.values()),
    shaped_by=lambda chosen, _: {
        "items_per_user": chosen.items_per_user,
        "session_gap_minutes": SESSION_GAP_MINUTES,
    },
    inspect=inspect_zealous_items,
    limits_users=True,
)
STAGES = (ZEALOUS_ITEMS,)
