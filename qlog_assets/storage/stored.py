"""Partitions whose tables lie in a store: the record that names them, this process's copies, and how they are deleted.

The record and the provenance stay in the warehouse, on a disk with renames and locks. A folder of the store is made up
once and never again, and it is a partition's from the moment a rename shows its record. The record is written before
the first file: whoever finds one in a scratch directory that nobody holds deletes what it names. Files go before the
record that names them, so that a second try finds what the first one left. A record also names its store's marker:
nothing is taken for deleted in a store that has another one, such as another server's or a disk that is not mounted.

What is read are copies on this machine's disk, hashed when they came. Everything that is read must be hashed whole
anyway, and a copy cannot be changed in the store between the two.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import secrets
import shutil
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from multiprocessing.util import Finalize
from pathlib import Path

from qlog_assets.errors import QlogError
from qlog_assets.settings import checked_place
from qlog_assets.storage.digests import canonical_json, file_checksum
from qlog_assets.storage.private_files import write_private
from qlog_assets.storage.scratch import PREFIX, make_private, system_scratch, temporary_directory
from qlog_assets.storage.stores import MARKER, MARKERS, Store, StoreError, open_store

LOG = logging.getLogger(__name__)
RECORD = "stored.json"
"""The file of a partition that says where its tables lie."""
FOLDER = re.compile(r"\w+\.[0-9a-f]+\.[0-9a-f]{32}")
"""Asset, shape, and what nothing else has."""
COPIES = "fetched"
"""Below the private zone: the copies of living processes."""

_COPIES: dict[tuple[int, Path], Path] = {}
"""The directory of a process's copies, by process and private zone."""
_FETCHING = threading.RLock()


class WarehouseError(QlogError):
    """A partition that is missing, incomplete or changed since it was written."""


@dataclass(frozen=True)
class Stored:
    """Where a partition's tables lie."""

    place: str
    marker: str
    """What tells its store from another one at the same address."""
    folder: str
    directory: int = 0
    """The number of the directory that its record was written to, which a rename keeps and a copy does not."""

    @classmethod
    def new(cls, place: str, asset: str, shape: str) -> Stored:
        """A folder that nothing has. Its name holds no landing file's name, and no month."""
        return cls(place, open_store(place).identify(), f"{asset}.{shape}.{secrets.token_hex(16)}")

    @classmethod
    def read(cls, directory: Path) -> Stored | None:
        """What the record in a partition's directory says; None where its tables lie beside it."""
        path = directory / RECORD
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            stored = cls(checked_place(values["place"]), values["marker"], values["folder"], values.get("directory", 0))
            if MARKER.fullmatch(stored.marker) and FOLDER.fullmatch(stored.folder) and stored._may_lie_in(directory):
                return stored
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError):
            pass
        raise WarehouseError(
            f"{path}: does not say where the tables lie: delete them in the store by hand, then {directory}, and "
            "materialize the partition again"
        )

    def _may_lie_in(self, directory: Path) -> bool:
        """Whether a folder is named for the partition in a directory; for which one a scratch directory is, its name
        does not say."""
        if any(name.startswith(PREFIX) for name in (directory.name, directory.parent.name)):
            return True
        return self.folder.startswith(f"{directory.parents[1].name}.{directory.name}.")

    def write(self, directory: Path) -> None:
        own = replace(self, directory=directory.stat().st_ino)
        write_private(directory / RECORD, canonical_json(asdict(own)))

    @property
    def store(self) -> Store:
        return open_store(self.place)

    def upload(self, directory: Path, private: Path, names: Iterable[str]) -> None:
        """Write files of a directory to the store; they become this process's copies.

        A partition takes hours to make, and a disk may be unmounted meanwhile: what lies below it gets no row.
        """
        self.check()
        try:
            for name in names:
                self.store.put(directory / name, f"{self.folder}/{name}")
                copy = self.copy_path(private, name)
                make_private(copy.parent)
                (directory / name).chmod(0o600)
                os.replace(directory / name, copy)
            self.check()
        except OSError:
            # Wherever files went, nothing else has a folder of this name. The record stays for what a store keeps.
            with contextlib.suppress(StoreError):
                self.store.delete_folder(self.folder)
            raise

    def check(self) -> None:
        """Raise unless its store is there, and is the one that was written to."""
        self.store.check()
        if self.marker not in self.store.sizes(MARKERS):
            raise StoreError(
                f"{self.place}: is it the store that was written to? {MARKERS}/{self.marker} is not there: name its "
                "server or mount its disk; if it is this one, and somebody deleted that file, make an empty one"
            )

    def sizes(self) -> dict[str, int]:
        """The files that lie there."""
        self.check()
        return self.store.sizes(self.folder)

    def fetch(self, private: Path, name: str, checksum: str) -> Path | None:
        """This process's copy of a file, brought here and hashed if it is not yet; None if it is missing or changed."""
        copy = self.copy_path(private, name)
        with _FETCHING:
            if copy.exists():
                return copy
            make_private(copy.parent)
            partial = copy.with_name(f"{copy.name}.partial")
            try:
                if not self.store.get(f"{self.folder}/{name}", partial):
                    self.check()
                    return None
                if file_checksum(partial) != checksum:
                    return None
                partial.chmod(0o600)
                os.replace(partial, copy)
            finally:
                partial.unlink(missing_ok=True)
        return copy

    def copy_path(self, private: Path, name: str) -> Path:
        return copies_of(private) / self.folder / name

    def delete(self, private: Path) -> None:
        """Delete everything that lies there, and every copy in the warehouse."""
        self.check()
        self.store.delete_folder(self.folder)
        for copies in private.glob(f"{COPIES}/*/{self.folder}"):
            shutil.rmtree(copies, ignore_errors=True)

    def delete_files(self, private: Path, names: Iterable[str]) -> None:
        """The same for some files of several."""
        self.check()
        for name in names:
            self.store.delete(f"{self.folder}/{name}")
            for copy in private.glob(f"{COPIES}/*/{self.folder}/{name}"):
                copy.unlink(missing_ok=True)


def copies_of(private: Path) -> Path:
    """The directory of this process's copies; removed when it ends, or by the next one if it was killed."""
    key = (os.getpid(), private)
    with _FETCHING:
        if key not in _COPIES or not _COPIES[key].is_dir():
            stack = contextlib.ExitStack()
            # An audit may work where nothing may be written.
            own = os.access(private, os.W_OK | os.X_OK)
            place = temporary_directory(private / COPIES) if own else system_scratch()
            _COPIES[key] = stack.enter_context(place)
            # Unlike `atexit`, also at the end of a forked process, and there for its own directories alone.
            Finalize(None, stack.close, exitpriority=0)
        return _COPIES[key]


def drop_copies() -> None:
    """Forget what this process has fetched or written: the disk has its room again, and the next reader hashes anew."""
    with _FETCHING:
        own = [copies for (process, _), copies in _COPIES.items() if process == os.getpid() and copies.is_dir()]
        for folder in (folder for copies in own for folder in copies.iterdir()):
            # Whoever forgets a partition removes its copies as well.
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(folder)


def check_stores(folders: Iterable[Path]) -> None:
    """Raise unless the store of every partition in some folders is there, and is the one that was written to."""
    found = (stored for folder in folders for _, stored in records_in(folder))
    # Each store is asked once.
    for stored in {(each.place, each.marker): each for each in found}.values():
        stored.check()


def delete_stored(folder: Path, private: Path) -> set[str]:
    """Delete from their stores the tables of every partition in a folder, each with its record behind it; returns the
    places that something was deleted from."""
    places = set()
    for record, stored in records_in(folder):
        stored.delete(private)
        record.unlink()
        places.add(stored.place)
    return places


def records_in(folder: Path) -> Iterator[tuple[Path, Stored]]:
    """The records of all partitions in a folder, each with what it says."""
    for record in sorted(folder.rglob(RECORD)):
        stored = Stored.read(record.parent)
        if stored is not None:
            yield record, stored


def discard(directory: Path, private: Path) -> None:
    """Remove a scratch directory, and from their stores what its records name.

    Where a store does not answer, its records stay for the next process that tidies up, and nothing else does. A record
    that was copied with its warehouse stays, too: what it names is the other one's, or was when it was copied.
    """
    try:
        copied = False
        for record, stored in records_in(directory):
            if stored.directory == record.parent.stat().st_ino:
                stored.delete(private)
                record.unlink()
                continue
            copied = True
            LOG.warning(
                "%s/%s: the record here is a copy, so nothing was deleted: delete it by hand if no other warehouse has "
                "it, then %s",
                stored.place,
                stored.folder,
                directory,
            )
        if copied:
            _keep_records(directory)
            return
    except StoreError as error:
        LOG.warning("%s; what a write left there is deleted by a later command", error)
        _keep_records(directory)
    except WarehouseError as error:
        LOG.warning("%s", error)
        _keep_records(directory)
    else:
        shutil.rmtree(directory, ignore_errors=True)


def _keep_records(directory: Path) -> None:
    for path in directory.rglob("*"):
        if not path.is_dir() and path.name != RECORD:
            path.unlink(missing_ok=True)
