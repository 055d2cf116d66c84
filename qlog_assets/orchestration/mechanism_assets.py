"""The assets every mechanism has: its draw, its released tables, and its simulations. Glue over the door and studies.

What a mechanism counts before it draws is in its own module; which tables it releases is in its register entry.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
import pyarrow.parquet as pq

from qlog_assets.door.door import Door
from qlog_assets.mechanisms.mechanism import MechanismEntry
from qlog_assets.orchestration.log_assets import OWNERS
from qlog_assets.orchestration.metadata import receipt_metadata, to_check_result
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource, month_of
from qlog_assets.studies.simulation import simulate

PREVIEW_ROWS = 10


class DrawConfig(dg.Config):
    """What a run may say to the door besides the policy."""

    again: str | None = None
    """Why the month is drawn once more although it has a release: a new draw at a new charge. The same reason twice is
    the same draw, so re-executing the run costs nothing."""


class SimulationConfig(dg.Config):
    """Which study to draw."""

    variant: str = "sound"
    """`paper` is the paper's algorithm to the letter; the others are what a release could use."""
    seed: int = 1


def mechanism_assets(
    months: dg.PartitionsDefinition, entry: MechanismEntry
) -> Sequence[dg.AssetsDefinition | dg.AssetChecksDefinition]:
    """A mechanism's draw, released tables and simulation, and the check of its contribution limits."""
    version, limited = str(entry.version), entry.inputs[0]

    @dg.asset(
        name=entry.draw_asset,
        group_name=entry.name,
        partitions_def=months,
        deps=list(entry.inputs),
        kinds={"numpy", "parquet"},
        owners=OWNERS,
        code_version=version,
        description="The month's draw: the door validated the inputs, reserved the charge and drew every table, once.",
    )
    def drawn(
        context: dg.AssetExecutionContext, config: DrawConfig, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        started, ledger = time.monotonic(), warehouse.ledger(context.run_id)
        door = Door(warehouse.open(), policy.chosen(), ledger, open_engine=warehouse.engine)
        receipt = door.draw(entry.name, month_of(context), again=config.again)
        return dg.MaterializeResult(metadata=receipt_metadata(receipt, ledger, started))

    @dg.multi_asset(
        name=f"released_{entry.name}",
        partitions_def=months,
        can_subset=True,
        specs=[
            dg.AssetSpec(
                asset,
                group_name=entry.name,
                deps=[entry.draw_asset],
                kinds={"parquet", "csv"},
                owners=OWNERS,
                code_version=version,
                skippable=True,
                description=f"Public: the {table} of the month's release, with noisy numbers of users. "
                "Published by the door from the stored draw; it takes no parameters.",
            )
            for table, asset in entry.released_assets.items()
        ],
    )
    def released(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        started, ledger = time.monotonic(), warehouse.ledger(context.run_id)
        door = Door(warehouse.open(), policy.chosen(), ledger, open_engine=warehouse.engine)
        receipt = door.publish(entry.name, month_of(context))
        assert receipt.path is not None and receipt.rows is not None
        for key in sorted(context.selected_asset_keys):
            table = key.path[-1].removeprefix(entry.released_prefix)
            if table in receipt.rows:
                preview = pq.read_table(receipt.path / f"{table}.parquet").slice(0, PREVIEW_ROWS).to_pandas()
                yield dg.MaterializeResult(
                    asset_key=key,
                    metadata={
                        **receipt_metadata(receipt, ledger, started),
                        "dagster/row_count": receipt.rows[table],
                        "path": dg.MetadataValue.path(receipt.path),
                        "preview": dg.MetadataValue.md(preview.to_markdown(index=False)),
                    },
                )

    @dg.asset(
        name=f"simulated_{entry.name}",
        group_name="studies",
        partitions_def=months,
        deps=["raw_log"],
        kinds={"numpy", "parquet"},
        owners=OWNERS,
        code_version=version,
        description="A seeded draw for studies, sound or as the paper prints it: never published, never charged.",
    )
    def simulated(
        context: dg.AssetExecutionContext,
        config: SimulationConfig,
        warehouse: WarehouseResource,
        policy: PolicyResource,
    ) -> dg.MaterializeResult[Any]:
        started, home = time.monotonic(), warehouse.open()
        with warehouse.engine() as engine:
            facts = simulate(
                entry.name,
                home,
                engine,
                policy.chosen(),
                month_of(context),
                config.variant,
                config.seed,
                context.run_id,
            )
        rows = {f"rows {name}": count for name, count in facts["rows"].items()}
        return dg.MaterializeResult(
            metadata={"variant": config.variant, **rows, "seconds": round(time.monotonic() - started, 3)}
        )

    @dg.asset_check(asset=limited, blocking=True, name="contribution_limits")
    def contribution_limits(
        context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
    ) -> dg.AssetCheckResult:
        """No user holds more than the limits this partition was made with, and nothing twice."""
        with warehouse.engine() as engine:
            partition = warehouse.open().current(limited, month_of(context))
            return to_check_result(entry.inspect(engine, partition))

    return [drawn, released, simulated, contribution_limits]
