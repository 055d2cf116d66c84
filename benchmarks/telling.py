"""Tells what was measured: tables for people, a plot of growth, the verdict on what the project promises of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MOST_TIMES_FLOOR, MOST_TIMES_COPY, MOST_MB, MOST_GROWTH = 1.5, 5, 4096, 8.5 / 8
AOL_ROWS = 36_400_000
RATIOS = ("copy_ratio", "ratio", "copy_cpu_ratio", "cpu_ratio")


def tables(facts: dict[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Title, columns and rows of every table there is something to put in."""
    told = [("Three months, landing file to release", *size_table(facts["sizes"]))]
    told += [
        (f"Stages of {size['rows']:,} rows, seconds, months added up", ["stage", "cold", "warm"], stage_rows(size))
        for size in facts["sizes"][-1:]
    ]
    if facts["skewed"]:
        sizes = [{**measured, "name": name} for name, measured in facts["skewed"].items()]
        told.append(("Skewed logs", *size_table(sizes)))
    if facts["peers"]:
        told.append(("Counts of queries with unknown keys, (2.3, 1e-6), ten queries per user", *peer_table(facts)))
    return told


def size_table(sizes: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    columns = [
        "log",
        "run",
        "wall s",
        "× copy",
        "× floor",
        "processor s",
        "× copy",
        "× floor",
        "peak MB",
        "rows released",
    ]
    rows = []
    for size in sizes:
        name = f"{size.get('name', '')} {size['rows']:,} rows".strip()
        for run in ("copy", "floor", "cold", "warm"):
            cost = size[run]
            ratios = {name: f"{cost[name]:.2f}" if name in cost else "" for name in RATIOS}
            rows.append(
                [
                    name,
                    run,
                    f"{cost['wall']:.1f}",
                    ratios["copy_ratio"],
                    ratios["ratio"],
                    f"{cost['cpu']:.1f}",
                    ratios["copy_cpu_ratio"],
                    ratios["cpu_ratio"],
                    f"{cost['peak_mb']:.0f}",
                    f"{released(cost):,}" if run in ("cold", "warm") else "",
                ]
            )
    return columns, rows


def released(cost: dict[str, Any]) -> int:
    """Rows of all released tables, of all months where there are several."""
    rows = cost["answer"]["rows"]
    return sum(sum(value.values()) if isinstance(value, dict) else value for value in rows.values())


def stage_rows(size: dict[str, Any]) -> list[list[str]]:
    cold, warm = size["stages"]["cold"], size["stages"]["warm"]
    ours = [[name, f"{took:.2f}", f"{warm.get(name, 0):.2f}"] for name, took in cold.items()]
    floor = [[f"floor: {name}", f"{took:.2f}", ""] for name, took in size["floor"]["answer"]["stages"].items()]
    return ours + floor


def peer_table(facts: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    names = {
        "bare": "bare script",
        "warm": "ours, warm job",
        "cold": "ours, cold command line",
        "opendp": "OpenDP Polars",
        "pipelinedp": "PipelineDP, local",
    }
    rows = []
    for key, name in names.items():
        cost = facts["peers"][key]
        if "missing" in cost:
            rows.append([name, "", "", "", "", f"not run: {cost['missing']}"])
            continue
        times = f"{cost['ratio']:.2f}" if "ratio" in cost else ""
        rows.append(
            [name, f"{cost['wall']:.1f}", times, f"{cost['cpu']:.1f}", f"{cost['peak_mb']:.0f}", f"{released(cost):,}"]
        )
    return ["what", "wall s", "× bare", "processor s", "peak MB", "rows released"], rows


def verdicts(facts: dict[str, Any]) -> list[str]:
    """What holds and what does not of what the project promises, where it was measured."""
    told = []
    for size in facts["sizes"]:
        if size["rows"] >= AOL_ROWS:
            worst = max(size["cold"]["peak_mb"], size["warm"]["peak_mb"])
            told.append(judged(size["cold"]["copy_ratio"], MOST_TIMES_COPY, "times the copy, cold"))
            told.append(judged(size["cold"]["ratio"], MOST_TIMES_FLOOR, "times the floor, cold"))
            told.append(judged(worst, MOST_MB, "MB at most"))
    if len(facts["sizes"]) > 1:
        first, last = facts["sizes"][0], facts["sizes"][-1]
        growth = (last["cold"]["wall"] / first["cold"]["wall"]) / (last["rows"] / first["rows"])
        told.append(judged(growth, MOST_GROWTH, f"times the time a row from {first['rows']:,} rows on"))
    peers = facts["peers"]
    if peers:
        told.append(judged(peers["warm"]["ratio"], MOST_TIMES_FLOOR, "times the bare script, warm job"))
        if "missing" not in peers["opendp"]:
            slower = peers["cold"]["wall"] / peers["opendp"]["wall"]
            told.append(judged(slower, 1.0, "times OpenDP, cold command line"))
    return told


def judged(value: float, limit: float, words: str) -> str:
    return f"{'holds' if value <= limit else 'MISSES'}: {value:.2f} {words} (promised: {limit:.4g})"


def draw_growth(facts: dict[str, Any], path: Path) -> bool:
    """A picture of seconds over rows; false where matplotlib is not installed (`pip install qlog[studies]`)."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    millions = [size["rows"] / 1e6 for size in facts["sizes"]]
    for run, style in (("copy", "k:"), ("floor", "k--"), ("cold", "C1o-"), ("warm", "C0s-")):
        axes.plot(millions, [size[run]["wall"] for size in facts["sizes"]], style, label=run)
    axes.set(xlabel="million rows", ylabel="seconds", xscale="log", yscale="log", title="Three months, released")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(path, dpi=120)
    return True
