"""What `qlog bench` measures: copy, floor, our whole release cold and warm, the peers' task, skewed logs, in one run.

Every measured thing is a process of its own, started here, one after the other. Telling it is `telling.py`.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.measuring import BenchmarkError, Cost, measure
from benchmarks.ours import FIRST, LAST
from benchmarks.stages import by_name, stages

CHECKOUT = Path(__file__).resolve().parent.parent
PEERS = CHECKOUT / ".cache" / "peers" / "bin" / "python"
LIBRARIES = ("opendp", "pipelinedp")
PEER_ROWS, PEER_USERS = 5_000_000, 100_000
MONTHS = ("2006-03", "2006-04", "2006-05")
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    rows: tuple[int, ...]
    seed: int = 1
    peers: bool = True
    peer_rows: int = PEER_ROWS
    peer_users: int = PEER_USERS
    peer_turns: int = 7
    """How often the bare script and our warm job are measured, in turn."""
    skewed: bool = False
    skewed_rows: int | None = None
    """Rows of each skewed log; None: its full size."""


def run_plan(plan: Plan, scratch: Path, tell: Tell, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Measure everything that a plan names, in a scratch directory that may be large.

    `keep` gets what is known so far, time and again: hours of measuring must not be lost with the last of them.
    """
    facts: dict[str, Any] = {
        "machine": machine(),
        "plan": asdict(plan),
        "sizes": [],
        "peers": None,
        "skewed": None,
    }
    for rows in plan.rows:
        facts["sizes"].append(measure_size(rows, plan.seed, scratch, tell))
        keep(facts)
    if plan.peers:
        facts["peers"] = measure_peers(plan, scratch, tell)
        keep(facts)
    if plan.skewed:
        facts["skewed"] = {}
        for name, measured in measure_skewed(plan, scratch, tell):
            facts["skewed"][name] = measured
            keep(facts)
    return facts


def machine() -> dict[str, Any]:
    """What the figures were measured on, and how busy it was."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpus": os.cpu_count(),
        "memory_gb": round(memory, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        **{name: installed(name) for name in ("duckdb", "dagster", "great-expectations")},
    }


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# One log, three months -----------------------------------------------------------------------------------------------


def measure_size(rows: int, seed: int, scratch: Path, tell: Tell) -> dict[str, Any]:
    """The floor and our release, cold and warm, on the synthetic log of so many rows."""
    log = scratch / f"log-{rows}-{seed}.txt"
    if not log.exists():
        tell(f"{rows:,} rows: writing the log")
        from qlog_assets.synthetic import write_log

        write_log(log, rows, seed, FIRST, LAST)
    return {"rows": rows, **measure_log(log, scratch, lambda step: tell(f"{rows:,} rows: {step}"))}


def measure_log(log: Path, scratch: Path, tell: Tell) -> dict[str, Any]:
    """The copy, the floor, cold and warm, on one log. Ratios are to the floor and to the copy of this very run.

    The copy is taken in turns with the others, before, between and behind them, and its middle one counts: it takes a
    few seconds, and a machine's speed changes by as much.
    """
    copies: list[Cost] = []

    def measure_copy() -> None:
        tell("copy")
        copies.append(run_statements("copying", log, scratch))

    tell("floor")
    floor = run_statements("floor", log, scratch)
    measure_copy()
    tell("cold")
    cold, cold_stages = run_cold(log, scratch)
    measure_copy()
    tell("warm")
    warm, warm_stages = run_warm(log, scratch)
    measure_copy()
    copy = middle(copies)
    return {
        "copy": {**copy.as_json(), "turns": [round(each.wall, 3) for each in copies]},
        "floor": {**floor.as_json(), **ratios(floor, copy, "copy_")},
        "cold": {**cold.as_json(), **ratios(cold, floor), **ratios(cold, copy, "copy_")},
        "warm": {**warm.as_json(), **ratios(warm, floor), **ratios(warm, copy, "copy_")},
        "stages": {"cold": cold_stages, "warm": warm_stages},
    }


def middle(costs: Sequence[Cost]) -> Cost:
    """The middle one by wall time; of an even number the slower of the two."""
    return sorted(costs, key=lambda cost: cost.wall)[len(costs) // 2]


def ratios(cost: Cost, other: Cost, prefix: str = "") -> dict[str, float]:
    return {f"{prefix}ratio": ratio(cost, other), f"{prefix}cpu_ratio": cpu_ratio(cost, other)}


def ratio(cost: Cost, floor: Cost) -> float:
    return round(cost.wall / floor.wall, 3)


def cpu_ratio(cost: Cost, floor: Cost) -> float:
    return round(cost.cpu / floor.cpu, 3)


def run_statements(module: str, log: Path, scratch: Path) -> Cost:
    """A module that runs bare DuckDB over a log: the copy or the floor."""
    with_spill = scratch / f"spill-{module}"
    with_spill.mkdir(exist_ok=True)
    cost = python(["-m", f"benchmarks.{module}", str(log), str(with_spill)])
    shutil.rmtree(with_spill, ignore_errors=True)
    return cost


def run_cold(log: Path, scratch: Path) -> tuple[Cost, dict[str, float]]:
    """The two commands a person types, each a fresh process, in a warehouse that never saw anything."""
    home = fresh_warehouse(scratch / "cold", log)
    ingest = qlog(home, ["ingest", str(landed(home, log)), "--format", "aol", "--json"])
    months = [word for month in MONTHS for word in ("--month", month)]
    release = qlog(home, ["release", "safelog", *months, "--json"])
    rows = {item["month"]: item["rows"] for item in release.answer["releases"]}
    peak = max(ingest.peak_mb or 0.0, release.peak_mb or 0.0)
    commands = {"ingest": round(ingest.wall, 3), "release": round(release.wall, 3)}
    cost = Cost(ingest.wall + release.wall, ingest.cpu + release.cpu, peak, {"rows": rows, "commands": commands})
    return cost, finished(home)


def run_warm(log: Path, scratch: Path) -> tuple[Cost, dict[str, float]]:
    """The same in a process that has everything imported and made a small release before."""
    home = fresh_warehouse(scratch / "warm", log)
    whole = python(["-m", "benchmarks.ours", str(landed(home, log))], {"QLOG_HOME": str(home)})
    answer = dict(whole.answer)
    cost = Cost(answer.pop("wall"), answer.pop("cpu"), whole.peak_mb, answer)
    return cost, finished(home)


def fresh_warehouse(home: Path, log: Path) -> Path:
    """An empty warehouse with the log in its landing zone: under another name, not a copy, if the file system can."""
    shutil.rmtree(home, ignore_errors=True)
    target = landed(home, log)
    target.parent.mkdir(parents=True)
    try:
        os.link(log, target)
    except OSError:
        shutil.copyfile(log, target)
    return home


def landed(home: Path, log: Path) -> Path:
    return home / "landing" / "aol" / log.name


def finished(home: Path) -> dict[str, float]:
    """What each step took, and the warehouse gone: several of 36 million rows would fill a disk."""
    took = by_name(stages(home))
    shutil.rmtree(home, ignore_errors=True)
    return took


# The peers' task ------------------------------------------------------------------------------------------------------


def measure_peers(plan: Plan, scratch: Path, tell: Tell) -> dict[str, Any]:
    """User-level counts of queries with unknown keys: the bare script, our job from the same cleaned log, the peers."""
    prepared = scratch / "peers"
    shutil.rmtree(prepared, ignore_errors=True)
    tell("peers: preparing")
    task = ["-m", "benchmarks.peer_task"]
    python([*task, "prepare", str(plan.peer_rows), str(plan.peer_users)], {"QLOG_HOME": str(prepared)})
    found: dict[str, Any] = {"rows": plan.peer_rows, "users": plan.peer_users}
    bare, warm, warm_stages, found["turns"] = run_side_by_side(task, prepared, plan.peer_turns, tell)
    found["bare"] = bare.as_json()
    found["warm"] = {
        **warm.as_json(),
        **ratios(warm, bare),
        "stages": warm_stages,
    }
    tell("peers: our command line, cold")
    home = another(prepared)
    cold = qlog(home, ["release", "safelog", "--month", MONTHS[0], "--json"])
    cold.answer = {"rows": cold.answer["rows"]}
    found["cold"] = {**cold.as_json(), "stages": finished(home)}
    for library in LIBRARIES:
        tell(f"peers: {library}")
        found[library] = run_library(library, prepared)
    shutil.rmtree(prepared, ignore_errors=True)
    return found


def run_side_by_side(
    task: Sequence[str], prepared: Path, turns: int, tell: Tell
) -> tuple[Cost, Cost, dict[str, float], list[dict[str, float]]]:
    """The bare script and our warm job in turn, several times: they take a few seconds, and a machine's speed changes
    by as much as they differ. Of each the middle one, and what every turn took."""
    bare, warm = [], []
    for turn in range(1, turns + 1):
        tell(f"peers: bare script and our job, warm, {turn} of {turns}")
        bare.append(inner(python([*task, "bare"], {"QLOG_HOME": str(prepared)})))
        home = another(prepared)
        warm.append((inner(python([*task, "warm"], {"QLOG_HOME": str(home)})), finished(home)))
    took = [
        {"bare": round(one.wall, 3), "warm": round(other.wall, 3)} for one, (other, _) in zip(bare, warm, strict=True)
    ]
    ours, stages = sorted(warm, key=lambda run: run[0].wall)[turns // 2]
    return middle(bare), ours, stages, took


def another(prepared: Path) -> Path:
    """A copy of the prepared warehouse: a release changes the one it is made in."""
    home = prepared.with_name(f"{prepared.name}-copy")
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(prepared, home)
    return home


def run_library(library: str, prepared: Path) -> dict[str, Any]:
    """A peer in its own environment, or why there is none."""
    from benchmarks.peer_task import PEERS_LOG

    if not PEERS.exists():
        return {"missing": "no environment in .cache/peers: see benchmarks/README.md"}
    script = CHECKOUT / "benchmarks" / "peer_libraries.py"
    try:
        return measure([str(PEERS), str(script), library, str(prepared / PEERS_LOG)]).as_json()
    except BenchmarkError as error:
        return {"missing": str(error)}


# Skewed logs ----------------------------------------------------------------------------------------------------------


def measure_skewed(plan: Plan, scratch: Path, tell: Tell) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same as on the synthetic log, on logs that are nothing like it."""
    from benchmarks.skewed import SHAPES, write_skewed_log

    for name in SHAPES:
        tell(f"{name}: writing the log")
        log = scratch / f"{name}.txt"
        rows = write_skewed_log(log, name, plan.skewed_rows, plan.seed)
        yield name, {"rows": rows, **measure_log(log, scratch, lambda step, name=name: tell(f"{name}: {step}"))}
        log.unlink()


# Processes ------------------------------------------------------------------------------------------------------------


def python(arguments: Sequence[str], env: dict[str, str] | None = None) -> Cost:
    return measure([sys.executable, *arguments], env=env, cwd=CHECKOUT)


def qlog(home: Path, arguments: Sequence[str]) -> Cost:
    """The command line as a person starts it."""
    return measure([sys.executable, "-m", "qlog_assets.cli", *arguments], env={"QLOG_HOME": str(home)}, cwd=CHECKOUT)


def inner(cost: Cost) -> Cost:
    """What a process measured of itself, without its imports; its memory as seen from outside."""
    answer = dict(cost.answer)
    return Cost(answer.pop("wall"), answer.pop("cpu"), cost.peak_mb, answer)
