"""What Safelog may be asked to do. The paper's symbols appear in the field comments and nowhere else.

One frozen model for all variants; it checks itself when it is made.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.parameters import Epsilon, Exact, Parameters, Probability, Scale, Share

MODERN_ONLY = frozenset({"epsilon", "click_share", "transition_share"})
"""What `modern` alone reads."""
SOUND_ONLY = frozenset(
    {
        "selection_scale",
        "click_scale",
        "transition_scale",
        "threshold",
        "click_threshold",
        "transition_threshold",
        "delta_share_clicks",
        "min_users",
    }
)
"""What `modern` never reads."""
UNREAD = {"modern": SOUND_ONLY, "sound": MODERN_ONLY}
"""What each variant that may be published never reads."""
LIMITS = frozenset({"queries_per_user", "clicks_per_user"})
"""What `sound` wants other values of than `modern`."""


class SafelogParameters(Parameters):
    """The parameters of Safelog (Zhang, Yang, Singh, Xiong 2016), all variants.

    One model, so that a study changes the variant and nothing else; the fields that only one variant reads say so.

    The defaults cost ε = 2 per month in both variants that may be published: 1 + 0.5 + 0.5 in `sound`, where few
    queries per user release most, because the noise grows with the limit; in one budget in `modern`.
    """

    STUDY_ONLY: ClassVar[frozenset[str]] = frozenset({"min_frequency", "query_scale", "paper_click_support"})

    queries_per_user: int = Field(2, ge=1, le=10_000)
    """q_f: distinct queries kept per user and month, the first ones by (time, bytes). 2 released most of 2, 3, 5, 8, 10
    and 20 at equal ε on the demo's log."""
    clicks_per_user: int = Field(2, ge=1, le=10_000)
    """c_f: distinct (query, url) pairs kept per user and month."""
    epsilon: Epsilon = Field(Fraction(2), validate_default=True)
    """`modern` only: ε of the whole release."""
    click_share: Share | None = Field(Fraction(1, 4), validate_default=True)
    """`modern` only: the share of the budget that clicks take. None: no clicks are released."""
    transition_share: Share | None = Field(Fraction(3, 20), validate_default=True)
    """`modern` only: the share of the budget that transitions take. None: no transitions are released."""
    selection_scale: Scale = Field(Fraction(2), validate_default=True)
    """b, not in `modern`, like the other scales and thresholds: scale of the noise on query counts; costs
    queries_per_user / b, by default 1: half of the month's ε."""
    click_scale: Scale | None = Field(Fraction(4), validate_default=True)
    """b_c: scale of the noise on click pairs; costs clicks_per_user / b_c. None: no clicks are released."""
    transition_scale: Scale | None = Field(Fraction(2), validate_default=True)
    """b_t: scale of the noise on transitions; costs (queries_per_user - 1) / b_t. None: no transitions are released."""
    threshold: int = Field(25, ge=1, le=10**9)
    """K: a pool query is released when its noisy count reaches K. Post-processing: keeps fakes out, costs nothing.
    At 25 and b = 2, one or two of the default pool's 583,010 queries are expected although nobody typed them."""
    click_threshold: int | None = Field(None, ge=1, le=10**9)
    """The least noisy count of a released click pair. None: the stability threshold; with a public url list, high
    enough for about one expected fake pair."""
    click_support: Literal["stability", "public_list"] = "stability"
    """Which clicked pairs may appear: those that enough users share, which takes a share of delta, or those with a url
    of a public list, which takes none. The policy's `url_list` decides it."""
    transition_threshold: int | None = Field(None, ge=1, le=10**9)
    """The least noisy count of a released transition. None: b_t·ln(n(n-1)/2) for n released queries, about one expected
    fake pair, and at least b_t·ln(20(n-1)/(1+e^(-1/b_t))), at most one for every 20 released queries."""
    delta: Probability = Field(Fraction(1, 10**6), validate_default=True)
    """Total δ. 0 is the paper's headline: only pool queries and listed urls can appear."""
    delta_share_clicks: Share = Field(Fraction(1, 2), validate_default=True)
    """`sound` only: the share of delta that clicks take where they are released by stability threshold; queries take
    the rest."""
    min_users: int = Field(1, ge=1, le=10**6)
    """`sound` only. τ done soundly: a query held by fewer users does not influence the table of queries
    (shifted counts, specification 2.3 G1)."""
    min_frequency: int = Field(5, ge=1, le=10**6)
    """τ of Algorithm 1, `paper` only: queries rarer than this are dropped before the cap. Unsound (gap G1)."""
    query_scale: Scale | None = Field(Fraction(10), validate_default=True)
    """b_q, `paper` only: scale of the second noise on printed query counts."""
    paper_click_support: Literal["observed", "observed_gt_K"] = "observed"
    """`paper` only: which clicked pairs of a printed query are printed. Algorithm 1 can be read both ways: every pair
    that anybody clicked, or those whose noisy count is above K. Both leave out what nobody clicked (gap G2)."""

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        if (self.click_share or 0) + (self.transition_share or 0) >= 1:
            raise ValueError("click_share and transition_share must leave a share of the budget for the queries")
        return self

    @property
    def parts(self) -> dict[str, Fraction]:
        """The part of the budget of `modern` that each table takes; tables that are not released have none."""
        others = {"clicks": self.click_share, "transitions": self.transition_share}
        taken = {name: share for name, share in others.items() if share is not None}
        return {"queries": 1 - sum(taken.values(), Fraction(0)), **taken}

    @property
    def click_delta(self) -> Fraction:
        """δ_c: what clicks take. 0 where no clicks are released, or only those on listed urls."""
        spends = self.click_scale is not None and self.click_support == "stability"
        return self.delta * self.delta_share_clicks if spends else Fraction(0)

    @property
    def selection_delta(self) -> Fraction:
        """δ_q: the rest of delta, for queries outside the pool."""
        return self.delta - self.click_delta

    @property
    def transitions_per_user(self) -> int:
        """Distinct transitions kept per user: a list of q_f queries has at most q_f - 1 adjacent pairs."""
        return self.queries_per_user - 1


class PaperParameters(SafelogParameters):
    """What `paper` is studied with: the parameters, and what the policy says of the pool."""

    STUDY_ONLY = SafelogParameters.STUDY_ONLY | {"pool_probability"}

    pool_probability: Exact = Field(Fraction(1), gt=0, le=1, validate_default=True)
    """p_g: the probability that a query is in the pool. The policy's `pool.probability`, and no key of its own."""


class SafelogPolicy(SafelogParameters):
    """The parameters of Safelog, and which of its publishable variants a release uses."""

    variant: Literal["sound", "modern"] = "modern"
    """`modern`: steered selection, at `epsilon` and `delta`, and by what the month before published. `sound`: noisy
    counts against thresholds, as in the paper, repaired; it costs what the scales say, and it alone takes delta = 0."""
    queries_per_user: int = Field(1000, ge=1, le=10_000)
    """q_f: distinct queries kept per user and month, the first ones by (time, bytes). The noise of `modern` does not
    grow with it; with variant = "sound" it is 2 unless it is set, which released most of 2, 3, 5, 8, 10 and 20 at equal
    ε on the demo's log."""
    clicks_per_user: int = Field(1000, ge=1, le=10_000)
    """c_f: distinct (query, url) pairs kept per user and month; with variant = "sound" 2 unless it is set."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_second_key(cls, values: dict[str, Any]) -> dict[str, Any]:
        # Versions up to 0.4.0 took it here, and priced it without looking at the pool.
        if "pool_probability" in values:
            raise ValueError("pool_probability: is written as probability, in [pool]")
        return values

    def with_changes(self, **changes: Any) -> Self:
        """The same with other values. Another variant takes nothing along that it never reads."""
        variant = changes.get("variant", self.variant)
        left = UNREAD[variant] if variant != self.variant else frozenset()
        kept = {name: value for name, value in self.said.items() if name not in left}
        return type(self)(**{**kept, **changes})

    @model_validator(mode="after")
    def _follow_variant(self) -> Self:
        if self.variant == "sound":
            # A model that was just made is its own: nobody has seen the values that are replaced.
            for name in LIMITS - self.model_fields_set:
                object.__setattr__(self, name, SafelogParameters.model_fields[name].default)
        return self

    def refuse_unread(self) -> None:
        """Raise where something was said that the variant does not read: it must not look as if it had been heard."""
        other = next(name for name in UNREAD if name != self.variant)
        self.refuse_said(UNREAD[self.variant], f'variant = "{other}"')
        if self.variant == "modern" and self.delta == 0:
            raise ParameterError('delta: 0 is for variant = "sound", which then releases queries of the pool alone')
