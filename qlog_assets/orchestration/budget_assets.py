"""The asset `privacy_budget`: what was spent over the months, what is left, and which month fits next."""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import base64
import time
from typing import Any

import dagster as dg

from qlog_assets.door.due import next_months
from qlog_assets.ledger import Ledger
from qlog_assets.ledger.budget import readable, readable_left
from qlog_assets.ledger.windows import window_words
from qlog_assets.mechanisms.register import releasable
from qlog_assets.orchestration.metadata import OWNERS, seconds_since
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource
from qlog_assets.policy import Policy
from qlog_assets.privacy.bounds import at_least, at_most
from qlog_assets.report.spending import spending_by_month, spending_by_window, spending_picture
from qlog_assets.storage.digests import digest_of


def budget_assets() -> list[dg.AssetsDefinition]:
    """The asset; it belongs to no month: an account is looked at whole."""

    @dg.asset(
        group_name="audit",
        deps=[each.draw_asset for each in releasable()],
        kinds={"python"},
        owners=OWNERS,
        code_version="1",
        description="The data set's account: what each month was charged, what windows of months add up to, what is "
        "left, and the next month that fits. It reads the ledger alone and charges nothing.",
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

    return [privacy_budget]


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
        picture = spending_picture(rows, float(known.budget.epsilon), known.window_months)
        encoded = base64.b64encode(picture.encode("utf-8")).decode("ascii")
        facts["picture"] = dg.MetadataValue.md(f"![Budget over months](data:image/svg+xml;base64,{encoded})")
        facts["months"] = dg.MetadataValue.md(month_table(rows))
    if windows := spending_by_window(ledger, policy.dataset):
        facts["windows"] = dg.MetadataValue.json(windows)
    return facts


def month_table(rows: list[dict[str, Any]]) -> str:
    """The months as a Markdown table."""
    lines = ["| month | ε | δ | in its windows ε | left ε |", "|---|---:|---:|---:|---:|"]
    for row in rows:
        lines.append(
            f"| {row['month']} | {at_most(row['epsilon'])} | {at_most(row['delta'])} "
            f"| {at_most(row['window']['epsilon'])} | {at_least(row['left']['epsilon'])} |"
        )
    return "\n".join(lines)
