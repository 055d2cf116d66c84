"""The release of an earlier month that steers a draw: found once, pinned in the request, read as it was published.

Its rows were paid for and are public, so a draw may look at them at no cost: their items need not be named again, and
the weight of users goes to what is unknown. Which release it is must not hang on when somebody asks: the first request
of a month finds the latest earlier month's live release, the charge keeps its id and the digest of its manifest, and
every later request for that draw names the same one, whatever became of it since. A withdrawn release steers nothing
new.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.errors import RefusedError
from qlog_assets.ledger import Charge, Ledger
from qlog_assets.ledger.records import STEERING, Request
from qlog_assets.ledger.rules import latest_before
from qlog_assets.report.manifest import load_manifest
from qlog_assets.report.public_zone import find_damage, release_path
from qlog_assets.storage.warehouse import Warehouse


@dataclass(frozen=True)
class Steering:
    """A release of an earlier month, as the ledger has it, and where it was published."""

    charge: Charge
    path: Path
    digest: str
    """Of its manifest."""

    @property
    def pin(self) -> dict[str, str]:
        """What a request's inputs say of it."""
        return {f"{STEERING}:{self.charge.release_id}": self.digest}

    @property
    def trouble(self) -> str | None:
        """Why nothing new may be drawn by it; None where it may."""
        if self.charge.state != "published":
            return f"it is {self.charge.state}"
        damage = find_damage(self.path, self.digest)
        return damage[0] if damage else None

    def rows(self, table: str) -> pa.Table | None:
        """A table of the release; None where it has none of this name."""
        path = self.path / f"{table}.parquet"
        return pq.read_table(path) if path.exists() else None

    def facts(self) -> dict[str, Any]:
        """What the manifest of a release says that it steered."""
        tables = load_manifest(self.path / "manifest.json")["tables"].values()
        return {
            "kind": STEERING,
            "name": self.charge.release_id,
            "description": f"The release of {self.charge.month}: its rows were public and got noise without a test.",
            "rows": sum(table["rows"] for table in tables),
            "sha256": self.digest,
            "sources": {self.charge.release_id: self.digest},
        }


class UnpublishedError(RefusedError):
    """The month that would steer a draw is not published yet."""

    def __init__(self, latest: Charge, month: str) -> None:
        words = f"{latest.release_id} is {latest.state}, and {month} would be steered by it once it is published: "
        take_back = "qlog ledger abandon" if latest.state == "reserved" else "qlog withdraw"
        super().__init__(
            f"{words}release {latest.month} first, or take it back with {take_back} {latest.release_id}",
            f"{words}materialize the released tables of {latest.month} first, or take it back",
        )
        self.month = latest.month


def find_steering(warehouse: Warehouse, ledger: Ledger, request: Request, reason: str | None = None) -> Steering | None:
    """What steers a request, which names no such release yet; `reason` is why it is drawn once more, if it is.

    A draw that the request has already names it, whatever became of it since. Otherwise it is the live release of the
    latest earlier month, refused where it is not to be had. None: that draw has none, or there is no earlier month.
    """
    charges = [charge for charge in ledger.charges(request.dataset) if charge.mechanism == request.mechanism]
    drawn = [each for each in charges if each.month == request.month and each.counted]
    if reason is not None:
        # The same reason with other rows or parameters is another draw: it is steered by what is there now.
        drawn = [each for each in drawn if each.reason == reason and each.request.unpinned == request]
    if drawn:
        current = next((each for each in reversed(drawn) if each.live), drawn[-1])
        return next(
            (steering_of(warehouse, ledger.charge(pin), digest) for pin, digest in current.request.pins.items()), None
        )
    latest = latest_before(charges, request.month)
    if latest is None:
        return None
    if latest.state != "published":
        # What steers the month would hang on a race.
        raise UnpublishedError(latest, request.month)
    found = steering_of(warehouse, latest)
    if found.trouble is not None:
        raise RefusedError(f"{latest.release_id} would steer {request.month} and cannot: {found.trouble}")
    return found


def steering_of(warehouse: Warehouse, charge: Charge, digest: str | None = None) -> Steering:
    """A release that steers, by the digest that a draw pinned, or by the one that it was published with."""
    return Steering(charge, release_path(warehouse, charge), digest or str(charge.manifest_digest))


def published_before(warehouse: Warehouse, ledger: Ledger, dataset: str, mechanism: str, month: str) -> Steering | None:
    """What a study is steered by, which pins nothing: the latest earlier release that is there to be read."""
    charges = [charge for charge in ledger.charges(dataset) if charge.mechanism == mechanism]
    latest = latest_before([charge for charge in charges if charge.state == "published"], month)
    found = None if latest is None else steering_of(warehouse, latest)
    return None if found is None or found.trouble is not None else found
