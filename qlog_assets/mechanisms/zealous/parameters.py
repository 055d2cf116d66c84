"""What ZEALOUS may be asked to do. The paper's symbols appear in the field comments and nowhere else.

One frozen model for all variants, and the policy's section, which also chooses among those that may be published.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from qlog_assets.privacy.parameters import (
    AOL_USERS,
    Epsilon,
    Joined,
    Listed,
    Parameters,
    Scale,
    Share,
    refuse_repeats,
)

ItemKind = Literal["keywords", "queries", "pairs", "clicks"]


SelectionMethod = Literal["steered", "gaussian_counts", "weighted_gaussian", "sips", "truncated_geometric"]


class ZealousParameters(Parameters):
    """The parameters of ZEALOUS (Götz, Machanavajjhala, Wang, Xiao, Gehrke; read in the 2012 comparative study).

    `epsilon` and `delta` are the totals of one release; the kinds of items share them equally.
    """

    STUDY_ONLY: ClassVar[frozenset[str]] = frozenset({"user_bound", "threshold", "noisy_threshold"})

    items_per_user: int = Field(10, ge=1, le=10_000)
    """m: distinct items of each kind that are kept per user."""
    kinds: Annotated[tuple[ItemKind, ...], Listed, Joined] = ("keywords", "queries", "pairs", "clicks")
    """Which histograms are released. Each is a release of its own: four kinds cost four shares."""
    epsilon: Epsilon = Field(Fraction(2), validate_default=True)
    """ε of the whole release."""
    delta: Share = Field(Fraction(1, 10**6), validate_default=True)
    """δ of the whole release."""
    min_users: int = Field(1, ge=1, le=10**6)
    """`sound` only: no item held by fewer users influences the release (counts are shifted)."""
    method: SelectionMethod = "weighted_gaussian"
    """`modern` only: how items are chosen."""
    set_share: Share = Field(Fraction(9, 10), validate_default=True)
    """`modern` only: the share of ρ that chooses the set where counts are a second step; the counts get the rest."""
    counted_items_per_user: int = Field(10, ge=1, le=10_000)
    """`modern` only: chosen items counted per user where counts are a second step."""
    user_bound: int = Field(AOL_USERS, ge=1, le=10**12)
    """U, `paper` only: a public upper bound on the number of users. The true number is itself private."""
    threshold: int | None = Field(None, ge=1, le=10**9)
    """τ, `paper` only: pairs below it are dropped before the noise. None: λ rounded up, which makes τ′ least."""
    noisy_threshold: Scale | None = None
    """τ′, `paper` only: what the noisy count must exceed. None: the least the theorem allows."""

    @model_validator(mode="after")
    def _check_kinds(self) -> Self:
        refuse_repeats(self.kinds, "kinds")
        return self

    @property
    def kind_epsilon(self) -> Fraction:
        """Each kind's share of ε."""
        return self.epsilon / len(self.kinds)

    @property
    def kind_delta(self) -> Fraction:
        """Each kind's share of δ."""
        return self.delta / len(self.kinds)

    @property
    def noise_scale(self) -> Fraction:
        """The scale of `sound` noise: m over the kind's ε, because adding or removing a user moves m counts by 1."""
        return self.items_per_user / self.kind_epsilon


class ZealousPolicy(ZealousParameters):
    """The parameters of ZEALOUS, and which of its publishable variants a release uses."""

    variant: Literal["sound", "modern"] = "modern"
    """`modern`: the selection that `method` names. `sound`: noisy counts against one threshold, at the same ε and δ; it
    wants a small items_per_user, such as 2."""
    method: SelectionMethod = "steered"
    """`modern` only: how items are chosen. `steered`: in two looks, the first of which nobody sees, and by what the
    month before published; it names twice as many as `weighted_gaussian`."""
    items_per_user: int = Field(1000, ge=1, le=10_000)
    """m: distinct items of each kind that are kept per user. The noise of `steered` does not grow with it: 200 names as
    many queries of the peers' log, with counts a third worse; `weighted_gaussian` wants about 200."""
