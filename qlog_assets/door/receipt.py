"""What the door answers to whoever asked for a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from qlog_assets.ledger import Charge
from qlog_assets.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Receipt:
    """What the door answers: the charge as the ledger has it, and whether this very request made it."""

    charge: Charge
    charged: bool
    guarantee: Guarantee
    path: Path | None = None
    rows: Mapping[str, int] | None = None
    thresholds: Mapping[str, int] | None = None
