"""What a person loses who searched for longer than one month: sums over releases, plain and by zCDP. Pure.

A budget for any W consecutive months bounds what is lost in each window. Searches over n months lie in ⌈n/W⌉ windows
that follow one another, and every release reads rows of months in one of them or in several; so everything that was
published about these searches adds up to at most ⌈n/W⌉ budgets, by plain composition of what the windows hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.composition import pure_rho, rounded_up, zcdp_epsilon

SHOWN_MONTHS = (1, 3, 12, 36)
"""For how long somebody may have searched: a month, a quarter, a year, three years."""
SMALLEST_CONVERSION = Fraction(1, 10**9)
"""The δ at which ρ is turned into ε where the releases have none of their own."""


@dataclass(frozen=True)
class ActivityLoss:
    """What one person can lose by searching for so many months in a row."""

    months: int
    most_epsilon: Fraction
    """By the budget: whatever is released, nobody loses more."""
    most_delta: Fraction
    epsilon: Fraction
    """If every month costs what one month did: the plain sum."""
    delta: Fraction
    zcdp_epsilon: float
    """The same by zCDP, which is less over many months, at `zcdp_delta`."""
    zcdp_delta: Fraction


def covering_windows(months: int, window: int | None) -> int:
    """How many budgets searches over so many consecutive months can touch: one where the budget is for ever."""
    if months < 1 or (window is not None and window < 1):
        raise ParameterError("a time of activity and a window are at least one month")
    return 1 if window is None else -(-months // window)


def activity_losses(
    budget: tuple[Fraction, Fraction],
    window: int | None,
    month: tuple[Fraction, Fraction, Fraction | None],
    lengths: tuple[int, ...] = SHOWN_MONTHS,
) -> list[ActivityLoss]:
    """The losses of people active for so many months, from (ε, δ) of the budget and (ε, δ, ρ) of one month's release.

    What every month costs cannot pass what the budget allows, so neither sum does.
    """
    epsilon, delta, stated = month
    # An (ε, δ) release is δ-approximately ε²/2-zCDP, whatever ρ it states.
    rho = pure_rho(epsilon) if stated is None else min(stated, pure_rho(epsilon))
    converting = delta or SMALLEST_CONVERSION
    answers = []
    for months in lengths:
        windows = covering_windows(months, window)
        most_epsilon, most_delta = windows * budget[0], windows * budget[1]
        plain = min(months * epsilon, most_epsilon)
        by_rho = zcdp_epsilon(months * rho, converting)
        answers.append(
            ActivityLoss(
                months,
                most_epsilon,
                most_delta,
                plain,
                min(months * delta, most_delta),
                by_rho if by_rho < plain else rounded_up(plain),
                months * delta + (converting if by_rho < plain else 0),
            )
        )
    return answers
