"""Forgetting: deletes the private data of months whose release is published. Releases, ledger and audits stay.

What is deleted is recorded in the ledger, so that an audit can say what can no longer be counted again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qlog_assets.drawing import register
from qlog_assets.draws import discard_draw
from qlog_assets.ingest import batches, landed_files
from qlog_assets.ledger import Ledger
from qlog_assets.months import Month
from qlog_assets.settings import Policy
from qlog_assets.warehouse import Partition, Warehouse, file_checksum, remove_whole

FORGOTTEN_ASSETS = ("raw_log", "cleaned_log", *(asset for entry in register().values() for asset in entry.inputs))


def forget_before(
    warehouse: Warehouse, policy: Policy, ledger: Ledger, before: Month, delete_landing: bool
) -> dict[str, Any]:
    """Delete the private partitions and draws of published months before a month; say which landing files hold them.

    A month without a published release keeps its data: what was never released can still be asked for.
    """
    published = {
        charge.month for charge in ledger.charges(policy.dataset) if charge.state in ("published", "withdrawn")
    }
    months = sorted(month for month in held_months(warehouse) if month < before and month in published)
    if not months:
        return {"months": [], "landing": [], "landing_deleted": []}
    # A batch may span months: what it holds of the forgotten ones goes, what it holds of others stays.
    affected = [batch for batch in batches(warehouse) if set(months) & set(batch.provenance.tables)]
    landing = landing_files_of(warehouse, affected)
    deletable = [path for path, batch in landing if set(batch.provenance.tables) - {"rejected"} <= set(months)]
    # Recorded before anything is deleted: a crash in between leaves a note and a second run to finish the work.
    ledger.record("forgotten", policy.dataset, {"months": [str(month) for month in months], "landing": delete_landing})
    for month in months:
        for asset in FORGOTTEN_ASSETS:
            remove_whole(warehouse.private / asset / month)
    for charge in ledger.charges(policy.dataset):
        if charge.month in months and charge.state == "published":
            discard_draw(warehouse, charge.fingerprint)
    for batch in affected:
        forget_batch_months(warehouse, batch, months)
    if delete_landing:
        for path in deletable:
            path.unlink(missing_ok=True)
    return {
        "months": [str(month) for month in months],
        "landing": sorted(path.name for path, _ in landing),
        "landing_deleted": sorted(path.name for path in deletable) if delete_landing else [],
    }


def held_months(warehouse: Warehouse) -> set[Month]:
    """The months of which any private partition is left."""
    found: set[Month] = set()
    for asset in FORGOTTEN_ASSETS:
        found.update(warehouse.months(asset))
    return found


def landing_files_of(warehouse: Warehouse, affected: list[Partition]) -> list[tuple[Path, Partition]]:
    """The landing files that some batches were read from, by their content."""
    by_checksum = {batch.provenance.upstream["landing"]: batch for batch in affected}
    return [
        (path, by_checksum[checksum])
        for path, _ in landed_files(warehouse)
        if (checksum := file_checksum(path)) in by_checksum
    ]


def forget_batch_months(warehouse: Warehouse, batch: Partition, months: list[Month]) -> None:
    """Take the forgotten months out of a batch. Its rejected rows go with the last of its months."""
    left = set(batch.provenance.tables) - {"rejected"} - set(months)
    if not left:
        remove_whole(batch.path.parent)
        return
    warehouse.drop_tables(batch, [str(month) for month in months])
