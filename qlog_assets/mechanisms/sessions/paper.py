"""A_Session and A_Click as printed, for studies: float noise, drawn twice. Nothing made here may be published.

Segmentation, items and the sound release are `noise.py`.
"""

from __future__ import annotations

import numpy as np

from qlog_assets.privacy.paper_selection import PaperReleased, select_then_print
from qlog_assets.privacy.randomness import RandomSource


def release_items_paper(source: RandomSource, events: np.ndarray, scale: float, threshold: float) -> PaperReleased:
    """A_Session and A_Click as printed: select by events + Laplace(scale) > threshold, print with fresh noise."""
    return select_then_print(source, events, events, scale, scale, threshold)
