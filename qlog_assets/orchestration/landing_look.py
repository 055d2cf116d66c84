"""One look of the sensor into the landing zone: what is new and no longer grows, and what nobody will read as it lies.

Nothing is read but checksums. What a person should know is said in words that a tick of the sensor shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qlog_assets.errors import QlogError
from qlog_assets.ledger import Book, Ledger
from qlog_assets.pipeline.batches import LANDING_BATCH, identity_of, is_ingested, readable_batches
from qlog_assets.pipeline.landing import batch_of, landed_files, misplaced_files
from qlog_assets.policy import Policy
from qlog_assets.sources.readers import FORMATS
from qlog_assets.storage.warehouse import Warehouse

SHOWN = 5


@dataclass
class Look:
    """What was found: batches to ingest, what is remembered until the next look, and what is wrong."""

    keys: list[str] = field(default_factory=list)
    cursor: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def look_at_landing(warehouse: Warehouse, policy: Policy, ledger: Ledger | None, seen: Mapping[str, Any]) -> Look:
    """Compare the landing zone with the last look."""
    look = Look(warnings=warn_of_misplaced(warehouse))
    known = readable_batches(warehouse)
    withdrawals = {} if ledger is None else Book(ledger, policy.dataset).withdrawals()
    for path, format in landed_files(warehouse):
        try:
            place, state = f"{format}/{path.name}", look_at(path)
        except OSError:
            continue  # taken away since it was listed
        before = seen.get(place, {})
        is_same = before.get("state") == state
        look.cursor[place] = now = {"state": state, "settled": before.get("settled", False) and is_same}
        if now["settled"]:
            # Once it was in, it is not looked for again: forgetting takes it out.
            if (key := before.get("key")) is not None and not warehouse.has_current(LANDING_BATCH, key):
                now["key"] = key
                look.warnings.append(
                    f"landing/{place} was asked for and is not in: its run waits, works or failed: see the runs of "
                    f"ingest for {key}"
                )
            continue
        # Somebody may still be writing it: only a file that was the same at the last look is read.
        if not is_same:
            continue
        try:
            batch = batch_of(path, format)
            # A column map may need the file's header.
            is_new = identity_of(batch) not in withdrawals and not is_ingested(
                warehouse, known, batch, policy.admission
            )
        except (QlogError, OSError) as error:
            look.warnings.append(f"landing/{place} is not ingested: {error}")
            continue
        now["settled"] = True
        if is_new:
            now["key"] = batch.key
            look.keys.append(batch.key)
    return look


def look_at(path: Path) -> list[int]:
    """What tells that a file was changed, without reading it."""
    facts = path.stat()
    return [facts.st_size, facts.st_mtime_ns]


def warn_of_misplaced(warehouse: Warehouse) -> list[str]:
    """Files that no format's folder holds: nobody would ever read them."""
    strays = [str(path.relative_to(warehouse.home)) for path in misplaced_files(warehouse)]
    if not strays:
        return []
    more = f" and {len(strays) - SHOWN} more" if len(strays) > SHOWN else ""
    folders = ", ".join(f"landing/{format}" for format in FORMATS)
    return [f"{', '.join(strays[:SHOWN])}{more}: no format's folder holds it: move it to one of {folders}"]
