"""Releases laid down by hand as somebody would have downloaded them: no ledger, no policy, no private zone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.releases import write_release

from qlog_assets.report.manifest import write_manifest

Rows = dict[str, list[tuple[Any, ...]]]


def lay_release(released: Path, month: str, rows: Rows, *, draw_number: int = 1, **facts: Any) -> Path:
    """A Safelog release of a month; of a version that stated neither noise nor months in its tables."""
    release_id = f"safelog-{month}-{draw_number:012d}"
    folder = released / "safelog" / month / release_id
    folder.mkdir(parents=True)
    given = {"release_id": release_id, "month": month, "draw_number": draw_number, **facts}
    write_manifest(write_release(folder, rows=rows, **given).manifest, folder)
    return folder


def lay_tombstone(released: Path, month: str, reason: str) -> None:
    """What stays of a Safelog release that was withdrawn."""
    folder = released / "safelog" / month
    folder.mkdir(parents=True, exist_ok=True)
    stone = {"release_id": f"safelog-{month}-gone", "month": month, "mechanism": "safelog"}
    path = folder / f"safelog-{month}-gone.withdrawn.json"
    path.write_text(json.dumps({**stone, "withdrawn_at": "2026-11-17", "reason": reason}), encoding="utf-8")
