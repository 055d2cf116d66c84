"""The queries of a published release, as the public domain of another release of the same month.

They are public by then, so what is counted over them costs no δ: every pair of them is noised, held or not. The request
names the release by its id, so ledger, fingerprint and manifest do; a stage keeps the queries it read beside its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.errors import QlogError, RefusedError
from qlog_assets.ledger import Charge, Ledger
from qlog_assets.months import Month
from qlog_assets.report.public_zone import find_damage, release_path
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.warehouse import Warehouse

RELEASE = "release"
"""How provenance marks a published release that a stage read: `release:<id>`, with the digest of its manifest."""
TABLE = "domain"
"""The stage's table of the queries that it read, with numbers."""


@dataclass(frozen=True)
class ReleasedDomain:
    """A release whose queries are a domain, and where its table of queries was published."""

    charge: Charge
    path: Path

    @property
    def upstream(self) -> dict[str, str]:
        return {f"{RELEASE}:{self.charge.release_id}": str(self.charge.manifest_digest)}

    @property
    def trouble(self) -> str | None:
        """Why nothing new may be counted over it; None where it may."""
        if self.charge.state != "published":
            return f"it is {self.charge.state}"
        if not self.path.exists():
            return "it has no table of queries"
        damage = find_damage(self.path.parent, self.charge.manifest_digest)
        if damage:
            return damage[0]
        return "it has fewer than two queries" if pq.read_metadata(self.path).num_rows < 2 else None

    def queries(self) -> list[str]:
        """Its queries, by their bytes; refused where nothing may be counted over it."""
        if self.trouble is not None:
            raise QlogError(f"{self.charge.release_id} cannot be a domain: {self.trouble}")
        return sorted(pq.read_table(self.path, columns=["query"])["query"].to_pylist())

    def is_held_by(self, partition: Partition) -> bool:
        """Whether the queries that a partition keeps are those of the release, all of them, numbered in order."""
        (file,) = partition.files(TABLE)
        return pq.read_table(file).equals(numbered(self.queries()))


def find_domain(warehouse: Warehouse, month: Month, release_id: str) -> ReleasedDomain:
    """The release of an id, as the ledger has it: of this month, and published, now or once."""
    charges = {charge.release_id: charge for charge in Ledger.read(warehouse.ledger_url).charges()}
    charge = charges.get(release_id)
    if charge is None or charge.month != month or charge.manifest_digest is None:
        reason = f"domain = {release_id} is no published release of {month}"
        raise RefusedError(f"{reason}: qlog ledger shows those there are", f"{reason}: see the asset privacy_budget")
    return ReleasedDomain(charge, release_path(warehouse, charge) / "queries.parquet")


def domains_of(warehouse: Warehouse, partition: Partition) -> list[ReleasedDomain]:
    """The releases that a partition was made with."""
    ids = [name.partition(":")[2] for name in partition.provenance.upstream if name.startswith(f"{RELEASE}:")]
    return [find_domain(warehouse, Month(partition.provenance.month), release_id) for release_id in ids]


def domain_facts(warehouse: Warehouse, partition: Partition) -> list[dict[str, Any]]:
    """What a manifest says of the releases that a partition was made with."""
    return [
        {
            "kind": "releases",
            "name": domain.charge.release_id,
            "description": "The queries of this release of the same month: every pair of them was noised.",
            "rows": partition.rows(TABLE),
            "sha256": file_checksum(domain.path),
            "sources": {domain.charge.release_id: domain.charge.manifest_digest},
        }
        for domain in domains_of(warehouse, partition)
    ]


def write_domain(domain: ReleasedDomain | None, path: Path) -> None:
    """The queries of a release with numbers; none where no release is read."""
    pq.write_table(numbered([] if domain is None else domain.queries()), path, compression="zstd")


def numbered(queries: list[str]) -> pa.Table:
    return pa.table({"query_id": pa.array(range(len(queries)), pa.int64()), "query": pa.array(queries, pa.string())})
