"""The assets of a mechanism: its stages, its draw, its released tables and its simulation. Glue over door and studies.

Nothing here knows a mechanism by name: the register says which there are, and each says what it has.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg

from qlog_assets.door.door import Door
from qlog_assets.ledger import Book
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.orchestration import words
from qlog_assets.orchestration.asking import asked_again, is_refused, saying_refused
from qlog_assets.orchestration.metadata import (
    OWNERS,
    budget_picture,
    column_schema,
    off_metadata,
    receipt_metadata,
    seconds_since,
    table_metadata,
    warning_metadata,
)
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource, month_of
from qlog_assets.orchestration.stage_assets import Definition, stage_assets
from qlog_assets.pipeline.public_material import PUBLIC_LISTS
from qlog_assets.studies.simulation import simulate

# Plain schemas instead of `dg.Config`: the launchpad prefills what has a default, and a text of a `dg.Config` may be
# taken from the machine's environment.
DRAW_CONFIG = {
    "again": dg.Field(
        dg.String,
        is_required=False,
        description="Why the month is drawn once more although it has a release: a new draw at a new charge. The same "
        "reason twice is the same draw, so re-executing the run costs nothing.",
    )
}
"""What a run may say to the door besides the policy."""
SIMULATION_CONFIG = {
    "variant": dg.Field(
        dg.String, is_required=False, description="Which variant to draw; without one, the one that a release would use"
    ),
    "seed": dg.Field(dg.Int, is_required=False, description="Seed of the noise; without one, 1"),
}
"""Which study to draw."""


def mechanism_assets(months: dg.PartitionsDefinition, mechanism: Mechanism) -> list[Definition]:
    """Everything a mechanism has, partitioned by these months."""
    definitions: list[Definition] = []
    for stage in mechanism.stages:
        definitions += stage_assets(months, stage, mechanism.name, mechanism)
    if mechanism.is_releasable:
        definitions += [draw_asset(months, mechanism), released_assets(months, mechanism)]
    if mechanism.is_simulated:
        definitions.append(simulation_asset(months, mechanism))
    return definitions


def month_before(mechanism: Mechanism) -> list[dg.AssetDep]:
    """The draw of the month before, where its release may steer this one: backfills then go month by month.

    Dagster lets an asset depend on its own earlier partitions, and on no other asset that depends on it: so it is the
    draw, and the door waits for nothing but says so where that draw is not published yet.
    """
    if not mechanism.may_be_steered:
        return []
    before = dg.TimeWindowPartitionMapping(start_offset=-1, end_offset=-1)
    return [dg.AssetDep(mechanism.draw_asset, partition_mapping=before)]


def draw_asset(months: dg.PartitionsDefinition, mechanism: Mechanism) -> dg.AssetsDefinition:
    """The asset that asks the door to draw. It has no code version: another one would invite another draw."""

    @dg.asset(
        name=mechanism.draw_asset,
        group_name=mechanism.name,
        partitions_def=months,
        deps=[*mechanism.inputs, *month_before(mechanism)],
        kinds={"numpy", "parquet"},
        owners=OWNERS,
        config_schema=DRAW_CONFIG,
        output_required=False,
        description=words.draw(mechanism),
    )
    def drawn(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        started, month = time.monotonic(), month_of(context)
        if is_refused(context, warehouse, policy, mechanism):
            return
        ledger = warehouse.ledger(context.run)
        door = Door(warehouse.open(), policy.chosen(), ledger, open_engine=warehouse.engine)
        with saying_refused(context, mechanism):
            receipt = door.draw(mechanism.name, month, again=asked_again(context, mechanism))
            yield dg.MaterializeResult(
                metadata={
                    **budget_picture(ledger, receipt.charge.dataset),
                    **receipt_metadata(receipt, ledger, started),
                    **off_metadata(policy.chosen(), mechanism),
                },
                data_version=dg.DataVersion(receipt.charge.release_id),
            )

    return drawn


def released_assets(months: dg.PartitionsDefinition, mechanism: Mechanism) -> dg.AssetsDefinition:
    """The assets that ask the door to publish the stored draw: one per public table, all of them at once."""

    @dg.multi_asset(
        name=f"released_{mechanism.name}",
        partitions_def=months,
        can_subset=True,
        specs=[
            dg.AssetSpec(
                mechanism.released_assets[layout.name],
                group_name=mechanism.name,
                deps=[mechanism.draw_asset],
                kinds={"parquet", "csv"},
                owners=OWNERS,
                skippable=True,
                description=words.released(mechanism, layout),
                metadata={"dagster/column_schema": column_schema(layout.columns)},
            )
            for layout in mechanism.tables
        ],
    )
    def released(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        started, ledger = time.monotonic(), warehouse.ledger(context.run)
        door = Door(warehouse.open(), policy.chosen(), ledger, open_engine=warehouse.engine)
        receipt = None
        with saying_refused(context, mechanism):
            receipt = door.publish(mechanism.name, month_of(context))
        if receipt is None:
            return
        assert receipt.path is not None and receipt.rows is not None
        for key in sorted(context.selected_asset_keys):
            table = key.path[-1].removeprefix(mechanism.released_prefix)
            if table in receipt.rows:
                yield dg.MaterializeResult(
                    asset_key=key,
                    metadata={
                        **table_metadata(receipt.path, table),
                        **budget_picture(ledger, receipt.charge.dataset),
                        **receipt_metadata(receipt, ledger, started),
                    },
                    data_version=dg.DataVersion(receipt.charge.release_id),
                )

    return released


def simulation_reads(mechanism: Mechanism) -> list[str]:
    """What a simulation is made from: the month's raw log and public lists, as far as any variant reads them."""
    reads = {name for stage in mechanism.stages for name in stage.reads}
    reads |= {name for variant in mechanism.variants.values() for name in variant.in_study.reads or ()}
    log = ["raw_log"] if "cleaned_log" in reads else []
    return [*log, *(name for name in PUBLIC_LISTS if name in reads)]


def simulation_asset(months: dg.PartitionsDefinition, mechanism: Mechanism) -> dg.AssetsDefinition:
    """A seeded draw for studies."""

    @dg.asset(
        name=f"simulated_{mechanism.name}",
        group_name="studies",
        partitions_def=months,
        deps=simulation_reads(mechanism),
        kinds={"numpy", "parquet"},
        owners=OWNERS,
        code_version=str(mechanism.version),
        config_schema=SIMULATION_CONFIG,
        description=words.simulated(mechanism),
    )
    def simulated(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        started, chosen, config = time.monotonic(), policy.for_study(), context.op_execution_context.op_config
        variant = config.get("variant") or chosen.variant(mechanism)
        with warehouse.duckdb() as engine:
            facts = simulate(
                mechanism.name,
                warehouse.open(),
                engine,
                chosen,
                month_of(context),
                variant,
                config.get("seed", 1),
                context.run_id,
                Book(warehouse.ledger(context.run), chosen.dataset),
            )
        rows = {f"rows {name}": count for name, count in facts["rows"].items()}
        return dg.MaterializeResult(
            metadata={"variant": variant, **rows, **warning_metadata(facts), "seconds": seconds_since(started)},
            data_version=dg.DataVersion(Path(facts["path"]).name),
        )

    return simulated
