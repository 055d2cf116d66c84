"""The commands of auditors and data keepers: ledger, audit, withdraw, forget. Parsing and printing only."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qlog_assets.cli.arguments import opened, parse_month
from qlog_assets.cli.output import Json, console, show, show_table
from qlog_assets.errors import QlogError

if TYPE_CHECKING:
    from qlog_assets.ledger import Ledger
    from qlog_assets.policy import Policy
    from qlog_assets.storage.warehouse import Warehouse

ledger_app = typer.Typer(invoke_without_command=True, help="What was spent, what is reserved, what is left.")


def open_ledger() -> tuple[Warehouse, Policy, Ledger]:
    from qlog_assets.ledger import Ledger

    warehouse, policy = opened()
    return warehouse, policy, Ledger.open(warehouse.make().ledger_url)


def open_account() -> tuple[Warehouse, Policy, Ledger]:
    """The same, with an account for the policy's data set."""
    from qlog_assets.door.door import Door

    warehouse, policy, ledger = open_ledger()
    Door(warehouse, policy, ledger).open_account()
    return warehouse, policy, ledger


@ledger_app.callback()
def show_ledger(context: typer.Context, as_json: Json = False) -> None:
    """The account of the data set: one line per release, then what is left."""
    if context.invoked_subcommand is not None:
        return
    from qlog_assets.privacy.bounds import double_at_least
    from qlog_assets.privacy.guarantee import printed

    _, policy, ledger = open_account()
    balance = ledger.balance(policy.dataset)
    facts = {
        "dataset": policy.dataset,
        "budget": amount(balance.budget) | {"accountant": balance.budget.accountant},
        "spent": amount(balance.spent),
        "reserved": amount(balance.reserved),
        "left": amount(balance.left, double_at_least),
        "charges": [
            {
                "release_id": charge.release_id,
                "month": charge.month,
                "mechanism": charge.mechanism,
                "variant": charge.variant,
                "draw_number": charge.draw_number,
                "state": charge.state,
                "epsilon": printed(charge.epsilon),
                "delta": printed(charge.delta),
                "at": charge.at,
                "who": charge.who,
                "reason": charge.reason,
            }
            for charge in ledger.charges(policy.dataset)
        ],
    }
    show(facts, as_json, ledger_lines)


def amount(value: Any, rounded: Callable[[Fraction], float] | None = None) -> dict[str, float]:
    """ε and δ, and ρ where a zCDP filter decides. Rounded up, unless told otherwise of what is left."""
    from qlog_assets.privacy.guarantee import printed

    rounded, rho = rounded or printed, getattr(value, "rho", None)
    numbers = {"epsilon": rounded(value.epsilon), "delta": rounded(value.delta)}
    return numbers | ({} if rho is None else {"rho": rounded(rho)})


def ledger_lines(facts: dict[str, Any]) -> None:
    from qlog_assets.privacy.bounds import at_least, at_most

    shown = ("month", "mechanism", "variant", "draw_number", "state", "epsilon", "delta", "release_id", "at", "who")
    titles = ["month", "mechanism", "variant", "draw", "state", "ε", "δ", "release", "when", "who"]
    rows = [
        [at_most(charge[key], 6) if key in ("epsilon", "delta") else str(charge[key])[:36] for key in shown]
        for charge in sorted(facts["charges"], key=lambda charge: (charge["month"], charge["mechanism"]))
    ]
    console.print(f"data set [bold]{facts['dataset']}[/bold], {facts['budget']['accountant']} accountant")
    show_table(titles, rows)
    rounded = {"budget": at_least, "spent": at_most, "reserved": at_most, "left": at_least}
    totals = [[name, text(facts[name]["epsilon"], 6), text(facts[name]["delta"], 6)] for name, text in rounded.items()]
    show_table(["", "ε", "δ"], totals)


@ledger_app.command("set-budget")
def set_budget(
    epsilon: Annotated[str, typer.Option(help="The new total ε, an exact decimal")],
    delta: Annotated[str, typer.Option(help="The new total δ, an exact decimal")],
    reason: Annotated[str, typer.Option(help="Why; it is recorded")],
    as_json: Json = False,
) -> None:
    """Change the budget, for a recorded reason; never below what is spent."""
    from qlog_assets.ledger.budget import readable_left
    from qlog_assets.privacy.parameters import exact

    _, policy, ledger = open_account()
    try:
        asked = exact(epsilon), exact(delta)
    except ValueError as error:
        raise QlogError(f"set-budget: {error}") from None
    dataset = ledger.set_budget(policy.dataset, *asked, reason)
    total = f"ε = {readable_left(dataset.budget.epsilon)}, δ = {readable_left(dataset.budget.delta)}"
    facts = {"dataset": dataset.name, "budget": amount(dataset.budget)}
    show(facts, as_json, lambda _: console.print(f"the budget of {dataset.name} is {total}"))


@ledger_app.command()
def abandon(
    release_id: Annotated[str, typer.Argument(help="The reservation's release id")],
    reason: Annotated[str, typer.Option(help="Why; it is recorded")],
    as_json: Json = False,
) -> None:
    """Give a reservation back. Only if no draw was ever stored for it."""
    from qlog_assets.door.door import Door

    warehouse, policy, ledger = open_ledger()
    charge = Door(warehouse, policy, ledger).abandon(release_id, reason)
    facts = {"release_id": charge.release_id, "state": charge.state}
    show(facts, as_json, lambda _: console.print(f"{charge.release_id} is abandoned; its charge was given back"))


def register(app: typer.Typer) -> None:
    """Add the commands that stand at the top level."""

    @app.command()
    def audit(
        releases: Annotated[list[str] | None, typer.Argument(help="Release ids; all if none is given")] = None,
        as_json: Json = False,
    ) -> None:
        """Verify releases against ledger, files, inputs and Dagster's history. Exit code 1 on any finding."""
        from qlog_assets.verify.audit import audit_warehouse

        warehouse, policy = opened()
        report = audit_warehouse(warehouse, policy.dataset, releases or [])
        show(report.as_json(), as_json, audit_lines)
        if not report.ok:
            raise typer.Exit(1)

    @app.command()
    def withdraw(
        release_id: Annotated[str, typer.Argument(help="The release to take back")],
        reason: Annotated[str, typer.Option(help="Why; it is recorded and published in the tombstone")],
        as_json: Json = False,
    ) -> None:
        """Remove a release's files. Its charge stays, and a tombstone says what was there."""
        from qlog_assets.door.door import Door

        warehouse, policy, ledger = open_ledger()
        charge = Door(warehouse, policy, ledger).withdraw(release_id, reason)
        facts = {"release_id": charge.release_id, "state": charge.state}
        show(facts, as_json, lambda _: console.print(f"{charge.release_id} is withdrawn; its charge stays"))

    @app.command()
    def forget(
        before: Annotated[str, typer.Option(help="Delete what is older than this month, YYYY-MM")],
        landing: Annotated[bool, typer.Option("--landing", help="Delete the landing files, too")] = False,
        as_json: Json = False,
    ) -> None:
        """Delete raw, cleaned, capped and drawn data of published months. Releases and audits stay."""
        from qlog_assets.verify.retention import forget_before

        warehouse, policy, ledger = open_account()
        show(forget_before(warehouse, policy, ledger, parse_month(before), landing), as_json, forget_lines)


def audit_lines(facts: dict[str, Any]) -> None:
    rows = [
        [entry["release_id"], "ok" if entry["ok"] else "FINDING", "; ".join(entry["findings"] or entry["notes"])]
        for entry in facts["releases"]
    ]
    show_table(["release", "verdict", "what was found"], rows)
    for finding in facts["findings"]:
        console.print(f"FINDING  {finding}")
    if facts["ok"]:
        console.print(f"{len(rows)} release(s) verified; nothing was found")


def forget_lines(facts: dict[str, Any]) -> None:
    console.print(f"deleted: {', '.join(facts['months']) or 'nothing; no published month is that old'}")
    for month, reason in facts["kept"].items():
        console.print(f"{month}: kept, because {reason}")
    for name in facts["landing"]:
        state = "deleted" if name in facts["landing_deleted"] else "still holds forgotten months (--landing deletes it)"
        console.print(f"{name}: {state}")
