"""What the sanitized log may be asked to do. The paper's symbols appear in the field comments and nowhere else.

One frozen model for all variants; it checks itself when it is made.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from qlog_assets.privacy.parameters import Epsilon, Parameters, Scale, Share


class SanitizedParameters(Parameters):
    """The parameters of the sanitised log (Hong, Vaidya, Lu, Wu 2012) and of `synth`, its replacement."""

    STUDY_ONLY: ClassVar[frozenset[str]] = frozenset(
        {"infrequent_stay", "rounding", "solver_seconds", "count_epsilon", "largest_change"}
    )

    objective: Literal["output_size", "frequent_pairs", "diversity"] = "output_size"
    """O-UMP, F-UMP or D-UMP: what the counts of the output maximise."""
    minimum_support: Share = Field(Fraction(1, 500), validate_default=True)
    """s, `frequent_pairs`: the share of all events from which a pair is frequent. 1/500 is the paper's middle value."""
    asked_size: int | None = Field(None, ge=1, le=10**9)
    """How many events the output is to have. `paper` reads it for `frequent_pairs` alone, where None is half of what
    the constraints allow; its other objectives have no size to ask for."""
    diversity_of: Literal["pairs", "queries"] = "pairs"
    """`diversity`: whether different (query, url) pairs or different queries are many; the paper does the first and
    mentions the second."""
    infrequent_stay: bool = False
    """`paper`, `frequent_pairs`: whether pairs below the minimum support must stay below it in the output. The paper
    takes it for granted; without it precision is not 1."""
    rounding: Literal["printed", "tested_first", "fill", "mip"] = "printed"
    """`paper` only: how counts become whole. `printed`: rounded down, and Algorithm 2 for diversity. `tested_first`:
    Algorithm 2 drops nothing where nothing is violated. `fill`: what rounding down lost is filled again, and diversity
    is rounded from the relaxed optimum. `mip`: HiGHS searches for solver_seconds."""
    solver_seconds: int = Field(60, ge=1, le=86_400)
    """`paper` only: how long `rounding = "mip"` may search."""
    count_epsilon: Epsilon | None = None
    """ε' of section 4.2, `paper` only: noise on the optimal counts, after users who move them too much were left out.
    None: the counts are printed as they are."""
    largest_change: Scale = Field(Fraction(1), validate_default=True)
    """d of section 4.2, `paper` only: how far one user may move an optimal count."""
    epsilon: Epsilon = Field(Fraction(2), validate_default=True)
    """ε: of the sampling step alone (`paper`), of the whole release (`synth`)."""
    delta: Share = Field(Fraction(1, 10**6), validate_default=True)
    """δ: of the sampling step alone (`paper`; the paper's tables go up to 0.8), of the whole release (`synth`)."""
    pairs_per_user: int = Field(10, ge=1, le=1000)
    """m, `synth` only: distinct (query, url) pairs kept per user."""
    activity_share: Share = Field(Fraction(1, 10), validate_default=True)
    """`synth` only: the share of ε for the histogram of how many pairs a user holds."""
    association_share: Share | None = None
    """`synth` only: the share of ε for which pairs go together. None: a synthetic user's pairs are independent."""
    delta_share_associations: Share = Field(Fraction(1, 2), validate_default=True)
    """`synth` only: the share of δ that associations take where they are released."""
    synthetic_users: int = Field(1000, ge=1, le=10**9)
    """`synth` only: how many users to make up. Public, chosen without looking at the log."""

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        if self.activity_share + (self.association_share or 0) >= 1:
            raise ValueError("activity_share and association_share must leave a share of epsilon for the pairs")
        if self.association_share is not None and self.pairs_per_user < 2:
            raise ValueError("association_share needs at least two pairs_per_user")
        return self

    @property
    def associations_per_user(self) -> int:
        """Pairs of distinct pairs that one user can hold."""
        return self.pairs_per_user * (self.pairs_per_user - 1) // 2

    @property
    def pair_scale(self) -> Fraction:
        """Scale of the noise on pair counts: one user moves m of them."""
        share = 1 - self.activity_share - (self.association_share or 0)
        return self.pairs_per_user / (self.epsilon * share)

    @property
    def activity_scale(self) -> Fraction:
        """Scale of the noise on the activity histogram: one user is one count of it."""
        return 1 / (self.epsilon * self.activity_share)

    @property
    def association_scale(self) -> Fraction | None:
        """Scale of the noise on pairs of pairs, where they are released."""
        if self.association_share is None:
            return None
        return self.associations_per_user / (self.epsilon * self.association_share)

    @property
    def association_delta(self) -> Fraction:
        """δ of the associations. 0 where none are released."""
        return Fraction(0) if self.association_share is None else self.delta * self.delta_share_associations

    @property
    def pair_delta(self) -> Fraction:
        """δ of the pairs: the rest."""
        return self.delta - self.association_delta
