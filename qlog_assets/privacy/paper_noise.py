"""Continuous Laplace noise on doubles, for `paper` studies alone. Nothing drawn here may ever be published.

The papers add real-valued Laplace noise. On a computer that is a double, and its low-order bits tell neighbouring
logs apart with one sample (audit A9), whatever the scale. It exists to reproduce the papers' numbers; the noise of
anything that leaves the private zone is in `noise`.
"""

from __future__ import annotations

import numpy as np

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.randomness import RandomSource


def continuous_laplace(source: RandomSource | np.random.Generator, scale: float, size: int) -> np.ndarray:
    """`size` doubles with density proportional to exp(-|x|/scale), from a seeded source or a numpy generator.

    A secure source is refused: it is how the door marks publishable draws, and this noise is not one.
    """
    if isinstance(source, RandomSource):
        if source.secure:
            raise ParameterError("continuous Laplace noise cannot be published: use a seeded source, in a study")
        source = np.random.Generator(np.random.Philox(source.bigint(128)))
    if not 0 < scale < float("inf"):
        raise ParameterError("a noise scale is a finite number above zero")
    return source.laplace(0.0, float(scale), size)
