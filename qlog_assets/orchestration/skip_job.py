"""The job `skip_month`: records in the ledger that a month is left out on purpose. It charges nothing."""

# No `from __future__ import annotations`: Dagster reads the annotations of op functions as they are.

from datetime import UTC, datetime

import dagster as dg

from qlog_assets.door.door import Door
from qlog_assets.door.undecided import skip_months
from qlog_assets.months import Month
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource

SKIP_CONFIG = {
    "reason": dg.Field(dg.String, description="Why the month is left out; an auditor will read it"),
    "public_text": dg.Field(dg.String, is_required=False, description="What everybody may read of it in the index"),
    "mechanism": dg.Field(
        dg.String, is_required=False, description="Which release is left out, such as safelog; all of them if not said"
    ),
}


def skip_job(months: dg.PartitionsDefinition) -> dg.JobDefinition:
    """A month per run, as `qlog skip` does it."""

    @dg.op(config_schema=SKIP_CONFIG, description="Records the skip, with its reason and whoever asked for the run.")
    def skip(context: dg.OpExecutionContext, warehouse: WarehouseResource, policy: PolicyResource) -> None:
        door = Door(warehouse.open(), policy.chosen(), warehouse.ledger(context.run))
        asked, reason, month = context.op_config.get("mechanism"), context.op_config["reason"], context.partition_key
        told = context.op_config.get("public_text")
        for each in skip_months(door, asked, [Month(month)], reason, datetime.now(UTC), told):
            skip, known = each.skip, f" (recorded already, at {each.skip.at})" if each.already else ""
            context.log.info(f"{skip.month} is skipped by {skip.mechanism}: {skip.reason}{known}")

    @dg.job(
        name="skip_month",
        partitions_def=months,
        description="Says that a month has no release on purpose, and why. Schedules and checks then leave it alone; "
        "it can still be released by hand. Say the reason in the run's config: ops: {skip: {config: {reason: …}}}.",
    )
    def skip_month() -> None:
        skip()

    return skip_month
