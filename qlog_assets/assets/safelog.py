"""Assets of the group `safelog`: capped log, counts with the pool, draw, released tables. Glue over the door."""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pyarrow.parquet as pq

from qlog_assets import inspection
from qlog_assets.assets.log import OWNERS
from qlog_assets.assets.metadata import partition_metadata, receipt_metadata, to_check_result
from qlog_assets.assets.resources import PolicyResource, WarehouseResource, month_of
from qlog_assets.chain import AUGMENTED_VERSION, CAPPED_VERSION, Chain
from qlog_assets.drawing import mechanism
from qlog_assets.release import Door
from qlog_assets.studies import simulate_safelog

PREVIEW_ROWS = 10


class DrawConfig(dg.Config):
    """What a run may say to the door besides the policy."""

    again: str | None = None
    """Why the month is drawn once more although it has a release: a new draw at a new charge. The same reason twice is
    the same draw, so re-executing the run costs nothing."""


class SimulationConfig(dg.Config):
    """Which study to draw."""

    variant: str = "sound"
    """`sound`, or `paper`: Algorithm 1 to the letter."""
    seed: int = 1


def safelog_assets(months: dg.PartitionsDefinition) -> list[dg.AssetsDefinition | dg.AssetChecksDefinition]:
    """The group's assets and checks, partitioned by these months."""
    version = str(mechanism("safelog").version)

    @dg.asset(
        group_name="safelog",
        partitions_def=months,
        deps=["cleaned_log"],
        kinds={"duckdb", "sql", "parquet"},
        owners=OWNERS,
        code_version=CAPPED_VERSION,
        description="What each user may contribute: their first distinct queries, clicked pairs and transitions. "
        "Reads one user's rows at a time, so one user changes no other user's rows.",
    )
    def capped_log(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        started, home, month = time.monotonic(), warehouse.open(), month_of(context)
        with warehouse.engine() as engine:
            cleaned = home.current("cleaned_log", month)
            partition, fresh = Chain(home, engine, context.run_id).cap(month, cleaned, policy.chosen().safelog)
        return dg.MaterializeResult(metadata=partition_metadata(partition, started, fresh))

    @dg.asset(
        group_name="safelog",
        partitions_def=months,
        deps=[capped_log],
        kinds={"duckdb", "sql", "parquet"},
        owners=OWNERS,
        code_version=AUGMENTED_VERSION,
        description="How many users typed each query, and every query of the public pool that nobody typed, at zero.",
    )
    def pool_augmented(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        started, home, month = time.monotonic(), warehouse.open(), month_of(context)
        with warehouse.engine() as engine:
            capped = home.current("capped_log", month)
            partition, fresh = Chain(home, engine, context.run_id).augment(month, capped, policy.chosen())
        return dg.MaterializeResult(metadata=partition_metadata(partition, started, fresh))

    @dg.asset(
        group_name="safelog",
        partitions_def=months,
        deps=[capped_log, pool_augmented],
        kinds={"numpy", "parquet"},
        owners=OWNERS,
        code_version=version,
        description="The month's draw: the door validated the inputs, reserved the charge and drew every table, once.",
    )
    def selected(
        context: dg.AssetExecutionContext, config: DrawConfig, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        started, ledger = time.monotonic(), warehouse.ledger(context.run_id)
        door = Door(warehouse.open(), policy.chosen(), ledger)
        receipt = door.draw("safelog", month_of(context), again=config.again)
        return dg.MaterializeResult(metadata=receipt_metadata(receipt, ledger, started))

    @dg.multi_asset(
        name="released_safelog",
        partitions_def=months,
        can_subset=True,
        specs=[
            dg.AssetSpec(
                f"released_{layout.name}",
                group_name="safelog",
                deps=["selected"],
                kinds={"parquet", "csv"},
                owners=OWNERS,
                code_version=version,
                skippable=True,
                description=f"Public: the {layout.name} of the month's release, with noisy numbers of users. "
                "Published by the door from the stored draw; it takes no parameters.",
            )
            for layout in mechanism("safelog").tables
        ],
    )
    def released_safelog(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        started, ledger = time.monotonic(), warehouse.ledger(context.run_id)
        receipt = Door(warehouse.open(), policy.chosen(), ledger).publish("safelog", month_of(context))
        assert receipt.path is not None and receipt.rows is not None
        for key in sorted(context.selected_asset_keys):
            table = key.path[-1].removeprefix("released_")
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
        group_name="studies",
        partitions_def=months,
        deps=["raw_log"],
        kinds={"numpy", "parquet"},
        owners=OWNERS,
        code_version=version,
        description="A seeded draw for studies, sound or as the paper prints it: never published, never charged.",
    )
    def simulated_safelog(
        context: dg.AssetExecutionContext,
        config: SimulationConfig,
        warehouse: WarehouseResource,
        policy: PolicyResource,
    ) -> dg.MaterializeResult[Any]:
        started, home = time.monotonic(), warehouse.open()
        with warehouse.engine() as engine:
            facts = simulate_safelog(
                home, engine, policy.chosen(), month_of(context), config.variant, config.seed, context.run_id
            )
        rows = {f"rows {name}": count for name, count in facts["rows"].items()}
        return dg.MaterializeResult(
            metadata={"variant": config.variant, **rows, "seconds": round(time.monotonic() - started, 3)}
        )

    @dg.asset_check(asset=capped_log, blocking=True, name="contribution_limits")
    def contribution_limits(
        context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
    ) -> dg.AssetCheckResult:
        """No user holds more than the limits this partition was made with, and nothing twice."""
        with warehouse.engine() as engine:
            partition = warehouse.open().current("capped_log", month_of(context))
            return to_check_result(inspection.inspect_capped_log(engine, partition))

    @dg.asset_check(asset=capped_log, blocking=True, name="rows_from_the_month")
    def rows_from_the_month(
        context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
    ) -> dg.AssetCheckResult:
        """Every capped row comes from a search or click of the month."""
        home, month = warehouse.open(), month_of(context)
        with warehouse.engine() as engine:
            capped, cleaned = home.current("capped_log", month), home.current("cleaned_log", month)
            return to_check_result(inspection.inspect_capped_months(engine, capped, cleaned, month))

    return [
        capped_log,
        pool_augmented,
        selected,
        released_safelog,
        simulated_safelog,
        contribution_limits,
        rows_from_the_month,
    ]
