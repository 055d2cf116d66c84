"""The commands of whoever reads releases: show and series. Public files alone; parsing and printing only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qlog_assets.cli.arguments import Released
from qlog_assets.cli.output import Json, bold, console, printable, show, show_table
from qlog_assets.mechanisms.names import folder_names

BAR_CELLS = 24
EIGHTHS = " ▏▎▍▌▋▊▉"
Home = Annotated[
    Path | None,
    typer.Option(help="A folder of downloaded releases; without one, those of the warehouse of QLOG_HOME"),
]


def register(app: typer.Typer) -> None:
    """Add the commands that stand at the top level."""

    @app.command("show")
    def show_public(
        mechanism: Released,
        month: Annotated[str, typer.Argument(help="YYYY-MM")],
        table: Annotated[str, typer.Argument(help="Which table; without one, what the release holds")] = "",
        rows: Annotated[int, typer.Option(help="How many rows, the most frequent first")] = 20,
        home: Home = None,
        as_json: Json = False,
    ) -> None:
        """Show a release, or a table of it with the error of every count. Reads public files alone."""
        from qlog_assets.api.reading import show_release, show_table_rows

        if table:
            show(show_table_rows(home, mechanism, month, table, rows), as_json, row_lines)
        else:
            show(show_release(home, mechanism, month), as_json, release_lines)

    @app.command()
    def series(
        query: Annotated[str, typer.Argument(help="What was searched for")],
        url: Annotated[str | None, typer.Option(help="With an address that was clicked after it")] = None,
        next_query: Annotated[str | None, typer.Option("--next", help="With the query that followed it")] = None,
        mechanism: Annotated[
            str | None,
            typer.Option(
                help=f"{', '.join(folder_names('stages.py'))}; without one, every one that counts such things",
                autocompletion=lambda: list(folder_names("stages.py")),
            ),
        ] = None,
        plot: Annotated[
            Path | None, typer.Option(help="Where to write a picture: a new PNG or SVG file outside the warehouse")
        ] = None,
        home: Home = None,
        as_json: Json = False,
    ) -> None:
        """Follow a query, or a pair, over the months: noisy counts with their errors, gaps told as gaps. Reads public
        files alone."""
        from qlog_assets.api.series import ask_for, find_series, series_facts
        from qlog_assets.api.series_plot import refuse_plot, write_plot

        if plot is not None:
            refuse_plot(plot, home)
        asked = ask_for(query, url, next_query)
        points = find_series(home, asked, mechanism)
        if plot is not None:
            write_plot(plot, asked, points)
        facts = series_facts(asked, points) | {"plot": None if plot is None else str(plot)}
        show(facts, as_json, series_lines)


def heading(facts: dict[str, Any]) -> None:
    """Which release it is, and what it promises."""
    from qlog_assets.privacy.bounds import at_most

    loss = f"ε = {at_most(facts['epsilon'], 6)}, δ = {at_most(facts['delta'], 6)} per {facts['unit']}"
    console.print(bold(f"{facts['mechanism']} {facts['month']}", f"  {facts['variant']}, {loss}"))


def release_lines(facts: dict[str, Any]) -> None:
    heading(facts)
    rows = [
        [
            name,
            f"{told['rows']:,}",
            noise_words(told),
            needs_words(told),
            ", ".join(told["columns"]),
        ]
        for name, told in facts["tables"].items()
    ]
    show_table(["table", "rows", "standard error of a count", "a row needs about", "columns"], rows)
    for condition in dict.fromkeys(told["condition"] for told in facts["tables"].values() if told["condition"]):
        console.print(printable(f"* {condition}"))
    console.print(f"rows: qlog show {facts['mechanism']} {facts['month']} {next(iter(facts['tables']))}")
    console.print(f"files: {printable(facts['path'])}")


def needs_words(told: dict[str, Any]) -> str:
    """From how many users on a row is at least as likely as not."""
    if told["row_needs_about"] is None:
        return ""
    return f"{told['row_needs_about']:,} users{' *' if told['condition'] else ''}"


def noise_words(told: dict[str, Any]) -> str:
    """The error of a table's counts in a few words."""
    if told["deviation"] is None:
        return ""
    return f"{told['deviation']:g} users{', or more: see each row' if told['by_row'] else ''}"


def row_lines(facts: dict[str, Any]) -> None:
    from qlog_assets.report.tables import ERROR_COLUMN, MONTH_COLUMN

    heading(facts)
    shown, count = facts["shown"], facts["count"]
    names = [name for name in (shown[0] if shown else {}) if name not in (count, ERROR_COLUMN, MONTH_COLUMN)]
    has_errors = bool(shown) and ERROR_COLUMN in shown[0]
    heads = [*names, *([] if count is None else [count]), *(["±"] if has_errors else [])]
    rows = [
        [
            *(cell_text(row[name]) for name in names),
            *([] if count is None else [f"{row[count]:,}"]),
            *([f"{row[ERROR_COLUMN]:,.10g}"] if has_errors else []),
        ]
        for row in shown
    ]
    show_table(heads, rows)
    console.print(f"{len(shown):,} of {facts['rows']:,} rows of {facts['table']}; {error_words(facts)}")


def error_words(facts: dict[str, Any]) -> str:
    """What ± means."""
    if facts["count"] is None:
        return "made-up users: no row is a count of people"
    if facts["deviation"] is None:
        return "its manifest does not state the noise on its counts"
    if facts["by_row"]:
        return f"±: standard deviation of the noise in the count ({facts['law']}), 19 of 20 within twice that"
    return f"±: standard deviation of the noise in the count ({facts['law']}), 19 of 20 within {facts['within_95']:g}"


def cell_text(value: Any) -> str:
    """A cell of a table: a list of texts in its order."""
    return (
        " → ".join(map(str, value))
        if isinstance(value, list)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def series_lines(facts: dict[str, Any]) -> None:
    points = facts["points"]
    console.print(
        bold(printable(" → ".join(facts[key] for key in ("query", "url", "next_query") if facts[key] is not None)))
    )
    most = max((point["high"] or point["users"] or 0 for point in points), default=0)
    rows = [
        [
            point["month"],
            point["mechanism"],
            point["variant"] or "",
            users_words(point),
            "" if point["standard_error"] is None else f"±{point['standard_error']:g}",
            "" if point["low"] is None else f"{point['low']:,.0f} to {point['high']:,.0f}",
            bar_of(point["users"], most),
        ]
        for point in points
    ]
    show_table(["month", "mechanism", "variant", "users", "±", "19 of 20 within", ""], rows)
    for line in series_notes(points):
        console.print(printable(line))
    for line in (*facts["mixed"], *facts["caveats"]):
        console.print(printable(line))
    if facts["plot"] is not None:
        console.print(f"plot: {printable(facts['plot'])}")


def users_words(point: dict[str, Any]) -> str:
    """The noisy count, or what it means that there is none."""
    if point["state"] == "printed":
        return f"{point['users']:,}"
    if point["state"] != "not printed":
        return point["state"]
    if point["fewer_than_about"] is None:
        return "not printed"
    return f"fewer than about {point['fewer_than_about']:,}{' *' if point['condition'] else ''}"


def series_notes(points: list[dict[str, Any]]) -> list[str]:
    """What must be said of points that are no counts."""
    notes = []
    for condition in dict.fromkeys(point["condition"] for point in points if point["condition"]):
        notes.append(f"* {condition}")
    notes += [f"{point['mechanism']} {point['month']}: {point['note']}" for point in points if point["note"]]
    return notes


def bar_of(users: int | None, most: float) -> str:
    """A count as a bar in the terminal."""
    if users is None or most <= 0:
        return ""
    eighths = max(round(8 * BAR_CELLS * users / most), 0)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
