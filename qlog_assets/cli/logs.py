"""The commands that get a log in: demo, synth, ingest. Parsing and printing only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qlog_assets.cli.arguments import format_names, opened, parse_month
from qlog_assets.cli.output import Json, console, progress, show


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
                "--format",
                help="What the files are: aol, excite, table (CSV, Parquet), json (lines), access (web server)",
                autocompletion=format_names,
            ),
        ],
        columns: Annotated[
            Path | None, typer.Option(help="Column map of a table, json or access log, in TOML: user, query, time, …")
        ] = None,
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
