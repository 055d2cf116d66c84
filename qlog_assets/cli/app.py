"""`qlog`: a thin face over the same Dagster jobs and the same door. Commands parse, run and print; they decide nothing.

Every command that answers takes --json, which is a contract. Bad input is one line on standard error and exit code 2;
`endings` knows the other ways to end.
"""

from __future__ import annotations

import gc
import sys
from typing import Annotated, NoReturn

import typer

from qlog_assets.cli.endings import end, run_command
from qlog_assets.cli.examples import add_examples
from qlog_assets.version import VERSION

app = typer.Typer(
    pretty_exceptions_enable=False,
    help="Monthly differentially private releases of a search query log.",
)


def show_version(wanted: bool) -> None:
    if wanted:
        print(f"qlog {VERSION}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit", is_eager=True, callback=show_version)
    ] = False,
) -> None:
    """What can be said before any command."""


def register_commands() -> None:
    """The commands by topic, in the order in which the help names them."""
    from qlog_assets.cli import accounts, crowd_client, crowd_demo, logs, reading, releases, server, studies
    from qlog_assets.cli.crowd import crowd_app
    from qlog_assets.cli.ledger import ledger_app

    logs.register(app)
    releases.register(app)
    reading.register(app)
    app.add_typer(ledger_app, name="ledger")
    accounts.register(app)
    studies.register(app)
    crowd_client.register(crowd_app)
    crowd_demo.register(crowd_app)
    app.add_typer(crowd_app, name="crowd")
    server.register(app)
    add_examples(app)


register_commands()


def main() -> NoReturn:
    """The entry point: whatever happens is an answer, or one line and an exit code."""
    # Imports make millions of objects and hardly any garbage; looking for it every 700 objects is an eighth of a start.
    gc.set_threshold(100_000)
    # Not standalone: the parser would print its own boxes of several lines, and that is no answer for a script.
    end(run_command(lambda: app(sys.argv[1:] or ["--help"], standalone_mode=False)))


if __name__ == "__main__":
    main()
