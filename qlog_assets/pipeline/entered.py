"""Partitions written with an entry in the ledger, and kept only while they are what that entry says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from qlog_assets.ledger.book import Book, find_trouble
from qlog_assets.storage.partition import Partition, Provenance, TableFacts, WarehouseError
from qlog_assets.storage.warehouse import Warehouse


def write_entered(
    warehouse: Warehouse,
    provenance: Provenance,
    write: Callable[[Path], dict[str, TableFacts]],
    book: Book | None,
    *,
    measured: Mapping[str, int] | None = None,
    make_current: bool = True,
    usable: Callable[[Partition], bool] = lambda partition: True,
) -> tuple[Partition, bool]:
    """Write a partition and enter it, or keep what is there; returns it and whether it was written anew.

    What lies there and is not what the ledger says was written, or is not known to it, is made again: a hand may have
    changed it, checksums and all. Without a book nothing is entered, and nothing that is made can be released.
    """
    if book is None:
        return warehouse.write_partition(provenance, write, measured=measured, make_current=make_current, usable=usable)
    return warehouse.write_partition(
        provenance,
        write,
        measured=measured,
        make_current=make_current,
        usable=lambda partition: book.knows(partition) and usable(partition),
        announce=book.enter,
    )


def refuse_unentered(book: Book, partitions: Iterable[Partition]) -> None:
    """Raise if anything of this is not what the ledger says was written."""
    entries = book.entries()
    for partition in partitions:
        trouble = find_trouble(partition, entries)
        if trouble is not None:
            raise WarehouseError(f"{trouble}: materialize {partition.provenance.asset} again")
