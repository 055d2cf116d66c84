"""The researcher's commands: `qlog study`, `qlog compare`, `qlog person`, `qlog suggest` and `qlog plan`.

Parsing and printing only.

What a study finds is private; suggestions come out of a published release.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from qlog_assets.cli.arguments import Sets, opened, parse_month, parse_settings, parsed
from qlog_assets.cli.output import Json, bold, console, progress, progress_bar, show, show_table
from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.names import folder_names

PLANNED = tuple(name for name in folder_names() if name != "baselines")
SPREAD = "budget"
COMPARISON = "compare"


def study_lines(facts: dict[str, Any]) -> None:
    from qlog_assets.studies.register import study

    if facts["warning"] is not None:
        console.print(facts["warning"])
    answered = study(facts["study"])
    columns = answered.columns or {}
    for title, rows in facts["tables"].items():
        names = columns.get(title) or tuple(rows[0] if rows else ())
        shown = [row for row in rows if answered.shown_rows.get(title, show_all)(row)]
        console.print(bold(title.replace("_", " ")))
        show_table(names, [[printed(row[name]) for name in names] for row in shown])
        if len(shown) < len(rows):
            console.print(f"{len(shown)} of {len(rows):,} rows; all of them: {title}.csv")
    console.print(f"private: {facts['path']}")


def comparison_lines(facts: dict[str, Any]) -> None:
    study_lines(facts)
    console.print(f"page: {Path(facts['path']) / 'compare.html'}")


def show_all(row: dict[str, Any]) -> bool:
    return True


def printed(value: Any) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def suggestion_lines(facts: dict[str, Any]) -> None:
    if not facts["suggestions"]:
        console.print(f"{facts['release_id']} holds the query, but nothing that follows it or is clicked like it")
        return
    show_table(["suggestion", "score"], [[each["query"], printed(each["score"])] for each in facts["suggestions"]])
    console.print(f"from {facts['release_id']}")


def plan_lines(facts: dict[str, Any]) -> None:
    for line in (*facts["words"], *facts["switched_off"]):
        console.print(line)
    columns = ["ε", "settings", "table", "rows", "from noise", "error of counts", "users heard"]
    rows = []
    for point in facts["curve"]:
        for settings in ("policy", "recommended"):
            for table, told in point[settings].items():
                rows.append([f"{point['epsilon']:.4g}", settings, table, *map(printed_cell, told_cells(told))])
    show_table(columns, rows)
    known = "as the policy has it" if facts["releasable"] else "parameters (this mechanism cannot be released yet)"
    console.print(f"\nRecommended, at ε = {facts['epsilon']:.6g} and δ = {facts['delta']:.3g}, {known}:\n")
    console.print(facts["policy"])
    console.print(f"\n{chosen_because(facts)}")
    if facts["plot"] is not None:
        console.print(f"\nplot: {facts['plot']}")


def chosen_because(facts: dict[str, Any]) -> str:
    """Why these settings: the rule that they were ranked by."""
    from qlog_assets.studies.planning.planner import WORST_ERROR, WORST_NOISE, WORTHWHILE

    return (
        f"Why: these came out first of {len(facts['settings'])} settings of the same ε and δ, drawn on made-up users. "
        f"Better is what leaves counts that noise moves by at most {100 * WORST_ERROR:.0f} % and at most "
        f"{100 * WORST_NOISE:.0f} % of rows from noise; then more tables of at least {WORTHWHILE} rows; then more "
        "rows. docs/planning.md says more."
    )


def told_cells(told: dict[str, Any]) -> tuple[Any, ...]:
    error, heard = (None if told[key] is None else f"{100 * told[key]:.0f} %" for key in ("error", "heard"))
    return f"{told['rows']:,.1f}", f"{told['noise_rows']:,.1f}", error, heard


def printed_cell(value: Any) -> str:
    return "" if value is None else str(value)


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
    def compare(
        month: Annotated[str, typer.Option(help="YYYY-MM")],
        epsilon: Annotated[str, typer.Option(help="ε of every system that may be published")] = "2",
        delta: Annotated[str, typer.Option(help="δ of every system that may be published")] = "1e-6",
        seed: Annotated[int, typer.Option(help="Seed of the noise")] = 1,
        assignments: Sets = None,
        as_json: Json = False,
    ) -> None:
        """Compare all systems on one log at the same ε and δ, scored on held-out users: one page, one table. Private.

        The same as qlog study compare. --set folds=5 tests every user once; --set twin_rows=100000 chooses settings on
        a smaller twin.
        """
        from qlog_assets.api.operations import run_study_job

        settings = {**parse_settings(assignments), "epsilon": epsilon, "delta": delta, "seed": str(seed)}
        warehouse, policy = opened()
        with progress_bar(as_json) as (tell, bar):
            facts = run_study_job(warehouse, policy, COMPARISON, parse_month(month), settings, tell, bar)
        show(facts, as_json, comparison_lines)

    @app.command()
    def person(
        month: Annotated[str, typer.Option(help="YYYY-MM")],
        user_file: Annotated[
            Path | None,
            typer.Option(
                help="A file of yours with mode 600 that holds the id of the person; without one, the planted"
            ),
        ] = None,
        ask: Annotated[bool, typer.Option("--ask", help="Ask for the id, without showing it")] = False,
        seed: Annotated[int | None, typer.Option(help="Seed of the noise")] = None,
        assignments: Sets = None,
        as_json: Json = False,
    ) -> None:
        """Show what each system would print of one person, and what attackers learn. Private, never charged.

        Without a file, the person is the one that qlog synth --world 2 plants. Of anybody else, the answer is written
        to private files, and only their place is shown. An id is never taken from the command line.
        """
        from qlog_assets.api.persons import examine_person

        settings = parse_settings(assignments) | ({} if seed is None else {"seed": str(seed)})
        warehouse, policy = opened()
        if user_file is not None and ask:
            raise QlogError("say --user-file or --ask, not both")
        typed = typer.prompt("user id", hide_input=True) if ask else None
        with progress_bar(as_json) as (tell, bar):
            facts = examine_person(warehouse, policy, parse_month(month), settings, user_file, typed, tell, bar)
        show(facts, as_json, study_lines)

    @app.command()
    def suggest(
        query: Annotated[str, typer.Argument(help="What was searched for")],
        release: Annotated[
            str | None,
            typer.Option(help="A release of sessions, by its id or its directory; without one, the latest there is"),
        ] = None,
        count: Annotated[int, typer.Option(help="How many suggestions at most")] = 5,
        as_json: Json = False,
    ) -> None:
        """Suggest what to search next, from the public files of a release of sessions. Reads nothing private."""
        from qlog_assets.api.suggestions import suggest_queries
        from qlog_assets.settings import Settings
        from qlog_assets.storage.warehouse import Warehouse

        warehouse = Warehouse(Settings.from_environment())
        show(suggest_queries(warehouse, query, release, count), as_json, suggestion_lines)

    @app.command()
    def plan(
        mechanism: Annotated[
            str,
            typer.Argument(
                help=f"{', '.join(PLANNED)}: its settings; {SPREAD}: how a budget spreads over months and mechanisms",
                autocompletion=lambda: [*PLANNED, SPREAD],
            ),
        ],
        preset: Annotated[
            str | None, typer.Option(help="The log's shape and size: small, library, shop, wiki or engine")
        ] = None,
        users: Annotated[int | None, typer.Option(help="About how many users a month of the log has")] = None,
        queries_per_user: Annotated[
            float | None, typer.Option(help="About how many searches one of them makes in a month")
        ] = None,
        rows: Annotated[
            int | None,
            typer.Option(help="About how many rows a month has: plan on a synthetic twin of so many instead"),
        ] = None,
        epsilon: Annotated[
            str | None, typer.Option(help="ε of one release; without one, what the policy's own parameters cost")
        ] = None,
        plot: Annotated[Path | None, typer.Option(help="Where to write the picture over ε, an SVG file")] = None,
        seed: Annotated[int, typer.Option(help="Seed of the made-up users and of the noise")] = 1,
        assignments: Sets = None,
        as_json: Json = False,
    ) -> None:
        """Choose settings, or spread a budget over months, on made-up users. The log itself is never read.

        Say how large a month is: qlog plan safelog --preset small, qlog plan zealous --users 30000 --queries-per-user
        4, or, for a log like a search engine's, qlog plan safelog --rows 500000.
        """
        if mechanism == SPREAD:
            if rows is None or any(each is not None for each in (preset, users, queries_per_user, epsilon, plot)):
                raise QlogError(f"qlog plan {SPREAD} takes --rows alone: about how many rows a month of the log has")
            plan_budget(rows, seed, parse_settings(assignments), as_json)
            return
        from qlog_assets.api.planning import plan_mechanism

        told = {"preset": preset, "users": users, "queries_per_user": queries_per_user, "rows": rows}
        settings = parsed(assignments, mechanism)
        with progress_bar(as_json) as (_, bar):
            facts = plan_mechanism(mechanism, settings, told, epsilon, plot, seed, bar)
        show(facts, as_json, plan_lines)


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
