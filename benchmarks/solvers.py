"""The solvers of the sanitized log: every figure of its page at the paper's size, and a million variables.

Each figure comes from a process of its own, so that its memory is its own. Run from the root of the checkout:
`.venv/bin/python -m benchmarks.solvers [--part paper|million] [--seconds 60]`, or `make bench-solvers` for both.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import measure
from qlog_assets.mechanisms.sanitized.instance import EVENTS, PAIRS, USERS, make_instance
from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.mechanisms.sanitized.objectives import Goal, relaxed
from qlog_assets.mechanisms.sanitized.programme import Programme
from qlog_assets.mechanisms.sanitized.rounding import whole_counts

LIMIT = math.log(2)
SIZES = {"paper": (USERS, PAIRS, EVENTS), "million": (310_000, 3_200_000, 10_100_000)}
"""Users, pairs and events before unique pairs are dropped. Of the larger a million pairs and 300,000 users are left."""
ASKED = {
    "paper": [
        (objective, how)
        for objective in ("output_size", "diversity")
        for how in ("relaxed", "printed", "tested_first", "fill", "mip")
    ],
    "million": [("output_size", "relaxed"), ("output_size", "fill")],
}


def write_instance(part: str, file: Path) -> dict[str, Any]:
    rows = make_instance(*SIZES[part])
    columns = {"users": rows.users, "pairs": rows.pairs, "events": rows.events}
    np.savez(file, **{name: column.astype(np.int32) for name, column in columns.items()})
    return {"users": int(rows.users.max()) + 1, "pairs": int(rows.pairs.max()) + 1, "events": int(rows.events.sum())}


def solve_instance(file: Path, objective: Any, how: Any, seconds: float) -> dict[str, Any]:
    """How many events come out, all of them allowed, and how long that takes, the constraints included."""
    stored = np.load(file)
    rows = PairCounts(stored["users"], stored["pairs"], stored["events"])
    started, worked = time.perf_counter(), time.process_time()
    programme = Programme.of(rows, int(rows.pairs.max()) + 1, LIMIT)
    goal = Goal(objective)
    counts = relaxed(programme, goal) if how == "relaxed" else whole_counts(programme, goal, how, seconds)
    wall, cpu = time.perf_counter() - started, time.process_time() - worked
    if not programme.allows(counts):
        raise SystemExit(f"{objective}, {how}: a user's constraint is broken")
    return {
        "events": round(float(counts.sum()), 1),
        "bound": round(programme.largest_size, 1),
        "seconds": round(wall, 2),
        "cpu_seconds": round(cpu, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=tuple(SIZES), help="one of the two sizes; both without it")
    parser.add_argument("--seconds", type=float, default=60, help="how long HiGHS may search for whole numbers")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child is not None:
        file, *words = chosen.child
        answer = (
            write_instance(words[0], Path(file))
            if len(words) == 1
            else solve_instance(Path(file), words[0], words[1], chosen.seconds)
        )
        print(json.dumps(answer))
        return

    def run(file: Path, *words: str) -> dict[str, Any]:
        print(f"{' '.join(words)} …", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "benchmarks.solvers", "--seconds", str(chosen.seconds)]
        cost = measure([*command, "--child", str(file), *words])
        return {**cost.answer, "peak_mb": round(cost.peak_mb or 0)}

    with tempfile.TemporaryDirectory() as folder:
        answers: dict[str, Any] = {}
        for part in [chosen.part] if chosen.part else SIZES:
            file = Path(folder) / f"{part}.npz"
            answers[part] = {"log": run(file, part)}
            for objective, how in ASKED[part]:
                answers[part][f"{objective}, {how}"] = run(file, objective, how)
    print(json.dumps(answers, indent=2))


if __name__ == "__main__":
    main()
