"""Looks at the log's partitions through their suites: counts in DuckDB, expectations on the counts."""

from __future__ import annotations

from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import batch_counts
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition


def view_cleaned(engine: Engine, cleaned: Partition, *, clicks: bool = True, transitions: bool = True) -> None:
    """Name a cleaned_log and what is read of it."""
    engine.view("cleaned_log", cleaned.files("log"))
    view_searches(engine, clicks=clicks, transitions=transitions)


def view_searches(engine: Engine, *, clicks: bool = True, transitions: bool = True) -> None:
    """Name what is read of the table cleaned_log: searches, clicks, and each search with the next one.

    Clicks or transitions that are switched off are there without rows.
    """
    engine.statement_view("cleaned_queries")
    engine.statement_view("cleaned_clicks", without_rows=not clicks)
    engine.statement_view("following_queries", without_rows=not transitions)


def inspect_raw_log(engine: Engine, partition: Partition, month: Month) -> CheckResult:
    engine.view("raw_log", partition.files("log"))
    counts = engine.frame("check_raw_log", month_start=month.start, month_end=month.end)
    return run_suite("raw_log", {"counts": counts})


def inspect_rejected_log(engine: Engine, partition: Partition, max_rejected_share: float) -> CheckResult:
    """Whether every row of an ingest batch is accounted for, and not too many of them were rejected."""
    engine.view("rejected_log", partition.files("rejected"))
    rows = batch_counts(partition)
    counts = engine.frame("check_rejected_log", rows_read=rows["read"], rows_accepted=rows["accepted"])
    return run_suite("rejected_log", {"counts": counts}, parameters={"max_rejected_share": max_rejected_share})


def inspect_cleaned_log(engine: Engine, partition: Partition, month: Month) -> CheckResult:
    engine.view("cleaned_log", partition.files("log"))
    counts = engine.frame("check_cleaned_log", month_start=month.start, month_end=month.end)
    return run_suite("cleaned_log", {"counts": counts})
