"""The job `withdraw_release`: takes a published release back, as `qlog withdraw` does. Its charge stays."""

# No `from __future__ import annotations`: Dagster reads the annotations of op functions as they are.

import dagster as dg

from qlog_assets.door.door import Door
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource

CONFIG = {
    "release": dg.Field(dg.String, description="The release's id, as the metadata of its assets shows it"),
    "reason": dg.Field(dg.String, description="Why; it is recorded for auditors and not published"),
    "public_text": dg.Field(dg.String, is_required=False, description="What everybody may read of it in the tombstone"),
}


def withdraw_release_job() -> dg.JobDefinition:
    """One release per run."""

    @dg.op(
        config_schema=CONFIG,
        description="Removes the release's files and leaves a tombstone that says so to everybody.",
    )
    def withdraw(context: dg.OpExecutionContext, warehouse: WarehouseResource, policy: PolicyResource) -> None:
        ledger, reason = warehouse.ledger(context.run), context.op_config["reason"]
        door, told = Door(warehouse.open(), policy.chosen(), ledger), context.op_config.get("public_text")
        charge = door.withdraw(context.op_config["release"], reason, told)
        context.log.info(f"{charge.release_id} is withdrawn; its charge stays")
        released = mechanism(charge.mechanism)
        for asset in (released.draw_asset, *released.released_assets.values()):
            context.log_event(
                dg.AssetObservation(
                    asset,
                    partition=charge.month,
                    description=f"{charge.release_id} was withdrawn: {charge.closing_reason}",
                    metadata={"withdrawn": charge.release_id, "reason": str(charge.closing_reason)},
                )
            )

    @dg.job(
        name="withdraw_release",
        description="Takes a published release back, for a reason that is recorded: its files go, its charge stays. "
        "Say which and why in the run's config: ops: {withdraw: {config: {release: …, reason: …}}}.",
    )
    def withdrawing() -> None:
        withdraw()

    return withdrawing
