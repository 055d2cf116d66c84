"""The bound on noisy selection that three of the papers take from Korolova et al. (2009), and how loose it is.

Safelog, the session log and CrowdLogging all print an item when its count plus Laplace noise passes a threshold K, and
charge ln α for each item a user may add, δ for items nobody else holds. No mechanism's own statement belongs here.
"""

from __future__ import annotations

import math


def log_selection_ratio(threshold: int, scale: float, pool_probability: float = 1.0) -> float:
    """ln α, α = max{e^(1/b)/p_g, 1 + 1/(2e^((K-1)/b) - 1)}: the bound on what one item changes in the selection."""
    fading = math.exp((1 - threshold) / scale)
    return max(1 / scale - math.log(pool_probability), math.log1p(fading / (2 - fading)))


def log_tight_selection_ratio(threshold: int, scale: float, pool_probability: float = 1.0) -> float:
    """ln α without the slack of Safelog's Eq. (5), which forgets that an item may also be missing without the user.

    The exclusion ratio is (1 - ½p_g·e^(-K/b)) / (1 - ½e^((1-K)/b)). With p_g = 1 both events belong to one Laplace
    mechanism, so it never exceeds e^(1/b): the paper's turning points in b are an artefact of the loose bound.
    """
    missing_without = math.log1p(-pool_probability * math.exp(-threshold / scale) / 2)
    missing_with = math.log1p(-math.exp((1 - threshold) / scale) / 2)
    return max(1 / scale - math.log(pool_probability), missing_without - missing_with)


def turning_point(threshold: int, pool_probability: float = 1.0) -> float | None:
    """The scale b at which the two terms of the papers' α meet: where its ε is least. Not a setting to tune to.

    Left of it e^(1/b)/p_g is the larger and falls with b; right of it the other is the larger and grows with b, up to
    2. With p_g <= ½ the first is always the larger: no turning point.
    """
    if pool_probability <= 0.5:
        return None
    low, high = 1e-3, 1e12
    for _ in range(200):
        middle = math.sqrt(low * high)
        first_term = 1 / middle - math.log(pool_probability)
        first_wins = log_selection_ratio(threshold, middle, pool_probability) <= first_term
        low, high = (middle, high) if first_wins else (low, middle)
    return high


def selection_delta(items: int, most_of_one: int, scale: float, threshold: float) -> float:
    """½·d·e^((M-K)/b), at most 1: the papers' bound on printing an item that only this user holds, M copies at most."""
    return min(1.0, items * chance(most_of_one, scale, threshold))


def tight_selection_delta(items: int, most_of_one: int, scale: float, threshold: float) -> float:
    """The largest Σ ½·e^((M_i-K)/b) a user can cause with ΣM_i <= items and every M_i <= most_of_one; at most 1.

    The summand is convex in M, so moving a copy from a rarer item to a commoner one never lowers the sum: at the
    maximum at most one M lies strictly between 1 and the cap, and the sum is linear in the number of items at the cap.
    """
    single, best = chance(1, scale, threshold), 0.0
    for capped in {0, max(0, items // most_of_one - 1), items // most_of_one}:
        rest = items - capped * most_of_one
        middle = min(rest, most_of_one)
        spread = rest * single
        combined = chance(middle, scale, threshold) + (rest - middle) * single if rest else 0.0
        best = max(best, capped * chance(most_of_one, scale, threshold) + max(spread, combined))
    return min(1.0, best)


def chance(copies: int, scale: float, threshold: float) -> float:
    """½·e^((M-K)/b), the chance that an item with M copies passes the threshold K (a bound of it where M > K)."""
    return 0.5 * math.exp(min(700.0, (copies - threshold) / scale))
