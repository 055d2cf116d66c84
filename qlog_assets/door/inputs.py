"""What the door asks of its inputs: that they are whole, belong together, and keep each user within the limits.

It reads provenance and files and says no by name; it draws nothing and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qlog_assets.checks.suites import CheckResult
from qlog_assets.errors import QlogError, RefusedError
from qlog_assets.ledger import Book, Charge
from qlog_assets.mechanisms.inputs import is_of_this_version, public_inputs
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import EARLIER_NAME, LANDING_BATCH
from qlog_assets.pipeline.entered import refuse_unentered
from qlog_assets.pipeline.released_domain import domains_of
from qlog_assets.pipeline.steering import Steering
from qlog_assets.pipeline.user_key import one_user_of, refuse_other_users
from qlog_assets.pipeline.withdrawal import withdrawn_sources
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, WarehouseError
from qlog_assets.storage.warehouse import Warehouse


class DoorError(QlogError):
    """The door's refusal: nothing was drawn, charged or published by the request that got it."""


class RefusedByDoorError(DoorError, RefusedError):
    """The door's refusal of a request that nothing is wrong with, but that may not be had as it is."""


def collect_inputs(
    warehouse: Warehouse, mechanism: Mechanism, month: Month, parameters: Mapping[str, Any], book: Book
) -> dict[str, Partition]:
    """The partitions a mechanism reads: intact, of one chain, what the ledger says was written, and shaped by the
    parameters of the request."""
    try:
        inputs = {asset: warehouse.current(asset, month) for asset in mechanism.inputs}
        for partition in inputs.values():
            partition.verify()
            refuse_stale(warehouse, partition, month)
            refuse_withdrawn_rows(warehouse, partition, book)
        inputs |= public_inputs(warehouse, inputs)
        refuse_unentered(book, inputs.values())
    except WarehouseError as error:
        raise DoorError(f"the door refuses {mechanism.name} {month}: {error}") from None
    for asset, partition in inputs.items():
        refuse_mixed(mechanism.name, asset, month, partition.provenance.parameters, parameters)
    return inputs


def read_digests(mechanism: Mechanism, inputs: Mapping[str, Partition]) -> dict[str, str]:
    """The digests of what a mechanism reads. The limited stage and public lists decide it: counts follow from them."""
    digested = [mechanism.limited_stage.name, *(name for name in mechanism.public_inputs if name in inputs)]
    return {name: inputs[name].provenance.content_digest for name in digested}


def refuse_other_unit(warehouse: Warehouse, month: Month, stated: str) -> None:
    """Raise if a batch of the month's log has other users than the policy says, whom the manifest is about to name.

    Batches that retention deleted cannot be asked; what the policy says stands then, as it did when they were read.
    """
    if not warehouse.has_current("raw_log", month):
        return
    for name in warehouse.current("raw_log", month).provenance.upstream:
        asset, _, key = name.partition(":")
        if key and warehouse.has_current(asset, key):
            refuse_other_users(key, one_user_of(warehouse.current(asset, key)), stated)


def refuse_other_domain(warehouse: Warehouse, dataset: str, partition: Partition) -> None:
    """Raise if an input was counted over a release that is not published now, or over other queries than it has.

    That no δ is spent on the pairs rests on it: each of its queries is public, and each has one number.
    """
    for domain in domains_of(warehouse, partition):
        trouble = "it is of another data set" if domain.charge.dataset != dataset else domain.trouble
        if trouble is None and not domain.is_held_by(partition):
            trouble = f"{partition.provenance.asset} has other queries"
        if trouble is not None:
            raise DoorError(f"the door refuses to draw over {domain.charge.release_id}: {trouble}")


def refuse_lost_steering(charge: Charge, steering: Steering | None) -> None:
    """Raise if a reserved draw cannot be made any more because the release that steers it was taken away since."""
    if steering is not None and steering.trouble is not None:
        raise DoorError(
            f"the door cannot draw {charge.release_id}: it is steered by {steering.charge.release_id}, and "
            f"{steering.trouble}: nothing was drawn, and qlog ledger abandon {charge.release_id} gives its charge back"
        )


def refuse_stale(warehouse: Warehouse, partition: Partition, month: str) -> None:
    """Raise if anything upstream was rebuilt since, or by other code: a half-rebuilt chain describes no single log.

    An upstream partition that retention deleted cannot be compared; the content digest recorded downstream stands.
    """
    made = partition.provenance
    if not is_of_this_version(partition):
        raise WarehouseError(f"{made.asset} {month} was made by another version of the software: materialize it again")
    for name, shape in made.upstream.items():
        # A month's raw log comes from batches, which have keys of their own; everything else is of the same month.
        asset, _, batch = name.partition(":")
        key = batch or month
        read_again = asset == EARLIER_NAME and warehouse.has_current(LANDING_BATCH, key)
        if not read_again and not warehouse.has_current(asset, key):
            continue
        above = warehouse.current(LANDING_BATCH if read_again else asset, key)
        if above.provenance.shape != shape:
            raise WarehouseError(
                f"{made.asset} {month} was made from a {asset} that is no longer current: "
                f"materialize {made.asset} again"
            )
        refuse_stale(warehouse, above, key)


def refuse_withdrawn_rows(warehouse: Warehouse, partition: Partition, book: Book) -> None:
    """Raise if a batch that an input was made from was withdrawn since."""
    for record in withdrawn_sources(warehouse, partition, book):
        made = partition.provenance
        raise WarehouseError(
            f"{made.asset} {made.month} holds rows of the batch {record.batch}, which {record.words}: materialize "
            "raw_log and what follows it again"
        )


def refuse_mixed(
    mechanism: str, asset: str, month: Month, shaped_by: Mapping[str, Any], asked: Mapping[str, Any]
) -> None:
    """Raise if an input was shaped by another value of a parameter than the request's."""
    for name, value in shaped_by.items():
        if name in asked and asked[name] != value:
            raise DoorError(
                f"the door refuses {mechanism} {month}: {asset} was made with {name} = {value} and the request says "
                f"{asked[name]}: materialize {asset} with {name} = {asked[name]}, or ask with {name} = {value}"
            )


def refuse_broken_limits(engine: Engine, mechanism: Mechanism, month: Month, limited: Partition) -> CheckResult:
    """Count every user's contributions on the very partition about to be used; raise if anybody has too many, or one of
    another month."""
    inspect = mechanism.limited_stage.inspect
    assert inspect is not None  # a mechanism without it cannot be made
    result = inspect(engine, limited)
    if not result.passed:
        asset = limited.provenance.asset
        raise DoorError(
            f"the door refuses {mechanism.name} {month}: {asset} breaks the contribution limits ({result.reason}): "
            f"materialize {asset} again"
        )
    return result
