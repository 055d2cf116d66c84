"""What a materialization says about itself in the UI: rows, seconds, limits, costs. Never a value of the log."""

from __future__ import annotations

import time
from typing import Any

import dagster as dg

from qlog_assets.checks.suites import CheckResult
from qlog_assets.door.door import Receipt
from qlog_assets.ledger import Ledger
from qlog_assets.ledger.budget import readable
from qlog_assets.storage.partition import Partition


def partition_metadata(partition: Partition, started: float, fresh: bool) -> dict[str, Any]:
    """The facts of a private partition. `fresh` is false where an intact partition of the same shape was kept."""
    tables = partition.provenance.tables
    return {
        "dagster/row_count": sum(facts.rows for facts in tables.values()),
        **{f"rows {name}": facts.rows for name, facts in tables.items() if len(tables) > 1},
        "seconds": round(time.monotonic() - started, 3),
        "written anew": fresh,
        "shape": partition.provenance.shape,
        **{name.replace("_", " "): str(value) for name, value in partition.provenance.parameters.items()},
    }


def receipt_metadata(receipt: Receipt, ledger: Ledger, started: float) -> dict[str, Any]:
    """What the door answered, and what is left of the budget."""
    charge, left = receipt.charge, ledger.left(receipt.charge.dataset)
    facts: dict[str, Any] = {
        "release id": charge.release_id,
        "state": charge.state,
        "variant": charge.variant,
        "epsilon": readable(charge.epsilon),
        "delta": readable(charge.delta),
        "epsilon left": readable(left.epsilon),
        "delta left": readable(left.delta),
        "guarantee": receipt.guarantee.sentence,
        "seconds": round(time.monotonic() - started, 3),
    }
    if receipt.path is None:
        # Of a draw alone: publishing never charges, and saying so would read as if the release had been free.
        facts["charged by this run"] = receipt.charged
    facts |= {f"parameter {name}": str(value) for name, value in charge.parameters.items()}
    facts |= {
        f"threshold {name}": value for name, value in (receipt.thresholds or receipt.guarantee.thresholds).items()
    }
    return facts


def to_check_result(result: CheckResult) -> dg.AssetCheckResult:
    """A suite's verdict as Dagster shows it."""
    return dg.AssetCheckResult(
        passed=result.passed,
        severity=dg.AssetCheckSeverity.ERROR,
        description=result.reason,
        metadata={"suite": result.suite, "expectations evaluated": result.evaluated},
    )
