"""Recovery of CrowdLogging's secrets from their shares, beside the same in Python's integers.

Each figure comes from a process of its own, so that its memory is its own. Run from the root of the checkout:
`.venv/bin/python -m benchmarks.crowd_shares [--groups 100000] [--threshold 20] [--shares 20]`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks.measuring import measure
from qlog_assets.crowd.field import (
    ELEMENT_BYTES,
    PRIME,
    from_words,
    multiply,
    settle,
    split_words,
    to_ints,
    to_rows,
)
from qlog_assets.crowd.shares import BLOCK, recover

REFERENCE_PART = 100
"""The Python integers are timed on one group in so many."""


def make_shares(groups: int, shares: int, threshold: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """Group, place and value of each share in a random order, and the secrets. Random numbers with a seed: no secrets
    of anybody are made here."""
    rng = np.random.default_rng(1)

    def elements(rows: int) -> np.ndarray:
        data = rng.integers(0, 256, (rows, ELEMENT_BYTES), dtype=np.uint8)
        data[:, 0] &= 0x7F
        return data

    coefficients = [from_words(*split_words(elements(groups))) for _ in range(threshold)]
    group = rng.permutation(np.repeat(np.arange(groups), shares))
    xs = elements(len(group))
    ys = np.empty_like(xs)
    for at in range(0, len(group), BLOCK):
        part = slice(at, at + BLOCK)
        x, member = from_words(*split_words(xs[part])), group[part]
        value = coefficients[-1][:, member]
        for coefficient in reversed(coefficients[:-1]):
            value = settle(multiply(value, x) + coefficient[:, member])
        ys[part] = to_rows(value)
    return group, xs, ys, to_ints(coefficients[0])


def recover_in_integers(points: list[tuple[int, int]]) -> int:
    """Lagrange's formula at 0."""
    secret = 0
    for x, y in points:
        above = below = 1
        for other, _ in points:
            if other != x:
                above = above * other % PRIME
                below = below * (other - x) % PRIME
        secret = (secret + y * above * pow(below, -1, PRIME)) % PRIME
    return secret


def time_limbs(groups: int, shares: int, threshold: int) -> dict[str, Any]:
    group, xs, ys, secrets = make_shares(groups, shares, threshold)
    started, worked = time.perf_counter(), time.process_time()
    found = recover(group, xs, ys, threshold)
    wall, cpu = time.perf_counter() - started, time.process_time() - worked
    opened = [int.from_bytes(row.tobytes(), "big") for row in found.coefficients[:, 0]]
    if not found.known.all() or opened != secrets or not (found.right == shares).all():
        raise SystemExit("limbs: a secret or a count is wrong")
    return {"groups": groups, "seconds": round(wall, 2), "cpu_seconds": round(cpu, 2)}


def time_integers(groups: int, shares: int, threshold: int) -> dict[str, Any]:
    part = max(groups // REFERENCE_PART, 1)
    group, xs, ys, secrets = make_shares(part, shares, threshold)
    points: list[list[tuple[int, int]]] = [[] for _ in range(part)]
    for number, x, y in zip(group.tolist(), xs, ys, strict=True):
        points[number].append((int.from_bytes(x.tobytes(), "big"), int.from_bytes(y.tobytes(), "big")))
    started, worked = time.perf_counter(), time.process_time()
    found = [recover_in_integers(held[:threshold]) for held in points]
    wall, cpu = time.perf_counter() - started, time.process_time() - worked
    if found != secrets:
        raise SystemExit("integers: a secret is wrong")
    times = {"seconds": round(wall * groups / part, 1), "cpu_seconds": round(cpu * groups / part, 1)}
    return {"groups": groups, "measured_groups": part, **times}


TIMED = {"limbs": time_limbs, "integers": time_integers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=100_000, help="artifacts")
    parser.add_argument("--threshold", type=int, default=20, help="k: shares that give a secret")
    parser.add_argument("--shares", type=int, default=20, help="shares of each artifact; those above k are checked")
    parser.add_argument("--child", choices=tuple(TIMED), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child is not None:
        print(json.dumps(TIMED[chosen.child](chosen.groups, chosen.shares, chosen.threshold)))
        return
    answers = {}
    for way in TIMED:
        print(f"{way} …", file=sys.stderr, flush=True)
        sizes = [f"--{name}={getattr(chosen, name)}" for name in ("groups", "threshold", "shares")]
        cost = measure([sys.executable, "-m", "benchmarks.crowd_shares", *sizes, "--child", way])
        answers[way] = {**cost.answer, "peak_mb": round(cost.peak_mb or 0)}
    print(json.dumps(answers, indent=2))


if __name__ == "__main__":
    main()
