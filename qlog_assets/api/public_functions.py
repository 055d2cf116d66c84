"""The Python API of whoever reads releases: public files alone. Neither Dagster nor a ledger or policy is needed.

A refusal is a `QlogError` with the line that the command would print.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, overload

from qlog_assets.api.reading import public_home
from qlog_assets.api.series import SeriesPoint, ask_for, find_series
from qlog_assets.api.suggestions import Suggestion, suggest_queries
from qlog_assets.report.public_reading import PublicRelease, open_release
from qlog_assets.settings import Settings
from qlog_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    import pyarrow as pa

Folder = str | PathLike[str] | None


@overload
def load(mechanism: str, month: str, table: None = None, home: Folder = None) -> PublicRelease: ...
@overload
def load(mechanism: str, month: str, table: str, home: Folder = None) -> pa.Table: ...
def load(mechanism: str, month: str, table: str | None = None, home: Folder = None) -> PublicRelease | pa.Table:
    """A table of a month's newest release, verified against its manifest; without a table's name the release itself.

    Reads public files alone. `home` is a warehouse, a copy of its `released/`, or the folder of one release; without
    one, the warehouse of QLOG_HOME. A table is a `pyarrow.Table` with a column `month`; `.to_pandas()` makes a frame.
    A release has `tables`, `table(name)`, `epsilon`, `delta`, `variant` and its `manifest`.
    """
    release = open_release(public_home(_path(home)), mechanism, month)
    return release if table is None else release.table(table)


def series(
    query: str,
    *,
    url: str | None = None,
    next_query: str | None = None,
    mechanism: str | None = None,
    home: Folder = None,
) -> list[SeriesPoint]:
    """The noisy counts of a query over the months with their errors, from public files alone; gaps included.

    With `url`, of the query and an address that was clicked; with `next_query`, of one query after another. Without a
    mechanism, of each that counts such things: every point says which one it is of. `home` is as for `load`.
    """
    return find_series(_path(home), ask_for(query, url, next_query), mechanism)


def suggest(query: str, release: str | None = None, *, count: int = 5) -> list[Suggestion]:
    """What may follow a query, best first, from the public files of a release of sessions: by default the latest.

    `release` is an id, or the directory of a release that was downloaded.
    """
    told = suggest_queries(Warehouse(Settings.from_environment()), query, release, count)
    return [Suggestion(**each) for each in told["suggestions"]]


def _path(folder: Folder) -> Path | None:
    return None if folder is None else Path(folder)
