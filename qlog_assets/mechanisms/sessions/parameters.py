"""What session logs may be asked to do. The paper's symbols appear in the field comments and nowhere else.

One frozen model for all variants, and the policy's section, which also chooses among those that may be published.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from qlog_assets.privacy.limits import SESSION_GAP_MINUTES
from qlog_assets.privacy.parameters import Epsilon, Parameters, Scale, Share

DOMAIN = r"^(open|[a-z_]+-\d{4}-\d{2}-[0-9a-f]{12})$"
MOST_ITEMS = 10_000
LONGEST_SESSION = 10
"""l_q at most: a session of ten queries has 1,013 subsequences. The statements are as wide."""


class SessionParameters(Parameters):
    """The parameters of session logs (Zhang and Yang 2017): A_Session, A_Click and the two together.

    A part whose scale is `none` is neither released nor paid for, in every variant.
    """

    STUDY_ONLY: ClassVar[frozenset[str]] = frozenset()

    sessions_per_user: int = Field(1, ge=1, le=100)
    """l_s: sessions kept per user, the first ones by time."""
    queries_per_session: int = Field(3, ge=2, le=LONGEST_SESSION)
    """l_q: a session is cut to its first so many queries. Above 10 the 2^l_q subsequences are out of hand."""
    items: Literal["pairs", "subsequences"] = "pairs"
    """Ordered pairs of queries alone, or all ordered subsequences of two or more. `paper`: always the second."""
    collapse_repeats: bool = True
    """Whether a query right after itself, such as the next page of results, is left out first. `paper`: never."""
    clicks_per_user: int = Field(4, ge=1, le=10_000)
    """l: distinct (query, url) pairs kept per user, the first ones by time. `paper`: the first click records."""
    session_scale: Scale | None = Field(Fraction(1), validate_default=True)
    """b of A_Session. None: no sessions are released, only clicks. `modern` reads only whether there is one."""
    click_scale: Scale | None = Field(Fraction(1), validate_default=True)
    """b of A_Click; the paper sets it equal to that of A_Session. None: no clicks are released. `modern` reads only
    whether there is one."""
    threshold: int = Field(20, ge=1, le=10**9)
    """K: a count must exceed it (`paper`), or reach at least this and the stability threshold (`sound`)."""
    session_gap_minutes: int = Field(SESSION_GAP_MINUTES, ge=1, le=24 * 60)
    """T_Gap: a longer pause starts a new session."""
    delta: Share = Field(Fraction(1, 10**6), validate_default=True)
    """`sound` and `modern`: δ of the whole release."""
    delta_share_clicks: Share = Field(Fraction(1, 2), validate_default=True)
    """`sound` only: the share of delta that clicks take where both are released."""
    epsilon: Epsilon = Field(Fraction(2), validate_default=True)
    """`modern` only: ε of the whole release."""
    click_share: Share = Field(Fraction(1, 4), validate_default=True)
    """`modern` only: the share of the budget that clicks take where both are released."""
    method: Literal["steered", "weighted_gaussian", "gaussian_counts"] = "weighted_gaussian"
    """`modern` only: how items are chosen."""
    set_share: Share = Field(Fraction(9, 10), validate_default=True)
    """`modern` only: the share of the budget that chooses the set where counts are a second step."""
    counted_items_per_user: int = Field(10, ge=1, le=10_000)
    """`modern` only: chosen items counted per user where counts are a second step."""

    domain: str = Field("open", pattern=DOMAIN)
    """`modern` only. `open`: any pair that enough users hold. The id of a published release of the same month: pairs of
    its queries, which are public by then, counted with two-sided geometric noise: no δ is spent on them."""

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if self.session_scale is None and self.click_scale is None:
            raise ValueError("session_scale: with click_scale none as well, nothing is left to release")
        if self.over_release and (self.items != "pairs" or self.session_scale is None):
            raise ValueError("domain: a release is for items = pairs, with sessions switched on")
        if self.items_per_user > MOST_ITEMS:
            raise ValueError(
                f"sessions_per_user: with queries_per_session = {self.queries_per_session} one user would hold "
                f"{self.items_per_user:,} items, and {MOST_ITEMS:,} are the most"
            )
        return self

    @property
    def over_release(self) -> bool:
        """Whether pairs are those of a release's queries."""
        return self.domain != "open"

    @property
    def has_sessions(self) -> bool:
        return self.session_scale is not None

    @property
    def has_clicks(self) -> bool:
        return self.click_scale is not None

    @property
    def click_delta(self) -> Fraction:
        """δ of the clicks in `sound`: all of it where they are alone, 0 where no clicks are released."""
        if not self.has_clicks:
            return Fraction(0)
        return self.delta * self.delta_share_clicks if self.has_sessions else self.delta

    @property
    def session_delta(self) -> Fraction:
        """δ of the sessions in `sound`: the rest."""
        return self.delta - self.click_delta

    @property
    def click_part(self) -> Fraction:
        """The part of the budget of `modern` that clicks take."""
        if not self.has_clicks:
            return Fraction(0)
        return self.click_share if self.has_sessions else Fraction(1)

    @property
    def session_part(self) -> Fraction:
        """The part of the budget of `modern` that sessions take."""
        return 1 - self.click_part

    @property
    def pair_scale(self) -> Fraction:
        """The scale of the noise on pairs of a release's queries: items_per_user over their part of ε."""
        return self.items_per_user / (self.epsilon * self.session_part)

    @property
    def subsequences_per_user(self) -> int:
        """Δ: l_s·(2^l_q - 1 - l_q), the ordered subsequences of two or more queries that one user can hold."""
        return self.sessions_per_user * (2**self.queries_per_session - 1 - self.queries_per_session)

    @property
    def items_per_user(self) -> int:
        """Distinct items one user can hold in a release: Δ, or l_s·C(l_q, 2) where pairs are enough."""
        if self.items == "subsequences":
            return self.subsequences_per_user
        return self.sessions_per_user * (self.queries_per_session * (self.queries_per_session - 1) // 2)


class SessionPolicy(SessionParameters):
    """The parameters of session logs, and which of the publishable variants a release uses."""

    variant: Literal["sound", "modern"] = "modern"
    """`modern`: the selection that `method` names, at `epsilon` and `delta`. `sound`: noisy counts against one
    threshold; it wants few sessions per user, and costs what the scales say."""
    method: Literal["steered", "weighted_gaussian", "gaussian_counts"] = "steered"
    """`modern` only: how items are chosen. `steered`: in two looks, the first of which nobody sees, and by what the
    month before published."""
    sessions_per_user: int = Field(30, ge=1, le=100)
    """l_s: sessions kept per user, the first ones by time. 30 sessions of 3 queries name most sequences by `modern` on
    a synthetic month of 3 million rows; `sound` names most with 1 session of 2 queries."""
    clicks_per_user: int = Field(50, ge=1, le=10_000)
    """l: distinct (query, url) pairs kept per user, the first ones by time."""
    session_scale: Scale | None = Field(Fraction(60), validate_default=True)
    """b of A_Session, for `sound`: costs items_per_user / session_scale. None: no sessions are released."""
    click_scale: Scale | None = Field(Fraction(100), validate_default=True)
    """b of A_Click, for `sound`: costs clicks_per_user / click_scale. None: no clicks are released."""
