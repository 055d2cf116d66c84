"""What a file's rows do to months that were decided before: a release stays as it is, a forgotten month stays away.

Words for the operator, about counts, months and public release ids. Nothing here stops a file.
"""

from __future__ import annotations

from dataclasses import dataclass

from qlog_assets.ledger import Book, Charge
from qlog_assets.ledger.chain import MADE
from qlog_assets.pipeline.batches import LANDING_BATCH, in_use, left_out, months_of, name_of, readable_batches
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.warehouse import Warehouse


@dataclass(frozen=True)
class Interface:
    """How things are asked for where the words are read."""

    again: str
    """One more release of a month, with {mechanism} and {month}."""
    bring_back: str
    withdraw: str
    """Taking a batch out of use, with {batch}."""


COMMANDS = Interface(
    again="qlog release {mechanism} --month {month} --again REASON",
    bring_back="ingest the file again with --yes",
    withdraw="qlog ingest withdraw {batch} --reason WHY",
)
LAUNCHPAD = Interface(
    again="the job {mechanism}_release for {month} with a reason as again in the run's config",
    bring_back="launch ingest for this batch with bring_back_forgotten: true in the run's config",
    withdraw="the job withdraw_batch for {batch}",
)


def forgotten_months(warehouse: Warehouse, book: Book) -> dict[str, str]:
    """The months that were forgotten and of which no batch has rows since, each with the day it was forgotten."""
    days = {
        month: event.at[:10]
        for event in book.ledger.events()
        if event.kind == "forgotten" and event.dataset == book.dataset
        for month in set(event.facts.get("months", [])) - set(event.facts.get("never_released", []))
    }
    held = {month for batch in in_use(readable_batches(warehouse), book.withdrawals()) for month in months_of(batch)}
    return {month: day for month, day in days.items() if month not in held}


def releases_before(book: Book, partition: Partition) -> dict[str, list[Charge]]:
    """The live releases of a batch's months that were made before the batch was first read in this way."""
    made = partition.provenance
    read_at = [
        event.seq
        for event in book.ledger.events()
        if event.kind == MADE
        and event.dataset == book.dataset
        and event.facts.get("asset") == LANDING_BATCH
        and (event.facts.get("month"), event.facts.get("shape")) == (made.month, made.shape)
    ]
    live = [charge for charge in book.ledger.charges(book.dataset) if charge.live and read_at]
    earlier = {month: [c for c in live if c.month == month and c.seq < read_at[0]] for month in months_of(partition)}
    return {month: charges for month, charges in sorted(earlier.items()) if charges}


def describe_late_rows(warehouse: Warehouse, book: Book, partition: Partition, interface: Interface) -> list[str]:
    """A sentence per month that was released before this file was read: what that means, and what can be done."""
    name, batch = name_of(warehouse, partition), partition.provenance.month
    return [
        f"{name}: {partition.rows(month):,} of its rows are of {month}, which was released before this file was read "
        f"({', '.join(charge.release_id for charge in charges)}): the release stays published as it is; one with these "
        f"rows needs a reason and is charged once more "
        f"({interface.again.format(mechanism=charges[-1].mechanism, month=month)}); if these rows should not count, "
        f"withdraw them ({interface.withdraw.format(batch=batch)})"
        for month, charges in releases_before(book, partition).items()
    ]


def describe_left_out(warehouse: Warehouse, partition: Partition, interface: Interface) -> list[str]:
    """A sentence where good rows were left out because their months were forgotten."""
    rows = left_out(partition)
    if not rows:
        return []
    counted = ", ".join(f"{month} ({count:,} rows)" for month, count in sorted(rows.items()))
    return [
        f"{name_of(warehouse, partition)}: holds months that were forgotten: {counted}: these rows were left out; to "
        f"bring them back, {interface.bring_back}; qlog forget --landing deletes a file of forgotten months alone"
    ]


def describe_effect(book: Book, months: list[str], interface: Interface) -> list[str]:
    """A sentence per month of a withdrawn batch that has a release: it stays, and what another one takes."""
    live = [charge for charge in book.ledger.charges(book.dataset) if charge.live and charge.month in months]
    return [
        f"{charge.month}: its release {charge.release_id} stays published as it is and costs nothing more; one "
        "without these rows needs a reason and is charged once more "
        f"({interface.again.format(mechanism=charge.mechanism, month=charge.month)})"
        for charge in sorted(live, key=lambda charge: (charge.month, charge.mechanism))
    ]
