"""The stage of session logs: what each user may contribute, by rules that read that user's records alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qlog_assets.checks.memory import memoize_by_content
from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.pipeline.public_material import PublicLists
from qlog_assets.pipeline.released_domain import write_domain
from qlog_assets.pipeline.stage import Inputs, Stage, Work
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts

SESSIONS, CLICKS = "sessions/kept_sessions", "sessions/kept_clicks"
"""The statements of the two tables."""


def session_limits(chosen: SessionParameters, *, collapse: bool, in_domain: bool) -> dict[str, Any]:
    """What the statement of kept sessions is given."""
    return {
        "session_gap_minutes": chosen.session_gap_minutes,
        "sessions_per_user": chosen.sessions_per_user if chosen.has_sessions else 0,
        "queries_per_session": chosen.queries_per_session,
        "collapse_repeats": collapse,
        "in_domain": in_domain,
    }


def switched_off(chosen: SessionParameters) -> dict[str, None]:
    """The parts that are switched off: nobody contributes to them, and the door refuses a request that has them on."""
    return {name: None for name in ("session_scale", "click_scale") if getattr(chosen, name) is None}


def limited_by(chosen: SessionParameters, lists: PublicLists) -> dict[str, Any]:
    limits = ("sessions_per_user", "queries_per_session", "clicks_per_user", "session_gap_minutes")
    rules = ("items", "collapse_repeats", "domain")
    return {name: getattr(chosen, name) for name in (*limits, *rules)} | switched_off(chosen)


def domain_for(chosen: SessionParameters) -> str | None:
    return chosen.domain if chosen.over_release else None


def write_kept_sessions(work: Work, inputs: Inputs, directory: Path) -> dict[str, TableFacts]:
    chosen: SessionParameters = work.parameters
    cleaned = inputs["cleaned_log"]
    in_domain = work.domain is not None
    limits = session_limits(chosen, collapse=chosen.collapse_repeats, in_domain=in_domain)
    domain = directory / "domain.parquet"
    write_domain(work.domain, domain)
    work.engine.view("domain_queries", [domain])
    with cleaned.verifying():
        view_cleaned(work.engine, cleaned, clicks=chosen.has_clicks)
        work.engine.statement_table("log/first_clicks", clicks_per_user=chosen.clicks_per_user)
        return {
            "domain": work.engine.facts(directory, [domain], digest=True),
            "sessions": work.engine.write(SESSIONS, directory / "sessions.parquet", digest=True, **limits),
            "clicks": work.engine.write(CLICKS, directory / "clicks.parquet", digest=True),
        }


@memoize_by_content
def inspect_kept_sessions(engine: Engine, partition: Partition) -> CheckResult:
    """Whether no user holds more sessions, longer ones or more clicks than this very partition was made with, and
    nothing twice."""
    limits = partition.provenance.parameters
    chosen = SessionParameters(**{name: limits[name] for name in SessionParameters.model_fields if name in limits})
    engine.view("kept_sessions", partition.files("sessions"))
    engine.view("contributions", partition.files("clicks"))
    return run_suite(
        "sessions/kept_sessions",
        {
            "sessions": engine.frame("sessions/check_sessions", pairs_only=chosen.items == "pairs"),
            "clicks": engine.frame("contributions/check_contributions", table_name="clicks"),
        },
        parameters={
            "sessions_per_user": chosen.sessions_per_user,
            "queries_per_session": chosen.queries_per_session,
            "items_per_user": chosen.items_per_user,
            "clicks_per_user": chosen.clicks_per_user,
        },
    )


KEPT_SESSIONS = Stage(
    name="kept_sessions",
    description="What each user may contribute: their first sessions of two queries or more, each cut to its first "
    "queries, and their first distinct clicks. Reads one user's rows at a time, so one user changes no other's rows.",
    reads=("cleaned_log",),
    write=write_kept_sessions,
    statements=(SESSIONS, CLICKS, "log/cleaned_clicks", "log/first_clicks.spark"),  # its plain form, as in Safelog
    shaped_by=limited_by,
    domain_for=domain_for,
    inspect=inspect_kept_sessions,
    limits_users=True,
)
STAGES = (KEPT_SESSIONS,)
