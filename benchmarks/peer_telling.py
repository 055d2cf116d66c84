"""Tells what was measured on the peers' logs: tables for people, and whether what is asked for is kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

LEAST_MODERN, WORST_ERROR = 2_000, 60
"""One round, as version 0.1.0 promised it."""
BARS = {1: (4_900, 18, None), 3: (7_000, 12, 0.75)}
"""Steered selection by month: the least queries, the largest median error, the least part within 20 % of the truth."""
MOST_TIMES, MOST_MB = 3, 2_000
"""How many times the seconds of one round a steered draw may take, and how much memory."""
COLUMNS = "log, month, library, method, d, released, expected, median count error, near, draw s, × one round (CPU)"
COLUMNS += ", choosing s, peak MB"
Result = dict[str, Any]


def tell(results: list[Result]) -> str:
    """The tables: what was released, and how far the counts of heavy users' queries are off."""
    columns = [name.strip() for name in COLUMNS.split(",")]
    told = table(columns, [row_of(result, results) for result in results])
    biases = [row for result in results if result.get("planted: bias") is not None for row in [bias_row(result)]]
    if not biases:
        return told
    heading = ["month", "method"]
    heading += [f"{group}: {what}" for group in ("planted", "mostly heavy", "rest") for what in ("released", "bias")]
    return f"{told}\n\n{table(heading, biases)}"


def table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return (
        "\n".join("| " + " | ".join(cells) + " |" for cells in lines).replace("| --- ", "|---").replace("--- |", "---|")
    )


def row_of(result: Result, results: list[Result]) -> list[str]:
    if "missing" in result:
        return ["", "", result["library"], f"not run: {result['missing']}", *[""] * 9]
    times, cpu_times = times_one_round(result, results)
    return [
        result["log"],
        str(result["month"]),
        result["library"],
        result["method"] + (f" ({result['threshold']})" if "threshold" in result else ""),
        f"{result['items_per_user']:,}",
        f"{result['released']:,.1f}" + ("" if result["spread"] is None else f" ± {result['spread']:g}"),
        f"{result['expected']:,.1f}" if "expected" in result else "",
        shown(result["median_error"], "{:.1f}"),
        shown(result["near"], "{:.0%}"),
        f"{result['seconds']:.2f}",
        f"{times:.2f} ({cpu_times:.2f})" if times and cpu_times else "",
        shown(result.get("choosing"), "{:.1f}"),
        shown(result.get("peak_mb"), "{:,.0f}"),
    ]


def shown(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def bias_row(result: Result) -> list[str]:
    cells = [str(result["month"]), result["method"]]
    for group in ("planted", "mostly heavy", "rest"):
        cells += [f"{result[f'{group}: released']:,.1f}", shown(result[f"{group}: bias"], "{:+.1%}")]
    return cells


def find(results: list[Result], **wanted: Any) -> Result | None:
    """The line that has all of these; None if there is none."""
    return next((one for one in results if all(one.get(name) == value for name, value in wanted.items())), None)


def times_one_round(result: Result, results: list[Result]) -> tuple[float | None, float | None]:
    """The seconds of a steered draw over those of one round of the same log and month, on the clock and of a core."""
    if not result["method"].startswith("steered"):
        return None, None
    one = find(results, log=result["log"], month=result["month"], method="weighted_gaussian")
    return (result["seconds"] / one["seconds"], result["cpu"] / one["cpu"]) if one else (None, None)


def verdicts(results: list[Result]) -> list[str]:
    """A line for each thing that is asked for, and for what was found of the peers."""
    return [*one_round_verdict(results), *steered_verdicts(results), *peer_verdicts(results)]


def judged(kept: bool, words: str) -> str:
    return f"{'kept' if kept else 'MISSED'}: {words}"


def one_round_verdict(results: list[Result]) -> Iterator[str]:
    modern = find(results, log="task", month=1, method="weighted_gaussian")
    if modern:
        good = modern["released"] >= LEAST_MODERN and modern["median_error"] <= WORST_ERROR
        yield judged(good, f"one round, ≥ {LEAST_MODERN:,} queries at a median error ≤ {WORST_ERROR}")


def steered_verdicts(results: list[Result]) -> Iterator[str]:
    measured = []
    for month, (least, largest, nearest) in BARS.items():
        steered = find(results, log="task", month=month, method="steered")
        if steered is None:
            continue
        measured.append(steered)
        released, error, near = steered["released"], steered["median_error"], steered["near"]
        yield judged(released >= least, f"month {month}, ≥ {least:,} queries with counts: {released:,.1f}")
        yield judged(error is not None and error <= largest, f"month {month}, median error ≤ {largest}: {error}")
        if nearest is not None:
            words = f"month {month}, ≥ {nearest:.0%} within 20 % of the truth: {near or 0:.1%}"
            yield judged((near or 0) >= nearest, words)
    times = [times_one_round(steered, results)[0] for steered in measured]
    if measured and None not in times:
        most = max(value for value in times if value)
        yield judged(most <= MOST_TIMES, f"time of a draw ≤ {MOST_TIMES} × one round: {most:.2f}")
    if measured:
        peak = max(steered["peak_mb"] for steered in measured)
        yield judged(peak <= MOST_MB, f"memory ≤ {MOST_MB:,} MB, choosing and drawing, the log in it: {peak:,.0f}")


def peer_verdicts(results: list[Result]) -> Iterator[str]:
    ours, kept = find(results, method="sound"), find(results, method="threshold that keeps δ")
    if ours is None or kept is None:
        return
    yield (
        f"sound releases {ours['released']:,.1f} (expected {ours['expected']:,.1f}) where OpenDP, kept to the same δ, "
        f"releases {kept['released']:,.1f} (expected {kept['expected']:,.1f})"
    )
    leak = kept["leak"]
    yield f"OpenDP promises δ = {leak['promised']:.4f} for an item of one user and prints it in {leak['measured']:.4f}"
