"""`qlog`: a thin face over the same Dagster jobs and the same door. Commands parse, run and print; they decide nothing.

Every command that answers takes --json, which is a contract. Bad input is one line on standard error and exit code 2;
`endings` knows the other ways to end.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from qlog_assets.cli.arguments import (
    Attacked,
    Known,
    Months,
    Released,
    ReleaseSets,
    Sets,
    Simulated,
    format_names,
    opened,
    parse_month,
    parsed,
)
from qlog_assets.cli.endings import end, run_command
from qlog_assets.cli.output import Json, ask_password, bold, console, progress, say_now, show, show_table

app = typer.Typer(
    pretty_exceptions_enable=False,
    help="Monthly differentially private releases of a search query log.",
)


@app.command()
def demo(
    rows: Annotated[int, typer.Option(help="Rows of the synthetic log")] = 3_500_000,
    seed: Annotated[int, typer.Option(help="Seed of the synthetic log")] = 1,
    as_json: Json = False,
) -> None:
    """Make a synthetic three-month log and release every month of it. Running it again releases and charges nothing."""
    from qlog_assets.cli.demo import run_demo

    run_demo(rows, seed, as_json)


@app.command()
def synth(
    rows: Annotated[int, typer.Argument(help="How many rows, 1,000 to 36,400,000")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes")] = 1,
    first: Annotated[str, typer.Option(help="First month")] = "2006-03",
    last: Annotated[str, typer.Option(help="Last month, included")] = "2006-05",
    as_json: Json = False,
) -> None:
    """Write a synthetic log with the shape of AOL's into the landing zone and ingest it."""
    from qlog_assets.api.operations import ingest_files, write_synthetic_log

    warehouse, policy = opened()
    with progress(as_json) as tell:
        path = write_synthetic_log(warehouse, rows, seed, parse_month(first), parse_month(last), tell)
        facts = ingest_files(warehouse, policy, [path], "aol", None, tell)
    show(facts | {"path": str(path)}, as_json, ingest_lines)


@app.command()
def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Log files")],
    format: Annotated[
        str,
        typer.Option(
            "--format", help="What the files are, such as aol; table reads any columns", autocompletion=format_names
        ),
    ],
    columns: Annotated[Path | None, typer.Option(help="Column map of a table, in TOML: user, query, time, …")] = None,
    as_json: Json = False,
) -> None:
    """Read log files once each and write all their months. A file that was ingested before adds nothing."""
    from qlog_assets.api.operations import ingest_files

    warehouse, policy = opened()
    with progress(as_json) as tell:
        facts = ingest_files(warehouse, policy, paths, format, columns, tell)
    show(facts, as_json, ingest_lines)


def ingest_lines(facts: dict[str, Any]) -> None:
    for name in facts["already_ingested"]:
        console.print(f"{name}: was ingested before; nothing was added")
    if facts["read"]:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in facts["rejected"].items()) or "none"
        console.print(f"{facts['read']:,} rows read, {facts['accepted']:,} accepted; rejected: {reasons}")
        console.print("months: " + ", ".join(f"{month} ({rows:,})" for month, rows in facts["months"].items()))
    for warning in facts["warnings"]:
        console.print(f"warning: {warning}")


@app.command()
def release(
    mechanism: Released,
    month: Months,
    assignments: ReleaseSets = None,
    again: Annotated[
        str | None, typer.Option(help="Why one more draw, at one more charge, of a released month")
    ] = None,
    as_json: Json = False,
) -> None:
    """Release months: checked, charged and published. A month that has this release already is served, not charged."""
    from qlog_assets.api.operations import release_months

    settings = parsed(assignments, mechanism)
    warehouse, policy = opened()
    with progress(as_json) as tell:
        answers = release_months(
            warehouse, policy, settings, mechanism, [parse_month(each) for each in month], again, tell
        )
    show(answers[0] if len(answers) == 1 else {"releases": answers}, as_json, lambda _: release_table(answers))


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
    """Draw with seeded noise into private/studies, as released or as the paper has it. Never published or charged."""
    from qlog_assets.api.operations import simulate_month

    settings = parsed(assignments, mechanism)
    warehouse, policy = opened()
    with progress(as_json) as tell:
        facts = simulate_month(warehouse, policy, settings, mechanism, parse_month(month), variant, seed, tell)
    show(facts, as_json, simulation_lines)


def simulation_lines(facts: dict[str, Any]) -> None:
    if facts["warning"] is not None:
        console.print(facts["warning"])
    counted = ", ".join(f"{rows:,} {name}" for name, rows in facts["rows"].items())
    console.print(f"{facts['mechanism']} {facts['variant']} {facts['month']}, seed {facts['seed']}: {counted}")
    console.print(f"private, not charged: {facts['path']}")


@app.command()
def guarantee(
    mechanism: Known,
    variant: Annotated[str | None, typer.Option(help="Default: the variant that is released")] = None,
    assignments: Sets = None,
    as_json: Json = False,
) -> None:
    """What a release would cost and promise, before anything is spent."""
    from qlog_assets.api.operations import explain_guarantee

    show(explain_guarantee(mechanism, variant, parsed(assignments, mechanism)), as_json, guarantee_lines)


def guarantee_lines(facts: dict[str, Any]) -> None:
    from qlog_assets.privacy.bounds import at_most

    def amount(loss: dict[str, float] | None) -> str:
        return "nothing finite" if loss is None else f"ε = {at_most(loss['epsilon'], 6)}, δ = {at_most(loss['delta'])}"

    console.print(bold(f"{facts['mechanism']} {facts['variant']}"), f" {facts['formula']}")
    parts = [[part["name"], amount(part["claimed"]), amount(part["proven"])] for part in facts["parts"]]
    show_table(
        ["part", "claimed", "proven"], [*parts, ["all together", amount(facts["claimed"]), amount(facts["proven"])]]
    )
    console.print(facts["sentence"])
    for gap in facts["gaps"]:
        console.print(f"  gap: {gap}", highlight=False)


@app.command("audit-mechanism")
def audit_mechanism(
    mechanism: Attacked,
    seed: Annotated[int | None, typer.Option(help="Seed of the runs; fresh noise without one")] = None,
    as_json: Json = False,
) -> None:
    """Attack mechanisms on neighbouring logs and compare what is measured with what they claim."""
    from qlog_assets.api.operations import attack_mechanism

    with progress(as_json) as tell:
        tell(f"attacking {mechanism}")
        facts = attack_mechanism(mechanism, seed)
    columns = ["audit", "variant", "claim", "measured", "verdict", "expected"]
    show(facts, as_json, lambda shown: show_table(columns, shown["audits"]))
    if not facts["ok"]:
        raise typer.Exit(1)


@app.command()
def bench(
    rows: Annotated[
        list[int] | None, typer.Option(help="Rows of a log; repeat for several. Default: up to AOL's")
    ] = None,
    out: Annotated[Path | None, typer.Option("--json", help="Write the figures here, and a plot beside them")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the logs")] = 1,
    peers: Annotated[bool, typer.Option(help="Measure the task that other libraries can do, too")] = True,
    peer_rows: Annotated[int, typer.Option(help="Rows of the log of that task")] = 5_000_000,
    skewed: Annotated[bool, typer.Option(help="Measure logs that are nothing like AOL's, too")] = False,
    skewed_rows: Annotated[int | None, typer.Option(help="Rows of each of them. Default: full size")] = None,
    scratch: Annotated[Path | None, typer.Option(help="Where to work; needs some 15 GB for 36 million rows")] = None,
) -> None:
    """Measure time and memory of a whole release beside bare DuckDB doing the same once, and beside peers."""
    from qlog_assets.cli.benchmark import run_bench

    run_bench(rows or [], out, seed, peers, peer_rows, skewed, skewed_rows, scratch)


@app.command()
def ui(
    host: Annotated[str, typer.Option(help="Who may look: this machine alone, unless told otherwise")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Where the page is served", min=1, max=65535)] = 3000,
    passwords: Annotated[
        Path | None, typer.Option(help="Names and passwords instead of a token; see ui-password")
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="A name under which a proxy serves this page; repeat for several")
    ] = None,
) -> None:
    """Dagster's web UI with its daemon, so that schedules and sensors work, on this warehouse. Open what it prints."""
    from qlog_assets.ui.serving import serve_ui

    warehouse, _ = opened()
    code = serve_ui(warehouse, host, port, passwords=passwords, allowed_hosts=allowed_host or (), tell=say_now)
    raise typer.Exit(code)


@app.command("ui-password")
def ui_password(
    name: Annotated[str, typer.Argument(help="Who is to log in")],
    passwords: Annotated[Path, typer.Option(help="The file; made if it is not there")],
) -> None:
    """Add a user to a password file of `qlog ui`, or change a password. Asks for it, or reads a line if piped."""
    from qlog_assets.ui.passwords import write_password

    password = ask_password(name)
    new = write_password(passwords, name, password)
    console.print(f"{name}: {'added to' if new else 'password changed in'} {passwords}")


def register_accounts() -> None:
    """The commands about money and memory: ledger, audit, withdraw, forget."""
    from qlog_assets.cli.accounts import register
    from qlog_assets.cli.ledger import ledger_app

    app.add_typer(ledger_app, name="ledger")
    register(app)


def register_studies() -> None:
    """The researcher's commands: study, plan."""
    from qlog_assets.cli.studies import register

    register(app)


register_accounts()
register_studies()


def main() -> NoReturn:
    """The entry point: whatever happens is an answer, or one line and an exit code."""
    # Imports make millions of objects and hardly any garbage; looking for it every 700 objects is an eighth of a start.
    gc.set_threshold(100_000)
    # Not standalone: the parser would print its own boxes of several lines, and that is no answer for a script.
    end(run_command(lambda: app(sys.argv[1:] or ["--help"], standalone_mode=False)))


if __name__ == "__main__":
    main()
