"""The commands that get a log in: demo, synth, ingest. Parsing and printing only."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from qlog_assets.cli.arguments import format_names, opened, parse_month
from qlog_assets.cli.output import Json, bold, console, progress, progress_bar, show, show_table, somebody_answers


class Writer(StrEnum):
    """Who writes a synthetic log."""

    process = "process"
    spark = "spark"


def register(app: typer.Typer) -> None:
    """Add the commands that stand at the top level."""

    @app.command()
    def demo(
        rows: Annotated[int, typer.Option(help="Rows of the synthetic log")] = 3_500_000,
        seed: Annotated[int, typer.Option(help="Seed of the synthetic log")] = 1,
        as_json: Json = False,
    ) -> None:
        """Make a synthetic three-month log and release every month of it. Once more, nothing is released or charged."""
        from qlog_assets.cli.demo import run_demo

        run_demo(rows, seed, as_json)

    @app.command()
    def synth(
        rows: Annotated[int, typer.Argument(help="How many rows, 1,000 to 100,000,000")],
        seed: Annotated[int, typer.Option(help="The same seed gives the same bytes")] = 1,
        first: Annotated[str, typer.Option(help="First month")] = "2006-03",
        last: Annotated[str, typer.Option(help="Last month, included")] = "2006-05",
        world: Annotated[
            int,
            typer.Option(
                help="2: with capitals and spaces as typed, urls with paths, and one planted person; "
                "3: with words of two topics, and portals"
            ),
        ] = 1,
        engine: Annotated[
            Writer, typer.Option(help="Who writes it, the same bytes: this process, or spark on the policy's master")
        ] = Writer.process,
        as_json: Json = False,
    ) -> None:
        """Write a synthetic log with the shape of AOL's into the landing zone and ingest it."""
        from qlog_assets.api.operations import ingest_files, write_synthetic_log

        warehouse, policy = opened()
        with progress(as_json) as tell:
            spark = policy.engine if engine is Writer.spark else None
            path = write_synthetic_log(warehouse, rows, seed, parse_month(first), parse_month(last), tell, world, spark)
            facts = ingest_files(warehouse, policy, [path], "aol", None, tell)
        show(facts | {"path": str(path)}, as_json, ingest_lines)

    app.add_typer(ingest_app, name="ingest")


class FilesFirst(TyperGroup):
    """A group of commands whose first word may also be a file: whatever is no command is read as a log.

    A log called `list` or `withdraw` is given as `./list`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = [READ, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        # In usage and errors it is `qlog ingest`, as it is typed.
        return "" if name == READ else name, command, rest


READ = "read files"
"""The name of the command that nobody types: a file may not be called so without a folder before it."""
ingest_app = typer.Typer(
    cls=FilesFirst, help="Read log files, list what was read, withdraw a bad file.", rich_markup_mode=None
)


@ingest_app.command(READ, hidden=True)
def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Log files")],
    format: Annotated[
        str,
        typer.Option(
            "--format",
            help="What the files are: aol, excite, table (CSV, Parquet), json (lines), access (web server)",
            autocompletion=format_names,
        ),
    ],
    columns: Annotated[
        Path | None, typer.Option(help="Column map of a table, json or access log, in TOML: user, query, time, …")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only say what the files would give; nothing is kept")] = False,
    again_because: Annotated[
        str | None, typer.Option(metavar="WHY", help="Use files again that were withdrawn; it is recorded")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Bring rows of forgotten months back without asking")] = False,
    as_json: Json = False,
) -> None:
    """Read log files once each and write all their months. A file that was ingested before adds nothing.

    `qlog ingest list` shows what was read, and `qlog ingest withdraw` takes a bad file out of use.
    """
    if check:
        from qlog_assets.api.batches import check_files

        warehouse, policy = opened()
        with progress_bar(as_json) as (tell, bar):
            facts = check_files(warehouse, policy, paths, format, columns, tell, bar)
        show(facts, as_json, check_lines)
        return

    from qlog_assets.checks.beside import checking_beside

    def reading(bring_back: bool) -> dict[str, Any]:
        # First of all: what checks takes as long to get ready as everything else.
        with checking_beside(), progress_bar(as_json) as (tell, bar):
            from qlog_assets.api.operations import ingest_files

            warehouse, policy = opened()
            return ingest_files(
                warehouse,
                policy,
                paths,
                format,
                columns,
                tell,
                again_because=again_because,
                bring_back=bring_back,
                bar=bar,
            )

    facts = reading(yes)
    show(facts, as_json, ingest_lines)
    months = ", ".join(facts["left_out"])
    # Asked afterwards: which months a file holds is known when it was read, and nobody is asked where nobody looks.
    if (
        months
        and not as_json
        and somebody_answers()
        and typer.confirm(f"bring the forgotten rows of {months} back?", err=True)
    ):
        show(reading(True), as_json, ingest_lines)


@ingest_app.command("list")
def list_ingested(as_json: Json = False) -> None:
    """Show every file that was read: its rows, why rows were rejected, its months, and whether it is in use."""
    from qlog_assets.api.batches import list_batches

    show(list_batches(*opened()), as_json, list_lines)


@ingest_app.command("withdraw")
def withdraw_ingested(
    batch: Annotated[str, typer.Argument(help="The batch, as `qlog ingest list` shows it, or the name of its file")],
    reason: Annotated[str, typer.Option(help="Why; it is recorded")],
    as_json: Json = False,
) -> None:
    """Take a file's rows out of use. Releases that were made from it stay published as they are."""
    from qlog_assets.api.batches import withdraw

    with progress(as_json) as tell:
        facts = withdraw(*opened(), batch, reason, tell)
    show(facts, as_json, withdraw_lines)


def ingest_lines(facts: dict[str, Any]) -> None:
    for name in facts["already_ingested"]:
        console.print(f"{name}: was ingested before; nothing was added")
    if facts["read"]:
        row_lines(facts)
    for note in facts["notes"]:
        console.print(f"note: {note}")
    for warning in facts["warnings"]:
        console.print(f"warning: {warning}")


def row_lines(facts: dict[str, Any]) -> None:
    from qlog_assets.pipeline.batches import count_rows

    read = count_rows(facts["read"])
    console.print(f"{read} read, {facts['accepted']:,} accepted; rejected: {counts(facts['rejected'])}")
    console.print("months: " + (", ".join(f"{month} ({rows:,})" for month, rows in facts["months"].items()) or "none"))


def counts(reasons: dict[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in reasons.items()) or "none"


def check_lines(facts: dict[str, Any]) -> None:
    for file in facts["files"]:
        how = ", ".join(f"{name} {value!r}" for name, value in file["read_as"].items())
        how = f" ({how})" if how else ""
        console.print(bold(file["file"], f", read as {file['format']}{how}"))
        row_lines(file)
        for note in file["notes"]:
            console.print(f"note: {note}")
    for warning in facts["warnings"]:
        console.print(f"warning: {warning}")
    console.print("nothing was kept")


def list_lines(facts: dict[str, Any]) -> None:
    rows = [
        [
            each["batch"],
            each["file"],
            f"{each['read']:,}",
            f"{each['accepted']:,}",
            f"{each['rejected']:,}",
            ", ".join(each["months"]) or "none",
            each["state"],
        ]
        for each in facts["batches"]
    ]
    show_table(["batch", "file", "read", "accepted", "rejected", "months", "state"], rows)
    for each in facts["batches"]:
        if each["reasons"]:
            console.print(f"{each['batch']}: rejected: {counts(each['reasons'])}")
        if each["left_out"]:
            console.print(f"{each['batch']}: forgotten months left out: {counts(each['left_out'])}")
        if each["withdrawn"]:
            told = each["withdrawn"]
            console.print(f"{each['batch']}: withdrawn on {told['at'][:10]} by {told['who']}: {told['reason']}")


def withdraw_lines(facts: dict[str, Any]) -> None:
    if facts["recorded"]:
        console.print(f"{facts['file']} ({facts['batch']}) is withdrawn: its rows enter no month from now on")
    else:
        told = f"on {facts['at'][:10]} by {facts['who']}: {facts['reason']}"
        console.print(f"{facts['file']} ({facts['batch']}) was withdrawn already, {told}")
    for month, is_left in facts["months"].items():
        console.print(
            f"{month}: " + ("its raw log holds the other files" if is_left else "no other file has rows of it")
        )
    for note in facts["notes"]:
        console.print(note)
