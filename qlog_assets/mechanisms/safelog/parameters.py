"""What Safelog may be asked to do. The paper's symbols appear in the field comments and nowhere else.

One frozen model for all variants; it checks itself when it is made.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field

from qlog_assets.privacy.parameters import Exact, Parameters, Probability, Scale, Share


class SafelogParameters(Parameters):
    """The parameters of Safelog (Zhang, Yang, Singh, Xiong 2016), both variants.

    Counts are always tested with >=. `sound` and `paper` share one model, so that a study changes the variant and
    nothing else; the fields that only `paper` reads say so.

    The defaults cost ε = 1 + 0.5 + 0.5 = 2 per month. On a log of 4 million rows they release some 260 queries per
    month: at equal ε few queries per user release most, because the noise grows with the limit.
    """

    STUDY_ONLY: ClassVar[frozenset[str]] = frozenset({"min_frequency", "query_scale", "pool_probability"})

    queries_per_user: int = Field(2, ge=1, le=10_000)
    """q_f: distinct queries kept per user and month, the first ones by (time, bytes). 2 released most of 2, 3, 5, 8, 10
    and 20 at equal ε on the demo's log."""
    clicks_per_user: int = Field(2, ge=1, le=10_000)
    """c_f: distinct (query, url) pairs kept per user and month."""
    selection_scale: Scale = Field(Fraction(2), validate_default=True)
    """b: scale of the noise on query counts; costs queries_per_user / b, by default 1: half of the month's ε."""
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
    """The share of delta that clicks take where they are released by stability threshold; queries take the rest."""
    min_users: int = Field(1, ge=1, le=10**6)
    """τ done soundly: a query held by fewer users does not influence the table of queries
    (shifted counts, specification 2.3 G1)."""
    min_frequency: int = Field(5, ge=1, le=10**6)
    """τ of Algorithm 1, `paper` only: queries rarer than this are dropped before the cap. Unsound (gap G1)."""
    query_scale: Scale | None = Field(Fraction(10), validate_default=True)
    """b_q, `paper` only: scale of the second noise on printed query counts."""
    pool_probability: Exact = Field(Fraction(1), gt=0, le=1, validate_default=True)
    """p_g, `paper` only: the probability that a query is in the pool."""

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
