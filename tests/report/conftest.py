"""A release on disk for the tests of reports."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support.releases import Release, write_release


@pytest.fixture
def make_release(tmp_path: Path) -> Callable[..., Release]:
    return partial(write_release, tmp_path)


@pytest.fixture
def release(make_release: Callable[..., Release]) -> Release:
    return make_release()
