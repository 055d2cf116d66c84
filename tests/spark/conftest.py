"""A machine whose Spark is set otherwise: all tests of Spark hold in spite of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.spark_settings import OTHER_SETTINGS, OTHER_VARIABLES


@pytest.fixture(scope="session", autouse=True)
def other_settings() -> Iterator[None]:
    """Before the first engine starts: a process has one Spark application."""
    with pytest.MonkeyPatch.context() as patch:
        told = " ".join(f"--conf {name}='{value}'" for name, value in OTHER_SETTINGS.items())
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{told} pyspark-shell")
        for name, value in OTHER_VARIABLES.items():
            patch.setenv(name, value)
        yield
