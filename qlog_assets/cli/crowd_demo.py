"""`qlog crowd demo`: parsing and printing of the crowd on one machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from qlog_assets.cli.output import Json, console, progress, show, show_table


def register(crowd_app: typer.Typer) -> None:
    """Add the command to `qlog crowd`."""
    crowd_app.command("demo")(demo)


def demo(
    directory: Annotated[Path, typer.Argument(help="Made anew: people, servers and a warehouse of their own")],
    people: Annotated[int, typer.Option(help="How many made-up people take part", min=20, max=2000)] = 200,
    as_json: Json = False,
) -> None:
    """Run clients, relays and servers on this machine, and release what enough of the made-up people share."""
    from qlog_assets.cli.crowd import need_extra

    need_extra()
    from qlog_assets.api.crowd_demo import run_crowd_demo
    from qlog_assets.report.crowd_page import write_crowd_page

    # The runs of the release are Dagster's, and read this.
    os.environ["QLOG_HOME"] = str((directory / "warehouse").resolve())
    with progress(as_json) as tell:
        facts = run_crowd_demo(directory.resolve(), people, tell)
        write_crowd_page(Path(facts["page"]), facts)
    show(facts, as_json, demo_lines)


def demo_lines(facts: dict[str, Any]) -> None:
    """What came of it, and where to look."""
    import pyarrow.parquet as pq

    collector = facts["saw"]["collector"]
    console.print(
        f"{facts['people']} made-up people sent {collector['reports']:,} reports with {collector['tags']:,} different "
        f"tags; {facts['read']['artifacts']:,} were sent by enough people to be read."
    )
    path = Path(facts["release"]["path"])
    (name,) = facts["release"]["rows"]
    table = pq.read_table(path / f"{name}.parquet")
    console.print(f"Released, with noise: {table.num_rows} of them, in {path}")
    show_table(table.column_names, [list(row.values()) for row in table.slice(0, 8).to_pylist()])
    console.print(f"What each party saw: {facts['page']}")
