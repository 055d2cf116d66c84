"""The queries of a month's published release, as the public domain of another release of that month.

They are public by then, so what is counted over them costs no δ: every pair of them is noised, held or not. Which
release it is, is decided once: a month that was drawn over one is asked for over the same one ever after.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.errors import QlogError, RefusedError
from qlog_assets.ledger import Charge, Ledger, LedgerError
from qlog_assets.months import Month
from qlog_assets.report.public_zone import find_damage, release_path
from qlog_assets.storage.partition import Partition, WarehouseError
from qlog_assets.storage.warehouse import Warehouse

RELEASE = "release"
"""How provenance marks a published release that a stage read: `release:<id>`, with the digest of its manifest."""
TABLE = "queries.parquet"


@dataclass(frozen=True)
class ReleasedDomain:
    """A published release whose queries are a domain: its id, the digest of its manifest, and its table of queries."""

    release_id: str
    digest: str
    path: Path

    @property
    def upstream(self) -> dict[str, str]:
        return {f"{RELEASE}:{self.release_id}": self.digest}

    def verified(self) -> Path:
        """The table of queries, if it lies there as it was published."""
        if not self.path.exists():
            raise QlogError(f"the queries of {self.release_id} are no longer published: say domain = open, or --again")
        found = find_damage(self.path.parent, self.digest)
        if found:
            raise QlogError(f"{self.release_id} cannot be a domain: {found[0]}")
        return self.path


def find_domain(warehouse: Warehouse, month: Month, mechanism: str, stage: str) -> ReleasedDomain:
    """The release whose queries a mechanism's stage of a month reads: the one that its month was drawn over, or the
    newest one that is published."""
    try:
        charges = [charge for charge in Ledger.read(warehouse.ledger_url).charges() if charge.month == month]
    except LedgerError:
        charges = []
    known = {charge.release_id: charge for charge in charges if charge.manifest_digest is not None}
    drawn = [charge for charge in charges if charge.mechanism == mechanism and charge.live]
    for charge in reversed(drawn):
        for release_id in _read_by(warehouse, month, stage, charge.request.inputs.get(stage)):
            if release_id in known:
                return _domain(warehouse, known[release_id])
    published = [charge for charge in known.values() if charge.state == "published"]
    usable = [charge for charge in published if (release_path(warehouse, charge) / TABLE).exists()]
    if not usable:
        reason = f"{month} has no published release with a table of queries, which {mechanism} is to be counted over"
        raise RefusedError(
            f"{reason}: release one first (qlog release safelog --month {month}), or say --set domain=open",
            f"{reason}: launch safelog_release for it first, or set domain to open in the policy",
        )
    return _domain(warehouse, max(usable, key=lambda charge: charge.published_seq or 0))


def domain_read(warehouse: Warehouse, partition: Partition) -> ReleasedDomain | None:
    """The release that a partition was made with, if it still lies there; None where it was made with none."""
    for name, digest in partition.provenance.upstream.items():
        kind, _, release_id = name.partition(":")
        if kind == RELEASE:
            charge = Ledger.read(warehouse.ledger_url).charge(release_id)
            found = ReleasedDomain(release_id, digest, release_path(warehouse, charge) / TABLE)
            found.verified()
            return found
    return None


def domain_facts(partition: Partition) -> list[dict[str, Any]]:
    """What a manifest says of the releases that a partition was made with."""
    facts = []
    for name, digest in partition.provenance.upstream.items():
        kind, _, release_id = name.partition(":")
        if kind == RELEASE:
            table = partition.provenance.tables["domain"]
            (checksum,) = table.files.values()
            facts.append(
                {
                    "kind": "releases",
                    "name": release_id,
                    "description": "The queries of this release of the same month: every pair of them was noised.",
                    "rows": table.rows,
                    "sha256": checksum,
                    "sources": {release_id: digest},
                }
            )
    return facts


def write_domain(domain: ReleasedDomain | None, path: Path) -> None:
    """The queries of a release with numbers, by text; none where no release is read."""
    queries: list[str] = []
    if domain is not None:
        queries = sorted(pq.read_table(domain.verified(), columns=["query"])["query"].to_pylist())
    numbered = {"query_id": pa.array(range(len(queries)), pa.int64()), "query": pa.array(queries, pa.string())}
    pq.write_table(pa.table(numbered), path, compression="zstd")


def _domain(warehouse: Warehouse, charge: Charge) -> ReleasedDomain:
    assert charge.manifest_digest is not None
    return ReleasedDomain(charge.release_id, charge.manifest_digest, release_path(warehouse, charge) / TABLE)


def _read_by(warehouse: Warehouse, month: Month, stage: str, content_digest: str | None) -> list[str]:
    """The releases that the stage's partition of this content was made with."""
    found = []
    for path in sorted((warehouse.private / stage / month).glob("*/provenance.json")):
        try:
            made = warehouse.partition(stage, month, path.parent.name).provenance
        except WarehouseError:
            continue
        if made.content_digest == content_digest:
            found += [name.partition(":")[2] for name in made.upstream if name.startswith(f"{RELEASE}:")]
    return found
