"""Where an audit works: scratch of its own, engines on it, and Dagster's history, also where nothing may be written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qlog_assets.storage.dagster_home import SETTINGS, open_existing
from qlog_assets.storage.engine import DuckDBEngine, open_duckdb
from qlog_assets.storage.scratch import make_private, temporary_directory
from qlog_assets.storage.stored import drop_copies
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.verify.run_history import Found, run_findings

if TYPE_CHECKING:
    import dagster as dg


@dataclass(frozen=True)
class Workplace:
    """A private directory that is removed at the end, as a warehouse to make things in."""

    warehouse: Warehouse

    @property
    def folder(self) -> Path:
        return self.warehouse.home

    def engine(self) -> AbstractContextManager[DuckDBEngine]:
        return open_duckdb(self.warehouse)

    def directory(self) -> AbstractContextManager[Path]:
        return temporary_directory(self.folder)


@contextmanager
def open_workplace(warehouse: Warehouse) -> Iterator[Workplace]:
    """Scratch in the warehouse's own zone, or the system's where the warehouse is not there or may only be read."""
    # Asked of the file system, not of the mode: root may write everywhere but on a read-only mount.
    own = os.access(warehouse.spill, os.W_OK | os.X_OK)
    # Of what lies in a store nothing is believed that was fetched before.
    drop_copies()
    with temporary_directory(warehouse.spill) if own else _system_directory() as folder:
        yield Workplace(Warehouse(warehouse.settings.for_scratch(folder)))


@contextmanager
def _system_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="qlog-audit-") as folder:
        yield Path(folder)


class History:
    """Dagster's history: the one given, the warehouse's own, or none. It is never made by looking at it."""

    def __init__(self, warehouse: Warehouse, instance: dg.DagsterInstance | None, workplace: Workplace) -> None:
        self.warehouse = warehouse
        self.workplace = workplace
        self.trouble: str | None = None
        """Why it could not be read."""
        self._instance = instance
        self._opened = instance is not None
        self._closing = ExitStack()

    def __enter__(self) -> History:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def findings(self, at_the_door: Iterable[str], before_it: Iterable[str]) -> Found:
        """What it says of the runs of a release. Whatever goes wrong in reading it is no finding about the release."""
        try:
            self._open()
            return run_findings(self._instance, at_the_door, before_it)
        except Exception as error:  # noqa: BLE001 - Dagster's files may be broken in any way; said as a failure
            words = str(getattr(error, "orig", None) or error).strip().splitlines()
            reason = words[0] if words else type(error).__name__
            self.trouble = f"Dagster's history in {self.warehouse.dagster} cannot be read ({reason})"
            return [], ["Dagster's history cannot be read: its runs and checks were not looked at"]

    def _open(self) -> None:
        if self._opened or not (self.warehouse.dagster / SETTINGS).exists():
            return
        own, history = self.warehouse.dagster, self.warehouse.dagster / "history"
        if history.is_dir() and not os.access(history, os.W_OK | os.X_OK):
            # SQLite writes beside a file that it reads: on a read-only mount a copy is read.
            own = self.workplace.folder / "dagster"
            make_private(own)
            shutil.copyfile(self.warehouse.dagster / SETTINGS, own / SETTINGS)
            shutil.copytree(history, own / "history")
        self._instance = self._closing.enter_context(open_existing(own))
        self._opened = True
