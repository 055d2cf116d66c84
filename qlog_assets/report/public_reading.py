"""What somebody finds who has the public files alone: releases by mechanism and month, and their tables, verified.

Neither ledger nor policy nor private zone is needed, and no pointer: a copy that came from a web server has no links.
The newest release of a month is the one with the highest draw number. A file is held against its manifest; whether the
manifest is the one that was published only the publisher's ledger can tell (`qlog audit`).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.months import Month
from qlog_assets.report.manifest import MANIFEST_NAME, load_manifest
from qlog_assets.report.public_zone import LATEST, list_entries
from qlog_assets.report.tables import (
    ERROR_COLUMN,
    MONTH_COLUMN,
    Column,
    TableLayout,
    add_month,
    describe_file,
    read_csv,
)

TOMBSTONE = ".withdrawn.json"


@dataclass(frozen=True)
class PublicMonth:
    """What lies in public of a month by one mechanism: releases, and what is left of those that were withdrawn."""

    mechanism: str
    month: Month
    releases: tuple[Path, ...]
    tombstones: tuple[Path, ...]


@dataclass(frozen=True)
class PublicRelease:
    """A release as it was downloaded: its manifest, and its tables by name."""

    path: Path
    manifest: Mapping[str, Any]

    @property
    def release_id(self) -> str:
        return str(self.manifest["release_id"])

    @property
    def mechanism(self) -> str:
        return str(self.manifest["mechanism"])

    @property
    def variant(self) -> str:
        return str(self.manifest["variant"])

    @property
    def month(self) -> str:
        return str(self.manifest["month"])

    @property
    def epsilon(self) -> float:
        return float(self.manifest["guarantee"]["epsilon"])

    @property
    def delta(self) -> float:
        return float(self.manifest["guarantee"]["delta"])

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""
        return tuple(self.manifest["tables"])

    def facts(self, table: str) -> Mapping[str, Any]:
        """What the manifest says of a table: rows, columns, threshold, noise."""
        if table not in self.manifest["tables"]:
            there = ", ".join(self.tables)
            raise QlogError(f"{self.mechanism} {self.month}: has no table {table!r}: it has {there}")
        facts: Mapping[str, Any] = self.manifest["tables"][table]
        return facts

    def table(self, name: str) -> pa.Table:
        """A table with all its rows, once its file is the one that the manifest describes.

        The Parquet file, or the CSV file where only that one is there. A table of a version that had no column for the
        month has one now.
        """
        facts = self.facts(name)
        for kind in ("parquet", "csv"):
            file = facts["files"].get(kind)
            path = self.path / ("" if file is None else file["path"])
            if file is None or not path.is_file():
                continue
            if asdict(describe_file(path)) != file:
                raise QlogError(f"{path}: is not the file that was published: download it again, or run qlog audit")
            return add_month(read_rows(path, layout_of(name, facts)), self.month)
        raise QlogError(f"{self.path / name}: neither its Parquet nor its CSV file is there: download it again")


def read_rows(path: Path, layout: TableLayout) -> pa.Table:
    """The rows of a Parquet or CSV file, or one line if they are not what the layout says.

    A checksum tells that a file is the one that a manifest names, and not that either is honest.
    """
    try:
        # Not `read_table`, which makes columns of folders that are called `a=b`.
        rows = pq.ParquetFile(path).read() if path.suffix == ".parquet" else read_csv(path, layout)
        rows.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, LookupError, StopIteration, csv.Error):
        rows = None
    if rows is None or not fits_layout(rows, layout):
        raise QlogError(f"{path}: is not the table that its manifest describes: tell whoever published it")
    return rows


def fits_layout(rows: pa.Table, layout: TableLayout) -> bool:
    """Whether rows have the columns of a layout in its order and types, each name once, and no value is missing."""
    found, told = [(field.name, field.type) for field in rows.schema], layout.schema
    types = {column.name: column.type for column in layout.columns}
    return (
        found == [(field.name, field.type) for field in told]
        and len(types) == len(found)
        and types.get(ERROR_COLUMN, "integer") == "integer"
        and types.get(MONTH_COLUMN, "text") == "text"
        and not any(column.null_count for column in rows.columns)
    )


def layout_of(name: str, facts: Mapping[str, Any]) -> TableLayout:
    """The layout of a table as its manifest describes it."""
    columns = tuple(Column(**column) for column in facts["columns"])
    has_errors = any(column.name == ERROR_COLUMN for column in columns)
    return TableLayout(name, columns, error=ERROR_COLUMN if has_errors else None)


def released_folder(home: Path) -> Path:
    """`released/` of a warehouse; or the folder itself, of somebody who downloaded what is in one."""
    inside = home / "released"
    return inside if inside.is_dir() else home


def find_months(home: Path) -> list[PublicMonth]:
    """What lies in a warehouse, in a copy of its `released/`, or in the folder of one release, in order."""
    released = released_folder(home)
    if (released / MANIFEST_NAME).is_file():
        manifest = load_manifest(released / MANIFEST_NAME)
        return [PublicMonth(manifest["mechanism"], Month(manifest["month"]), (released,), ())]
    found: dict[tuple[str, Month], tuple[list[Path], list[Path]]] = {}
    for path in list_entries(released):
        mechanism, month = path.parent.parent.name, as_month(path.parent.name)
        if month is None or path.parent.parent.parent != released or path.is_symlink():
            continue
        is_release = path.name != LATEST and (path / MANIFEST_NAME).is_file()
        if is_release or path.name.endswith(TOMBSTONE):
            found.setdefault((mechanism, month), ([], []))[0 if is_release else 1].append(path)
    return [PublicMonth(*key, tuple(releases), tuple(stones)) for key, (releases, stones) in sorted(found.items())]


def newest_release(found: PublicMonth) -> PublicRelease | None:
    """The release that stands for a month: of several draws the last one."""
    opened = [PublicRelease(path, load_manifest(path / MANIFEST_NAME)) for path in found.releases]
    for release in opened:
        if (release.mechanism, release.month) != (found.mechanism, found.month):
            raise QlogError(
                f"{release.path}: lies where {found.mechanism} {found.month} belongs, and its manifest is of "
                f"{release.mechanism} {release.month}"
            )
    return max(
        opened,
        key=lambda release: (release.manifest["draw_number"], release.manifest["ledger"]["seq"]),
        default=None,
    )


def open_release(home: Path, mechanism: str, month: str) -> PublicRelease:
    """The release of a month; or one line that says why there is none, and what there is."""
    asked, months = Month(month), find_months(home)
    here = {each.month: each for each in months if each.mechanism == mechanism}
    found = here.get(asked)
    release = None if found is None else newest_release(found)
    if release is not None:
        return release
    if found is not None:
        raise QlogError(f"{mechanism} {asked}: {withdrawal_words(found.tombstones)}")
    if here:
        raise QlogError(
            f"{mechanism} {asked}: there is no release of it under {released_folder(home)}: there are "
            f"{join_months(list(here))}"
        )
    others = sorted({each.mechanism for each in months})
    there = f"there are releases of {', '.join(others)}" if others else "nothing was released there"
    raise QlogError(f"{mechanism} {asked}: there is no release of it under {released_folder(home)}: {there}")


def withdrawal_words(tombstones: Sequence[Path]) -> str:
    """What the public was told when a month's release was withdrawn."""
    told = [read_tombstone(path) for path in tombstones]
    last = max(told, key=lambda stone: str(stone.get("withdrawn_at")))
    # Up to version 0.4.0 the note had the recorded reason; now it has a text that was written for the public.
    return (
        f"was withdrawn on {last.get('withdrawn_at')}: {last.get('text') or last.get('reason') or 'nothing was said'}"
    )


def read_tombstone(path: Path) -> dict[str, Any]:
    try:
        stone = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        stone = None
    if not isinstance(stone, dict):
        raise QlogError(f"{path}: cannot be read as the note of a withdrawn release: download it again")
    return stone


def join_months(months: Sequence[Month]) -> str:
    """Months in few words: those that follow one another as a range."""
    runs: list[list[Month]] = []
    for month in sorted(months):
        if runs and month.number == runs[-1][-1].number + 1:
            runs[-1].append(month)
        else:
            runs.append([month])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


def as_month(text: str) -> Month | None:
    try:
        return Month(text)
    except ParameterError:
        return None
