"""Pools and url lists as partitions: public material, kept with its provenance, belonging to no month of the log.

What a list is made of is `sources/pools`; that a pool of releases is older than the month it serves, and known to this
very ledger, is checked here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from qlog_assets.checks.memory import memoize_by_content
from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Book, Ledger
from qlog_assets.months import Month
from qlog_assets.pipeline.entered import write_entered
from qlog_assets.pipeline.named_files import refuse_unfit_file
from qlog_assets.privacy.parameters import Exact, Parameters
from qlog_assets.report.public_zone import find_damage, release_path
from qlog_assets.sources.column_map import check_encoding
from qlog_assets.sources.pools import Kind, PoolSpec, PublicList, ReleasedPool, load_pool, load_url_list
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import PUBLIC_MATERIAL, Partition, Provenance, TableFacts, describe
from qlog_assets.storage.private_files import link_or_copy
from qlog_assets.storage.scratch import make_private
from qlog_assets.storage.warehouse import Warehouse

PUBLIC_LISTS = {"pool": "queries", "url_list": "urls"}
"""The public lists there are, and the table of each."""
CHECKS = {"pool": "log/check_pool", "url_list": "log/check_url_list"}
"""What counts the texts of each list for its suite."""
PUBLIC_LIST_VERSION = "1"


class PoolPolicy(Parameters):
    """The public pool: queries that may appear whether anybody typed them or not."""

    kind: Kind = "default"
    """`default` is a public n-gram list that ships inside the wordsegment package."""
    path: Path | None = None
    """The file, for the kinds that read one: text, gzip or zstd. `query_list`: one query per line, or `id<TAB>query`;
    or the column `query` of a Parquet file. `ngram_file`: words, with a count before or behind a tab. `coca_file`: a
    frequency, words and their tags."""
    encoding: str = "utf-8"
    """How the file is encoded, such as `latin-1` or `gb18030`."""
    description: str = ""
    """Where the file comes from, in the operator's words; goes into the manifest."""
    licence: str = ""
    """Under which terms the file may be used; goes into the manifest."""
    probability: Exact = Field(Fraction(1), gt=0, le=1, validate_default=True)
    """p_g: the share of the list that is kept, by a public hash. What the `paper` variant of Safelog claims is priced
    by it."""
    release_ids: tuple[str, ...] = ()
    """For `releases`: the earlier releases whose queries form the pool, pinned by id."""

    @property
    def reads_file(self) -> bool:
        return self.kind.endswith(("_file", "_list"))

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.reads_file and self.path is None:
            raise ValueError(f"path: a pool of kind {self.kind} needs the file's path")
        check_encoding(self.encoding)
        if self.kind == "releases" and not self.release_ids:
            raise ValueError("release_ids: a pool of kind releases needs the ids of earlier releases")
        if self.kind == "releases" and self.path is not None:
            raise ValueError("path: a pool of kind releases reads no file: take the path out")
        return self


@dataclass(frozen=True)
class PublicLists:
    """Which public lists the policy names, where their files may lie, and whether the log has anything to list."""

    pool: PoolPolicy = field(default_factory=PoolPolicy)
    url_list: Path | None = None
    directories: tuple[Path, ...] = ()
    """The policy file's own directory and those that it lists. Without any, no file can be named."""
    has_urls: bool = True
    """Whether the log has urls, by what the policy says of it and not by any row. Without them no click is released."""

    def named_file(self, name: str) -> tuple[str, Path] | None:
        """The policy's key and file of a list, where the list is read from a file that the policy names."""
        key, path = {"pool": ("pool.path", self.pool.path), "url_list": ("url_list", self.url_list)}[name]
        if path is None or (name == "pool" and not self.pool.reads_file):
            return None
        return key, path


def build_public_list(
    name: str,
    warehouse: Warehouse,
    lists: PublicLists,
    month: Month | None = None,
    run_id: str | None = None,
    make_current: bool = True,
    book: Book | None = None,
) -> Partition | None:
    """A public list as the policy names it; None where it names none.

    With the month that is about to be released, a pool made of releases must be older than that.
    """
    loaded = load_public_list(name, warehouse, lists, month)
    return None if loaded is None else _keep(warehouse, name, loaded, run_id, make_current, book)


def load_public_list(
    name: str, warehouse: Warehouse, lists: PublicLists, month: Month | None = None
) -> PublicList | None:
    """The list itself, from its file or from what was kept of it."""
    refuse_unfit_files(warehouse, lists, (name,))
    zones = (warehouse.landing, warehouse.private, warehouse.crowd)
    if name == "pool":
        spec = pool_spec(warehouse, lists.pool, month)
        return load_pool(spec, list_cache(warehouse), private_zones=zones, before=month)
    if lists.url_list is None:
        return None
    return load_url_list(lists.url_list, list_cache(warehouse), private_zones=zones)


def refuse_unfit_files(warehouse: Warehouse, lists: PublicLists, names: Iterable[str]) -> None:
    """Refuse a list whose file lies where the policy may name none, or is no regular file."""
    for name in names:
        named = lists.named_file(name)
        if named is not None:
            refuse_unfit_file(warehouse, *named, lists.directories)


def pool_spec(warehouse: Warehouse, pool: PoolPolicy, month: Month | None) -> PoolSpec:
    """What is to be loaded for the policy's pool."""
    return PoolSpec(
        kind=pool.kind,
        path=pool.path,
        description=pool.description,
        licence=pool.licence,
        encoding=pool.encoding,
        probability=pool.probability,
        releases=tuple(earlier_release(warehouse, release_id, month) for release_id in pool.release_ids),
    )


def earlier_release(warehouse: Warehouse, release_id: str, month: Month | None) -> ReleasedPool:
    """A published release of this ledger from a strictly earlier month: public already, so using it costs nothing."""
    charge = Ledger.read(warehouse.ledger_url).charge(release_id)
    serves = "the pool" if month is None else f"the pool of {month}"
    if charge.state != "published" or (month is not None and charge.month >= month):
        raise QlogError(f"{release_id} cannot be in {serves}: it is {charge.state}, of {charge.month}")
    path = release_path(warehouse, charge)
    found = find_damage(path, charge.manifest_digest)
    if found:
        raise QlogError(f"{release_id} cannot be in {serves}: {found[0]}")
    table = path / "queries.parquet"
    if not table.exists():
        raise QlogError(f"{release_id} cannot be in {serves}: it has no table of queries")
    return ReleasedPool(release_id=release_id, month=Month(charge.month), path=table)


@memoize_by_content
def inspect_public_list(engine: Engine, partition: Partition) -> CheckResult:
    """Whether a list holds texts, each once, with numbers without gaps."""
    name = partition.provenance.asset
    engine.view("public_list", partition.files(PUBLIC_LISTS[name]))
    counts = engine.frame(CHECKS[name])
    return run_suite("log/public_list", {"counts": counts}, parameters={"rows": partition.rows(PUBLIC_LISTS[name])})


def public_facts(partition: Partition) -> dict[str, Any]:
    """What a manifest says of a pool or a url list."""
    return dict(partition.provenance.parameters)


def list_cache(warehouse: Warehouse) -> Path:
    """Where loaded lists are kept, named by what made them."""
    folder = warehouse.private / "public_lists"
    make_private(folder)
    return folder


def _keep(
    warehouse: Warehouse, asset: str, loaded: PublicList, run_id: str | None, make_current: bool, book: Book | None
) -> Partition:
    """A loaded list as a partition, so that the door can tell which list a release was made with."""
    table, provenance = PUBLIC_LISTS[asset], describe_public_list(asset, loaded, run_id)

    def write(directory: Path) -> dict[str, TableFacts]:
        name = f"{table}.parquet"
        link_or_copy(loaded.path, directory / name)
        return {table: TableFacts(loaded.rows, {name: file_checksum(directory / name)}, loaded.content_digest)}

    return write_entered(warehouse, provenance, write, book, make_current=make_current)[0]


def describe_public_list(asset: str, loaded: PublicList, run_id: str | None = None) -> Provenance:
    """The provenance of a list that was loaded."""
    return describe(
        asset,
        PUBLIC_MATERIAL,
        code_version=PUBLIC_LIST_VERSION,
        parameters=loaded.provenance,
        upstream={"list": loaded.content_digest},
        run_id=run_id,
    )
