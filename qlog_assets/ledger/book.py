"""The book of what was made: each private table's digest, entered in the ledger's chain when the table is written.

A digest beside the data is computed again by whoever changes the data; one in the chain is not, as long as the chain
is watched. Whoever reads a partition for a release asks here whether it is what was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from qlog_assets.ledger.ledger import Ledger
from qlog_assets.ledger.records import BatchWithdrawal, Made
from qlog_assets.storage.digests import line_digest
from qlog_assets.storage.partition import Partition, Provenance

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Book:
    """The entries of one data set: one ledger may serve several."""

    ledger: Ledger
    dataset: str

    def enter(self, provenance: Provenance) -> None:
        """Enter what was just written, from memory: nobody has had it in hands."""
        self.ledger.record_made(self.dataset, entry_of(provenance))

    def entries(self) -> dict[Key, Made]:
        return self.ledger.made(self.dataset)

    def knows(self, partition: Partition) -> bool:
        """Whether a partition is there as the ledger says it was written."""
        return find_trouble(partition, self.entries()) is None

    def withdrawals(self) -> dict[tuple[str, str], BatchWithdrawal]:
        """The batches that are withdrawn, by the content of their landing file and how it was read."""
        return {each.identity: each for each in self.ledger.batch_withdrawals(self.dataset) if each.in_force}

    def contradicts(self, partition: Partition) -> bool:
        """Whether the ledger says that something else was written. It says nothing of what an earlier version made.

        Entries of other shapes alone say it, too: whoever edits a parameter in the provenance gets another shape.
        """
        entries, (asset, month, _) = self.entries(), key_of(partition)
        is_known = any(key[:2] == (asset, month) for key in entries)
        return is_known and find_trouble(partition, entries) is not None


def entry_of(provenance: Provenance) -> Made:
    """What the ledger is told of a partition: its shape stands for parameters, inputs and code."""
    return Made(
        provenance.asset,
        provenance.month,
        provenance.shape,
        {name: line_digest(asdict(facts)) for name, facts in provenance.tables.items()},
        line_digest(provenance.measured),
    )


def key_of(partition: Partition) -> Key:
    made = partition.provenance
    return made.asset, made.month, made.shape


def find_trouble(partition: Partition, entries: Mapping[Key, Made]) -> str | None:
    """In what a partition's provenance is not what the ledger says was written; None if it is.

    That its files are those of its provenance is for `Partition.verify` to say.
    """
    made = entry_of(partition.provenance)
    label = f"{made.asset} {made.month}"
    known = entries.get(key_of(partition))
    if known is None:
        return f"{label}: the ledger has no entry of it"
    changed = [name for name, digest in made.tables.items() if known.tables.get(name) != digest]
    # A table that a forgotten month took with it is missing for a reason.
    changed += [name for name in known.tables if name not in made.tables and name not in known.forgotten]
    if changed or made.measured != known.measured:
        what = ", ".join(sorted(changed)) or "its counts"
        return f"{label} is not what the ledger says was written: {what} was changed afterwards"
    return None
