"""What forgetting leaves: rows by asset and month, and files of the landing zone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.door import APRIL, MARCH, door_at

from qlog_assets.months import Month
from qlog_assets.verify.retention import forget_before


def forget(home: Path, before: str = "2006-05", landing: bool = False) -> dict[str, Any]:
    door = door_at(home)
    door.open_account()  # as the command does
    return forget_before(door.warehouse, door.policy, door.ledger, Month(before), landing)


def private_rows(home: Path) -> dict[str, list[str]]:
    """The months of which each asset still has rows."""
    found: dict[str, list[str]] = {}
    for path in sorted((home / "private").rglob("*.parquet")):
        asset, *rest = path.relative_to(home / "private").parts
        months = [part for part in rest if part in (MARCH, APRIL)]
        if asset not in ("pool", "public_lists") and path.parent.name != "rejected":
            found.setdefault(asset, []).extend(months[:1])
    return {asset: sorted(set(months)) for asset, months in found.items()}


def landed(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "landing" / "aol").iterdir())
