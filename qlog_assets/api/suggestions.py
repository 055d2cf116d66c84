"""Suggestions from a published release of session logs, as whoever downloaded it would make them.

Public files alone are read: the manifest and the tables beside it, each held against its checksum. No ledger is opened,
nothing of the private zone is looked at, and nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qlog_assets.api.reading import is_text
from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.report.manifest import MANIFEST_NAME, load_manifest, verify_files
from qlog_assets.report.public_reading import find_months, newest_release
from qlog_assets.report.public_zone import LATEST, list_entries
from qlog_assets.sources.normalise import normalise_text
from qlog_assets.storage.warehouse import Warehouse

MECHANISM = "sessions"
CLICK_WEIGHT = 0.5
"""λ of Eq. 10: sessions and clicks count alike. `qlog study suggestion` shows what other weights do."""
MOST_SUGGESTIONS = 1000


@dataclass(frozen=True)
class Suggestion:
    """A query that may follow, and its score by Eq. 10: above 0, and at most 1."""

    query: str
    score: float


def suggest_queries(warehouse: Warehouse, query: str, release: str | None, count: int) -> dict[str, Any]:
    """What may follow a query, best first, with the release that says so; an error where it does not hold the query."""
    if not 1 <= count <= MOST_SUGGESTIONS:
        raise ParameterError(f"--count {count}: ask for 1 to {MOST_SUGGESTIONS} suggestions")
    if not is_text(query):
        raise ParameterError("the query is not text: write it in UTF-8")
    folder = newest_sessions(warehouse) if release is None else find_release(warehouse, release)
    manifest = load_manifest(folder / MANIFEST_NAME)
    name = manifest["release_id"]
    if manifest["mechanism"] != MECHANISM:
        raise QlogError(f"{name} is a release of {manifest['mechanism']}: suggestions come from one of {MECHANISM}")
    damage = verify_files(manifest, folder)
    if damage:
        raise QlogError(f"{name} is not as it was published: {damage[0]}: download it again, or run qlog audit")
    found = suggest_from(folder, manifest, normalise_text(query), count)
    if found is None:
        raise QlogError(f"the query is not in {name}, which holds queries that many users share: try a common one")
    return {
        "release_id": name,
        "month": manifest["month"],
        "query": normalise_text(query),
        "suggestions": [{"query": each.query, "score": each.score} for each in found],
    }


def suggest_from(folder: Path, manifest: dict[str, Any], query: str, count: int) -> list[Suggestion] | None:
    """The best suggestions of a release's tables; None where it does not hold the query."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from qlog_assets.studies.measures.suggestion import Suggester

    tables = {
        name: pq.read_table(folder / told["files"]["parquet"]["path"]) for name, told in manifest["tables"].items()
    }
    suggester = Suggester.from_release(tables.get("sessions"), tables.get("clicks"))
    numbers = suggester.numbers(pa.array([query], pa.string()))
    if numbers[0] < 0:
        return None
    found = suggester.suggest(numbers, CLICK_WEIGHT, count)
    texts = suggester.queries.take(pa.array(found.suggested)).to_pylist()
    return [Suggestion(text, score) for text, score in zip(texts, found.scores.tolist(), strict=True)]


def newest_sessions(warehouse: Warehouse) -> Path:
    """The newest month's latest release of session logs."""
    months = [each for each in find_months(warehouse.released) if each.mechanism == MECHANISM and each.releases]
    newest = newest_release(months[-1]) if months else None
    if newest is None:
        raise QlogError(f"there is no release of {MECHANISM} under {warehouse.released}: qlog release {MECHANISM}")
    return newest.path


def find_release(warehouse: Warehouse, release: str) -> Path:
    """The directory of a release by its id; or a directory itself, of a release that was downloaded."""
    entries = list_entries(warehouse.released)
    for path in entries:
        if path.name == release and path.name != LATEST and path.is_dir():
            return path
    if any(path.name == f"{release}.withdrawn.json" for path in entries):
        raise QlogError(f"{release} was withdrawn: its files are gone")
    downloaded = Path(release)
    if is_release(downloaded):
        return downloaded
    raise QlogError(f"there is no release {release!r} under {warehouse.released}, and no directory of that name is one")


def is_release(path: Path) -> bool:
    try:
        return (path / MANIFEST_NAME).is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False
