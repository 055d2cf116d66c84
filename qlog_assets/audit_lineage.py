"""Follows a release back to its landing files and counts its limits again, as far as the data is still there."""

from __future__ import annotations

from qlog_assets.drawing import mechanism
from qlog_assets.engine import Engine
from qlog_assets.ingest import landed_files
from qlog_assets.ledger import Charge, Ledger
from qlog_assets.warehouse import Partition, Warehouse, WarehouseError, file_checksum

Found = tuple[list[str], list[str]]


def lineage_findings(warehouse: Warehouse, ledger: Ledger, charge: Charge) -> Found:
    """Findings and notes about what a release was made from."""
    entry = mechanism(charge.mechanism)
    limited = entry.inputs[0]
    partition, damage = input_partition(warehouse, limited, charge)
    if damage:
        return [damage], []
    if partition is None:
        return [], [f"{limited} is no longer there: its limits cannot be counted again"]
    findings: list[str] = []
    notes: list[str] = []
    try:
        partition.verify()
    except WarehouseError as error:
        return [f"lineage: {error}"], []
    with Engine.open(warehouse) as engine:
        result = entry.inspect(engine, partition)
        if not result.passed:
            findings.append(f"limits: {result.reason}")
        for table in partition.provenance.tables:
            recorded = partition.provenance.tables[table].content_digest
            again = engine.facts(partition.path, partition.files(table), digest="digest_rows")
            if again.content_digest != recorded:
                findings.append(f"lineage: {limited} {charge.month}: {table} does not say what its provenance says")
    up_findings, up_notes = upstream_findings(warehouse, partition)
    return findings + up_findings, notes + up_notes


def input_partition(warehouse: Warehouse, asset: str, charge: Charge) -> tuple[Partition | None, str | None]:
    """The partition whose content the ledger recorded for a release, whichever shape it has by now."""
    wanted = charge.inputs.get(asset)
    unreadable = None
    for path in sorted((warehouse.private / asset / charge.month).glob("*/provenance.json")):
        try:
            partition = warehouse.partition(asset, charge.month, path.parent.name)
            if partition.provenance.content_digest == wanted:
                return partition, None
        except WarehouseError as error:
            unreadable = f"lineage: {error}"
    return None, unreadable


def upstream_findings(warehouse: Warehouse, partition: Partition) -> Found:
    """Verify every partition above one, up to the landing files; what retention deleted becomes a note."""
    findings: list[str] = []
    notes: list[str] = []
    for name, shape in partition.provenance.upstream.items():
        asset, _, batch = name.partition(":")
        month = batch or partition.provenance.month
        if asset == "landing":
            if shape not in {file_checksum(path) for path, _ in landed_files(warehouse)}:
                notes.append(f"the landing file of {month} is no longer there")
            continue
        if not (warehouse.private / asset / month / shape).exists():
            notes.append(f"{asset} {month} is no longer there")
            continue
        try:
            above = warehouse.partition(asset, month, shape)
            above.verify()
        except WarehouseError as error:
            findings.append(f"lineage: {error}")
            continue
        more_findings, more_notes = upstream_findings(warehouse, above)
        findings += more_findings
        notes += more_notes
    return findings, notes
