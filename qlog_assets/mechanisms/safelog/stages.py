"""Safelog's stages."""

from __future__ import annotations

from qlog_assets.checks.memory import once_a_content
from qlog_assets.checks.suites import CheckResult, by_table, run_suite
from qlog_assets.months import Month
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition

CAPPED_TABLES = ("queries", "clicks", "transitions")


def view_capped(engine: Engine, capped: Partition) -> None:
    """Name the tables of a capped_log `capped_<table>`."""
    for table in CAPPED_TABLES:
        engine.view(f"capped_{table}", capped.files(table))


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
