"""What the sanitized log may be asked to do. The paper's symbols appear in the field comments and nowhere else.

One frozen model for all variants; it checks itself when it is made.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, Self

from pydantic import Field, model_validator

from qlog_assets.privacy.parameters import Epsilon, Parameters, Share


class SanitizedParameters(Parameters):
    """The parameters of the sanitised log (Hong, Vaidya, Lu, Wu 2012) and of `synth`, its replacement."""

    objective: Literal["output_size", "frequent_pairs", "diversity"] = "output_size"
    """O-UMP, F-UMP or D-UMP: what the counts of the output maximise."""
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
