"""ZEALOUS' stages."""

from __future__ import annotations

from qlog_assets.checks.memory import once_a_content
from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition

ITEM_KINDS = ("keywords", "queries", "pairs", "clicks")


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
