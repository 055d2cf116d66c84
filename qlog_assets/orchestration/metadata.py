"""What a materialization says of itself in the UI: rows, seconds, limits, costs, versions. Never a value of the log."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import dagster as dg

from qlog_assets.checks.suites import CheckResult
from qlog_assets.door.door import Receipt
from qlog_assets.ledger import Ledger
from qlog_assets.ledger.budget import readable, readable_left
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.policy import Policy
from qlog_assets.report.datasheet_errors import tell_noise
from qlog_assets.report.datasheet_numbers import numbers_of
from qlog_assets.report.manifest import MANIFEST_NAME, load_manifest, words_of
from qlog_assets.report.markdown import table as markdown_table
from qlog_assets.storage.partition import Partition

OWNERS = ["team:privacy-engineering"]


def materialized(
    partition: Partition, started: float, fresh: bool, further: dict[str, Any] | None = None
) -> dg.MaterializeResult[Any]:
    """What an asset answers for a private partition."""
    return dg.MaterializeResult(
        metadata={**partition_metadata(partition, started, fresh), **(further or {})},
        data_version=dg.DataVersion(data_version(partition)),
    )


def data_version(partition: Partition) -> str:
    """What tells that a partition holds other data: the digest of its rows where it has one, otherwise its shape."""
    tables = partition.provenance.tables.values()
    has_digests = all(facts.content_digest is not None for facts in tables) and bool(tables)
    return partition.provenance.content_digest[:20] if has_digests else partition.provenance.shape


def partition_metadata(partition: Partition, started: float, fresh: bool) -> dict[str, Any]:
    """The facts of a private partition. `fresh` is false where an intact partition of the same shape was kept."""
    tables = partition.provenance.tables
    return {
        "dagster/row_count": sum(facts.rows for facts in tables.values()),
        **{f"rows {name}": facts.rows for name, facts in tables.items() if len(tables) > 1},
        "seconds": seconds_since(started),
        "written anew": fresh,
        "shape": partition.provenance.shape,
        **{name.replace("_", " "): str(value) for name, value in partition.provenance.parameters.items()},
    }


def receipt_metadata(receipt: Receipt, ledger: Ledger, started: float) -> dict[str, Any]:
    """What the door answered, and what is left of the budget."""
    charge, left = receipt.charge, ledger.left(receipt.charge.dataset, receipt.charge.month)
    facts: dict[str, Any] = {
        "release id": charge.release_id,
        "state": charge.state,
        "variant": charge.variant,
        "epsilon": readable(charge.epsilon),
        "delta": readable(charge.delta),
        "unit": receipt.guarantee.unit,
        "relation": receipt.guarantee.relation,
        "epsilon left": readable_left(left.epsilon),
        "delta left": readable_left(left.delta),
        "guarantee": receipt.guarantee.sentence,
        "seconds": seconds_since(started),
    }
    if charge.request.steered_by is not None:
        facts["steered by"] = charge.request.steered_by
    if receipt.path is None:
        # Of a draw alone: publishing never charges, and saying so would read as if the release had been free.
        facts["charged by this run"] = receipt.charged
    read = mechanism(charge.mechanism).printed_parameters(charge.variant, charge.parameters)
    facts |= {f"parameter {name}": str(value) for name, value in read.items()}
    facts |= {
        f"threshold {name}": value for name, value in (receipt.thresholds or receipt.guarantee.thresholds).items()
    }
    return facts


def noise_metadata(published: Path, table: str) -> dict[str, Any]:
    """What a published table's manifest says of the noise on its counts; nothing where its draw did not say."""
    manifest = load_manifest(published / MANIFEST_NAME)
    facts = manifest["tables"][table]
    told = tell_noise(facts, numbers_of(words_of(manifest)))
    if told is None:
        return {}
    return {
        "noise standard deviation in users": float(facts["noise"]["deviation"]),
        "noise": " ".join(told.sentences),
        "errors by size": dg.MetadataValue.md(markdown_table([head for head, _ in told.columns], told.rows)),
    }


def off_metadata(policy: Policy, drawn: Mechanism) -> dict[str, Any]:
    """The parts that the policy switches off because they could not hold a row, such as clicks without urls."""
    off = policy.switched_off(drawn)
    return {"switched off": "\n".join(off)} if off else {}


def study_metadata(facts: dict[str, Any], started: float) -> dict[str, Any]:
    """Where a study lies, how many rows its tables have, its text, and its pictures."""
    folder = Path(facts["path"])
    metadata: dict[str, Any] = {
        "path": dg.MetadataValue.path(folder),
        **{f"rows {name}": len(rows) for name, rows in facts["tables"].items()},
        "text": dg.MetadataValue.md((folder / "study.md").read_text(encoding="utf-8").partition("\n![")[0]),
        **warning_metadata(facts),
        "seconds": seconds_since(started),
    }
    for picture in sorted(folder.glob("*.png")):
        encoded = base64.b64encode(picture.read_bytes()).decode("ascii")
        metadata[picture.stem] = dg.MetadataValue.md(f"![{picture.stem}](data:image/png;base64,{encoded})")
    return metadata


def warning_metadata(facts: dict[str, Any]) -> dict[str, Any]:
    """What must be said of a study or simulation of a month that has no release yet."""
    return {} if facts["warning"] is None else {"warning": facts["warning"]}


def to_check_result(
    result: CheckResult, severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
) -> dg.AssetCheckResult:
    """A suite's verdict as Dagster shows it."""
    return dg.AssetCheckResult(
        passed=result.passed,
        severity=severity,
        description=result.reason,
        metadata={"suite": result.suite, "expectations evaluated": result.evaluated},
    )


def seconds_since(started: float) -> float:
    return round(time.monotonic() - started, 3)
