"""The commands about the machine: ui, ui-password, bench. Parsing and printing only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from qlog_assets.cli.arguments import opened
from qlog_assets.cli.output import ask_password, console, say_now
from qlog_assets.errors import QlogError


def register(app: typer.Typer) -> None:
    """Add the commands that stand at the top level."""

    @app.command()
    def ui(
        host: Annotated[
            str, typer.Option(help="Who may look: this machine alone, unless told otherwise")
        ] = "127.0.0.1",
        port: Annotated[int, typer.Option(help="Where the page is served", min=1, max=65535)] = 3000,
        passwords: Annotated[
            Path | None, typer.Option(help="Names and passwords instead of a token; see ui-password")
        ] = None,
        allowed_host: Annotated[
            list[str] | None, typer.Option(help="A name under which a proxy serves this page; repeat for several")
        ] = None,
    ) -> None:
        """Dagster's web UI on this warehouse, with the daemon that schedules and sensors need. Open what it prints."""
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

    @app.command()
    def bench(
        rows: Annotated[
            list[int] | None, typer.Option(help="Rows of a log; repeat for several. Default: up to AOL's")
        ] = None,
        out: Annotated[
            Path | None, typer.Option("--json", help="Write the figures here, and a plot beside them")
        ] = None,
        seed: Annotated[int, typer.Option(help="Seed of the logs")] = 1,
        peers: Annotated[bool, typer.Option(help="Measure the task that other libraries can do, too")] = True,
        peer_rows: Annotated[int, typer.Option(help="Rows of the log of that task")] = 5_000_000,
        skewed: Annotated[bool, typer.Option(help="Measure logs that are nothing like AOL's, too")] = False,
        skewed_rows: Annotated[int | None, typer.Option(help="Rows of each of them. Default: full size")] = None,
        scratch: Annotated[
            Path | None, typer.Option(help="Where to work; needs some 15 GB for 36 million rows")
        ] = None,
        model: Annotated[
            bool, typer.Option("--model", help="Measure a month at several sizes and predict 1, 10, 100 billion rows")
        ] = False,
        engine: Annotated[
            Literal["duckdb", "spark"] | None, typer.Option(help="With --model: what counts. Default: duckdb")
        ] = None,
        held_back: Annotated[
            list[int] | None,
            typer.Option(help="With --model: rows of a log that is measured and not fitted. Default: the largest"),
        ] = None,
        cores: Annotated[
            int | None, typer.Option(help="With --model: cores to predict wall time for. Default: 64", min=1)
        ] = None,
    ) -> None:
        """Measure time and memory of a whole release beside bare DuckDB doing the same once, and beside peers.

        With --model: how they grow with the rows of a month, and what larger months would take.
        """
        from qlog_assets.cli.benchmark import run_bench, run_cost_model

        if model:
            if skewed:
                raise QlogError("--skewed: is no part of --model: leave one of them out")
            run_cost_model(rows or [], held_back or [], engine or "duckdb", cores or 64, out, seed, scratch)
            return
        for name, value in (("--engine", engine), ("--held-back", held_back), ("--cores", cores)):
            if value:
                raise QlogError(f"{name}: is of no use without --model: add it, or leave {name} out")
        run_bench(rows or [], out, seed, peers, peer_rows, skewed, skewed_rows, scratch)
