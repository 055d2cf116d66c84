"""What all tests share: where temporary files lie, and warehouses that were prepared once per session."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.instances import Prepared, copy_warehouse, prepared_warehouses

SHARED_MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 4 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Temporary files in memory where there is room.

    Ledger, draws and Dagster's event log wait for the disk at every step: a release takes a third of the time there.
    """
    roomy = os.access(SHARED_MEMORY, os.W_OK) and shutil.disk_usage(SHARED_MEMORY).free > ENOUGH_BYTES
    if roomy and config.option.basetemp is None and "PYTEST_DEBUG_TEMPROOT" not in os.environ:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(SHARED_MEMORY)
        tempfile.tempdir = str(SHARED_MEMORY)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Warehouses that several tests start from, each made once per session whichever worker needs it first."""
    return prepared_warehouses(tmp_path_factory)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty warehouse."""
    path = tmp_path / "warehouse"
    path.mkdir()
    return path


@pytest.fixture
def restored_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that open an instance in this very process, which points the process at its warehouse."""
    for variable in ("DAGSTER_HOME", "QLOG_HOME", "GX_ANALYTICS_ENABLED"):
        monkeypatch.setenv(variable, "put back afterwards")


@pytest.fixture
def copied(prepared: Prepared, tmp_path: Path) -> Callable[[str], Path]:
    """A prepared warehouse to work on."""
    return lambda name: copy_warehouse(prepared(name), tmp_path / "warehouse")


@pytest.fixture
def ingested(copied: Callable[[str], Path]) -> Path:
    """Two months of a small log, ingested."""
    return copied("ingested")


@pytest.fixture
def released(copied: Callable[[str], Path]) -> Path:
    """The same with a release of its first month."""
    return copied("released")
