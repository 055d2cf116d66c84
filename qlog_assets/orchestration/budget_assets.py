"""The asset `privacy_budget`: what was spent over the months, what is left, and which month fits next; and its check.

The check `no_month_lost` says which months nobody decided.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from qlog_assets.door.due import next_months
from qlog_assets.door.undecided import REMEDY, find_undecided
from qlog_assets.ledger import Ledger
from qlog_assets.ledger.budget import readable, readable_left
from qlog_assets.ledger.telling import told_events
from qlog_assets.ledger.windows import window_words
from qlog_assets.mechanisms.register import releasable
from qlog_assets.orchestration import words
from qlog_assets.orchestration.jobs import schedule_name
from qlog_assets.orchestration.metadata import OWNERS, as_plain_text, budget_picture, seconds_since
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource
from qlog_assets.policy import Policy
from qlog_assets.privacy.bounds import at_least, at_most
from qlog_assets.report.markdown import table
from qlog_assets.report.spending import spending_by_month, spending_by_window
from qlog_assets.storage.digests import digest_of


def budget_assets() -> list[dg.AssetsDefinition | dg.AssetChecksDefinition]:
    """The asset and its check; they belong to no month: an account is looked at whole."""

    @dg.asset(
        group_name="audit",
        deps=[each.draw_asset for each in releasable()],
        kinds={"python"},
        owners=OWNERS,
        code_version="1",
        description=words.BUDGET,
    )
    def privacy_budget(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        started, chosen, ledger = time.monotonic(), policy.chosen(), warehouse.read_ledger()
        if ledger is None or not any(dataset.name == chosen.dataset for dataset in ledger.datasets()):
            return dg.MaterializeResult(
                metadata={"account": "not opened yet: the first release opens it"}, data_version=dg.DataVersion("none")
            )
        facts = account_facts(ledger, chosen)
        return dg.MaterializeResult(
            metadata={**facts, "seconds": seconds_since(started)},
            data_version=dg.DataVersion(digest_of([charge.seq for charge in ledger.charges(chosen.dataset)])[:20]),
        )

    @dg.asset_check(
        asset=privacy_budget,
        description=words.NO_MONTH_LOST,
    )
    def no_month_lost(
        context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.AssetCheckResult:
        scheduled = scheduled_mechanisms(context.instance)
        undecided = find_undecided(policy.chosen(), warehouse.read_ledger(), datetime.now(UTC), scheduled)
        return dg.AssetCheckResult(
            passed=not undecided,
            description=". ".join([*(each.sentence for each in undecided), f"What next: {REMEDY}"])
            if undecided
            else "every complete month is decided",
            metadata={
                **({"what next": REMEDY} if undecided else {}),
                **{each.mechanism: dg.MetadataValue.json(each.as_json()) for each in undecided},
            },
        )

    return [privacy_budget, no_month_lost]


def scheduled_mechanisms(instance: dg.DagsterInstance) -> set[str]:
    """The mechanisms whose monthly schedule somebody switched on."""
    if instance.schedule_storage is None:  # an instance in memory keeps no schedules
        return set()
    on = {state.instigator_name for state in instance.all_instigator_state() if state.status.value == "RUNNING"}
    return {each.name for each in releasable() if schedule_name(each) in on}


def account_facts(ledger: Ledger, policy: Policy) -> dict[str, Any]:
    """An account as asset metadata."""
    known, balance = ledger.dataset(policy.dataset), ledger.balance(policy.dataset)
    rows = spending_by_month(ledger, policy.dataset)
    facts: dict[str, Any] = {
        "budget": f"ε = {readable(known.budget.epsilon)}, δ = {readable(known.budget.delta)}, "
        f"{window_words(known.window_months)}",
        "spent": f"ε = {readable(balance.spent.epsilon)}, δ = {readable(balance.spent.delta)}",
        "left": f"ε = {readable_left(balance.left.epsilon)}, δ = {readable_left(balance.left.delta)}",
        "spent in all months": f"ε = {readable(balance.total.epsilon)}, δ = {readable(balance.total.delta)}",
    }
    if balance.month is not None:
        facts["month that spent and left are of"] = str(balance.month)
    if rows:
        facts["next month that fits"] = dg.MetadataValue.json(next_months(ledger, policy, rows[-1]["month"]))
        facts |= budget_picture(ledger, policy.dataset)
        facts["months"] = dg.MetadataValue.md(month_table(rows))
    if windows := spending_by_window(ledger, policy.dataset):
        facts["windows"] = dg.MetadataValue.json(windows)
    facts["events"] = dg.MetadataValue.md(event_table(told_events(ledger.events(), policy.dataset)))
    return facts


def event_table(events: list[dict[str, Any]]) -> str:
    """Every event as a Markdown table, the newest first."""
    rows = [
        [event["at"], event["what"], event["reason"] or "", event["who"], (event["run_id"] or "")[:8]]
        for event in reversed(events)
    ]
    return table(["when", "event", "reason", "who", "run"], [[as_plain_text(cell) for cell in row] for row in rows])


def month_table(rows: list[dict[str, Any]]) -> str:
    """The months as a Markdown table."""
    lines = ["| month | ε | δ | in its windows ε | left ε |", "|---|---:|---:|---:|---:|"]
    for row in rows:
        lines.append(
            f"| {row['month']} | {at_most(row['epsilon'])} | {at_most(row['delta'])} "
            f"| {at_most(row['window']['epsilon'])} | {at_least(row['left']['epsilon'])} |"
        )
    return "\n".join(lines)
