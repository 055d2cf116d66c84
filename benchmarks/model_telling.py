"""Tells a cost model: tables for people, and in sentences how far to believe them. Figures come in, text goes out."""

from __future__ import annotations

from typing import Any

from benchmarks.cost_model import PART_BYTES, STAGES

QUANTITIES = {
    "cpu": "processor time",
    "wall": "wall time",
    "memory": "peak memory",
    "scratch": "scratch",
    "shuffle": "shuffle",
}
CLEAR_SHARE = 0.5
"""Below it the laws follow what starting took, and not the rows."""
CLEAR_ERROR = 0.1
"""Processor time of equal runs differs by less, unless the machine is very busy."""
NEAR = 10
"""Up to so many times the largest fitted size times are told in any case."""
Table = tuple[str, list[str], list[list[str]]]


def model_tables(facts: dict[str, Any]) -> list[Table]:
    """Title, columns and rows of every table."""
    plan, model = facts["plan"], facts["model"]
    return [
        ("Measured: one month, landing file to release", *measured_table(facts)),
        (f"Laws, fitted on {sizes(fitted(plan))} rows", *law_table(model["laws"])),
        (f"Error on what was held back: {sizes(plan['held_back'])} rows", *error_table(model["errors"])),
        ("Predicted: one month, landing file to release", *prediction_table(facts)),
    ]


def sizes(rows: list[int]) -> str:
    return ", ".join(f"{size:,}" for size in rows)


def fitted(plan: dict[str, Any]) -> list[int]:
    return [size for size in plan["rows"] if size not in plan["held_back"]]


def measured_table(facts: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for seen in facts["observations"]:
        name = f"{seen['rows']:,}{' held back' if seen['rows'] in facts['plan']['held_back'] else ''}"
        for stage in STAGES:
            rows.append([name, stage, *cells(seen["stages"][stage])])
        alone = seen["draw"]
        rows.append([name, "numpy's part of the draw", f"{alone['cpu']:.2f}", "", gigabytes(alone["bytes"]), "", ""])
    return ["rows", "stage", "processor s", "wall s", "peak GB", "scratch GB", "shuffle GB"], rows


def cells(stage: dict[str, float]) -> list[str]:
    held = [gigabytes(stage[name]) for name in ("memory", "scratch", "shuffle")]
    return [f"{stage['cpu']:.2f}", f"{stage['wall']:.2f}", *held]


def gigabytes(value: float) -> str:
    """Three digits where they fit; "0" for nothing at all."""
    return "0" if value == 0 else f"{value / 1e9:,.{0 if value >= 1e11 else 1 if value >= 1e10 else 3}f}"


def law_table(laws: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for stage in STAGES:
        cpu, wall, memory, shuffle = (laws[name][stage] for name in ("cpu", "wall", "memory", "shuffle"))
        rows.append(
            [
                stage,
                *(f"{law['fixed']:.1f} + {law['per_row'] * 1e6:.2f}" for law in (cpu, wall)),
                f"{memory['fixed'] / 1e9:.2f} + {memory['engine_per_row']:,.0f} up to the limit"
                + (f" + {memory['numpy']['per_row']:,.2f}" if memory["numpy"]["per_row"] else ""),
                f"{shuffle['per_row']:,.0f}",
            ]
        )
    return [
        "stage",
        "processor s + s per million rows",
        "wall s + s per million rows",
        "GB + bytes per row",
        "shuffled bytes per row",
    ], rows


def error_table(errors: dict[str, dict[str, float | None]]) -> tuple[list[str], list[list[str]]]:
    """What was predicted of a size that no law has seen, against what it took: + is predicted too high."""
    names = [*QUANTITIES, *(f"cpu of {stage}" for stage in STAGES)]
    told = [
        [
            QUANTITIES.get(name, name.replace("cpu of", "processor time of")),
            *(percent(found[name]) for found in errors.values()),
        ]
        for name in names
    ]
    return ["quantity", *(f"{int(rows):,} rows" for rows in errors)], told


def percent(value: float | None) -> str:
    return "none measured or no law" if value is None else f"{value:+.0%}"


def prediction_table(facts: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    cores, threads = facts["plan"]["cores"], facts["settings"]["threads"]
    rows = []
    for one in facts["model"]["predictions"]:
        is_told = one["times_measured"] <= NEAR or facts["model"]["growing_share"] >= CLEAR_SHARE
        times = [hours(one[name]) if is_told else "unknown" for name in ("cpu", "wall", "wall_with_cores")]
        rows.append(
            [
                f"{one['rows']:,}",
                basis(one["times_measured"], one["rows"] in facts["plan"]["held_back"]),
                *times,
                gigabytes(one["memory"]),
                gigabytes(one["draw_memory"]),
                "unknown" if one["scratch"] is None else gigabytes(one["scratch"]),
                gigabytes(one["shuffle"]) if facts["plan"]["engine"] == "spark" else "none",
            ]
        )
    columns = [
        "rows",
        "basis",
        "CPU hours",
        f"hours, {threads} cores",
        f"hours at best, {cores} cores",
        "driver GB",
        "of them numpy",
        "scratch GB",
        "shuffle GB",
    ]
    return columns, rows


def basis(times: float, held_back: bool) -> str:
    if held_back:
        return f"held back, {times:.3g} × fitted"
    return f"extrapolated {times:,.0f} ×" if times > 1 else "within what was fitted"


def hours(seconds: float) -> str:
    return f"{seconds / 3600:,.0f}" if seconds >= 360_000 else f"{seconds / 3600:.2g}"


def model_notes(facts: dict[str, Any]) -> list[str]:
    """What somebody who reads the tables must know of them, in sentences."""
    plan, settings, laws = facts["plan"], facts["settings"], facts["model"]["laws"]
    predictions = facts["model"]["predictions"]
    far = [one for one in predictions if one["rows"] not in plan["held_back"]]
    largest = laws["largest"]
    notes = [
        f"extrapolated: nothing above {max(plan['rows']):,} rows was measured. The errors above are of a size "
        f"{max(plan['held_back']) / largest:.3g} times what was fitted; nothing is known of the error at "
        f"{far[0]['times_measured']:,.0f} times and more.",
        *growth_notes(facts["model"], far),
        "sorting: the laws are lines. If all work were sorting, time would be above them by "
        + ", ".join(f"{one['sorting']:.0%} at {one['rows']:,}" for one in far)
        + " rows; part of it is.",
        f"cores: {plan['cores']} cores are Amdahl's law at best: starting ({fixed_seconds(laws):.0f} s) and numpy's "
        "part of the draw are on one core, all else divides evenly and waits for no disk.",
        f"memory: {plan['engine']} holds at most {settings['memory_limit_mb']:,} MB (QLOG_MEMORY_MB). What numpy holds "
        f"for the draw comes on top: {gigabytes(PART_BYTES)} GB of a part of an answer, and of items that may be named "
        f"{laws['draw_bytes']['per_row']:.2f} bytes a row, without a limit.",
        *scratch_notes(facts),
    ]
    return notes


def growth_notes(model: dict[str, Any], far: list[dict[str, Any]]) -> list[str]:
    """How much of what was measured grows with rows at all, and how much hangs on a single size."""
    notes = []
    if model["growing_share"] < CLEAR_SHARE:
        notes.append(
            f"TOO SMALL: only {model['growing_share']:.0%} of the processor time at {model['laws']['largest']:,} rows "
            "grows with the rows, and the rest is starting. That says nothing about the time of much larger logs: "
            "measure larger ones."
        )
        return notes
    for rows, found in model["errors"].items():
        if found["cpu"] is not None and found["cpu"] < -CLEAR_ERROR:
            notes.append(
                f"TOO LOW: at {int(rows):,} rows the laws are {-found['cpu']:.0%} below the processor time measured. "
                "Time per row grows with the rows: what is predicted of larger logs is a lower bound."
            )
    for one in far:
        if one["spread"] is not None:
            low, high = one["spread"]["cpu"]
            notes.append(
                f"{one['rows']:,} rows: {hours(low)} to {hours(high)} CPU hours if one fitted size is left out."
            )
    return notes


def fixed_seconds(laws: dict[str, Any]) -> float:
    return float(sum(law["fixed"] for law in laws["cpu"].values()))


def scratch_notes(facts: dict[str, Any]) -> list[str]:
    settings, model = facts["settings"], facts["model"]
    predictions, notes = model["predictions"], []
    if model["laws"]["scratch"] is None:
        notes.append(
            f"scratch: unknown, because with {settings['memory_limit_mb']:,} MB fewer than two fitted sizes spilled, "
            "or the larger did not spill more. Measure larger logs, or with a smaller QLOG_MEMORY_MB: it spills sooner "
            "and not less."
        )
    elif facts["plan"]["engine"] == "duckdb" and (
        above := [one["rows"] for one in predictions if one["scratch"] > settings["spill_limit_gb"] * 1e9]
    ):
        first = above[0]
        notes.append(f"scratch: from {first:,} rows on raise QLOG_SPILL_GB, which is {settings['spill_limit_gb']}.")
    if facts["plan"]["engine"] == "spark":
        notes.append("scratch, shuffle: of this machine's disk, compressed and encrypted. No cluster was measured.")
    return notes
