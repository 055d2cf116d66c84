"""What the study of the pool varies."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import Field

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.policy import Policy
from qlog_assets.privacy.parameters import Exact, Listed, Scale
from qlog_assets.privacy.public_domain import few_fakes_threshold
from qlog_assets.studies.paper_draws import SAFELOG
from qlog_assets.studies.parts import PARTS, SplitSettings

PAPER = "paper"
RELEASED = ("sound", "modern")
"""The variants that may be published: drawn as the policy has them, but for the threshold of `fitted`."""


class PoolSettings(SplitSettings):
    """Shares of the policy's pool, the paper's parameters, and how the month is divided."""

    folds: int = Field(1, ge=1, le=PARTS)
    """How many of the five parts are tested. One, for the time it takes; the intervals say how much chance is left."""
    shares: Annotated[tuple[Annotated[Exact, Field(gt=0, le=1)], ...], Listed, Field(min_length=1)] = Field(
        tuple(Fraction(tenths, 10) for tenths in (1, 3, 5, 8, 10)), validate_default=True
    )
    """p_g: the shares of the policy's pool that are kept."""
    thresholds: Annotated[tuple[Annotated[int, Field(ge=1, le=10**9)], ...], Listed, Field(min_length=1)] = (10, 100)
    """K of the paper's variant: that of its Table 3, and that of its clusters."""
    scale: Scale = Field(Fraction(10), validate_default=True)
    """b of the paper's variant, and b_q, b_c and b_t with it."""
    limit: int = Field(100, ge=1, le=10_000)
    """q_f and c_f of the paper's variant: queries and clicks kept per user."""


def fitted(policy: Policy, variant: str, pool_queries: int) -> Policy:
    """The policy for a variant, with K as low as about one expected fake of such a pool allows.

    K costs nothing and only keeps fakes out, so a smaller pool takes a lower one. `modern` has no K.
    """
    policy = policy.for_variant(mechanism(SAFELOG), variant)
    if variant == "modern":
        return policy
    section = policy.section(SAFELOG)
    assert isinstance(section, SafelogParameters)
    least = few_fakes_threshold(pool_queries, section.selection_scale)
    return policy.with_changes(mechanisms={**policy.mechanisms, SAFELOG: section.with_changes(threshold=least)})
