"""An asset and a check for every stage, whosever it is. Glue over `pipeline.stage`."""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg

from qlog_assets.checks.memory import Inspection
from qlog_assets.ledger import Book
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.orchestration import words
from qlog_assets.orchestration.asking import is_refused
from qlog_assets.orchestration.metadata import OWNERS, materialized, to_check_result
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource, month_of
from qlog_assets.pipeline.stage import Stage, Work

Definition = dg.AssetsDefinition | dg.AssetChecksDefinition


def stage_assets(
    months: dg.PartitionsDefinition, stage: Stage, group: str, mechanism: Mechanism | None = None
) -> list[Definition]:
    """The asset of a stage and, where it is inspected, its blocking check. The log's own stages have no mechanism."""

    @dg.asset(
        name=stage.name,
        group_name=group,
        partitions_def=months,
        deps=list(stage.reads),
        kinds={"duckdb", "sql", "parquet"},
        owners=OWNERS,
        code_version=stage.code_version,
        description=words.stage(stage, mechanism),
        output_required=False,
    )
    def made(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        started, chosen = time.monotonic(), policy.chosen()
        if is_refused(context, warehouse, policy, mechanism):
            return
        parameters = None if mechanism is None else chosen.stage_parameters(mechanism)
        with warehouse.engine() as engine:
            work = Work(
                warehouse.open(),
                engine,
                month_of(context),
                parameters,
                chosen.lists,
                context.run_id,
                book=Book(warehouse.ledger(context.run), chosen.dataset),
            )
            partition, fresh = stage.make_current_month(work)
        yield materialized(partition, started, fresh)

    if stage.inspect is None:
        return [made]
    return [made, month_check(stage.name, stage.check, stage.inspect, words.stage_check(stage))]


def month_check(asset: str, name: str, inspect: Inspection, description: str) -> dg.AssetChecksDefinition:
    """A blocking check that looks at the current partition of a month through its suite."""

    @dg.asset_check(asset=asset, blocking=True, name=name, description=description)
    def check(context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource) -> dg.AssetCheckResult:
        with warehouse.engine() as engine:
            found = inspect(engine, warehouse.open().current(asset, month_of(context)))
            return to_check_result(found, words.stage_next(asset))

    return check
