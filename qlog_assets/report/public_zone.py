"""What lies under `released/`: where a release is, and whether the ledger accounts for all of it. Looks, never writes.

The one place for the paths of releases and tombstones.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from qlog_assets.ledger import Charge, Ledger, SaltedHead
from qlog_assets.report.manifest import load_manifest, verify_files
from qlog_assets.storage.digests import canonical_json, file_checksum
from qlog_assets.storage.warehouse import Warehouse

LATEST = "latest"
INDEX_NAME = "index.html"
DATAPACKAGE_NAME = "datapackage.json"
PAGES = (INDEX_NAME, DATAPACKAGE_NAME)
"""The files in `released/` itself: what they say is `public_pages.py`."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def release_path(warehouse: Warehouse, charge: Charge) -> Path:
    return warehouse.released / charge.mechanism / charge.month / charge.release_id


def latest_path(warehouse: Warehouse, mechanism: str, month: str) -> Path:
    """The pointer to a month's newest release, a file with its id; it may not be there."""
    return warehouse.released / mechanism / month / LATEST


def pointed_at(pointer: Path) -> str | None:
    """The id that a pointer names; None where it is none.

    A file and no link: through a link `released/*/*/*/queries.parquet` would read the month twice. Up to version 0.4.0
    it was a link, and such a pointer stands until it is written anew.
    """
    try:
        if pointer.is_symlink():
            return os.readlink(pointer)
        return pointer.read_text(encoding="utf-8").strip() if pointer.is_file() else None
    except (OSError, UnicodeDecodeError):
        return None


def latest_release(warehouse: Warehouse, mechanism: str, month: str) -> Path | None:
    """The directory of a month's newest release, told by public files alone; None where there is none."""
    pointer = latest_path(warehouse, mechanism, month)
    name = pointed_at(pointer)
    if name is None or not NAME.fullmatch(name):  # a pointer that leads elsewhere is nobody's release
        return None
    folder = pointer.with_name(name)
    return folder if folder.is_dir() and not folder.is_symlink() else None


def tombstone_path(warehouse: Warehouse, charge: Charge) -> Path:
    return release_path(warehouse, charge).with_name(f"{charge.release_id}.withdrawn.json")


def list_entries(released: Path) -> list[Path]:
    """Every release, tombstone and pointer under `released/`, and whatever lies where only directories belong."""
    found, level = [], [released] if released.is_dir() else []
    for _ in ("mechanism", "month"):
        entries = [entry for folder in level for entry in sorted(folder.iterdir())]
        level = [entry for entry in entries if entry.is_dir() and not entry.is_symlink()]
        found += [entry for entry in entries if entry not in level]
    return found + [entry for folder in level for entry in sorted(folder.iterdir())]


def unknown_entries(warehouse: Warehouse, ledger: Ledger, dataset: str | None = None) -> list[str]:
    """A sentence for each thing under `released/` that no published or withdrawn charge accounts for.

    With a data set's name, a release of another data set is unknown too: one warehouse has one budget.
    """
    # In this order: what is seen here was recorded before it was shown, so the ledger read afterwards knows it.
    entries = list_entries(warehouse.released)
    # Pages come with the account that they tell of: beside a ledger without one they are another ledger's.
    pages = [warehouse.released / name for name in PAGES] if ledger.datasets() else []
    releases, tombstones = {}, {}
    for charge in ledger.charges():
        if charge.state in ("published", "withdrawn") and charge.manifest_digest is not None:
            # A withdrawn release may still lie there: the withdrawal was interrupted, and the next one removes it.
            releases[release_path(warehouse, charge)] = charge
        if charge.state == "withdrawn":
            tombstones[tombstone_path(warehouse, charge)] = charge
    sentences, pointers = [], []
    for path in entries:
        name = path.relative_to(warehouse.released)
        if path.name == LATEST and (path.is_symlink() or path.is_file()):
            if path.parent / (pointed_at(path) or LATEST) not in releases:
                pointers.append(f"released/{name} points at nothing that the ledger at {ledger.where} published")
            continue
        if path in pages:
            if path.is_symlink() or not path.is_file():
                sentences.append(f"released/{name} is not the file it was")
            continue
        charge = releases.get(path) or tombstones.get(path)  # type: ignore[assignment]
        if charge is None:
            sentences.append(f"released/{name}: the ledger at {ledger.where} does not know it")
        elif path.is_symlink() or path.is_dir() != (path in releases):
            sentences.append(f"released/{name} is not the {'directory' if path in releases else 'file'} it was")
        elif dataset is not None and charge.dataset != dataset:
            sentences.append(f"released/{name} belongs to the data set {charge.dataset}, not to {dataset}")
    return sentences + pointers


def replaced_manifests(warehouse: Warehouse, ledger: Ledger) -> list[str]:
    """A sentence for each release whose manifest the ledger did not record, or whose ledger has another history."""
    published = [charge for charge in ledger.charges() if charge.state == "published"]
    events = ledger.events()
    sentences = []
    for charge in published:
        path = release_path(warehouse, charge) / "manifest.json"
        try:
            text = path.read_bytes()
        except OSError:
            # Gone, or never renamed into place: publishing it again is what mends that.
            continue
        if file_checksum(path) != charge.manifest_digest:
            sentences.append(f"released/{path.relative_to(warehouse.released)} is not the one the ledger recorded")
            continue
        head = json.loads(text)["ledger"]
        if not SaltedHead(head["seq"], head["salt"], head["salted_head"]).matches(events):
            sentences.append(
                f"released/{path.relative_to(warehouse.released)} commits to a history that the ledger at "
                f"{ledger.where} does not have: it was cut or rewritten"
            )
    return sentences


def find_damage(path: Path, manifest_digest: str | None) -> list[str]:
    """In what a release's directory differs from what was published under this manifest; empty if it does not."""
    if path.is_symlink() or not path.is_dir():
        return ["its files are gone" if not path.exists() else "it is not a directory"]
    manifest = path / "manifest.json"
    if not manifest.is_file() or manifest.is_symlink():
        return ["manifest.json is gone"]
    if file_checksum(manifest) != manifest_digest:
        return ["manifest.json is not the one the ledger recorded"]
    return verify_files(load_manifest(manifest), path)


def withdrawal_text(charge: Charge) -> str:
    """What the public is told of a withdrawal: never the reason that was recorded for auditors."""
    return charge.public_text or "This release was withdrawn by its publisher."


def tombstone_text(charge: Charge) -> str:
    """What stays of a withdrawn release: that it was, and that it is gone. Public facts only."""
    return canonical_json({**_tombstone_facts(charge), "text": withdrawal_text(charge)})


def tombstone_texts(charge: Charge) -> list[str]:
    """What the tombstone of a release may say: of one withdrawn by a version up to 0.4.0 also the reason."""
    earlier = canonical_json({**_tombstone_facts(charge), "reason": charge.closing_reason})
    return [tombstone_text(charge), *([earlier] if charge.reason_was_public else [])]


def _tombstone_facts(charge: Charge) -> dict[str, str]:
    return {
        "release_id": charge.release_id,
        "month": charge.month,
        "mechanism": charge.mechanism,
        "withdrawn_at": (charge.closed_at or "")[:10],
    }
