"""Reading releases from public files: a table with the error of every count. Nothing private is opened or written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.report.datasheet import reading_order
from qlog_assets.report.public_reading import MONTH_COLUMN, PublicRelease, open_release
from qlog_assets.report.table_noise import GEOMETRIC, TableNoise
from qlog_assets.report.tables import ERROR_COLUMN
from qlog_assets.report.unprinted import tell_unprinted
from qlog_assets.settings import home_from_environment

if TYPE_CHECKING:
    from qlog_assets.mechanisms.mechanism import Mechanism

MOST_ROWS = 100_000
"""What is shown of a table at once: whoever wants more loads the file."""


def public_home(home: Path | None) -> Path:
    """Where releases are looked for: the folder that was named, or the warehouse of QLOG_HOME."""
    if home is None:
        return home_from_environment()
    if not home.is_dir():
        raise QlogError(f"{home}: is no directory: name a warehouse, or a folder of releases that was downloaded")
    return home.resolve()


def known_noise(release: PublicRelease, table: str) -> TableNoise | None:
    """The noise on a table's counts: as the manifest states it, or by the parameters of a version that did not."""
    facts = release.facts(table)
    if "noise" in facts:
        return TableNoise.from_json(facts["noise"])
    made_by = maker_of(release)
    if made_by is None or facts["threshold"] is None:
        return None
    scale = made_by.account(release.manifest).noise_scales.get(table)
    return None if scale is None else TableNoise(GEOMETRIC, scale)


def maker_of(release: PublicRelease) -> Mechanism | None:
    """The mechanism that made a release, if this version knows it."""
    from qlog_assets.mechanisms.names import folder_names
    from qlog_assets.mechanisms.register import mechanism

    return mechanism(release.mechanism) if release.mechanism in folder_names() else None


def count_column(release: PublicRelease, table: str) -> str | None:
    """The column that holds noisy counts; None where a table has none, as a log of made-up users."""
    facts = release.facts(table)
    if facts["threshold"] is None:
        return None
    counts = [column["name"] for column in facts["columns"] if column["type"] == "integer"]
    return next((name for name in counts if name != ERROR_COLUMN), None)


def key_columns(release: PublicRelease, table: str) -> tuple[str, ...]:
    """The columns of texts that say what a row counts."""
    columns = release.facts(table)["columns"]
    return tuple(each["name"] for each in columns if each["type"] != "integer" and each["name"] != MONTH_COLUMN)


def standard_errors(rows: pa.Table, noise: TableNoise | None) -> np.ndarray | None:
    """The standard deviation of the noise in each row's count; None where nothing is known of it."""
    if ERROR_COLUMN in rows.column_names:
        errors: np.ndarray = rows.column(ERROR_COLUMN).to_numpy().astype(float)
        return errors
    if noise is None:
        return None
    # Rounded up to a tenth: what is said of an error is not below it.
    return np.full(rows.num_rows, math.ceil(10 * noise.deviation) / 10)


def show_release(home: Path | None, mechanism: str, month: str) -> dict[str, Any]:
    """What a release holds: its promise, and of each table the rows, the noise and the least printed count."""
    release = open_release(public_home(home), mechanism, month)
    made_by, tables = maker_of(release), {}
    for name in reading_order(release.manifest, {} if made_by is None else made_by.titles):
        facts, noise = release.facts(name), known_noise(release, name)
        tables[name] = {
            "rows": facts["rows"],
            "columns": [column["name"] for column in facts["columns"]],
            **unprinted_facts(facts, noise),
            **noise_facts(noise),
        }
    return {**release_facts(release), "tables": tables}


def show_table_rows(home: Path | None, mechanism: str, month: str, table: str, count: int) -> dict[str, Any]:
    """The first rows of a table, the most frequent ones, each with the standard error of its count."""
    if not 1 <= count <= MOST_ROWS:
        raise ParameterError(f"--rows {count}: ask for 1 to {MOST_ROWS:,} rows; the whole table is in the file")
    release = open_release(public_home(home), mechanism, month)
    noise, rows = known_noise(release, table), release.table(table)
    first = rows.slice(0, count)
    errors = standard_errors(first, noise) if count_column(release, table) is not None else None
    shown = first.to_pylist()
    if errors is not None:
        shown = [{**row, ERROR_COLUMN: float(error)} for row, error in zip(shown, errors, strict=True)]
    return {
        **release_facts(release),
        "table": table,
        "rows": rows.num_rows,
        "shown": shown,
        "count": count_column(release, table),
        **unprinted_facts(release.facts(table), noise),
        **noise_facts(noise),
    }


def release_facts(release: PublicRelease) -> dict[str, Any]:
    """What a release promises, by its manifest."""
    return {
        "release_id": release.release_id,
        "mechanism": release.mechanism,
        "variant": release.variant,
        "month": release.month,
        "epsilon": release.epsilon,
        "delta": release.delta,
        "unit": release.manifest["guarantee"]["unit"],
        "path": str(release.path),
    }


def unprinted_facts(facts: Mapping[str, Any], noise: TableNoise | None) -> dict[str, Any]:
    """The least count of a table, and about how many users it takes to be in it; None where nothing is counted."""
    told = tell_unprinted(facts, noise)
    return {
        "least_count": facts["threshold"],
        "row_needs_about": None if told is None else told.users,
        "condition": "" if told is None else told.condition,
    }


def noise_facts(noise: TableNoise | None) -> dict[str, Any]:
    """The noise of a table in numbers; all None where it is not known."""
    if noise is None:
        return {"law": None, "deviation": None, "within_95": None, "by_row": None}
    return {
        "law": noise.law,
        "deviation": math.ceil(10 * noise.deviation) / 10,
        "within_95": math.ceil(10 * noise.within(0.95)) / 10,
        "by_row": noise.by_row,
    }


def is_text(text: str) -> bool:
    """Whether a word of the command line is text, and not bytes that no text has."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
