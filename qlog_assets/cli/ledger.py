"""The command `qlog ledger` and what it has below it: the account, its budget and unit, its witness. Printing only."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qlog_assets.cli.arguments import open_account, open_ledger, opened
from qlog_assets.cli.output import Json, bold, console, show, show_table
from qlog_assets.errors import QlogError

if TYPE_CHECKING:
    from qlog_assets.door.undecided import Undecided
    from qlog_assets.ledger import Dataset

SHOWN_WINDOWS = 5

ledger_app = typer.Typer(invoke_without_command=True, help="What was spent, what is reserved, what is left.")


@ledger_app.callback()
def show_ledger(context: typer.Context, as_json: Json = False) -> None:
    """The account of the data set: one line per release, what is left, which months nobody decided, every event."""
    if context.invoked_subcommand is not None:
        return
    from datetime import UTC, datetime

    from qlog_assets.door.door import Door
    from qlog_assets.door.due import next_months
    from qlog_assets.door.ledgers import opening_budget
    from qlog_assets.door.undecided import find_undecided
    from qlog_assets.ledger import Balance
    from qlog_assets.ledger.telling import told_events
    from qlog_assets.privacy.bounds import double_at_least
    from qlog_assets.privacy.guarantee import printed
    from qlog_assets.report.spending import spending_by_month, spending_by_window

    warehouse, policy, ledger = open_ledger()
    is_open, stated = Door(warehouse, policy, ledger).has_account(), opening_budget(policy)
    balance = ledger.balance(policy.dataset) if is_open else Balance.untouched(stated)
    months = spending_by_month(ledger, policy.dataset)
    planned_unit: dict[str, Any] = {"window_months": policy.unit.window_months, "earlier": []}
    undecided = find_undecided(policy, ledger, datetime.now(UTC))
    facts = {
        "dataset": policy.dataset,
        "is_open": is_open,
        "unit": unit_facts(ledger.dataset(policy.dataset)) if is_open else planned_unit,
        "budget": amount(balance.budget) | {"accountant": balance.budget.accountant},
        "budget_in_policy": amount(stated) | {"accountant": stated.accountant},
        "spent": amount(balance.spent),
        "reserved": amount(balance.reserved),
        "left": amount(balance.left, double_at_least),
        "total": amount(balance.total),
        "months": months,
        "windows": spending_by_window(ledger, policy.dataset) if is_open else [],
        "next_month": next_months(ledger, policy, months[-1]["month"]) if months else {},
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
                "run_id": charge.run_id,
                "reason": charge.reason,
                "closing_reason": charge.closing_reason,
            }
            for charge in ledger.charges(policy.dataset)
        ],
        "skips": [
            {"month": skip.month, "mechanism": skip.mechanism, "reason": skip.reason, "at": skip.at, "who": skip.who}
            for skip in ledger.skips(policy.dataset)
        ],
        "undecided": {each.mechanism: each.as_json() for each in undecided},
        "events": told_events(ledger.events(), policy.dataset),
    }
    show(facts, as_json, lambda shown: ledger_lines(shown, undecided))


def amount(value: Any, rounded: Callable[[Fraction], float] | None = None) -> dict[str, float]:
    """ε and δ, and ρ where a zCDP filter decides. Rounded up, unless told otherwise of what is left."""
    from qlog_assets.privacy.guarantee import printed

    rounded, rho = rounded or printed, getattr(value, "rho", None)
    numbers = {"epsilon": rounded(value.epsilon), "delta": rounded(value.delta)}
    return numbers | ({} if rho is None else {"rho": rounded(rho)})


def ledger_lines(facts: dict[str, Any], undecided: list[Undecided]) -> None:
    from qlog_assets.door.undecided import REMEDY
    from qlog_assets.ledger.windows import window_words
    from qlog_assets.privacy.bounds import at_least, at_most

    shown = ("month", "mechanism", "variant", "draw_number", "state", "epsilon", "delta", "release_id", "at", "who")
    titles = ["month", "mechanism", "variant", "draw", "state", "ε", "δ", "release", "when", "who"]
    rows = [
        [at_most(charge[key], 6) if key in ("epsilon", "delta") else str(charge[key])[:36] for key in shown]
        for charge in sorted(facts["charges"], key=lambda charge: (charge["month"], charge["mechanism"]))
    ]
    window = facts["unit"]["window_months"]
    console.print(
        "data set",
        bold(facts["dataset"], f", {facts['budget']['accountant']} accountant, budget {window_words(window)}"),
    )
    for earlier in facts["unit"]["earlier"]:
        console.print(
            f"months before {earlier['before']} share one budget {window_words(earlier['window_months'])}, too"
        )
    stated = facts["budget_in_policy"]
    if not facts["is_open"]:
        console.print(f"no account yet: the first release opens it with {budget_words(stated)}, as the policy says")
    elif stated != facts["budget"]:
        console.print(
            f"the policy says {budget_words(stated)}; the ledger's budget counts: qlog ledger set-budget changes it"
        )
    show_table(titles, rows)
    rounded = {"budget": at_least, "spent": at_most, "reserved": at_most, "left": at_least}
    totals = [[name, text(facts[name]["epsilon"], 6), text(facts[name]["delta"], 6)] for name, text in rounded.items()]
    show_table(["", "ε", "δ"], totals)
    if window is not None:
        dearest = [
            [f"{each['first']} to {each['last']}", at_most(each["epsilon"], 6), at_most(each["delta"], 6)]
            for each in sorted(facts["windows"], key=lambda each: (-each["epsilon"], each["first"]))[:SHOWN_WINDOWS]
        ]
        console.print(f"the dearest of {len(facts['windows'])} windows; the account is of the newest charged month:")
        show_table(["window", "ε", "δ"], dearest)
        for name, month in facts["next_month"].items():
            console.print(f"next month that fits {name}: {month or 'none at its cost'}")
    for each in undecided:
        console.print(f"undecided  {each.sentence}")
    if undecided:
        console.print(REMEDY)
    show_table(
        ["when", "event", "reason", "who", "run"],
        [
            [each["at"], each["what"], each["reason"] or "", each["who"][:36], (each["run_id"] or "")[:8]]
            for each in facts["events"]
        ],
    )


def budget_words(budget: dict[str, Any]) -> str:
    from qlog_assets.privacy.bounds import at_least

    numbers = f"ε = {at_least(budget['epsilon'], 6)}, δ = {at_least(budget['delta'], 6)}"
    return f"{numbers} ({budget['accountant']} accountant)"


def unit_facts(dataset: Dataset) -> dict[str, Any]:
    """Which months share a budget, now and before."""
    earlier = [{"window_months": rule.window, "before": rule.before} for rule in dataset.rules[:-1]]
    return {"window_months": dataset.window_months, "earlier": earlier}


@ledger_app.command("set-unit")
def set_unit(
    window_months: Annotated[
        str, typer.Option(help="How many consecutive months the budget is for, or none: for ever")
    ],
    reason: Annotated[str, typer.Option(help="Why; it is recorded")],
    since: Annotated[
        str | None, typer.Option("--from", help="YYYY-MM: the first month of a shorter window; default: the next one")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change the months that share one budget. What was promised for charged months stays true."""
    _, policy, ledger = open_account()
    word = window_months.strip().lower()
    if word != "none" and not (word.isascii() and word.isdigit()):
        raise QlogError(f"--window-months {window_months!r}: write a whole number of months, or none")
    dataset = ledger.set_unit(policy.dataset, None if word == "none" else int(word), reason, since=since)
    facts = {"dataset": dataset.name, **unit_facts(dataset)}
    show(facts, as_json, lambda _: unit_lines(dataset))


def unit_lines(dataset: Dataset) -> None:
    from qlog_assets.ledger.windows import window_words

    console.print(f"the budget of {dataset.name} is {window_words(dataset.window_months)}")
    written = '"none"' if dataset.window_months is None else dataset.window_months
    console.print(f"write it into the policy, too: [unit] window_months = {written}", markup=False)


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


@ledger_app.command()
def recover(
    reason: Annotated[str, typer.Option(help="Why; it is recorded")],
    as_json: Json = False,
) -> None:
    """Bring back from the witness what the ledger lost when it was restored from an old copy."""
    from qlog_assets.door.recovery import recover_ledger

    warehouse, policy = opened()
    show(recover_ledger(warehouse, policy, reason).as_json(), as_json, recovery_lines)


def recovery_lines(facts: dict[str, Any]) -> None:
    if facts["diverged"]:
        names = ", ".join(facts["charged_as_lost"]) or "nothing more than before"
        console.print(f"the ledger had gone on without what it lost; charged once more, as lost: {names}")
        console.print("name a new, empty witness in the policy: this one holds another history")
    elif facts["restored"]:
        console.print(f"{facts['restored']} event(s) brought back; run qlog audit to see what else was set back")
    else:
        console.print("the ledger has everything that its witness knows; nothing was written")


@ledger_app.command()
def witness(
    reset: Annotated[
        str | None, typer.Option(metavar="REASON", help="Say that the old witness is gone for good; it is recorded")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare the ledger with its witness."""
    from qlog_assets.door.ledgers import reset_ledger_witness
    from qlog_assets.verify.witness import describe_witness

    warehouse, policy = opened()
    if reset is not None:
        reset_ledger_witness(warehouse, policy, reset)
    show(describe_witness(warehouse, policy), as_json, witness_lines)


def witness_lines(facts: dict[str, Any]) -> None:
    for sentence in (*facts["findings"], *facts["notes"]):
        console.print(sentence)
