"""Pictures of the study: each with the bound n·B, and the paper's values as crosses where they are infeasible.

Drawn with matplotlib, imported on first use. They show measures on private data and lie beside the tables they show.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qlog_assets.studies.sanitized import printed
from qlog_assets.studies.sanitized.settings import MADE_UP

Rows = Sequence[Mapping[str, Any]]
Tables = Mapping[str, Rows]

BUDGET_AXIS = "B (no privacy level to speak of above ln 2)"
BOUND, INFEASIBLE = "bound n·B", "printed in the paper: infeasible"


def draw_all(tables: Tables) -> dict[str, bytes]:
    """A picture per question; a log is a row of panels."""
    logs = list(dict.fromkeys(row["log"] for row in tables["output_size"]))
    if not logs:
        return {}
    drawn = {"output_size.png": (output_size, 1), "supports.png": (supports, 3)}
    drawn |= {"diversity.png": (diversity, 2), "difference.png": (difference, 2)}
    return {name: grid(logs, tables, panels, columns) for name, (panels, columns) in drawn.items()}


def grid(logs: Sequence[str], tables: Tables, panels: Callable[..., None], columns: int) -> bytes:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import NullFormatter

    figure, axes = pyplot.subplots(len(logs), columns, figsize=(5.2 * columns, 4.2 * len(logs)), squeeze=False)
    for line, log in enumerate(logs):
        panels(axes[line], {name: [row for row in rows if row["log"] == log] for name, rows in tables.items()}, log)
        for axis in axes[line]:
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.grid(alpha=0.3)
            axis.legend(fontsize=7)
    figure.tight_layout()
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=110)
    pyplot.close(figure)
    return page.getvalue()


def output_size(axes: Any, tables: Tables, log: str) -> None:
    """Table 4: the largest output by B."""
    rows, axis = tables["output_size"], axes[0]
    by_budget(axis, rows, {"relaxed": "relaxed", "filled": "filled", "printed": "rounded down, as printed"})
    axis.set_title(f"events of the largest output, {log}", fontsize=9)


def diversity(axes: Any, tables: Tables, log: str) -> None:
    """Table 7 with Figure 4, and Figure 5."""
    lines = {"relaxed": "relaxed", "filled": "rounded and filled", "eliminated": "SPE, as printed"}
    by_budget(axes[0], tables["diversity"], lines)
    axes[0].set_title(f"different pairs, {log}", fontsize=9)
    for number, row in enumerate(tables["runtime"]):
        axes[1].plot(max(row["seconds"], 1e-4), row["kept"], "o", color=f"C{number}", label=row["method"])
    axes[1].axhline(tables["runtime"][0]["bound"], color="black", linestyle="--", linewidth=1, label=BOUND)
    axes[1].set_xscale("log")
    axes[1].set_xlabel("seconds")
    axes[1].set_title(f"pairs kept at B = {tables['runtime'][0]['B']:g} by the time taken", fontsize=9)


def by_budget(axis: Any, rows: Rows, lines: Mapping[str, str]) -> None:
    """Lines over B, the bound, and the paper's values."""
    for number, (column, words) in enumerate(lines.items()):
        axis.plot(
            [row["B"] for row in rows], [row[column] for row in rows], marker="o", ms=3, color=f"C{number}", label=words
        )
    axis.plot([row["B"] for row in rows], [row["bound"] for row in rows], "--", color="black", linewidth=1, label=BOUND)
    beside = [row for row in rows if row["paper"] is not None]
    if beside:
        axis.plot([row["B"] for row in beside], [row["paper"] for row in beside], "x", color="red", label=INFEASIBLE)
    axis.set_xscale("log")
    axis.set_yscale("symlog", linthresh=1)
    axis.set_ylim(bottom=0)
    axis.set_xlabel(BUDGET_AXIS)


def supports(axes: Any, tables: Tables, log: str) -> None:
    """Tables 5 and 6 by output size at the first B, and Figure 3 by B."""
    rows = [row for row in tables["supports"] if row["B"] == tables["supports"][0]["B"] and not row["infrequent_stay"]]
    for axis, column, values, title in (
        (axes[0], "recall", printed.RECALL, "recall of frequent pairs"),
        (axes[1], "distance_sum", printed.DISTANCE, "sum of support distances"),
    ):
        for number, support in enumerate(dict.fromkeys(row["support"] for row in rows)):
            mine = [row for row in rows if row["support"] == support and row[column] is not None]
            words = f"s = 1/{1 / support:.0f}"
            axis.plot(
                [row["size"] for row in mine],
                [row[column] for row in mine],
                "o-",
                ms=3,
                color=f"C{number}",
                label=words,
            )
        axis.axvline(rows[0]["bound"], color="black", linestyle="--", linewidth=1, label=BOUND)
        if log == MADE_UP:
            axis.plot(printed.SIZES, values[1 / 500], "x", color="red", label=f"{INFEASIBLE} (s = 1/500)")
        axis.set_xscale("log")
        axis.set_xlabel("events of the output, |O|")
        axis.set_title(f"{title} at B = {rows[0]['B']:g}, {log}", fontsize=9)
    swept = [row for row in tables["supports_by_budget"] if row["recall"] is not None]
    axis = axes[2]
    for number, (column, words) in enumerate(
        {"recall": "recall", "precision": "precision", "distance_sum": "distance"}.items()
    ):
        axis.plot(
            [row["B"] for row in swept], [row[column] for row in swept], "o-", ms=3, color=f"C{number}", label=words
        )
    every = tables["supports_by_budget"]
    least = every[0]["asked"] * every[0]["B"] / every[0]["bound"]
    axis.axvline(least, color="black", linestyle="--", linewidth=1, label=f"{BOUND} = |O|: nothing fits to the left")
    axis.set_xscale("log")
    axis.set_xlabel(BUDGET_AXIS)
    axis.set_title(f"|O| = {every[0]['asked']:,.0f}, s = 1/500, {log}", fontsize=9)


def difference(axes: Any, tables: Tables, log: str) -> None:
    """Figure 6: the share of triplets near their input, by output size; and how far the others are."""
    budgets = list(dict.fromkeys(row["B"] for row in tables["difference"]))
    for number, budget in enumerate(budgets):
        rows = [row for row in tables["difference"] if row["B"] == budget and row["below_40%"] is not None]
        words = f"B = {budget:g}"
        axes[0].plot(
            [row["size"] for row in rows],
            [row["below_40%"] for row in rows],
            "o-",
            ms=3,
            color=f"C{number}",
            label=words,
        )
        axes[0].axvline(
            tables["difference"][0]["bound"] / tables["difference"][0]["B"] * budget,
            color=f"C{number}", linestyle="--", linewidth=1, label=f"{BOUND} at {words}",
        )  # fmt: skip
        if rows:
            steps = sorted((name for name in rows[-1] if name.startswith("up_to_")), key=lambda name: float(name[6:-1]))
            of_bound = f"|O| = {rows[-1]['size']:,} of at most n·B = {rows[-1]['bound']:,.0f}"
            axes[1].plot(
                [float(name[6:-1]) for name in steps], [rows[-1][name] for name in steps], "o-", ms=3,
                color=f"C{number}", label=f"{words}, {of_bound}",
            )  # fmt: skip
    paper = printed.BELOW_40_PERCENT
    if log == MADE_UP:
        axes[0].plot(list(paper), list(paper.values()), "x", color="red", label=f"{INFEASIBLE} at B = ln 2")
    axes[0].set_xscale("log")
    axes[0].set_xlabel("events of the output, |O|")
    axes[0].set_title(f"triplets with a difference ratio below 40 %, {log}", fontsize=9)
    axes[1].set_xlabel("difference ratio, up to %")
    axes[1].set_title("share of triplets", fontsize=9)
