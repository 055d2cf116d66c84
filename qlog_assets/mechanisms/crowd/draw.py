"""How CrowdLogging draws a release: the aggregated counts of each job, noise from `noise.py`, texts put back.

What one user can change here: at most artifacts_per_user counts of each job, each by one. Nothing that the noise
decides makes a draw fail, and what the parameters decide was asked before (`noise.draw_nothing`). What studies draw
straight from a log is `central_log.py`.
"""

from __future__ import annotations

import pyarrow as pa

from qlog_assets.crowd.jobs import COLUMNS, Application
from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.crowd import noise
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.mechanisms.crowd.tables import LAYOUTS
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.pipeline.stage import Inputs
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.report.tables import in_public_order
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition


def draw(engine: Engine, inputs: Inputs, variant: str, chosen: CrowdParameters, source: RandomSource) -> Drawn:
    """One table per job. Nothing in them was public before."""
    artifacts = inputs["crowd_artifacts"]
    refuse_other_variant(engine, artifacts, variant)
    tables: dict[str, DrawnTable] = {}
    for job in chosen.jobs:
        engine.view("artifacts", artifacts.files(job))
        tables[job] = noisy_table(source, engine.arrow("crowd/artifacts_by_text"), variant, job, chosen)
    return Drawn(tables)


def refuse_other_variant(engine: Engine, artifacts: Partition, variant: str) -> None:
    """Raise, before a random bit is taken, if people were shown another policy than the one that is drawn."""
    engine.view("jobs", artifacts.files("jobs"))
    if any(shown != variant for shown in engine.arrow("crowd/shown_policies")["policy"].to_pylist()):
        raise QlogError(f"crowd {variant}: the jobs that people were shown have another policy: choose that variant")


def noisy_table(
    source: RandomSource, counts: pa.Table, variant: str, job: Application, chosen: CrowdParameters
) -> DrawnTable:
    """One job's table of a release, from its artifacts and the users of each."""
    drawn = noise.draw_counts(source, counts["users"].to_numpy(), variant, chosen)
    rows = counts.select(COLUMNS[job]).take(pa.array(drawn.artifacts)).append_column("users", pa.array(drawn.users))
    return DrawnTable(in_public_order(rows, LAYOUTS[job]), drawn.threshold, noise=drawn.noise)
