"""The researcher's commands: `qlog study` and `qlog plan`. Parsing and printing only; results are private."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from qlog_assets.cli.arguments import Sets, opened, parse_month, parse_settings, parsed
from qlog_assets.cli.output import Json, bold, console, progress, progress_bar, show, show_table
from qlog_assets.errors import QlogError

PLANNED = "zealous"
SPREAD = "budget"


def study_lines(facts: dict[str, Any]) -> None:
    from qlog_assets.studies.register import study

    if facts["warning"] is not None:
        console.print(facts["warning"])
    columns = study(facts["study"]).columns or {}
    for title, rows in facts["tables"].items():
        names = columns.get(title) or tuple(rows[0] if rows else ())
        console.print(bold(title.replace("_", " ")))
        show_table(names, [[printed(row[name]) for name in names] for row in rows])
    console.print(f"private: {facts['path']}")


def printed(value: Any) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def plan_lines(facts: dict[str, Any]) -> None:
    names = ["method", "items_per_user", "set_share", "released", "relative_error"]
    show_table(names, [[printed(row.get(name)) for name in names] for row in facts["settings"]])
    console.print("The first line, as the policy has it:\n")
    console.print(facts["policy"])


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""

    @app.command()
    def study(
        name: Annotated[str, typer.Argument(help="Which study; without a name, the list of them")] = "",
        month: Annotated[str | None, typer.Option(help="YYYY-MM, for a study of one month")] = None,
        seed: Annotated[int | None, typer.Option(help="Seed of the noise")] = None,
        assignments: Sets = None,
        as_json: Json = False,
    ) -> None:
        """Answer a question about a log by seeded draws. Private, never charged; interrupted, it goes on later."""
        if not name:
            show_studies(as_json)
            return
        from qlog_assets.api.operations import run_study_job

        settings = parse_settings(assignments) | ({} if seed is None else {"seed": str(seed)})
        warehouse, policy = opened()
        with progress_bar(as_json) as (tell, bar):
            asked = None if month is None else parse_month(month)
            facts = run_study_job(warehouse, policy, name, asked, settings, tell, bar)
        show(facts, as_json, study_lines)

    @app.command()
    def plan(
        mechanism: Annotated[
            str,
            typer.Argument(help=f"{PLANNED}: its settings; {SPREAD}: how a budget spreads over months and mechanisms"),
        ],
        rows: Annotated[int, typer.Option(help="About how many rows a month of the log has")],
        seed: Annotated[int, typer.Option(help="Seed of the twin and of the noise")] = 1,
        assignments: Sets = None,
        as_json: Json = False,
    ) -> None:
        """Choose settings, or spread a budget over months, on a synthetic twin. The log itself is never read."""
        if mechanism == SPREAD:
            plan_budget(rows, seed, parse_settings(assignments), as_json)
            return
        from qlog_assets.mechanisms.register import mechanism as known
        from qlog_assets.studies.zealous.planner import plan_modern

        if mechanism != PLANNED:
            raise QlogError(f"nothing to plan for {mechanism!r}: choose {PLANNED} or {SPREAD}")
        _, policy = opened()
        policy = policy.with_settings(parsed(assignments, mechanism))
        planned = known(mechanism)
        with progress(as_json) as tell:
            tried = plan_modern(policy.parameters(planned), rows, seed, tell)  # type: ignore[arg-type]
        best = {
            "variant": "modern",
            **{key: tried[0][key] for key in tried[0] if key in planned.policy_section.model_fields},
        }
        lines = [
            f"{key} = {value if isinstance(value, int) else repr(value)}".replace("'", '"')
            for key, value in best.items()
        ]
        show({"settings": tried, "policy": "\n".join([f"[{mechanism}]", *lines])}, as_json, plan_lines)


def plan_budget(rows: int, seed: int, settings: dict[str, str], as_json: bool) -> None:
    """How the policy's budget spreads over months and mechanisms."""
    from qlog_assets.mechanisms.register import releasable
    from qlog_assets.studies.spread import spread_budget

    _, policy = opened()
    policy = policy.with_settings(settings)
    with progress(as_json) as tell:
        facts = spread_budget(policy, tuple(each.name for each in releasable()), rows, seed, tell)
    show(facts, as_json, spread_lines)


def spread_lines(facts: dict[str, Any]) -> None:
    from qlog_assets.ledger.windows import window_words
    from qlog_assets.privacy.bounds import at_least, at_most

    budget = f"ε = {at_least(facts['budget']['epsilon'])}, δ = {at_least(facts['budget']['delta'])}"
    console.print(f"a budget of {budget} {window_words(facts['window_months'])}")
    if facts["window_months"] is None:
        console.print(f"pays for {facts['months']} months at the policy's own parameters, and then for none:")
    else:
        console.print("spread over its months and mechanisms, each month may hold:")
    rows = [
        [
            each["mechanism"],
            at_most(each["epsilon"]),
            at_most(each["delta"]),
            ", ".join(f"{count:,} {name}" for name, count in each["rows"].items()),
        ]
        for each in facts["releases"]
    ]
    show_table(["mechanism", "ε", "δ", "rows of a twin's month"], rows)
    for each in facts["releases"]:
        if each["changes"]:
            console.print(f"\n[{each['mechanism']}]", markup=False)
            for key, value in each["changes"].items():
                written = value if isinstance(value, int) else json.dumps(value)
                console.print(f"{key} = {written}", markup=False)


def show_studies(as_json: bool) -> None:
    """The studies there are."""
    from qlog_assets.studies.register import studies

    facts = {each.name: each.question for each in studies()}
    show(facts, as_json, lambda known: show_table(["study", "question"], list(known.items())))
