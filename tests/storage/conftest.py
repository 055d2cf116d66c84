"""A warehouse whose tables lie on another disk, for whoever has no other one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.stored import storing

from qlog_assets.storage.warehouse import Warehouse


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "another disk"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def warehouse(home: Path, store: Path) -> Warehouse:
    return storing(home, store)
