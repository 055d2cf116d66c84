"""The solvers of the sanitized log: every figure of its page at the paper's size, and a million variables.

Each part runs in a process of its own, so that its memory is its own. Run from the root of the checkout:
`.venv/bin/python -m benchmarks.solvers [--part paper|million] [--seconds 60]`, or `make bench-solvers` for both.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import measure
from qlog_assets.mechanisms.sanitized.instance import make_instance
from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.mechanisms.sanitized.objectives import Goal, relaxed
from qlog_assets.mechanisms.sanitized.programme import Programme
from qlog_assets.mechanisms.sanitized.rounding import whole_counts

LIMIT = math.log(2)
MILLION = {"users": 310_000, "pairs": 3_200_000, "events": 10_100_000}
"""Before unique pairs are dropped: a million pairs and 300,000 users are left."""
LARGEST, DIVERSITY = Goal("output_size"), Goal("diversity")


def tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def timed(words: str, work: Callable[[], np.ndarray], programme: Programme) -> dict[str, Any]:
    """How long something took and how many events came out, all of them allowed."""
    tell(words)
    started, worked = time.perf_counter(), time.process_time()
    counts = work()
    seconds, cpu = time.perf_counter() - started, time.process_time() - worked
    if not programme.allows(counts):
        raise SystemExit(f"{words}: a user's constraint is broken")
    return {
        "what": words,
        "events": round(float(counts.sum()), 1),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
    }


def paper_size(seconds: float) -> dict[str, Any]:
    """What each way of making counts whole keeps of the relaxed optimum."""
    rows = make_instance()
    programme = Programme.of(rows, int(rows.pairs.max()) + 1, LIMIT)
    found = []
    for name, goal in (("output size", LARGEST), ("diversity", DIVERSITY)):
        found.append(timed(f"{name}: relaxed", lambda goal=goal: relaxed(programme, goal), programme))
        for rounding in ("printed", "tested_first", "fill", "mip"):
            found.append(
                timed(
                    f"{name}: {rounding}",
                    lambda goal=goal, rounding=rounding: whole_counts(programme, goal, rounding, seconds),
                    programme,
                )
            )
    return {**size_of(programme), "events": int(rows.events.sum()), "found": found}


def million(file: Path) -> dict[str, Any]:
    """A million variables: constraints, relaxed optimum, whole counts."""
    stored = np.load(file)
    started = time.perf_counter()
    rows = PairCounts(stored["users"], stored["pairs"], stored["events"])
    programme = Programme.of(rows, int(rows.pairs.max()) + 1, LIMIT)
    del rows
    constraints = round(time.perf_counter() - started, 2)
    found = [
        timed("relaxed", lambda: relaxed(programme, LARGEST), programme),
        timed("fill", lambda: whole_counts(programme, LARGEST, "fill"), programme),
    ]
    return {**size_of(programme), "constraint_seconds": constraints, "found": found}


def size_of(programme: Programme) -> dict[str, Any]:
    return {
        "users": programme.users,
        "pairs": programme.pairs,
        "tuples": int(programme.losses.nnz),
        "bound": round(programme.largest_size, 1),
    }


def write_million(file: Path) -> dict[str, Any]:
    rows = make_instance(**MILLION)
    columns = {"users": rows.users, "pairs": rows.pairs, "events": rows.events}
    np.savez(file, **{name: column.astype(np.int32) for name, column in columns.items()})
    return {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("paper", "million"), help="one of the two; both without it")
    parser.add_argument("--seconds", type=float, default=60, help="how long HiGHS may search for whole numbers")
    parser.add_argument("--child", choices=("paper", "write", "million"), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child is not None:
        parts = {
            "paper": lambda: paper_size(chosen.seconds),
            "write": lambda: write_million(chosen.file),
            "million": lambda: million(chosen.file),
        }
        print(json.dumps(parts[chosen.child]()))
        return

    def run(child: str, *words: str) -> dict[str, Any]:
        tell(f"{child} …")
        cost = measure([sys.executable, "-m", "benchmarks.solvers", "--child", child, *words])
        return {**cost.answer, "cpu_seconds": round(cost.cpu, 1), "peak_mb": round(cost.peak_mb or 0)}

    answers = {}
    if chosen.part in (None, "paper"):
        answers["paper size"] = run("paper", "--seconds", str(chosen.seconds))
    if chosen.part in (None, "million"):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "million.npz"
            run("write", "--file", str(file))
            answers["million"] = run("million", "--file", str(file))
    print(json.dumps(answers, indent=2))


if __name__ == "__main__":
    main()
