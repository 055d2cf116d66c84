"""Sentences of earlier versions of the public words, for draws that were made with them. Never edited, only added to.

A stored draw is published with the words of its own version (decision 11). What changed and why:

- version 1 rounded printed bounds to the nearest, so that some were below the number that holds.
"""

from __future__ import annotations

import math

from qlog_assets.privacy.guarantee import PrivacyLoss


def factor_1(loss: PrivacyLoss) -> str:
    """e^ε as version 1 printed it."""
    epsilon = float(loss.epsilon)
    return f"a factor of {math.exp(epsilon):.3g} (e^{epsilon:.4g})" if epsilon < 20 else f"a factor of e^{epsilon:.4g}"


def approximate_words_1(loss: PrivacyLoss) -> str:
    """An (ε, δ) guarantee as version 1 told it."""
    return (
        f"Whether any one user is in the log changes the odds of any published result by at most {factor_1(loss)}, "
        f"but for a probability of at most {float(loss.delta):.3g}."
    )
