"""The researcher's commands: `qlog study` and `qlog plan`. Parsing and printing only; results are private."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qlog_assets.cli.arguments import Sets, opened, parse_month, parse_settings, parsed
from qlog_assets.cli.output import Json, console, progress, progress_bar, show, show_table
from qlog_assets.errors import QlogError

PLANNED = "zealous"


def study_lines(facts: dict[str, Any]) -> None:
    from qlog_assets.studies.register import study

    if facts["warning"] is not None:
        console.print(facts["warning"])
    columns = study(facts["study"]).columns or {}
    for title, rows in facts["tables"].items():
        names = columns.get(title) or tuple(rows[0] if rows else ())
        console.print(f"[bold]{title.replace('_', ' ')}[/bold]")
        show_table(names, [[printed(row[name]) for name in names] for row in rows])
    console.print(f"private: {facts['path']}")


def printed(value: Any) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def plan_lines(facts: dict[str, Any]) -> None:
    names = ["method", "items_per_user", "set_share", "released", "relative_error"]
    show_table(names, [[printed(row.get(name)) for name in names] for row in facts["settings"]])
    console.print("The first line, as the policy has it:\n")
    console.print(facts["policy"], markup=False)


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
        warehouse, _ = opened()
        with progress_bar(as_json) as (tell, bar):
            asked = None if month is None else parse_month(month)
            facts = run_study_job(warehouse, name, asked, settings, tell, bar)
        show(facts, as_json, study_lines)

    @app.command()
    def plan(
        mechanism: Annotated[str, typer.Argument(help=PLANNED)],
        rows: Annotated[int, typer.Option(help="About how many rows a month of the log has")],
        seed: Annotated[int, typer.Option(help="Seed of the twin and of the noise")] = 1,
        assignments: Sets = None,
        as_json: Json = False,
    ) -> None:
        """Choose modern's method, limit and split on a synthetic twin. The log itself is never read."""
        from qlog_assets.mechanisms.register import mechanism as known
        from qlog_assets.studies.zealous.planner import plan_modern

        if mechanism != PLANNED:
            raise QlogError(f"nothing to plan for {mechanism!r}: choose {PLANNED}")
        _, policy = opened(parsed(assignments, mechanism))
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


def show_studies(as_json: bool) -> None:
    """The studies there are."""
    from qlog_assets.studies.register import studies

    facts = {each.name: each.question for each in studies()}
    show(facts, as_json, lambda known: show_table(["study", "question"], list(known.items())))
