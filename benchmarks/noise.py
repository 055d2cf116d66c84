"""Draws of noise a second on one core: ours, OpenDP, python-dp and unsafe numpy, in one process and one run.

Peers are measured where they can be imported (`benchmarks/requirements-peers.txt`, in an environment of their own) and
named as missing where not. Run from the root of the checkout: `.cache/peers/bin/python -m benchmarks.noise [--json]`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from qlog_assets.privacy.noise import discrete_gaussian, discrete_laplace
from qlog_assets.privacy.randomness import SecureRandom

SCALE = 10  # of the Laplace, and the standard deviation of the Gaussian
OURS, OPENDP, PYTHON_DP, NUMPY = "qlog", "OpenDP", "python-dp", "numpy (unsafe)"
LEAST_DRAWS_A_SECOND = 10_000_000
LEAST_RATIO_TO_OPENDP = 100


class Contender(NamedTuple):
    library: str
    law: str
    draws: int
    """Draws in one timed call: about a second's worth for a slow library, a quarter of one for a fast one."""
    run: Callable[[int], Any]


def ours() -> Iterator[Contender]:
    source = SecureRandom()
    yield Contender(OURS, "laplace", 20_000_000, lambda n: discrete_laplace(source, Fraction(SCALE), n))
    yield Contender(OURS, "gaussian", 20_000_000, lambda n: discrete_gaussian(source, Fraction(SCALE**2), n))


def opendp() -> Iterator[Contender]:
    """Exact discrete noise on a vector of integers, the library's own fastest way to draw many."""
    import opendp.prelude as dp  # type: ignore[import-not-found, unused-ignore]

    dp.enable_features("contrib")

    def add_to_zeros(make: Callable[..., Any], metric: Any) -> Callable[[int], Any]:
        def run(n: int) -> Any:
            domain = dp.vector_domain(dp.atom_domain(T="i64"), size=n)
            return make(domain, metric, scale=float(SCALE))([0] * n)

        return run

    yield Contender(OPENDP, "laplace", 60_000, add_to_zeros(dp.m.make_laplace, dp.l1_distance(T="i64")))
    yield Contender(OPENDP, "gaussian", 60_000, add_to_zeros(dp.m.make_gaussian, dp.l2_distance(T="f64")))


def python_dp() -> Iterator[Contender]:
    """Google's secure noise through its Python wrapper, a number per call; sensitivity 2.37 gives a deviation of 10."""
    from pydp.algorithms.numerical_mechanisms import (  # type: ignore[import-not-found, unused-ignore]
        GaussianMechanism,
        LaplaceMechanism,
    )

    laplace = LaplaceMechanism(epsilon=1 / SCALE, sensitivity=1)
    gaussian = GaussianMechanism(1.0, 1e-6, 2.37)
    yield Contender(PYTHON_DP, "laplace", 100_000, lambda n: [laplace.add_noise(0) for _ in range(n)])
    yield Contender(PYTHON_DP, "gaussian", 50_000, lambda n: [gaussian.add_noise(0) for _ in range(n)])


def unsafe_numpy() -> Iterator[Contender]:
    """What people write first: doubles from a generator that was never meant for secrets, rounded to integers."""
    generator = np.random.default_rng()
    yield Contender(NUMPY, "laplace", 4_000_000, lambda n: np.rint(generator.laplace(0, SCALE, n)).astype(np.int64))
    yield Contender(NUMPY, "gaussian", 4_000_000, lambda n: np.rint(generator.normal(0, SCALE, n)).astype(np.int64))


def measure(contender: Contender, repeats: int) -> float:
    """Draws a second, the best of some calls after one that builds tables and warms caches."""
    contender.run(1000)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        contender.run(contender.draws)
        best = min(best, time.perf_counter() - start)
    return contender.draws / best


def results(repeats: int) -> dict[str, Any]:
    """Every contender's speed, how many times faster ours is, and whether ours is as fast as promised."""
    speeds: dict[str, dict[str, float]] = {}
    missing = []
    peers = [(OPENDP, "opendp", opendp), (PYTHON_DP, "pydp", python_dp)]
    contenders = [*ours()]
    for name, module, make in peers:
        if importlib.util.find_spec(module) is None:
            missing.append(name)
        else:
            contenders += make()
    for contender in [*contenders, *unsafe_numpy()]:
        speeds.setdefault(contender.law, {})[contender.library] = measure(contender, repeats)
    ratios = {
        law: {library: of_law[OURS] / speed for library, speed in of_law.items() if library != OURS}
        for law, of_law in speeds.items()
    }
    fast = speeds["laplace"][OURS] >= LEAST_DRAWS_A_SECOND
    ahead = OPENDP in missing or ratios["laplace"][OPENDP] >= LEAST_RATIO_TO_OPENDP
    return {
        "scale": SCALE,
        "draws_per_second": speeds,
        "times_faster": ratios,
        "missing": missing,
        "versions": {"numpy": np.__version__, **_versions({"opendp", "python-dp"}, missing)},
        "machine": platform.machine(),
        "holds": fast and ahead,
    }


def _versions(names: set[str], missing: list[str]) -> dict[str, str]:
    return {name: version(name) for name in sorted(names) if name.lower() not in {peer.lower() for peer in missing}}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--repeats", type=int, default=3, help="timed calls of each contender; the best one counts")
    options = parser.parse_args(arguments)
    found = results(options.repeats)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"{'law':<10}{'library':<16}{'million draws/s':>16}{'ours is':>12}")
        for law, speeds in found["draws_per_second"].items():
            for library, speed in speeds.items():
                ratio = found["times_faster"][law].get(library)
                print(f"{law:<10}{library:<16}{speed / 1e6:>16.2f}{'' if ratio is None else f'{ratio:,.1f}×':>12}")
        for library in found["missing"]:
            print(f"{library} is not installed here: pip install -r benchmarks/requirements-peers.txt")
    return 0 if found["holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
