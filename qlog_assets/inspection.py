"""Looks at partitions through their suites: counts in DuckDB, expectations on the counts. Assets and door both call it.

Which numbers are counted is in `sql/check_*.sql`; what they must be is in `expectations/`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from qlog_assets.checks import CheckResult, by_table, run_suite
from qlog_assets.engine import Engine
from qlog_assets.ingest import batch_counts
from qlog_assets.months import Month
from qlog_assets.warehouse import Partition, digest_of

CAPPED_TABLES = ("queries", "clicks", "transitions")
ITEM_KINDS = ("keywords", "queries", "pairs", "clicks")


def view_capped(engine: Engine, capped: Partition) -> None:
    """Name the tables of a capped_log `capped_<table>`."""
    for table in CAPPED_TABLES:
        engine.view(f"capped_{table}", capped.files(table))


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


def once_a_content(inspect: Callable[[Engine, Partition], CheckResult]) -> Callable[[Engine, Partition], CheckResult]:
    """Look at the same files once a process. A check, a draw and a publication ask the same of one partition in a row.

    A file that was touched in between is looked at again, and so is one that another checksum vouches for. That a file
    has the checksum that vouches for it is for whoever asks to verify: the door does, before every answer it uses.
    """
    answers: dict[str, CheckResult] = {}

    @wraps(inspect)
    def remembered(engine: Engine, partition: Partition) -> CheckResult:
        made = partition.provenance
        vouched = {name: facts.files for name, facts in made.tables.items()}
        question = digest_of({"files": partition.files_on_disk(), "vouched": vouched, "parameters": made.parameters})
        if question not in answers:
            answers[question] = inspect(engine, partition)
        return answers[question]

    return remembered


@once_a_content
def inspect_capped_log(engine: Engine, partition: Partition) -> CheckResult:
    """Whether no user holds more than the limits this very partition was made with, nothing twice, and nothing of
    another month."""
    view_capped(engine, partition)
    limits, month = partition.provenance.parameters, Month(partition.provenance.month)
    return run_suite(
        "capped_log",
        by_table(engine.frame("check_capped_log", month_start=month.start, month_end=month.end)),
        parameters={
            "queries_per_user": limits["queries_per_user"],
            "clicks_per_user": limits["clicks_per_user"],
            "transitions_per_user": limits["queries_per_user"] - 1,
        },
    )


@once_a_content
def inspect_zealous_items(engine: Engine, partition: Partition) -> CheckResult:
    """Whether no user holds more items of a kind than this very partition was made with, and nothing twice."""
    import pandas as pd

    counts = []
    for kind in ITEM_KINDS:
        engine.view("contributions", partition.files(kind))
        counts.append(engine.frame("check_contributions", table_name=kind))
    limits = {"items_per_user": partition.provenance.parameters["items_per_user"]}
    return run_suite("zealous_items", {"table": pd.concat(counts)}, parameters=limits)
