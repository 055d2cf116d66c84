"""Stored draws: the noisy tables of a release between drawing and publishing, under `private/draws/`.

A draw is written once, under its fingerprint, and never replaced. Who may draw and what it costs is the door's.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.privacy.guarantee import FIRST_WORDS
from qlog_assets.report.table_noise import TableNoise
from qlog_assets.storage.digests import canonical_json, digest_of, file_checksum
from qlog_assets.storage.private_files import remove_whole, seal
from qlog_assets.storage.scratch import sync, sync_directory, temporary_directory
from qlog_assets.storage.warehouse import Warehouse

PUBLIC_TEXTS = "public_texts"


class DrawError(QlogError):
    """A stored draw that cannot be read."""


@dataclass(frozen=True)
class DrawnRelease:
    """What a draw is of: the request as the ledger has it, and the shapes of the partitions it read."""

    fingerprint: str
    dataset: str
    month: str
    mechanism: str
    variant: str
    mechanism_version: int
    draw_number: int
    parameters: dict[str, Any]
    inputs: dict[str, str]
    salt: str
    """What hides the ledger's head in the manifest."""
    software: dict[str, str]
    about: dict[str, str | None]
    public_material: tuple[dict[str, Any], ...]
    words: int = FIRST_WORDS
    """The version of the public words that it is published with."""
    budget: dict[str, Any] | None = None
    """What its charge counts against, where that is a window of months or once was: the manifest prints it."""
    failure: str | None = None
    """The kind of error that ended it after noise was drawn. Then it has no tables and is never published: a second
    draw in its place would tell that the first one failed, and on what noise that hung."""
    witnessed: bool | None = None
    """Whether a witness had the charge before this was drawn. None in draws of versions that did not say."""
    one_user: str | None = None
    """Who is one user, where that is not one user id of the log: manifest and datasheet say so."""


@dataclass(frozen=True)
class Draw:
    """A stored draw and the digest the ledger records for it."""

    path: Path
    release: DrawnRelease
    thresholds: dict[str, dict[str, int | None]]
    digest: str
    noise: dict[str, TableNoise]
    """What its publication says of the noise on each table. Functions of parameters and noisy numbers: nothing that
    only the log knows. Empty in draws of versions that did not say."""

    def read(self) -> Drawn:
        """The drawn tables."""
        tables = {
            name: DrawnTable(
                pq.read_table(self.path / f"{name}.parquet"),
                noise=self.noise.get(name),
                **thresholds,  # type: ignore[arg-type]
            )
            for name, thresholds in self.thresholds.items()
        }
        return Drawn(tables, pq.read_table(self.path / f"{PUBLIC_TEXTS}.parquet")["text"].combine_chunks())


def store_draw(warehouse: Warehouse, release: DrawnRelease, drawn: Drawn) -> None:
    """Store a draw under its fingerprint. If another process was first, this draw is dropped unseen."""
    target = warehouse.draws / release.fingerprint
    thresholds = {
        name: {
            "threshold": table.threshold,
            "threshold_outside_pool": table.threshold_outside_pool,
            "only_public": table.only_public,
        }
        for name, table in drawn.tables.items()
    }
    noise = {name: table.noise.as_json() for name, table in drawn.tables.items() if table.noise is not None}
    with temporary_directory(warehouse.draws) as scratch:
        for name, table in drawn.tables.items():
            pq.write_table(table.rows, scratch / f"{name}.parquet")
        pq.write_table(pa.table({"text": drawn.public_texts}), scratch / f"{PUBLIC_TEXTS}.parquet")
        facts = {"release": asdict(release), "thresholds": thresholds, "noise": noise}
        (scratch / "draw.json").write_text(canonical_json(facts), encoding="utf-8")
        seal(scratch)
        # On disk before it has its name, and its name on disk before the ledger hears of it: a recorded draw is there.
        sync_directory(scratch)
        try:
            os.rename(scratch, target)
        except OSError:
            if not (target / "draw.json").exists():
                raise
    sync(warehouse.draws)


def load_draw(warehouse: Warehouse, fingerprint: str) -> Draw:
    """A stored draw with the digest of what is on disk now."""
    path = warehouse.draws / fingerprint
    try:
        facts = json.loads((path / "draw.json").read_text(encoding="utf-8"))
        release = DrawnRelease(**{**facts["release"], "public_material": tuple(facts["release"]["public_material"])})
        thresholds = {str(name): dict(value) for name, value in facts["thresholds"].items()}
        noise = {str(name): TableNoise.from_json(value) for name, value in facts.get("noise", {}).items()}
        digest = digest_of({entry.name: file_checksum(entry) for entry in sorted(path.iterdir())})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise DrawError(
            "the stored draw cannot be read: it was changed on disk; restore private/draws from a backup"
        ) from None
    return Draw(path, release, thresholds, digest, noise)


def discard_draw(warehouse: Warehouse, fingerprint: str) -> None:
    """Remove a draw that may no longer be used, all of it or none."""
    remove_whole(warehouse.draws / fingerprint)
