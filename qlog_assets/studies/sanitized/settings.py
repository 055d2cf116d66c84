"""What the study of the sanitized log varies."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import Field

from qlog_assets.privacy.parameters import Exact, Listed, Parameters, Share

MONTH, MADE_UP = "the month", "a made-up log of the paper's size"
"""What the tables call the two logs."""
LN_2 = Fraction("0.6931471806")
"""Not below the true one: at it two users may share a pair, and just below it they may not."""


class StudySettings(Parameters):
    """The sweeps of the paper's section 6, with B in the place of ε and δ: its tables depend on nothing else."""

    seed: int = Field(1, ge=0)
    """Seed of the sampling."""
    draws: int = Field(10, ge=1, le=1000)
    """Outputs that are sampled for the difference ratio; the paper takes 10."""
    made_up: bool = True
    """Whether the sweeps are also done on a made-up log of the paper's size, with the paper's values beside them."""
    pairs: int = Field(6_000, ge=1, le=10_000_000)
    """The most pairs of the month that are solved for, half of the paper's. Of a month with more, some users are taken:
    240 programmes are solved, and one of 85,000 pairs takes a minute or does not end."""
    budgets: Annotated[tuple[Annotated[Exact, Field(gt=0, le=1000)], ...], Listed, Field(min_length=1)] = Field(
        tuple(map(Fraction, ("0.001", "0.01", "0.1", "0.25", "0.6931471806", "1.5", "5", "10"))), validate_default=True
    )
    """B beside those of the paper's tables. Above ln 2 it is no privacy level that anybody would sign."""
    supports: Annotated[tuple[Share, ...], Listed, Field(min_length=1)] = Field(
        tuple(Fraction(1, parts) for parts in (1000, 750, 500, 250, 100)), validate_default=True
    )
    """s: from which share of all events a pair is frequent."""
    support_budgets: Annotated[tuple[Annotated[Exact, Field(gt=0, le=1000)], ...], Listed, Field(min_length=1)] = Field(
        (LN_2, Fraction(10)), validate_default=True
    )
    """B at which supports are looked at: that of the paper's Tables 5 and 6, and one at which its sizes fit."""
    sizes: Annotated[tuple[Share, ...], Listed, Field(min_length=1)] = Field(
        tuple(map(Fraction, ("0.23", "0.31", "0.38", "0.46", "0.53", "0.61"))), validate_default=True
    )
    """|O| as shares of the largest output: those of the paper, 3000 to 8000 of 13,088."""
    search_seconds: int = Field(10, ge=1, le=3600)
    """How long HiGHS may search for the most diverse output."""
