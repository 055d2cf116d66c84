"""Each audit case runs once a session, whichever tests look at it, with a seed of its own name."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache

import pytest

from qlog_assets.attacks.auditor import AuditResult
from qlog_assets.mechanisms.register import cases
from qlog_assets.privacy.randomness import SeededRandom

Finding = Callable[[str], AuditResult]


@pytest.fixture(scope="session")
def finding() -> Finding:
    @cache
    def examined(name: str) -> AuditResult:
        return cases()[name].run(SeededRandom(zlib.crc32(name.encode())))

    return examined
