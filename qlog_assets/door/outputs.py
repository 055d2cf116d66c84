"""What the door asks before it shows anything: that the draw is the recorded one, and what lies in public is its own.

It reads and says no by name; it publishes nothing. What is asked of a draw's inputs is `inputs.py`.
"""

from __future__ import annotations

from pathlib import Path

from qlog_assets.door.draws import Draw, DrawError, load_draw
from qlog_assets.door.inputs import DoorError, RefusedByDoorError, refuse_broken_limits
from qlog_assets.door.publication import differences_from_draw
from qlog_assets.ledger import Book, Charge
from qlog_assets.mechanisms.inputs import is_of_this_version
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.months import Month
from qlog_assets.pipeline.withdrawal import withdrawn_sources
from qlog_assets.report.public_zone import find_damage
from qlog_assets.storage.engine import OpenEngine
from qlog_assets.storage.partition import WarehouseError
from qlog_assets.storage.warehouse import Warehouse


def recorded_draw(warehouse: Warehouse, charge: Charge, *, needed: bool) -> Draw | None:
    """The charge's stored draw, if it is there; where it is needed, refused if the ledger recorded another one.

    A release that is public already does not need it: what is wrong with its draw is for the audit to tell.
    """
    if not (warehouse.draws / charge.fingerprint).exists():
        return None
    try:
        draw = load_draw(warehouse, charge.fingerprint)
    except DrawError:
        if needed:
            raise
        return None
    if draw.digest == charge.draw_digest:
        return draw
    if needed:
        raise DoorError(
            f"the stored draw of {charge.release_id} is not the one the ledger recorded: it was changed on disk; "
            "restore private/draws from a backup"
        )
    return None


def refuse_failed(charge: Charge, draw: Draw | None) -> None:
    """Refuse a draw that failed after noise was drawn for it: there is nothing to publish, and no second try."""
    if draw is not None and draw.release.failure is not None:
        raise DoorError(
            f"the draw of {charge.release_id} failed ({draw.release.failure}) after its noise was drawn, so its charge "
            "stays and nothing can be published of it: withdraw it, and say --again REASON for a new draw at a new "
            "charge once the fault is mended"
        )


def refuse_changed_inputs(
    warehouse: Warehouse,
    book: Book,
    open_engine: OpenEngine,
    mechanism: Mechanism,
    draw: Draw,
    *,
    is_public: bool,
) -> None:
    """Refuse while what the draw was made from lies there changed; what retention deleted cannot be looked at.

    Of a release that is public, what is still as the ledger says it was written needs no second look. A draw that
    nobody has seen is not published once a file that it was made from was withdrawn.
    """
    month, limited = Month(draw.release.month), mechanism.limited_stage.name
    shape = draw.release.inputs[limited]
    if not (warehouse.private / limited / month / shape).exists():
        return
    try:
        partition = warehouse.partition(limited, month, shape)
        partition.verify()
    except WarehouseError as error:
        raise DoorError(f"the door refuses {mechanism.name} {month}: {error}") from None
    if not is_public and (withdrawals := withdrawn_sources(warehouse, partition, book)):
        raise RefusedByDoorError(
            f"the door refuses to publish the draw of {mechanism.name} {month}: it has rows of {withdrawals[0].batch}, "
            f"which {withdrawals[0].words}: withdraw the release, and draw again for a reason, at a new charge"
        )
    # What an earlier version drew from was checked by that version when it was drawn; this one counts other columns.
    if is_of_this_version(partition) and not (is_public and book.knows(partition)):
        with open_engine() as engine:
            refuse_broken_limits(engine, mechanism, month, partition)


def refuse_damaged(mechanism: Mechanism, charge: Charge, target: Path, draw: Draw | None) -> None:
    """Never serve files that are not what was published, nor what was published that is not what was drawn."""
    found = find_damage(target, charge.manifest_digest)
    if not found and draw is not None:
        found = differences_from_draw(target, draw, mechanism)
    if found:
        raise DoorError(
            f"the door refuses to serve {charge.release_id}: {found[0]}: remove its directory from released/ and "
            "run again while its draw is stored, or restore it from a backup"
        )
