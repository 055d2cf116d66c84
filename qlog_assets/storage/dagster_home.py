"""DAGSTER_HOME inside a warehouse: its settings file, and opening the instance that lies there.

The history of runs is Dagster's own, in Dagster's own files. A dagster.yaml that an operator wrote, for example to
keep the history in PostgreSQL, is left alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from qlog_assets.errors import QlogError
from qlog_assets.storage.scratch import system_scratch
from qlog_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    import dagster as dg

SETTINGS = "dagster.yaml"
DAGSTER_YAML = """\
# Written by qlog: nothing leaves this machine, no sign-up window covers the UI, and what a library may print of the log
# while a step runs is not kept. Runs are queued as ever, and say who asked for them in the UI.
# Delete the first line to keep your own changes: qlog then leaves the file alone.
telemetry:
  enabled: false
nux:
  enabled: false
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
run_coordinator:
  module: qlog_assets.ui.coordinator
  class: AskedByCoordinator
"""
GONE = "qlog_assets.run_history"
"""The storage class that dagster.yaml named up to version 0.1."""
OURS = "# Written by qlog"
"""How a dagster.yaml begins that nobody made their own: it follows this version."""


def prepare_home(warehouse: Warehouse) -> None:
    """Make the warehouse's DAGSTER_HOME, where the UI looks, and point this process at it."""
    warehouse.make()
    settings = warehouse.dagster / SETTINGS
    if is_outdated(settings):
        settings.write_text(DAGSTER_YAML, encoding="utf-8")
    # The directory alone: what is in it is out of reach then, and other runs make and remove files in it meanwhile.
    warehouse.dagster.chmod(0o700)
    os.environ["DAGSTER_HOME"] = str(warehouse.dagster)
    os.environ["QLOG_HOME"] = str(warehouse.home)
    # Great Expectations asks at import; it must not find out by sending something.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"


@contextmanager
def owner_only() -> Iterator[None]:
    """Files made in this block are their owner's alone: Dagster makes its own for everybody to read.

    What is public is given its mode by name, whatever this says.
    """
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def is_outdated(settings: Path) -> bool:
    """Whether a settings file is missing, or one that an earlier version wrote."""
    written = settings.read_text(encoding="utf-8") if settings.exists() else OURS
    if not written.startswith(OURS) and GONE in written:
        raise QlogError(
            f"{settings}: names {GONE}, which this version no longer has: delete its storage part; the history is in "
            "Dagster's own files and is found without it"
        )
    return written.startswith(OURS) and written != DAGSTER_YAML


@contextmanager
def open_existing(directory: Path) -> Iterator[dg.DagsterInstance]:
    """The instance that lies in a directory, whichever one this process is pointed at. Its settings stay."""
    import dagster as dg

    if not is_outdated(directory / SETTINGS):
        with dg.DagsterInstance.from_config(str(directory)) as instance:
            yield instance
        return
    # Settings of an earlier version may name a storage class that is gone; the files are Dagster's own all the same.
    with system_scratch() as folder:
        # Quoted, or a space and a # in a folder's name would end it and an empty history be made beside it.
        history = f"storage:\n  sqlite:\n    base_dir: {json.dumps(str(directory), ensure_ascii=False)}\n"
        (folder / SETTINGS).write_text(DAGSTER_YAML + history, encoding="utf-8")
        with dg.DagsterInstance.from_config(str(folder)) as instance:
            yield instance
