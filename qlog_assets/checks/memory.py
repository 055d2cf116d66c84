"""Remembers what a partition's check found, so that the same files are looked at once per process."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from qlog_assets.checks.suites import CheckResult
from qlog_assets.storage.digests import digest_of
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition

Inspection = Callable[[Engine, Partition], CheckResult]
"""Looks at a partition through its suite: counts in DuckDB, expectations on the counts."""


def memoize_by_content(inspect: Inspection) -> Inspection:
    """Look at the same files once per process. A check, a draw and a publication ask the same of one partition in turn.

    A file that was touched in between is looked at again, and so is one that another checksum vouches for. That a file
    has the checksum that vouches for it is for whoever asks to verify: the door does, before every answer it uses.
    """
    answers: dict[str, CheckResult] = {}

    @wraps(inspect)
    def remembered(engine: Engine, partition: Partition) -> CheckResult:
        made = partition.provenance
        vouched = {name: facts.files for name, facts in made.tables.items()}
        question = digest_of({"files": partition.files_on_disk(), "vouched": vouched, "parameters": made.parameters})
        if question not in answers:
            answers[question] = inspect(engine, partition)
        return answers[question]

    return remembered
