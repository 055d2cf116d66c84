"""How many queries each library releases from one log at one (ε, δ): ours, OpenDP and PipelineDP, in one run.

All get the same contributions: at most d distinct queries per user, chosen by our statement, another key per draw.
Peers run in an environment of their own (`benchmarks/requirements-peers.txt` in `.cache/peers`), named as missing where
there is none. Run from the root of the checkout: `python -m benchmarks.peers [--json]`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

EPSILON, DELTA = "2.3", "1e-6"
SMALL, LARGE = 10, 200
"""Queries a user: what the papers' noise can take, and what weighted selection can."""
DRAWS = 5
PEERS = Path(".cache/peers/bin/python")
LEAST_MODERN, WORST_ERROR = 2_000, 60
PEER_SECONDS = 900


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peer", nargs=2, metavar=("LIBRARY", "FOLDER"), help="internal: run one peer on counts")
    chosen = parser.parse_args()
    if chosen.peer:
        json.dump(run_peer(*chosen.peer), sys.stdout)
        return
    results = list(compare(chosen.rows, chosen.users, chosen.draws))
    print(json.dumps(results, indent=1) if chosen.json else as_table(results))
    if not chosen.json and chosen.rows >= 5_000_000:
        print(verdict(results))


def compare(rows: int, users: int, draws: int) -> Iterator[dict[str, Any]]:
    """One line a library, method and d, with means over the draws."""
    import duckdb

    from benchmarks.peer_log import peer_log
    from qlog_assets.storage.engine import Engine

    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(duckdb.connect())
        log = peer_log(rows, users)
        with engine.table("cleaned_queries", log):
            engine.connection.execute("CREATE TABLE events AS SELECT DISTINCT * FROM cleaned_queries")
        for per_user, methods in ((SMALL, ("sound", "truncated_geometric", "gaussian_counts")), (LARGE, WEIGHTED)):
            lines: dict[str, list[tuple[int, float, float]]] = {method: [] for method in methods}
            for draw in range(draws):
                contributions = contribute(engine, per_user, draw)
                if per_user == SMALL:
                    np.save(Path(folder) / f"counts-{draw}.npy", contributions["held_by"])
                for method in methods:
                    lines[method].append(draw_ours(method, per_user, draw, contributions))
            for method, drawn in lines.items():
                at = {"threshold": sound_threshold()} if method == "sound" else {}
                yield line("qlog", method, per_user, drawn, **at, **(expected_at(folder, **at) if at else {}))
        for library in ("opendp", "pipeline_dp"):
            yield from ask_peer(library, folder)


WEIGHTED = ("weighted_gaussian", "sips")


def sound_threshold() -> int:
    from qlog_assets.mechanisms.register import guarantee
    from qlog_assets.mechanisms.zealous.parameters import ZealousParameters

    chosen = ZealousParameters(items_per_user=SMALL, kinds=("queries",), epsilon=EPSILON, delta=DELTA)
    return guarantee("zealous", "sound", chosen).thresholds["queries"]


def expected_at(folder: str, threshold: int) -> dict[str, float]:
    """How many items noise of the papers' scale lifts to a threshold on average: exact, whoever draws the noise."""
    decay, totals = np.exp(-float(EPSILON) / SMALL), []
    for path in Path(folder).glob("counts-*.npy"):
        missing = threshold - np.load(path)
        reached = decay ** np.maximum(missing, 0) / (1 + decay)
        surely = 1 - decay ** np.maximum(1 - missing, 0) / (1 + decay)
        totals.append(np.where(missing > 0, reached, surely).sum())
    return {"expected": round(float(np.mean(totals)), 1)}


def contribute(engine: Any, per_user: int, draw: int) -> dict[str, np.ndarray]:
    """Who contributes which item, how many contribute each, and how many truly hold it."""
    from qlog_assets.storage.statements import statement

    engine.connection.execute(
        f"CREATE OR REPLACE TEMP TABLE contributions AS {statement('contributions/chosen_items')}",
        {"key": f"peers {draw} ", "items_per_user": per_user},
    )
    engine.statement_table("contributions/counted_items")
    truth = engine.connection.execute(
        "SELECT held_by, true_users FROM counted_items "
        "JOIN (SELECT query, count(*) AS true_users FROM events GROUP BY query) USING (query) ORDER BY item_id"
    ).fetchnumpy()
    return {
        **engine.arrays("contributions/numbered_contributions"),
        **{key: value.astype(np.int64) for key, value in truth.items()},
    }


def draw_ours(method: str, per_user: int, seed: int, rows: dict[str, np.ndarray]) -> tuple[int, float, float]:
    from qlog_assets.mechanisms.zealous import noise as zealous
    from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
    from qlog_assets.privacy.randomness import SecureRandom

    chosen = ZealousParameters(items_per_user=per_user, kinds=("queries",), epsilon=EPSILON, delta=DELTA)
    started = time.perf_counter()
    if method in WEIGHTED:
        drawn = zealous.draw_rows(SecureRandom(), rows["user_id"], rows["item_id"], chosen.with_changes(method=method))
    else:
        variant = "sound" if method == "sound" else "modern"
        method = "gaussian_counts" if method == "sound" else method
        drawn = zealous.draw_counts(SecureRandom(), rows["held_by"], variant, chosen.with_changes(method=method))
    seconds = time.perf_counter() - started
    return len(drawn.items), float(np.median(np.abs(drawn.users - rows["true_users"][drawn.items]))), seconds


def line(
    library: str, method: str, per_user: int, drawn: list[tuple[int, float, float]], **more: Any
) -> dict[str, Any]:
    released, errors, seconds = (np.array(column, dtype=float) for column in zip(*drawn, strict=True))
    return {
        "library": library,
        "method": method,
        "items_per_user": per_user,
        "released": round(float(released.mean()), 1),
        "spread": round(float(released.std(ddof=1)), 1) if len(released) > 1 else None,
        "median_error": round(float(errors.mean()), 1) if np.isfinite(errors).all() else None,
        "seconds": round(float(seconds.mean()), 2),
        **more,
    }


# Peers ----------------------------------------------------------------------------------------------------------------


def ask_peer(library: str, folder: str) -> Iterator[dict[str, Any]]:
    """Run a peer in its own environment on the stored counts."""
    if not PEERS.exists():
        yield {"library": library, "missing": f"{PEERS} is not there"}
        return
    command = [str(PEERS), "-m", "benchmarks.peers", "--peer", library, folder]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=PEER_SECONDS, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        yield {"library": library, "missing": reason[-1] if reason else type(error).__name__}
        return
    yield from json.loads(answer.stdout)


def run_peer(library: str, folder: str) -> list[dict[str, Any]]:
    counts = [np.load(path) for path in sorted(Path(folder).glob("counts-*.npy"))]
    return opendp(counts, folder) if library == "opendp" else pipeline_dp(counts)


def opendp(counts: list[np.ndarray], folder: str) -> list[dict[str, Any]]:
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
        drawn = []
        for held in counts:
            # Items far below the threshold are printed in no run that will be seen; a dictionary of all takes long.
            items = {int(item): int(held[item]) for item in np.flatnonzero(held > threshold // 3)}
            started = time.perf_counter()
            drawn.append((len(measurement(items)), float("nan"), time.perf_counter() - started))
        expected = expected_at(folder, threshold)
        lines.append(line("OpenDP", label, SMALL, drawn, threshold=threshold, leak=leak, **expected))
    return lines


def pipeline_dp(counts: list[np.ndarray]) -> list[dict[str, Any]]:
    """Its partition selection with counts of users; the budget is split between the two by its accountant."""
    import pipeline_dp as pipeline  # type: ignore[import-not-found, unused-ignore]

    drawn = []
    for held in counts:
        listed = np.flatnonzero(held >= 2)
        rows = [(0, int(item)) for item in listed for _ in range(held[item])]
        accountant = pipeline.NaiveBudgetAccountant(total_epsilon=float(EPSILON), total_delta=float(DELTA))
        engine = pipeline.DPEngine(accountant, pipeline.LocalBackend())
        parameters = pipeline.AggregateParams(
            metrics=[pipeline.Metrics.COUNT],
            noise_kind=pipeline.NoiseKind.LAPLACE,
            max_partitions_contributed=SMALL,
            max_contributions_per_partition=1,
            # One row a user and item, at most d a user: there is nothing left to bound.
            contribution_bounds_already_enforced=True,
        )
        extractors = pipeline.DataExtractors(partition_extractor=lambda row: row[1], value_extractor=lambda row: 0)
        started = time.perf_counter()
        result = engine.aggregate(rows, parameters, extractors)
        accountant.compute_budgets()
        released = sum(1 for _ in result)
        drawn.append((released, float("nan"), time.perf_counter() - started))
    return [line("PipelineDP", "its selection, Laplace counts", SMALL, drawn)]


# Telling --------------------------------------------------------------------------------------------------------------


def as_table(results: list[dict[str, Any]]) -> str:
    lines = [
        "| library | method | d | released | expected | median count error | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        if "missing" in result:
            lines.append(f"| {result['library']} | not run: {result['missing']} | | | | | |")
            continue
        spread = "" if result["spread"] is None else f" ± {result['spread']:g}"
        error = "" if result["median_error"] is None else f"{result['median_error']:g}"
        at = f" ({result['threshold']})" if "threshold" in result else ""
        lines.append(
            f"| {result['library']} | {result['method']}{at} | {result['items_per_user']} "
            f"| {result['released']:g}{spread} | {result.get('expected', '')} | {error} | {result['seconds']:g} |"
        )
    return "\n".join(lines)


def verdict(results: list[dict[str, Any]]) -> str:
    by_method = {(result["library"], result.get("method")): result for result in results}
    modern = by_method["qlog", "weighted_gaussian"]
    good = modern["released"] >= LEAST_MODERN and modern["median_error"] <= WORST_ERROR
    words = [f"modern {'keeps' if good else 'MISSES'} ≥ {LEAST_MODERN:,} queries at a median error ≤ {WORST_ERROR}"]
    kept = by_method.get(("OpenDP", "threshold that keeps δ"))
    if kept is not None:
        ours = by_method["qlog", "sound"]
        words.append(
            f"sound releases {ours['released']:g} (expected {ours['expected']:g}) where OpenDP, kept to the same δ, "
            f"releases {kept['released']:g} (expected {kept['expected']:g})"
        )
        leak = kept["leak"]
        words.append(
            f"OpenDP promises δ = {leak['promised']:.4f} for an item of one user and prints it in"
            f" {leak['measured']:.4f}"
        )
    return "; ".join(words)


if __name__ == "__main__":
    main()
