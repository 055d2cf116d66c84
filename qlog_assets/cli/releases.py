"""The commands of an operator: release, simulate, guarantee, audit-mechanism. Parsing and printing only."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from qlog_assets.cli.arguments import (
    Attacked,
    Known,
    Months,
    Released,
    ReleaseSets,
    Sets,
    Simulated,
    opened,
    parse_month,
    parsed,
)
from qlog_assets.cli.output import (
    Json,
    bold,
    console,
    progress,
    progress_bar,
    show,
    show_table,
    somebody_answers,
    stderr_line,
)
from qlog_assets.errors import QlogError


def register(app: typer.Typer) -> None:
    """Add the commands that stand at the top level."""

    @app.command()
    def release(
        mechanism: Released,
        month: Months,
        assignments: ReleaseSets = None,
        again: Annotated[
            str | None, typer.Option(help="Why one more draw, at one more charge, of a released month")
        ] = None,
        yes: Annotated[bool, typer.Option("--yes", help="Do not ask on a terminal before charging")] = False,
        as_json: Json = False,
    ) -> None:
        """Release months: checked, charged and published. A month that has this release is served, not charged."""

        def say_cost(line: str) -> None:
            if as_json:
                return
            stderr_line(line)
            if not yes and somebody_answers() and not typer.confirm("charge and release?", err=True):
                raise QlogError("nothing was charged or released")

        with checking_ahead(mechanism, month, again), progress(as_json, at_once=False) as tell:
            from qlog_assets.api.operations import release_months

            settings = parsed(assignments, mechanism)
            warehouse, policy = opened()
            months = [parse_month(each) for each in month]
            answers = release_months(warehouse, policy, settings, mechanism, months, again, tell, say_cost)
        show(answers[0] if len(answers) == 1 else {"releases": answers}, as_json, lambda _: release_table(answers))

    @app.command()
    def simulate(
        mechanism: Simulated,
        month: Annotated[str, typer.Option(help="YYYY-MM")],
        variant: Annotated[
            str | None, typer.Option(help="How to draw: sound, paper, …; without one, as a release would")
        ] = None,
        seed: Annotated[int, typer.Option(help="Seed of the noise")] = 1,
        assignments: Sets = None,
        as_json: Json = False,
    ) -> None:
        """Draw with seeded noise into private/studies, as released or as a paper has it. Never published or charged."""
        from qlog_assets.api.operations import simulate_month

        settings = parsed(assignments, mechanism)
        warehouse, policy = opened()
        with progress(as_json) as tell:
            facts = simulate_month(warehouse, policy, settings, mechanism, parse_month(month), variant, seed, tell)
        show(facts, as_json, simulation_lines)

    @app.command()
    def guarantee(
        mechanism: Known,
        variant: Annotated[str | None, typer.Option(help="Default: the variant that is released")] = None,
        assignments: Sets = None,
        as_json: Json = False,
    ) -> None:
        """What a release would cost and promise, before anything is spent."""
        from qlog_assets.api.planning import explain_guarantee

        show(explain_guarantee(mechanism, variant, parsed(assignments, mechanism)), as_json, guarantee_lines)

    @app.command("audit-mechanism")
    def audit_mechanism(
        mechanism: Attacked,
        seed: Annotated[int | None, typer.Option(help="Seed of the runs; fresh noise without one")] = None,
        as_json: Json = False,
    ) -> None:
        """Attack mechanisms on neighbouring logs and compare what is measured with what they claim."""
        from qlog_assets.api.operations import attack_mechanism

        with progress_bar(as_json) as (_, bar):
            facts = attack_mechanism(mechanism, seed, bar)
        show(facts, as_json, attack_lines)
        if not facts["ok"]:
            raise typer.Exit(1)


def checking_ahead(mechanism: str, months: list[str], again: str | None) -> AbstractContextManager[None]:
    """Start what checks before all else, because it takes as long to get ready as the rest of the command.

    Not for a month that seems to be released, which is served without a check; nor for several, which check in their
    own processes. If it guesses wrong, the run starts it.
    """
    from qlog_assets.checks.beside import checking_beside
    from qlog_assets.settings import Settings
    from qlog_assets.storage.warehouse import Warehouse

    released = Warehouse(Settings.from_environment()).released
    seems_released = again is None and (released / mechanism / months[0]).exists()
    return nullcontext() if seems_released or len(months) > 1 else checking_beside()


ATTACK_LEGEND = (
    "claim: what the variant promises for two logs that differ in one user: ε and δ, or how far that user may move the "
    "counts (L1, L2, L∞)",
    "measured: what the attack shows of it: at least this ε or δ, false with chance at most one in a million; or the "
    "largest move that it found",
    "verdict: fail if what was measured is above the claim: the promise is broken. pass: this attack did not break it",
    "expected: what is released must pass; a paper's version with a known gap must fail, or the attack is too weak",
)


def attack_lines(facts: dict[str, Any]) -> None:
    show_table(["audit", "variant", "claim", "measured", "verdict", "expected"], facts["audits"])
    for line in ATTACK_LEGEND:
        console.print(line)
    console.print("every verdict is as expected" if facts["ok"] else "FINDING: a verdict is not as expected")


def release_table(answers: list[dict[str, Any]]) -> None:
    from qlog_assets.mechanisms.register import mechanism
    from qlog_assets.privacy.bounds import at_least, at_most

    layouts = mechanism(answers[0]["mechanism"]).tables
    tables = [layout.name for layout in layouts if any(layout.name in answer["rows"] for answer in answers)]
    rows = [
        [
            answer["month"],
            *(f"{answer['rows'].get(name, 0):,}" for name in tables),
            at_most(answer["epsilon"], 6),
            at_most(answer["delta"], 6),
            "yes" if answer["charged"] else "no: released before",
            at_least(answer["left"]["epsilon"], 6),
            at_least(answer["left"]["delta"], 6),
            answer["release_id"],
        ]
        for answer in answers
    ]
    show_table(["month", *tables, "ε", "δ", "charged", "ε left", "δ left", "release"], rows)
    console.print(f"files: {Path(answers[0]['path']).parent.parent}/MONTH/RELEASE/")


def simulation_lines(facts: dict[str, Any]) -> None:
    if facts["warning"] is not None:
        console.print(facts["warning"])
    counted = ", ".join(f"{rows:,} {name}" for name, rows in facts["rows"].items())
    console.print(f"{facts['mechanism']} {facts['variant']} {facts['month']}, seed {facts['seed']}: {counted}")
    if facts["proven"] is None and facts["label"]:
        console.print(f"what it claims: {facts['label']}")
    console.print(f"private, not charged: {facts['path']}")


def guarantee_lines(facts: dict[str, Any]) -> None:
    from qlog_assets.privacy.bounds import at_most

    def amount(loss: dict[str, float] | None) -> str:
        return "nothing finite" if loss is None else f"ε = {at_most(loss['epsilon'], 6)}, δ = {at_most(loss['delta'])}"

    console.print(bold(f"{facts['mechanism']} {facts['variant']}"), f" {facts['formula']}")
    parts = [[part["name"], amount(part["claimed"]), amount(part["proven"])] for part in facts["parts"]]
    show_table(
        ["part", "claimed", "proven"], [*parts, ["all together", amount(facts["claimed"]), amount(facts["proven"])]]
    )
    if facts["expected"]:
        console.print(bold("what a row needs"))
        show_table(["rows", "users", "", "from noise alone", ""], [threshold_row(each) for each in facts["expected"]])
    for reason in facts["switched_off"]:
        console.print(reason)
    console.print(facts["sentence"])
    for gap in facts["gaps"]:
        console.print(f"  gap: {gap}", highlight=False)


def threshold_row(expected: dict[str, Any]) -> list[str]:
    """One kind of rows: the least noisy number of users, whether it is set or derived, and what noise alone makes."""
    noise, origin = expected["noise_rows"], "" if expected["origin"] == "unknown" else expected["origin"]
    made = "" if noise is None else "none" if noise == 0 else f"at most about {noise:.2g}"
    return [expected["rows"], f"{expected['threshold']:,}", origin, made, expected["note"]]
