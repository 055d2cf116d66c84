"""An asset per study: its tables, text and pictures, private, in the same catalogue as the releases."""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from pathlib import Path
from typing import Any

import dagster as dg

from qlog_assets.ledger import Book
from qlog_assets.orchestration import words
from qlog_assets.orchestration.metadata import OWNERS, study_metadata
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource, month_of
from qlog_assets.policy import as_written
from qlog_assets.studies.study import Study, StudyWork, run_study

PROGRESS = "progress "
"""How the log message begins that says how far a study is: the command line shows it as a bar."""


# A plain schema, as in `mechanism_assets`: nothing is prefilled, and nothing is taken from the machine's environment.
STUDY_CONFIG = {
    "settings": dg.Field(
        dg.Map(str, dg.Any, key_label_name="key"),
        is_required=False,
        description="Other settings of the study than its own, such as `seed: 2`, as the command line's --set",
    )
}
"""What a run changes of a study's settings."""


def study_asset(months: dg.PartitionsDefinition, study: Study) -> dg.AssetsDefinition:
    """The asset of a study, per month where the study is of one."""

    @dg.asset(
        name=study.asset,
        group_name="studies",
        partitions_def=months if study.per_month else None,
        deps=["raw_log"] if study.per_month else [],
        kinds={"numpy", "csv"},
        owners=OWNERS,
        code_version=str(study.version),
        config_schema=STUDY_CONFIG,
        description=words.study(study),
    )
    def studied(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        started = time.monotonic()
        given = context.op_execution_context.op_config.get("settings", {})

        def progress(done: int, of: int, step: str) -> None:
            context.log.info(f"{PROGRESS}{done}/{of} {step}")

        chosen = policy.for_study()
        with warehouse.duckdb() as engine:
            work = StudyWork(
                warehouse.open(),
                engine,
                chosen,
                study.settings(**{key: as_written(value) for key, value in given.items()}),
                month_of(context) if study.per_month else None,
                context.run_id,
                book=Book(warehouse.ledger(context.run), chosen.dataset),
            )
            facts = run_study(study, work, progress)
        return dg.MaterializeResult(
            metadata=study_metadata(facts, started), data_version=dg.DataVersion(Path(facts["path"]).name)
        )

    return studied
