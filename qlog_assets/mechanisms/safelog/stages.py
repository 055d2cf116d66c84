"""Safelog's stages: what each user may contribute, and how many users typed each query beside the public pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qlog_assets.checks.memory import memoize_by_content
from qlog_assets.checks.suites import CheckResult, by_table, run_suite
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.months import Month
from qlog_assets.pipeline.cleaned_log import view_searches
from qlog_assets.pipeline.public_material import PublicLists
from qlog_assets.pipeline.stage import Inputs, Stage, Work
from qlog_assets.privacy.limits import SESSION_GAP_MINUTES
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts

CAPPED_TABLES = {
    "queries": "safelog/capped_queries",
    "clicks": "log/first_clicks",
    "transitions": "safelog/capped_transitions",
}
"""The tables of capped_log and the statement of each."""


def view_capped(engine: Engine, capped: Partition) -> None:
    """Name the tables of a capped_log `capped_<table>`."""
    for table in CAPPED_TABLES:
        engine.view(f"capped_{table}", capped.files(table))


def switched_off(chosen: SafelogParameters) -> dict[str, None]:
    """The parts that are switched off: nobody contributes to them, and the door refuses a request that has them on."""
    return {name: None for name in ("click_scale", "transition_scale") if getattr(chosen, name) is None}


def capped_by(chosen: SafelogParameters, lists: PublicLists) -> dict[str, Any]:
    return {
        "queries_per_user": chosen.queries_per_user,
        "clicks_per_user": chosen.clicks_per_user,
        "session_gap_minutes": SESSION_GAP_MINUTES,
        **switched_off(chosen),
    }


def write_capped_log(work: Work, inputs: Inputs, directory: Path) -> dict[str, TableFacts]:
    chosen: SafelogParameters = work.parameters
    off = switched_off(chosen)
    limits: dict[str, dict[str, Any]] = {
        "queries": {"queries_per_user": chosen.queries_per_user},
        "clicks": {"clicks_per_user": chosen.clicks_per_user},
        "transitions": {
            "transitions_per_user": chosen.transitions_per_user,
            "session_gap_minutes": SESSION_GAP_MINUTES,
        },
    }
    cleaned = inputs["cleaned_log"]
    with cleaned.verifying():
        # Where nobody may have a transition there is none to choose from: a statement cannot ask for the first 0.
        transitions = "transition_scale" not in off and chosen.transitions_per_user > 0
        work.engine.view("cleaned_log", cleaned.files("log"))
        work.engine.gather("cleaned_log", "user")
        view_searches(work.engine, clicks="click_scale" not in off, transitions=transitions)
        return {
            table: work.engine.write(statement, directory / f"{table}.parquet", digest=True, **limits[table])
            for table, statement in CAPPED_TABLES.items()
        }


@memoize_by_content
def inspect_capped_log(engine: Engine, partition: Partition) -> CheckResult:
    """Whether no user holds more than the limits this very partition was made with, nothing twice, and nothing of
    another month."""
    view_capped(engine, partition)
    limits, month = partition.provenance.parameters, Month(partition.provenance.month)
    return run_suite(
        "safelog/capped_log",
        by_table(engine.frame("safelog/check_capped_log", month_start=month.start, month_end=month.end)),
        parameters={
            "queries_per_user": limits["queries_per_user"],
            "clicks_per_user": limits["clicks_per_user"],
            "transitions_per_user": limits["queries_per_user"] - 1,
        },
    )


def count_rows_from_nowhere(engine: Engine, partition: Partition, cleaned: Partition) -> int:
    """How many capped rows nobody typed or clicked."""
    view_capped(engine, partition)
    engine.view("cleaned_log", cleaned.files("log"))
    return int(engine.frame("safelog/check_capped_origin")["rows_from_nowhere"].sum())


def write_pool_augmented(work: Work, inputs: Inputs, directory: Path) -> dict[str, TableFacts]:
    inputs["capped_log"].verify()
    work.engine.view("capped_queries", inputs["capped_log"].files("queries"))
    work.engine.view("pool", inputs["pool"].files("queries"))
    return {"queries": work.engine.write("safelog/pool_augmented", directory / "queries.parquet")}


CAPPED_LOG = Stage(
    name="capped_log",
    description="What each user may contribute: their first distinct queries, clicked pairs and transitions. "
    "Reads one user's rows at a time, so one user changes no other user's rows.",
    reads=("cleaned_log",),
    write=write_capped_log,
    version=2,
    # The plain forms say what is kept; the faster ones answer the same, by test: earlier partitions keep their version.
    statements=("log/cleaned_clicks", "log/following_queries", *(f"{name}.spark" for name in CAPPED_TABLES.values())),
    shaped_by=capped_by,
    inspect=inspect_capped_log,
    limits_users=True,
    count_rows_from_nowhere=count_rows_from_nowhere,
)
POOL_AUGMENTED = Stage(
    name="pool_augmented",
    description="How many users typed each query, and every query of the public pool that nobody typed, at zero.",
    reads=("capped_log", "pool", "url_list"),
    write=write_pool_augmented,
    statements=("safelog/pool_augmented",),
    shaped_by=lambda _, lists: {"click_support": "stability" if lists.url_list is None else "public_list"},
)
STAGES = (CAPPED_LOG, POOL_AUGMENTED)
