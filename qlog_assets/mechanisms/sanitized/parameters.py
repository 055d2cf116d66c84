"""What the sanitized log may be asked to do. The paper's symbols appear in the field comments and nowhere else.

One frozen model for all variants; it checks itself when it is made.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from qlog_assets.privacy.parameters import Epsilon, Parameters, Scale, Share


class SanitizedParameters(Parameters):
    """The parameters of the sanitised log (Hong, Vaidya, Lu, Wu 2012) and of `sound`, its replacement."""

    STUDY_ONLY: ClassVar[frozenset[str]] = frozenset(
        {"infrequent_stay", "rounding", "solver_seconds", "count_epsilon", "largest_change"}
    )

    objective: Literal["output_size", "frequent_pairs", "diversity"] = "output_size"
    """O-UMP, F-UMP or D-UMP: what the counts of the output maximise."""
    minimum_support: Share = Field(Fraction(1, 500), validate_default=True)
    """s, `frequent_pairs`: the share of all events from which a pair is frequent. 1/500 is the paper's middle value."""
    asked_size: int | None = Field(None, ge=1, le=10**9)
    """How many events the output is to have. `paper` reads it for `frequent_pairs` alone, where None is half of what
    the constraints allow; its other objectives have no size to ask for. `sound`: None is what the made-up users'
    activity comes to."""
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
    """ε: of the sampling step alone (`paper`), of the whole release (`sound`)."""
    delta: Share = Field(Fraction(1, 10**6), validate_default=True)
    """δ: of the sampling step alone (`paper`; the paper's tables go up to 0.8), of the whole release (`sound`)."""
    pairs_per_user: int = Field(10, ge=1, le=1000)
    """m, `sound` only: distinct (query, url) pairs kept per user."""
    method: Literal["steered", "stability", "weighted_gaussian"] = "stability"
    """`sound` only: how pairs are named and counted. `stability`: noisy counts of users against one threshold.
    `weighted_gaussian`: a set is named by weights first, then counted. `steered`: the same in two looks, the first of
    which nobody sees, and by the pairs of the month before."""
    set_share: Share = Field(Fraction(9, 10), validate_default=True)
    """`sound`, `weighted_gaussian`: the share of the pairs' budget that names the set; the rest counts it."""
    counted_pairs_per_user: int = Field(10, ge=1, le=1000)
    """`sound`, `weighted_gaussian`: named pairs counted per user."""
    activity_share: Share = Field(Fraction(1, 10), validate_default=True)
    """`sound` only: the share of ε for the histogram of how many pairs a user holds."""
    association_share: Share | None = None
    """`sound` only: the share of ε for which pairs go together. None: a synthetic user's pairs are independent."""
    delta_share_associations: Share = Field(Fraction(1, 2), validate_default=True)
    """`sound` only: the share of δ that associations take where they are released."""
    synthetic_users: int = Field(1000, ge=1, le=10**9)
    """`sound` only: how many users to make up. Public, chosen without looking at the log."""
    clicks: bool = True
    """Whether the log has clicks at all. A policy that says has_urls = false switches it off, and a release is refused:
    there would be nothing in it."""

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
    def pair_epsilon(self) -> Fraction:
        """ε of the pairs: what activity and associations leave."""
        return self.epsilon * (1 - self.activity_share - (self.association_share or 0))

    @property
    def pair_scale(self) -> Fraction:
        """Scale of the noise on pair counts, `stability`: one user moves m of them."""
        return self.pairs_per_user / self.pair_epsilon

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


class SanitizedPolicy(SanitizedParameters):
    """The parameters of a sanitized log in a policy: the method that names most pairs, and a limit that suits it."""

    pairs_per_user: int = Field(50, ge=1, le=1000)
    """m: distinct (query, url) pairs kept per user. The noise of `steered` does not grow with it, but that of how many
    pairs a user holds does."""
    method: Literal["steered", "stability", "weighted_gaussian"] = "steered"
    """How pairs are named and counted. `steered`: a set is named by weights in two looks, the first of which nobody
    sees, and by the pairs of the month before, then counted. `weighted_gaussian`: in one look; it wants about 30 pairs
    per user. `stability`: noisy counts of users against one threshold; it wants few pairs per user."""
