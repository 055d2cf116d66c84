"""Fixtures: copies of prepared warehouses. Taken with `pytest_plugins = ("support.warehouse_fixtures",)`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import support.warehouses  # noqa: F401 - adds the warehouses that are prepared here
from support.instances import Prepared, copy_warehouse


@pytest.fixture
def chained(copied: Callable[[str], Path]) -> Path:
    """A small log ingested, and its first month ready to be drawn."""
    return copied("chained")


@pytest.fixture
def drawn(copied: Callable[[str], Path]) -> Path:
    """The same, drawn and not published."""
    return copied("drawn")


@pytest.fixture
def another(prepared: Prepared, tmp_path: Path) -> Callable[[str], Path]:
    """More copies of prepared warehouses, for tests that compare several."""

    def copy(name: str) -> Path:
        target = tmp_path / f"warehouse-{len(list(tmp_path.iterdir()))}"
        return copy_warehouse(prepared(name), target)

    return copy
