"""OpenDP and PipelineDP on the counts that our statement made: what each releases of the peers' log.

Asked from our environment, run in the peers' own: `.cache/peers/bin/python -m benchmarks.peer_counts LIBRARY FOLDER`.
The folder holds the contributed and the true number of users of every item, a file for each limit and draw.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peer_scores import DELTA, EPSILON, MIDDLE, SMALL, accuracy, expected_at, line, load_counts

PEERS = Path(".cache/peers/bin/python")
PEER_SECONDS = 900


def save_counts(folder: str, per_user: int, draw: int, held_by: np.ndarray, true_users: np.ndarray) -> None:
    np.savez(Path(folder) / f"{per_user}-{draw}.npz", held_by=held_by, true_users=true_users)


def ask_peer(library: str, folder: str) -> Iterator[dict[str, Any]]:
    """Run a peer in its own environment on the stored counts."""
    if not PEERS.exists():
        yield {"library": library, "missing": f"{PEERS} is not there"}
        return
    command = [str(PEERS), "-m", "benchmarks.peer_counts", library, folder]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=PEER_SECONDS, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        yield {"library": library, "missing": reason[-1] if reason else type(error).__name__}
        return
    yield from json.loads(answer.stdout)


def run_peer(library: str, folder: str) -> list[dict[str, Any]]:
    lines = opendp(folder) if library == "opendp" else pipeline_dp(folder)
    return [{**told, "log": "task", "month": 1} for told in lines]


def scored(printed: dict[int, float], true_users: np.ndarray, seconds: float) -> dict[str, float]:
    items = np.fromiter(printed, dtype=np.int64, count=len(printed))
    users = np.fromiter(printed.values(), dtype=np.float64, count=len(printed))
    return {**accuracy(users, true_users[items]), "seconds": seconds}


def opendp(folder: str) -> list[dict[str, Any]]:
    """Laplace counts above a threshold: the least that OpenDP's own map accepts, and the least that really keeps δ.

    The two differ. OpenDP 0.16 prints noisy counts that equal the threshold and prices those above it: the line
    `leak` measures, on items of one user, how often they are printed beside the δ that is promised for it.
    """
    import opendp.prelude as dp  # type: ignore[import-not-found, unused-ignore]

    dp.enable_features("contrib")
    space = (
        dp.map_domain(dp.atom_domain(T=int), dp.atom_domain(T=int)),
        dp.l01inf_distance(dp.absolute_distance(T=int)),
    )
    scale, limits = SMALL / float(EPSILON), (SMALL, SMALL, 1)
    priced = next(
        threshold
        for threshold in range(1, 1000)
        if dp.m.make_laplace_threshold(*space, scale=scale, threshold=threshold).map(limits)[1] <= float(DELTA)
    )
    small = dp.m.make_laplace_threshold(*space, scale=1.0, threshold=5)
    alone = 200_000
    leak = {"promised": small.map((1, 1, 1))[1], "measured": len(small(dict.fromkeys(range(alone), 1))) / alone}
    understated = leak["measured"] > 1.5 * leak["promised"]
    lines = []
    for label, threshold in (("threshold by its map", priced), ("threshold that keeps δ", priced + understated)):
        measurement = dp.m.make_laplace_threshold(*space, scale=scale, threshold=threshold)
        scores = []
        for held, true_users in load_counts(folder, SMALL):
            # Items far below the threshold are printed in no run that will be seen; a dictionary of all takes long.
            items = {int(item): int(held[item]) for item in np.flatnonzero(held > threshold // 3)}
            started = time.perf_counter()
            printed = measurement(items)
            scores.append(scored(printed, true_users, time.perf_counter() - started))
        more = {"threshold": threshold, "leak": leak, "expected": expected_at(folder, threshold)}
        lines.append(line("OpenDP", label, SMALL, scores, **more))
    return lines


def pipeline_dp(folder: str) -> list[dict[str, Any]]:
    """Its default, where selection and Laplace counts share the budget, and its best: Gaussian counts that are tested.

    Users' items are limited already. The default is told so; the other way cannot be, and gets a privacy id per row.
    """
    import pipeline_dp as pipeline  # type: ignore[import-not-found, unused-ignore]

    split = {
        "metrics": [pipeline.Metrics.COUNT],
        "noise_kind": pipeline.NoiseKind.LAPLACE,
        "contribution_bounds_already_enforced": True,
    }
    tested = {
        "metrics": [pipeline.Metrics.PRIVACY_ID_COUNT],
        "noise_kind": pipeline.NoiseKind.GAUSSIAN,
        "partition_selection_strategy": pipeline.PartitionSelectionStrategy.GAUSSIAN_THRESHOLDING,
        "post_aggregation_thresholding": True,
    }
    lines = []
    for label, per_user, chosen in (
        ("its selection, Laplace counts", SMALL, split),
        ("Gaussian counts above a threshold", SMALL, tested),
        ("Gaussian counts above a threshold", MIDDLE, tested),
    ):
        scores = []
        for held, true_users in load_counts(folder, per_user):
            items = np.flatnonzero(held >= 2)
            rows = list(enumerate(np.repeat(items, held[items]).tolist()))
            accountant = pipeline.NaiveBudgetAccountant(total_epsilon=float(EPSILON), total_delta=float(DELTA))
            engine = pipeline.DPEngine(accountant, pipeline.LocalBackend())
            limits = {"max_partitions_contributed": per_user, "max_contributions_per_partition": 1}
            ids = {} if chosen is split else {"privacy_id_extractor": lambda row: row[0]}
            extractors = pipeline.DataExtractors(
                partition_extractor=lambda row: row[1], value_extractor=lambda row: 0, **ids
            )
            started = time.perf_counter()
            result = engine.aggregate(rows, pipeline.AggregateParams(**chosen, **limits), extractors)
            accountant.compute_budgets()
            printed = {item: counted[0] for item, counted in result}
            scores.append(scored(printed, true_users, time.perf_counter() - started))
        lines.append(line("PipelineDP", label, per_user, scores))
    return lines


if __name__ == "__main__":
    json.dump(run_peer(*sys.argv[1:3]), sys.stdout)
