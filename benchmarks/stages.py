"""Reads from a warehouse's Dagster event log which step took how long. It runs nothing and prints nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Stage:
    """One step of one run, as Dagster recorded it."""

    job: str
    partition: str
    name: str
    seconds: float
    started: float
    """Seconds since the first step of the warehouse began."""
    clock: float
    """When it began, in seconds since 1970."""


def stages(home: Path) -> list[Stage]:
    """Every step that was run in a warehouse, in order."""
    from qlog_assets.storage.dagster_home import open_existing

    found = []
    with open_existing(home / "dagster") as instance:
        for run in instance.get_runs():
            partition = run.tags.get("dagster/partition", "")
            for step in instance.get_run_step_stats(run.run_id):
                if step.start_time is not None and step.end_time is not None:
                    took = step.end_time - step.start_time
                    found.append(Stage(run.job_name, partition, step.step_key, took, step.start_time, step.start_time))
    found.sort(key=lambda stage: stage.started)
    begin = found[0].started if found else 0.0
    return [replace(s, seconds=round(s.seconds, 3), started=round(s.started - begin, 3)) for s in found]


def by_name(found: list[Stage]) -> dict[str, float]:
    """Seconds of each step, months added up, slowest first."""
    total: dict[str, float] = {}
    for stage in found:
        total[stage.name] = total.get(stage.name, 0.0) + stage.seconds
    return dict(sorted(((name, round(took, 3)) for name, took in total.items()), key=lambda item: -item[1]))
