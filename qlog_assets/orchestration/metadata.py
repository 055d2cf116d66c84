"""What a materialization says of itself in the UI: rows, seconds, limits, costs, versions. Never a value of the log."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa

from qlog_assets.checks.suites import CheckResult
from qlog_assets.door.receipt import Receipt
from qlog_assets.ledger import Ledger
from qlog_assets.ledger.budget import readable, readable_left
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.policy import Policy
from qlog_assets.report.charts import picture_counts, picture_errors
from qlog_assets.report.datasheet_errors import tell_noise
from qlog_assets.report.datasheet_numbers import Numbers, numbers_of
from qlog_assets.report.manifest import MANIFEST_NAME, load_manifest, words_of
from qlog_assets.report.markdown import table as markdown_table
from qlog_assets.report.public_reading import PublicRelease
from qlog_assets.report.spending import spending_by_month, spending_picture
from qlog_assets.report.table_noise import TableNoise
from qlog_assets.report.tables import ERROR_COLUMN, MONTH_COLUMN, Column
from qlog_assets.storage.partition import Partition

PREVIEW_ROWS = 10
LINKED = re.compile(r"://|www\.|mailto:|xmpp:|@", re.IGNORECASE)
"""What GitHub's Markdown, which Dagster shows, makes a link of without being asked."""
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


def table_metadata(published: Path, table: str) -> dict[str, Any]:
    """What is public of a published table: pictures of its counts and their errors, its first rows, and its noise."""
    release = PublicRelease(published, load_manifest(published / MANIFEST_NAME))
    rows, facts = release.table(table), release.facts(table)
    return {
        "dagster/row_count": rows.num_rows,
        "dagster/column_schema": column_schema([Column(**column) for column in facts["columns"]]),
        **count_pictures(rows, facts),
        "preview": dg.MetadataValue.md(rows_as_markdown(rows.slice(0, PREVIEW_ROWS))),
        **noise_metadata(facts, numbers_of(words_of(release.manifest))),
        "path": dg.MetadataValue.path(published),
    }


def column_schema(columns: Iterable[Column]) -> dg.TableSchema:
    """The columns of a public table, as its page lists them."""
    return dg.TableSchema([dg.TableColumn(each.name, each.type, description=each.description) for each in columns])


def rows_as_markdown(rows: pa.Table) -> str:
    """Rows as a table, without the month that the page is of. What people typed stands there as text: it can neither
    link nor load nor break the table."""
    rows = rows.drop_columns([name for name in rows.column_names if name == MONTH_COLUMN])
    shown = [[as_plain_text(str(value)) for value in row.values()] for row in rows.to_pylist()]
    return markdown_table(rows.column_names, shown)


def as_plain_text(text: str) -> str:
    """Somebody's words in a Markdown page: neither a link nor a picture nor a tag, whatever they typed.

    Bare addresses become links, and a backslash does not stop that: a space without width stands in them.
    """
    escaped = (f"\\{sign}" if sign in "\\`*[]<>!" else sign if sign.isprintable() else "\ufffd" for sign in text)
    return LINKED.sub(lambda found: f"{found[0][:-1]}\u200b{found[0][-1]}", "".join(escaped))


def count_pictures(rows: pa.Table, facts: Mapping[str, Any]) -> dict[str, Any]:
    """How large the counts of a table are, and how far off they may be for their size; of tables that have counts."""
    counted = [column["name"] for column in facts["columns"] if column["type"] == "integer"]
    if facts["threshold"] is None or not counted:
        return {}
    counts = rows.column(counted[0]).to_numpy()
    pictures = {"counts": picture("Rows by noisy count", picture_counts(counts, facts["threshold"]))}
    if "noise" in facts:
        errors = rows.column(ERROR_COLUMN).to_numpy() if ERROR_COLUMN in rows.column_names else None
        drawn = picture_errors(TableNoise.from_json(facts["noise"]), counts, errors)
        pictures["expected error by count"] = picture("Standard error by count", drawn)
    return pictures


def budget_picture(ledger: Ledger, dataset: str) -> dict[str, Any]:
    """What was spent over the months, with the budget; nothing where nothing was charged yet."""
    rows, known = spending_by_month(ledger, dataset), ledger.dataset(dataset)
    if not rows:
        return {}
    drawn = spending_picture(rows, float(known.budget.epsilon), known.window_months)
    return {"budget over time": picture("Privacy budget over months", drawn)}


def picture(title: str, svg: str) -> dg.MarkdownMetadataValue:
    """A picture inside the page itself: Dagster's pages load nothing from elsewhere."""
    encoded = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return dg.MetadataValue.md(f"![{title}](data:image/svg+xml;base64,{encoded})")


def noise_metadata(facts: Mapping[str, Any], numbers: Numbers) -> dict[str, Any]:
    """What a manifest says of the noise on a table's counts; nothing where its draw did not say."""
    told = tell_noise(facts, numbers)
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
    result: CheckResult, what_next: str, severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
) -> dg.AssetCheckResult:
    """A suite's verdict as Dagster shows it, and what somebody does who finds that it failed."""
    return dg.AssetCheckResult(
        passed=result.passed,
        severity=severity,
        description=result.reason if result.passed else f"{result.reason}. What next: {what_next}",
        # In words: of a number Dagster draws a curve over time.
        metadata={"suite": f"{result.suite}, {result.evaluated} expectations evaluated"},
    )


def seconds_since(started: float) -> float:
    return round(time.monotonic() - started, 3)
