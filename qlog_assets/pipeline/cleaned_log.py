"""cleaned_log: the month's rows with normalised texts, and the views of it that mechanisms count."""

from __future__ import annotations

from pathlib import Path

from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.months import Month
from qlog_assets.pipeline.stage import Inputs, Stage, Work
from qlog_assets.sources.normalise import install_macros, normalise_text, normalise_url
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts


def write_cleaned_log(work: Work, inputs: Inputs, directory: Path) -> dict[str, TableFacts]:
    engine, raw = work.engine, inputs["raw_log"]
    with raw.verifying():
        engine.view("raw_log", raw.files("log"))
        install_macros(engine)
        engine.statement_table("log/raw_beyond_ascii")
        engine.mapped_table("log/queries_beyond_ascii", "normalised_queries", normalise_text)
        engine.mapped_table("log/urls_beyond_ascii", "normalised_urls", normalise_url)
        return {"log": engine.write("log/cleaned_log", directory / "log.parquet")}


def inspect_cleaned_log(engine: Engine, partition: Partition) -> CheckResult:
    """Schema, month boundaries, and nothing that escaped the normalisation."""
    month = Month(partition.provenance.month)
    engine.view("cleaned_log", partition.files("log"))
    counts = engine.frame("log/check_cleaned_log", month_start=month.start, month_end=month.end)
    return run_suite("log/cleaned_log", {"counts": counts})


CLEANED_LOG = Stage(
    name="cleaned_log",
    description="The rows of a month with normalised queries and addresses; those that hold no query are gone.",
    reads=("raw_log",),
    write=write_cleaned_log,
    version=2,
    statements=("log/normalise_ascii", "log/normalise_url_ascii", "log/raw_beyond_ascii", "log/cleaned_log"),
    inspect=inspect_cleaned_log,
    check="normalised_rows",
)


def view_cleaned(engine: Engine, cleaned: Partition, *, clicks: bool = True, transitions: bool = True) -> None:
    """Name a cleaned_log and what is read of it."""
    engine.view("cleaned_log", cleaned.files("log"))
    view_searches(engine, clicks=clicks, transitions=transitions)


def view_searches(engine: Engine, *, clicks: bool = True, transitions: bool = True) -> None:
    """Name what is read of the table cleaned_log: searches, clicks, and each search with the next one.

    Clicks or transitions that are switched off are there without rows.
    """
    engine.statement_view("log/cleaned_queries")
    engine.statement_view("log/cleaned_clicks", without_rows=not clicks)
    engine.statement_view("log/following_queries", without_rows=not transitions)
