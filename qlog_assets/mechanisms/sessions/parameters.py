"""What session logs may be asked to do. The paper's symbols appear in the field comments and nowhere else.

One frozen model for all variants; it checks itself when it is made.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from qlog_assets.privacy.limits import SESSION_GAP_MINUTES
from qlog_assets.privacy.parameters import Parameters, Scale, Share


class SessionParameters(Parameters):
    """The parameters of session logs (Zhang and Yang 2017): A_Session, A_Click and the two together."""

    sessions_per_user: int = Field(1, ge=1, le=100)
    """l_s: sessions kept per user, the first ones by time."""
    queries_per_session: int = Field(3, ge=2, le=10)
    """l_q: a session is trimmed to its first so many queries. Above 10 the 2^l_q subsequences are out of hand."""
    items: Literal["subsequences", "pairs"] = "subsequences"
    """`sound` only: all ordered subsequences of two or more queries, as in the paper, or ordered pairs alone."""
    clicks_per_user: int = Field(4, ge=1, le=10_000)
    """l: click records (`sound`: distinct (query, url) pairs) kept per user."""
    session_scale: Scale = Field(Fraction(1), validate_default=True)
    """b of A_Session."""
    click_scale: Scale | None = Field(Fraction(1), validate_default=True)
    """b of A_Click; the paper sets it equal to that of A_Session. None: no clicks are released."""
    threshold: int = Field(20, ge=1, le=10**9)
    """K: a count must exceed it (`paper`), or reach at least this and the stability threshold (`sound`)."""
    session_gap_minutes: int = Field(SESSION_GAP_MINUTES, ge=1, le=24 * 60)
    """T_Gap: a longer pause starts a new session."""
    delta: Share = Field(Fraction(1, 10**6), validate_default=True)
    """`sound` only: total δ."""
    delta_share_clicks: Share = Field(Fraction(1, 2), validate_default=True)
    """`sound` only: the share of delta that clicks take where they are released."""

    @property
    def click_delta(self) -> Fraction:
        """δ of the clicks. 0 where no clicks are released."""
        return self.delta * self.delta_share_clicks if self.click_scale is not None else Fraction(0)

    @property
    def session_delta(self) -> Fraction:
        """δ of the sessions: the rest."""
        return self.delta - self.click_delta

    @property
    def subsequences_per_user(self) -> int:
        """Δ: l_s·(2^l_q - 1 - l_q), the ordered subsequences of two or more queries that one user can hold."""
        return self.sessions_per_user * (2**self.queries_per_session - 1 - self.queries_per_session)

    @property
    def items_per_user(self) -> int:
        """Distinct items one user can hold in the `sound` release: Δ, or l_s·C(l_q, 2) where pairs are enough."""
        if self.items == "subsequences":
            return self.subsequences_per_user
        return self.sessions_per_user * (self.queries_per_session * (self.queries_per_session - 1) // 2)
