"""Pools and url lists as partitions: public material, kept with its provenance, belonging to no month of the log.

What a list is made of is `sources/pools`; that a pool of releases is older than the month it serves, and known to this
very ledger, is checked here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from qlog_assets.errors import QlogError
from qlog_assets.ledger import Ledger
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.report.public_zone import damage
from qlog_assets.sources.pools import PoolSpec, PublicList, ReleasedPool, load_pool, load_url_list
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.partition import PUBLIC_MATERIAL, Partition, TableFacts, describe
from qlog_assets.storage.private_files import link_or_copy
from qlog_assets.storage.scratch import make_private
from qlog_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    from qlog_assets.pipeline.chain import Chain


def build_pool(chain: Chain, month: Month, policy: Policy) -> Partition:
    """The policy's pool for a month."""
    warehouse, pool = chain.warehouse, policy.pool
    spec = PoolSpec(
        kind=pool.kind,
        path=pool.path,
        description=pool.description,
        probability=pool.probability,
        releases=tuple(earlier_release(warehouse, release_id, month) for release_id in pool.release_ids),
    )
    zones = (warehouse.landing, warehouse.private)
    loaded = load_pool(spec, cache_of(warehouse), private_zones=zones, before=month)
    return keep(chain, "pool", "queries", loaded)


def build_url_list(chain: Chain, path: Path) -> Partition:
    """A public url list."""
    zones = (chain.warehouse.landing, chain.warehouse.private)
    return keep(chain, "url_list", "urls", load_url_list(path, cache_of(chain.warehouse), private_zones=zones))


def earlier_release(warehouse: Warehouse, release_id: str, month: Month) -> ReleasedPool:
    """A published release of this ledger from a strictly earlier month: public already, so using it costs nothing."""
    charge = Ledger.open(warehouse.ledger_url).charge(release_id)
    path = warehouse.released / charge.mechanism / charge.month / charge.release_id
    if charge.state != "published" or charge.month >= month:
        raise QlogError(f"{release_id} cannot be in the pool of {month}: it is {charge.state}, of {charge.month}")
    found = damage(path, charge.manifest_digest)
    if found:
        raise QlogError(f"{release_id} cannot be in the pool of {month}: {found[0]}")
    table = path / "queries.parquet"
    if not table.exists():
        raise QlogError(f"{release_id} cannot be in the pool of {month}: it has no table of queries")
    return ReleasedPool(release_id=release_id, month=Month(charge.month), path=table)


def public_facts(partition: Partition) -> dict[str, Any]:
    """What a manifest says of a pool or a url list."""
    return dict(partition.provenance.parameters)


def keep(chain: Chain, asset: str, table: str, loaded: PublicList) -> Partition:
    """A loaded list as a partition, so that the door can tell which list a release was made with."""
    provenance = describe(
        asset,
        PUBLIC_MATERIAL,
        code_version="1",
        parameters=loaded.provenance,
        upstream={"list": loaded.content_digest},
        run_id=chain.run_id,
    )

    def write(directory: Path) -> dict[str, TableFacts]:
        name = f"{table}.parquet"
        link_or_copy(loaded.path, directory / name)
        return {table: TableFacts(loaded.rows, {name: file_checksum(directory / name)}, loaded.content_digest)}

    return chain.warehouse.write_partition(provenance, write, make_current=chain.make_current)[0]


def cache_of(warehouse: Warehouse) -> Path:
    """Where loaded lists are kept, named by what made them."""
    folder = warehouse.private / "public_lists"
    make_private(folder)
    return folder
