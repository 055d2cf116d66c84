"""The warehouse on disk: zones, and partitions written whole or not at all. Their tables may lie in a store."""

from __future__ import annotations

import logging
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from qlog_assets.months import Month
from qlog_assets.settings import Settings
from qlog_assets.storage.partition import (
    Partition,
    Provenance,
    TableFacts,
    WarehouseError,
    is_intact,
    remove_scratch,
    replace_directory,
)
from qlog_assets.storage.private_files import remove_whole, seal, tighten, tighten_tree, write_private
from qlog_assets.storage.scratch import hold_lock, make_private, remove_leftovers, sync, temporary_directory
from qlog_assets.storage.stored import Stored, delete_stored

LOG = logging.getLogger(__name__)
_TIDIED: set[Path] = set()
"""The warehouses that this process has tidied up."""
LONGEST_WRITE_SECONDS = 3600
"""How long a process waits for another one that writes the same partition: the largest take minutes."""


class Warehouse:
    """One data set's zones on disk. Makes them on first use, private ones readable by the owner alone."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.home = settings.home
        self.landing = self.home / "landing"
        self.private = self.home / "private"
        self.released = self.home / "released"
        self.draws = self.private / "draws"
        self.studies = self.private / "studies"
        self.staging = self.private / "staging"
        self.spill = self.private / "spill"
        self.locks = self.private / "locks"
        self.dagster = self.home / "dagster"
        self.crowd = self.home / "crowd"
        """Sealed reports of people's own machines; made by the first seal."""

    def make(self) -> Warehouse:
        """Make the zones that are missing. A process that is here for the first time tidies up, too."""
        is_ours = self.locks.is_dir()
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            if not self.released.exists():
                self.released.mkdir(exist_ok=True)
                self.released.chmod(0o755)  # public, whatever the umask says
            for private in (self.landing, self.draws, self.studies, self.staging, self.spill, self.locks, self.dagster):
                make_private(private)
        except OSError as error:
            raise WarehouseError(
                f"{error.filename}: cannot be made or used ({error.strerror}): QLOG_HOME names a directory of your own"
            ) from None
        if self.home not in _TIDIED:
            _TIDIED.add(self.home)
            # Not in a directory that somebody else has called `private`: a warehouse of ours has locks.
            if is_ours:
                self.remove_leftovers()
                self.tighten()
            if self.home.stat().st_mode & stat.S_IWOTH:
                LOG.warning("%s can be written by everybody, who can put another ledger there: chmod o-w", self.home)
        return self

    def tighten(self) -> None:
        """Close to others what is private, and say so: what is under `released/` alone is for them."""
        # The landing zone's and Dagster's own directories shut what is in them; people and Dagster put files there.
        loose = [path for path in (self.landing, self.dagster, self.home / "ledger.db") if tighten(path)]
        loose += tighten_tree(self.private)
        loose += tighten_tree(self.crowd) if self.crowd.is_dir() else []
        if loose:
            more = f" and {len(loose) - 1} more" if len(loose) > 1 else ""
            LOG.warning("%s%s could be used by others than their owner: closed to them now", loose[0], more)

    def remove_leftovers(self) -> None:
        """Remove what killed processes left half-made: it may hold rows of the log."""
        for folder in self.landing.glob("*"):
            if folder.is_dir() and not folder.is_symlink():
                remove_leftovers(folder)
        folders = [self.private]
        folders += [folder for depth in ("*", "*/*", "*/*/*") for folder in self.private.glob(depth)]
        for folder in folders:
            if folder.is_dir() and not folder.is_symlink():
                remove_leftovers(folder, self.discard)

    @property
    def ledger_url(self) -> str:
        return self.settings.ledger_url or f"sqlite:///{self.home / 'ledger.db'}"

    # Partitions -----------------------------------------------------------------------------------------------------

    def current(self, asset: str, month: str) -> Partition:
        """The partition that `current` points at; an error that says what to do if there is none."""
        pointer = self.private / asset / month / "current"
        try:
            shape = pointer.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            raise WarehouseError(f"{asset} {month}: not materialized yet: run the job that makes it first") from None
        except UnicodeDecodeError:
            raise WarehouseError(f"{asset} {month}: `current` points nowhere: materialize it again") from None
        return self.partition(asset, month, shape)

    def has_current(self, asset: str, month: str) -> bool:
        return (self.private / asset / month / "current").exists()

    def partition(self, asset: str, month: str, shape: str) -> Partition:
        return Partition.read(self.private / asset / month / shape)

    def months(self, asset: str) -> list[Month]:
        """The months that have a current partition of this asset."""
        return sorted(Month(pointer.parent.name) for pointer in (self.private / asset).glob("*/current"))

    def write_partition(
        self,
        provenance: Provenance,
        write: Callable[[Path], dict[str, TableFacts]],
        *,
        measured: Mapping[str, int] | None = None,
        make_current: bool = True,
        usable: Callable[[Partition], bool] = lambda partition: True,
        announce: Callable[[Provenance], None] = lambda provenance: None,
    ) -> tuple[Partition, bool]:
        """Write a partition whole and point `current` at it; returns it and whether it was written anew.

        A partition of the same shape was made by the same code from the same inputs: if its files are intact, and it
        is `usable` besides, it is kept as it is. `write` fills a temporary directory and returns the facts of its
        tables, and may fill `measured`; the rename that follows shows readers all of it or none. `announce` hears what
        was written before anybody can see it: what it enters elsewhere was on no disk that a hand could have changed.
        """
        asset, month, shape = provenance.asset, provenance.month, provenance.shape
        base = self.private / asset / month
        with self.writing(asset, month):
            make_private(base)
            fresh = not (is_intact(base / shape) and usable(self.partition(asset, month, shape)))
            if fresh:
                stored = self._new_folder(asset, shape)
                with temporary_directory(base, self.discard) as scratch:
                    tables = write(scratch)
                    now = datetime.now(UTC).isoformat("T", "seconds")
                    complete = replace(provenance, tables=tables, measured=dict(measured or {}), written_at=now)
                    complete.write(scratch / "provenance.json")
                    if stored is not None:
                        stored.write(scratch)
                        # A power cut may not lose the record and keep objects that it alone names.
                        for folder in (scratch, base, base.parent, self.private):
                            sync(folder)
                        names = [name for facts in tables.values() for name in facts.files]
                        stored.upload(scratch, self.private, names)
                    seal(scratch)
                    announce(complete)
                    replace_directory(scratch, base / shape)
            if make_current:
                write_private(base / "current", shape)
            return self.partition(asset, month, shape), fresh

    def _new_folder(self, asset: str, shape: str) -> Stored | None:
        """Where a partition that is written now has its tables; None: beside its provenance."""
        if self.settings.partitions is None:
            return None
        # A store that cannot be used is said before hours of work, not after them.
        return Stored.new(self.settings.partitions, asset, shape)

    def writing(self, asset: str, month: str) -> AbstractContextManager[None]:
        """The right to write or remove an asset's month: whoever comes second finds what the first one made."""
        busy = f"another process is writing {asset} {month}"
        return hold_lock(self.locks / f"{asset}.{month}.lock", LONGEST_WRITE_SECONDS, busy)

    def drop_tables(self, partition: Partition, names: Sequence[str]) -> set[str]:
        """Delete some tables of a partition and take them out of its provenance, which stays what it was otherwise.

        Returns the stores that it has its tables in.
        """
        dropped = [partition.provenance.tables[name] for name in names if name in partition.provenance.tables]
        kept = {name: facts for name, facts in partition.provenance.tables.items() if name not in names}
        # Files first: killed in between, the provenance still names what is to be dropped, and a second run does it.
        files = [name for facts in dropped for name in facts.files]
        for name in files:
            partition.refuse_outside(name)
        if partition.stored is not None:
            partition.stored.delete_files(self.private, files)
        for name in files:
            (partition.path / name).unlink(missing_ok=True)
        replace(partition.provenance, tables=kept).write(partition.path / "provenance.json")
        return set() if partition.stored is None else {partition.stored.place}

    def remove_partitions(self, folder: Path) -> set[str]:
        """Remove a folder of partitions, and before it what they have in stores: a second try finds what is left.

        Returns those stores.
        """
        places = delete_stored(folder, self.private)
        remove_whole(folder)
        return places

    def discard(self, directory: Path) -> None:
        """Remove a scratch directory, and what it names in a store."""
        remove_scratch(directory, self.private)
