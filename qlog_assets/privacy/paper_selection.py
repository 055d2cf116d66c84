"""The papers' select-then-print step (Korolova et al.): one noise to choose items, a second to print them.

For `paper` studies only: the noise is a float, so nothing made here may pass the door. The step costs twice: a user who
moves d counts by 1 loses d/selection_scale and d/printed_scale; the sound variants print the number they tested.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qlog_assets.privacy.paper_noise import continuous_laplace
from qlog_assets.privacy.randomness import RandomSource


@dataclass(frozen=True)
class PaperReleased:
    """Items a paper's algorithm prints, by index, with their float counts. Never publishable."""

    indices: np.ndarray
    counts: np.ndarray


def select_then_print(
    source: RandomSource,
    tested: np.ndarray,
    printed: np.ndarray,
    selection_scale: float,
    printed_scale: float,
    threshold: float,
) -> PaperReleased:
    """Release item i iff tested[i] + Laplace(selection_scale) reaches the threshold; print printed[i] + fresh Laplace.

    The papers test some with > and some with >=; for continuous noise the two are the same.
    """
    tested = np.asarray(tested)
    noisy = tested + continuous_laplace(source, selection_scale, tested.size)
    indices = np.flatnonzero(noisy >= threshold)
    counts = np.asarray(printed)[indices] + continuous_laplace(source, printed_scale, indices.size)
    return PaperReleased(indices, counts)
