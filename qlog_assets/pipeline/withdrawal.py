"""Withdrawing a batch: its rows enter no raw log from then on. What was released from it stays as it is."""

from __future__ import annotations

from dataclasses import dataclass

from qlog_assets.errors import QlogError
from qlog_assets.ledger import BatchWithdrawal, Book
from qlog_assets.ledger.chain import BATCH_RESTORED, BATCH_WITHDRAWN
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import EARLIER_NAME, LANDING_BATCH, identity_of, months_of, readable_batches
from qlog_assets.pipeline.landing import Batch, is_named_for, landed_files
from qlog_assets.pipeline.raw_log import renew_raw_log
from qlog_assets.storage.partition import Partition, WarehouseError
from qlog_assets.storage.warehouse import Warehouse


@dataclass(frozen=True)
class Withdrawn:
    """What a withdrawal did: the ledger's record of it, and the raw log of each month of the batch since."""

    batch: Partition
    record: BatchWithdrawal
    recorded_now: bool
    """Whether this very call recorded it; a second one only finishes what the first may have left undone."""
    months: dict[Month, Partition | None]
    """None where no other file has rows of the month."""


def withdraw_batch(warehouse: Warehouse, book: Book, key: str, reason: str, run_id: str | None = None) -> Withdrawn:
    """Record that a batch is withdrawn, and make the raw log of its months without it.

    Copies of the file under other names are withdrawn with it: they hold the same searches. In the ledger first: killed
    in between, nothing can be drawn from the old raw log, and a second call makes the new one.
    """
    batch = known_batch(warehouse, key)
    identity = identity_of(batch.provenance)
    recorded_now = book.ledger.record_batch(BATCH_WITHDRAWN, book.dataset, key, identity, reason)
    same = [each for each in readable_batches(warehouse) if identity_of(each.provenance) == identity]
    months = sorted({Month(name) for each in same for name in months_of(each)})
    renewed = {month: renew_raw_log(warehouse, month, run_id, book) for month in months}
    return Withdrawn(batch, book.withdrawals()[identity], recorded_now, renewed)


def restore_batch(book: Book, batch: Batch, reason: str) -> bool:
    """Record that a withdrawn file is to be used again after all; whether it was withdrawn until now."""
    return book.ledger.record_batch(BATCH_RESTORED, book.dataset, batch.key, identity_of(batch), reason)


def refuse_withdrawn(book: Book, batch: Batch, how: str) -> None:
    """Raise if this very file, read in this very way, was withdrawn; `how` says how to take it in all the same."""
    record = book.withdrawals().get(identity_of(batch))
    if record is not None:
        raise QlogError(
            f"{batch.source.path.name}: this very file, read in this way, {record.words}: ingest a corrected file, or "
            f"{how}"
        )


def known_batch(warehouse: Warehouse, key: str) -> Partition:
    """A batch by its key."""
    for batch in readable_batches(warehouse):
        if batch.provenance.month == key:
            return batch
    raise QlogError(f"there is no batch {key}: qlog ingest list shows those there are")


def find_key(warehouse: Warehouse, word: str) -> str:
    """The key of a batch that a person named, by its key or by its landing file."""
    keys = [batch.provenance.month for batch in readable_batches(warehouse)]
    if word in keys:
        return word
    named = [(path, format) for path, format in landed_files(warehouse) if path.name == word]
    found = sorted({key for key in keys for path, format in named if is_named_for(key, path, format)})
    if len(found) > 1:
        raise QlogError(f"{word} names several batches: say which of {', '.join(found)}")
    return found[0] if found else known_batch(warehouse, word).provenance.month


def withdrawn_sources(warehouse: Warehouse, partition: Partition, book: Book) -> list[BatchWithdrawal]:
    """The withdrawn batches that a partition was made from, as far as what lies above it is still there."""
    withdrawals = book.withdrawals()
    found: dict[str, BatchWithdrawal] = {}

    def follow(made: Partition) -> None:
        for name, shape in made.provenance.upstream.items():
            asset, _, key = name.partition(":")
            try:
                above = warehouse.partition(asset, key or made.provenance.month, shape)
            except WarehouseError:
                continue  # what is no partition, or was deleted: the digests below stand for it
            if asset not in (LANDING_BATCH, EARLIER_NAME):
                follow(above)
            elif (record := withdrawals.get(identity_of(above.provenance))) is not None:
                found[record.batch] = record

    if withdrawals:
        follow(partition)
    return list(found.values())
