"""The researcher's commands: `qlog study` and `qlog plan`. Parsing and printing only; results are private."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qlog_assets.cli.output import Json, console, progress, show, show_table
from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.settings import Settings
from qlog_assets.storage.warehouse import Warehouse

Assignments = dict[str, str]


def study_zealous(
    warehouse: Warehouse, policy: Policy, month: Month, seed: int, k: int, frequent: int
) -> dict[str, Any]:
    """Compare baselines, paper, sound and modern on a month; tables and pictures go into private/studies."""
    from uuid import uuid4

    from qlog_assets.pipeline.chain import Chain
    from qlog_assets.storage.engine import Engine
    from qlog_assets.studies.simulation import plots, store_study
    from qlog_assets.studies.zealous import StudyPlan, as_tables, compare_methods

    chosen, plan = policy.zealous.parameters, StudyPlan(seed=seed, k=k, frequent=frequent, slack=frequent // 5)
    with Engine.open(warehouse.make()) as engine:
        chain = Chain(warehouse, engine, make_current=False)
        cleaned, _ = chain.clean(month, warehouse.current("raw_log", month))
        measured = compare_methods(chain, cleaned, chosen, plan)
    pictures = {
        "frequent_items.png": plots.frequent_items(measured["frequent_items"]),
        "applications.png": plots.applications(measured["caching"], measured["substitution"]),
    }
    facts = {
        "study": "zealous",
        "month": str(month),
        "seed": seed,
        "k": plan.k,
        "frequent": plan.frequent,
        "slack": plan.slack,
        "parameters": chosen.as_public(),
        **measured,
    }
    return store_study(warehouse, f"study-zealous-{month}-{seed}", uuid4().hex, facts, as_tables(measured), pictures)


def study_lines(facts: dict[str, Any]) -> None:
    columns = [
        "kind",
        "method",
        "m",
        "released",
        "inaccuracy",
        "precision",
        "recall",
        "impressions_share",
        "count_error",
    ]
    for title, rows, names in (
        ("frequent items", facts["frequent_items"], columns),
        ("index caching", facts["caching"], ["method", "m", "hit_rate", "best"]),
        (
            "query substitution",
            facts["substitution"],
            ["method", "m", "coverage", "precision", "average_precision", "ndcg"],
        ),
        ("fake accounts", facts["attack"], ["method", "accounts", "with_victim", "without"]),
    ):
        console.print(f"[bold]{title}[/bold]")
        show_table(names, [[printed(row[name]) for name in names] for row in rows])
    console.print(f"private: {facts['path']}")


def printed(value: Any) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def plan_lines(facts: dict[str, Any]) -> None:
    names = ["method", "items_per_user", "set_share", "released", "relative_error"]
    show_table(names, [[printed(row.get(name)) for name in names] for row in facts["settings"]])
    console.print("The first line, as the policy has it:\n")
    console.print(facts["policy"], markup=False)


def register(app: typer.Typer, parsed: Any) -> None:
    """Add the commands to the program."""

    @app.command()
    def study(
        mechanism: Annotated[str, typer.Argument(help="zealous")],
        month: Annotated[str, typer.Option(help="YYYY-MM")],
        seed: Annotated[int, typer.Option(help="Seed of the noise")] = 1,
        k: Annotated[int, typer.Option(help="k of the k-anonymity baselines")] = 50,
        frequent: Annotated[int, typer.Option(help="Users from which an item counts as frequent")] = 50,
        assignments: Annotated[list[str] | None, typer.Option("--set", help="key=value of the mechanism")] = None,
        as_json: Json = False,
    ) -> None:
        """Compare baselines, the paper and what can be released, on a month. Private, seeded, never charged."""
        if mechanism != "zealous":
            raise QlogError(f"no study of {mechanism!r}: choose zealous")
        warehouse = Warehouse(Settings.from_environment())
        policy = Policy.load(warehouse.settings.policy_file).with_settings(parsed(assignments, mechanism))
        with progress(as_json) as tell:
            tell(f"comparing methods on {month}")
            facts = study_zealous(warehouse, policy, Month(month), seed, k, frequent)
        show(facts, as_json, study_lines)

    @app.command()
    def plan(
        mechanism: Annotated[str, typer.Argument(help="zealous")],
        rows: Annotated[int, typer.Option(help="About how many rows a month of the log has")],
        seed: Annotated[int, typer.Option(help="Seed of the twin and of the noise")] = 1,
        assignments: Annotated[list[str] | None, typer.Option("--set", help="key=value of the mechanism")] = None,
        as_json: Json = False,
    ) -> None:
        """Choose modern's method, limit and split on a synthetic twin. The log itself is never read."""
        from qlog_assets.studies.planner import plan_modern

        if mechanism != "zealous":
            raise QlogError(f"nothing to plan for {mechanism!r}: choose zealous")
        policy = Policy.load(Settings.from_environment().policy_file).with_settings(parsed(assignments, mechanism))
        with progress(as_json) as tell:
            tried = plan_modern(policy.zealous.parameters, rows, seed, tell)
        best = {
            "variant": "modern",
            **{key: tried[0][key] for key in tried[0] if key in type(policy.zealous).model_fields},
        }
        lines = [
            f"{key} = {value if isinstance(value, int) else repr(value)}".replace("'", '"')
            for key, value in best.items()
        ]
        show({"settings": tried, "policy": "\n".join(["[zealous]", *lines])}, as_json, plan_lines)
