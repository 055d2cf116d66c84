"""What a release of the peers' log is worth: the same measures for every library. Imports numpy alone.

It is imported in the peers' own environment too, where nothing of ours is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

EPSILON, DELTA = "2.3", "1e-6"
SMALL, MIDDLE = 10, 50
"""Items per user: what the papers' Laplace noise can take, and where Gaussian counts name most."""
NEAR = 0.2
"""A count within this part of the truth is near it."""


def accuracy(users: np.ndarray, true_users: np.ndarray) -> dict[str, float]:
    """How many counts there are, their median absolute error, and the part of them that are near the truth."""
    errors = np.abs(users - true_users)
    return {
        "released": len(users),
        "median_error": float(np.median(errors)) if len(users) else float("nan"),
        "near": float(np.mean(errors <= NEAR * true_users)) if len(users) else float("nan"),
    }


def mean_error(users: np.ndarray, true_users: np.ndarray) -> float:
    """The mean relative error, with its sign, of items that somebody holds."""
    held = true_users > 0
    return float(np.mean(users[held] / true_users[held] - 1)) if held.any() else float("nan")


def line(library: str, method: str, per_user: int, scored: list[dict[str, float]], **more: Any) -> dict[str, Any]:
    """Means over the draws, the spread of what is released, the largest peak; a figure without a mean is None."""
    told: dict[str, Any] = {"library": library, "method": method, "items_per_user": per_user}
    for name in scored[0]:
        values = np.array([one.get(name, float("nan")) for one in scored], dtype=float)
        value = float(values.max() if name == "peak_mb" else values.mean())
        told[name] = round(value, 4) if np.isfinite(value) else None
    released = [one["released"] for one in scored]
    told["spread"] = round(float(np.std(released, ddof=1)), 1) if len(released) > 1 else None
    return {**told, **more}


def load_counts(folder: str, per_user: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The contributed and the true number of users of every item, draw by draw."""
    for path in sorted(Path(folder).glob(f"{per_user}-*.npz")):
        stored = np.load(path)
        yield stored["held_by"], stored["true_users"]


def expected_at(folder: str, threshold: int) -> float:
    """How many items noise of the papers' scale lifts to a threshold on average: exact, whoever draws the noise."""
    decay, totals = np.exp(-float(EPSILON) / SMALL), []
    for held_by, _ in load_counts(folder, SMALL):
        missing = threshold - held_by
        reached = decay ** np.maximum(missing, 0) / (1 + decay)
        surely = 1 - decay ** np.maximum(1 - missing, 0) / (1 + decay)
        totals.append(np.where(missing > 0, reached, surely).sum())
    return round(float(np.mean(totals)), 1)
