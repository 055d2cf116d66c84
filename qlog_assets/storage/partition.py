"""A partition and its provenance: a private table of one month with what made it, checked before it is used.

Everything here is about files. Which parameters are right, and whether anything may be published, is the door's
business; what a table means is in `sql/`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from qlog_assets.storage.digests import canonical_json, digest_of, file_checksum
from qlog_assets.storage.private_files import write_private
from qlog_assets.storage.scratch import temporary_directory
from qlog_assets.storage.stored import RECORD, Stored, WarehouseError, discard

PUBLIC_MATERIAL = "public"
"""The month under which public material (pools, url lists) is kept: it belongs to no month of the log."""


PROVENANCE_VERSION = 1
ASIDE = "old"
"""What a partition is called that another one takes the place of, for the moment between two renames."""


@dataclass(frozen=True)
class TableFacts:
    """One table of a partition: rows, files with their checksums, and a digest of what it says whatever the order."""

    rows: int
    files: dict[str, str]
    content_digest: str | None = None


@dataclass(frozen=True)
class Provenance:
    """What made a partition. Written with the data, read before the data is used."""

    asset: str
    month: str
    shape: str
    code_version: str
    parameters: dict[str, Any]
    upstream: dict[str, str]
    tables: dict[str, TableFacts] = field(default_factory=dict)
    measured: dict[str, int] = field(default_factory=dict)
    """Counts taken while the partition was made that its tables cannot tell, such as the rows read."""
    run_id: str | None = None
    written_at: str = ""
    version: int = PROVENANCE_VERSION
    seal: str = ""
    """The digest of every other field: shows a change by hand. It stops nobody who computes it again."""

    @classmethod
    def read(cls, path: Path) -> Provenance:
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            sealed = values.pop("seal", None)
            if sealed != digest_of(values):
                asset, month = path.parts[-4:-2]
                raise WarehouseError(
                    f"{asset} {month}: its provenance was changed after it was written: materialize it again"
                )
            values["tables"] = {name: TableFacts(**facts) for name, facts in values["tables"].items()}
            provenance = cls(**values, seal=sealed)
        except FileNotFoundError:
            raise WarehouseError(
                f"{path}: no provenance, so the partition cannot be used: materialize it again"
            ) from None
        except (json.JSONDecodeError, UnicodeDecodeError, TypeError, KeyError, AttributeError):
            raise WarehouseError(f"{path}: not a provenance file: materialize the partition again") from None
        if provenance.version != PROVENANCE_VERSION:
            raise WarehouseError(f"{path}: provenance version {provenance.version} is not {PROVENANCE_VERSION}")
        return provenance

    def write(self, path: Path) -> None:
        """Write it, sealed."""
        values = asdict(self)
        del values["seal"]
        write_private(path, canonical_json({**values, "seal": digest_of(values)}))

    @property
    def content_digest(self) -> str:
        """What the partition says whatever the order of rows and files; only where every table has a content digest."""
        digests = {name: table.content_digest for name, table in self.tables.items()}
        if None in digests.values():
            raise WarehouseError(f"{self.asset} {self.month}: has no content digest")
        return digest_of(digests)


@dataclass(frozen=True)
class Partition:
    """A written partition: its directory, its provenance, and where its tables lie if not in that directory."""

    path: Path
    provenance: Provenance
    stored: Stored | None = None

    @classmethod
    def read(cls, path: Path) -> Partition:
        """The partition in a directory."""
        return cls(path, Provenance.read(path / "provenance.json"), Stored.read(path))

    @property
    def private(self) -> Path:
        """The private zone that it lies in."""
        return self.path.parents[2]

    @property
    def folder(self) -> Path:
        """Where the files of its tables can be read."""
        return self.path if self.stored is None else self.stored.copy_path(self.private, "")

    def files(self, table: str) -> list[Path]:
        """The files of a table. What lies in a store is brought here first, as it was written or not at all."""
        facts = self.provenance.tables.get(table)
        if facts is None:
            raise WarehouseError(f"{self.provenance.asset} {self.provenance.month}: has no table {table}")
        return [self.file(name, facts.files[name]) for name in sorted(facts.files)]

    def file(self, name: str, checksum: str) -> Path:
        """One of its files, by the checksum that it was written with."""
        if self.stored is None:
            return self.path / name
        self.refuse_outside(name)
        copy = self.stored.fetch(self.private, name, checksum)
        if copy is None:
            raise self._changed(name)
        return copy

    def refuse_outside(self, name: str) -> None:
        """Raise if a name, or a link on its way, leads out of the partition."""
        if not (self.folder / name).resolve().is_relative_to(self.folder.resolve()):
            raise self._changed(name)

    def _changed(self, name: str) -> WarehouseError:
        return WarehouseError(
            f"{self.provenance.asset} {self.provenance.month}: {name} was changed after it was written (checksum "
            "differs): materialize it again"
        )

    def rows(self, table: str) -> int:
        return self.provenance.tables[table].rows

    def verify(self, table: str | None = None) -> None:
        """Raise unless every file is there with the checksum it was written with, and no other file is.

        With `table`, only that table's files are read; the others are somebody else's to verify before use.
        """
        label = f"{self.provenance.asset} {self.provenance.month}"
        if table is not None and table not in self.provenance.tables:
            raise WarehouseError(f"{label}: has no table {table}")
        *_, asset, month, shape = self.path.parts
        if (asset, month, shape) != (self.provenance.asset, self.provenance.month, shape_of(self.provenance)):
            raise WarehouseError(f"{label}: its provenance was changed after it was written: materialize it again")
        known = {"provenance.json"} if self.stored is None else {"provenance.json", RECORD}
        there = {str(entry.relative_to(self.path)) for entry in self.path.rglob("*") if not entry.is_dir()}
        stored = {} if self.stored is None else self.stored.sizes()
        for name_of_table, facts in self.provenance.tables.items():
            known.update(facts.files)
            for name, checksum in facts.files.items() if table in (None, name_of_table) else ():
                if not self._is_as_written(name, checksum, stored):
                    raise self._changed(name)
        extra = (there | set(stored)) - known
        if extra:
            raise WarehouseError(
                f"{label}: holds {len(extra)} file(s) its provenance does not know: materialize it again"
            )

    def _is_as_written(self, name: str, checksum: str, stored: Mapping[str, int]) -> bool:
        """Whether a file is there with its checksum, and no link out of the partition. Of a stored one the copy is
        hashed that is read: the store is asked whether there is still a file of this size."""
        if self.stored is None:
            self.refuse_outside(name)
            path = self.path / name
            if not path.exists():
                return False
        else:
            path = self.file(name, checksum)
            if stored.get(name) != path.stat().st_size:
                return False
        return file_checksum(path) == checksum

    @contextlib.contextmanager
    def verifying(self) -> Iterator[None]:
        """Verify it beside a block that reads it, because hashing a large file takes a while on one core.

        Raises at the end of the block, whatever the block made of a changed file: what was made goes no further.
        """

        def written() -> dict[str, tuple[int, ...]]:
            # Without st_ctime, which a hard link elsewhere changes: the raw log's files are links.
            return {path: state[:-1] for path, state in self.files_on_disk().items()}

        # What lies in a store is fetched now, so that the same files are compared.
        for table in self.provenance.tables:
            self.files(table)
        before = written()
        with ThreadPoolExecutor(1) as beside:
            verified = beside.submit(self.verify)
            try:
                yield
            except Exception:
                # A changed file is the reason, and what a reader says of it may quote a value.
                changed = verified.exception()
                if changed is not None:
                    raise changed from None
                raise
            verified.result()
        if written() != before:
            # Mended while it was read: what was hashed is perhaps not what was read.
            asset, month = self.provenance.asset, self.provenance.month
            raise WarehouseError(f"{asset} {month}: was written anew while it was read: run it again")

    def files_on_disk(self) -> dict[str, tuple[int, ...]]:
        """What tells that a file was replaced or written to, without reading it. Nobody but the clock sets st_ctime."""
        found: dict[str, tuple[int, ...]] = {}
        for path in (self.folder / name for facts in self.provenance.tables.values() for name in facts.files):
            # One that is missing is for `verify` to name, or not fetched yet.
            with contextlib.suppress(FileNotFoundError):
                facts = path.stat()
                found[str(path)] = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        return found


def describe(
    asset: str,
    month: str,
    *,
    code_version: str,
    parameters: Mapping[str, Any],
    upstream: Mapping[str, Partition | str],
    run_id: str | None = None,
) -> Provenance:
    """The provenance of a partition about to be made. Its shape follows from parameters, upstream and code version."""
    shapes = {name: item if isinstance(item, str) else item.provenance.shape for name, item in upstream.items()}
    draft = Provenance(asset, month, "", code_version, dict(parameters), shapes, run_id=run_id)
    return replace(draft, shape=shape_of(draft))


def shape_of(provenance: Provenance) -> str:
    """The digest of what makes a partition what it is; two runs of one request have one shape."""
    facts = (provenance.asset, provenance.month, provenance.code_version, provenance.parameters, provenance.upstream)
    return digest_of(facts)[:20]


def replace_directory(source: Path, target: Path) -> None:
    """Move a finished directory to its name; a damaged one already there is moved aside and removed."""
    # Whatever it has in a store goes with it, after the other one is there.
    with temporary_directory(target.parent, lambda aside: remove_scratch(aside, target.parents[2])) as aside:
        with contextlib.suppress(FileNotFoundError):
            os.rename(target, aside / ASIDE)
        try:
            os.rename(source, target)
        except OSError:
            # Another process finished the same shape first: its partition is as good as ours.
            if not is_intact(target):
                raise


def remove_scratch(scratch: Path, private: Path) -> None:
    """Remove a scratch directory, and what it names in a store.

    A partition that was moved aside for another one, which never came, is moved back: a kill between two renames would
    leave `current` pointing nowhere.
    """
    old = scratch / ASIDE
    with contextlib.suppress(WarehouseError, FileNotFoundError):
        target = scratch.parent / Provenance.read(old / "provenance.json").shape
        if not target.exists():
            os.rename(old, target)
    discard(scratch, private)


def is_intact(path: Path) -> bool:
    """Whether a partition's files are what its provenance says."""
    if not (path / "provenance.json").exists():
        return False
    try:
        Partition.read(path).verify()
    except WarehouseError:
        return False
    return True
