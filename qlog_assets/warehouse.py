"""The warehouse on disk: zones, partitions written whole or not at all, and the provenance that travels with them.

Everything here is about files and what made them. Which parameters are right, and whether anything may be published,
is the door's business (`release.py`); what a table means is in `sql/`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from qlog_assets.months import Month
from qlog_assets.privacy.errors import QlogError
from qlog_assets.scratch import held, make_private, remove_leftovers, temporary_directory
from qlog_assets.settings import Settings

PUBLIC_MATERIAL = "public"
"""The month under which public material (pools, url lists) is kept: it belongs to no month of the log."""
PROVENANCE_VERSION = 1
LONGEST_WRITE_SECONDS = 3600
"""How long a process waits for another one that writes the same partition: the largest take minutes."""


class WarehouseError(QlogError):
    """A partition that is missing, incomplete or changed since it was written."""


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
    """A written partition: its directory and its provenance."""

    path: Path
    provenance: Provenance

    def files(self, table: str) -> list[Path]:
        facts = self.provenance.tables.get(table)
        if facts is None:
            raise WarehouseError(f"{self.provenance.asset} {self.provenance.month}: has no table {table}")
        return [self.path / name for name in sorted(facts.files)]

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
        known, own = {"provenance.json"}, self.path.resolve()
        for name_of_table, facts in self.provenance.tables.items():
            known.update(facts.files)
            for name, checksum in facts.files.items() if table in (None, name_of_table) else ():
                path = self.path / name
                if not path.resolve().is_relative_to(own) or not path.exists() or file_checksum(path) != checksum:
                    raise WarehouseError(
                        f"{label}: {name} was changed after it was written (checksum differs): materialize it again"
                    )
        extra = {str(entry.relative_to(self.path)) for entry in self.path.rglob("*") if not entry.is_dir()} - known
        if extra:
            raise WarehouseError(
                f"{label}: holds {len(extra)} file(s) its provenance does not know: materialize it again"
            )

    @contextlib.contextmanager
    def verifying(self) -> Iterator[None]:
        """Verify it beside a block that reads it, because hashing a large file takes a while on one core.

        Raises at the end of the block, whatever the block made of a changed file: what was made goes no further.
        """

        def written() -> dict[str, tuple[int, ...]]:
            # Without st_ctime, which a hard link elsewhere changes: the raw log's files are links.
            return {path: state[:-1] for path, state in self.files_on_disk().items()}

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
        for path in (path for table in self.provenance.tables for path in self.files(table)):
            # One that is missing is for `verify` to name.
            with contextlib.suppress(FileNotFoundError):
                facts = path.stat()
                found[str(path)] = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        return found


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

    def make(self) -> Warehouse:
        self.home.mkdir(parents=True, exist_ok=True)
        if not self.released.exists():
            self.released.mkdir(exist_ok=True)
            self.released.chmod(0o755)  # public, whatever the umask says
        for private in (self.landing, self.draws, self.studies, self.staging, self.spill, self.locks, self.dagster):
            make_private(private)
        return self

    def remove_leftovers(self) -> None:
        """Remove what killed processes left half-made: it may hold rows of the log."""
        folders = [self.private, *self.landing.glob("*")]
        folders += [folder for depth in ("*", "*/*", "*/*/*") for folder in self.private.glob(depth)]
        for folder in folders:
            if folder.is_dir() and not folder.is_symlink():
                remove_leftovers(folder)

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
        path = self.private / asset / month / shape
        return Partition(path, Provenance.read(path / "provenance.json"))

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
        sound: Callable[[Partition], bool] = lambda partition: True,
    ) -> tuple[Partition, bool]:
        """Write a partition whole and point `current` at it; returns it and whether it was written anew.

        A partition of the same shape was made by the same code from the same inputs: if its files are intact, and it
        is `sound` besides, it is kept as it is. `write` fills a temporary directory and returns the facts of its
        tables, and may fill `measured`; the rename that follows shows readers all of it or none.
        """
        asset, month, shape = provenance.asset, provenance.month, provenance.shape
        base = self.private / asset / month
        with self.writing(asset, month):
            make_private(base)
            fresh = not (is_intact(base / shape) and sound(self.partition(asset, month, shape)))
            if fresh:
                with temporary_directory(base) as scratch:
                    tables = write(scratch)
                    now = datetime.now(UTC).isoformat("T", "seconds")
                    complete = replace(provenance, tables=tables, measured=dict(measured or {}), written_at=now)
                    complete.write(scratch / "provenance.json")
                    seal(scratch)
                    replace_directory(scratch, base / shape)
            if make_current:
                write_private(base / "current", shape)
            return self.partition(asset, month, shape), fresh

    def writing(self, asset: str, month: str) -> AbstractContextManager[None]:
        """The right to write or remove an asset's month: whoever comes second finds what the first one made."""
        busy = f"another process is writing {asset} {month}"
        return held(self.locks / f"{asset}.{month}.lock", LONGEST_WRITE_SECONDS, busy)

    def drop_tables(self, partition: Partition, names: Sequence[str]) -> None:
        """Delete some tables of a partition and take them out of its provenance, which stays what it was otherwise."""
        dropped = [partition.provenance.tables[name] for name in names if name in partition.provenance.tables]
        kept = {name: facts for name, facts in partition.provenance.tables.items() if name not in names}
        # Files first: killed in between, the provenance still names what is to be dropped, and a second run does it.
        for facts in dropped:
            for name in facts.files:
                (partition.path / name).unlink(missing_ok=True)
        replace(partition.provenance, tables=kept).write(partition.path / "provenance.json")


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


# Files ------------------------------------------------------------------------------------------------------------


def canonical_json(value: Any) -> str:
    """One text for one value: sorted keys, UTF-8, a newline at the end."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=1) + "\n"


def digest_of(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def file_checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_private(path: Path, text: str) -> None:
    """Replace a small private file whole."""
    with temporary_directory(path.parent) as scratch:
        with (scratch / path.name).open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        (scratch / path.name).chmod(0o600)
        os.replace(scratch / path.name, path)


def seal(directory: Path) -> None:
    """Make a private directory and its files readable by the owner alone."""
    os.chmod(directory, 0o700)
    for path in directory.rglob("*"):
        os.chmod(path, 0o700 if path.is_dir() else 0o600)


def remove_whole(path: Path) -> None:
    """Remove a directory so that a reader sees all of it or none."""
    if path.exists():
        with temporary_directory(path.parent) as scratch:
            path.rename(scratch / "removed")


def replace_directory(source: Path, target: Path) -> None:
    """Move a finished directory to its name; a damaged one already there is moved aside and removed."""
    with temporary_directory(target.parent) as aside:
        with contextlib.suppress(FileNotFoundError):
            os.rename(target, aside / "old")
        try:
            os.rename(source, target)
        except OSError:
            # Another process finished the same shape first: its partition is as good as ours.
            if not is_intact(target):
                raise


def is_intact(path: Path) -> bool:
    """Whether a partition's files are what its provenance says."""
    if not (path / "provenance.json").exists():
        return False
    try:
        Partition(path, Provenance.read(path / "provenance.json")).verify()
    except WarehouseError:
        return False
    return True
