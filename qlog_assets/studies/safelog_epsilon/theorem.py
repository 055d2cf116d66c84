"""Theorem 1 of Safelog over b: as printed, which falls and then rises, and without its slack. No log is read here.

As in the paper's tables, transitions are left out: ε = q_f·ln α + q_f/b_q + c_f/b_c. They would add (q_f - 1)/b_t, the
same at every b.
"""

from __future__ import annotations

import numpy as np

from qlog_assets.privacy.korolova import log_selection_ratio, log_tight_selection_ratio, turning_point
from qlog_assets.studies.paper_grid import GridSettings
from qlog_assets.studies.study import Row

LOOSE, TIGHT = "epsilon_theorem_1", "epsilon_tight"
SMALLEST, LARGEST, PER_DECADE = 2.0, 1000.0, 40
"""The b that lines are drawn over."""


def epsilon_columns(settings: GridSettings, threshold: int, scale: float, pool_probability: float) -> Row:
    """Both ε at one b."""
    counts = 2 * settings.limit / float(settings.other_scale)
    return {
        LOOSE: settings.limit * log_selection_ratio(threshold, scale, pool_probability) + counts,
        TIGHT: settings.limit * log_tight_selection_ratio(threshold, scale, pool_probability) + counts,
    }


def epsilon_lines(settings: GridSettings, pool_probability: float) -> list[Row]:
    """Both ε over many b, for each K."""
    scales = scales_of_lines().tolist()
    return [
        {"K": threshold, "b": scale, **epsilon_columns(settings, threshold, scale, pool_probability)}
        for threshold in settings.thresholds
        for scale in scales
    ]


def turning_points(settings: GridSettings, pool_probability: float) -> list[Row]:
    """Where each ε is least: the paper's by its formula, the tight one by looking. None: it falls as far as we look."""
    rows = []
    for threshold in settings.thresholds:
        scale = turning_point(threshold, pool_probability)
        rows.append(
            {
                "K": threshold,
                "pool_probability": pool_probability,
                "paper": scale,
                "tight": _tight_turning_point(threshold, pool_probability),
                **(
                    {LOOSE: None, TIGHT: None}
                    if scale is None
                    else epsilon_columns(settings, threshold, scale, pool_probability)
                ),
            }
        )
    return rows


def _tight_turning_point(threshold: int, pool_probability: float) -> float | None:
    scales = scales_of_lines()
    heights = [log_tight_selection_ratio(threshold, float(scale), pool_probability) for scale in scales]
    least = int(np.argmin(heights))
    # Where p_g is below 1, ε ends on a level: what differs there is the last digit of a sum.
    rises = max(heights[least:]) > heights[least] + 1e-12
    return float(scales[least]) if rises else None


def scales_of_lines() -> np.ndarray:
    return np.geomspace(SMALLEST, LARGEST, round(PER_DECADE * np.log10(LARGEST / SMALLEST)))
