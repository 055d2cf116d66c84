"""What ZEALOUS, sessions, CrowdLogging and the sanitised log may be asked to do; Safelog's model is in `parameters`.

Frozen models that check themselves when they are made. The papers' symbols appear in the field comments and nowhere
else. One model a mechanism, shared by its variants: a field that only a paper's variant reads is in STUDY_ONLY.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from qlog_assets.privacy.parameters import Exact, Parameters, Scale, Share

Epsilon = Annotated[Exact, Field(gt=0, le=1000)]
"""A total ε. Far above anything worth signing; the bound catches a misplaced decimal point."""

LN_10 = Fraction("2.302585092994046")
"""The ε of the CrowdLogging paper (and of Korolova et al.), ln 10, rounded up in the last place."""
AOL_USERS = 657_426
"""Users of the AOL log, the n and U of the papers' examples; for a release use a published bound of your own."""

ItemKind = Literal["keywords", "queries", "pairs", "clicks"]
ArtifactKind = Literal["queries", "reformulations", "clicks"]
SelectionMethod = Literal["gaussian_counts", "weighted_gaussian", "sips", "truncated_geometric"]


def listed(value: object) -> object:
    """A list that a person typed, such as `queries,clicks`; anything else as it is."""
    return tuple(word.strip() for word in value.split(",")) if isinstance(value, str) else value


Listed, Joined = BeforeValidator(listed), PlainSerializer(",".join, return_type=str, when_used="json")
"""A list is typed, and printed in manifests, as words with commas between them."""


def without_repeats(names: tuple[str, ...], what: str) -> None:
    """Refuse an empty list, and one that names something twice: each entry is a table with its share of the budget."""
    if not names or len(set(names)) != len(names):
        raise ValueError(f"{what} must name at least one, each once")


class ZealousParameters(Parameters):
    """The parameters of ZEALOUS (Götz, Machanavajjhala, Wang, Xiao, Gehrke; read in the 2012 comparative study).

    `epsilon` and `delta` are the totals of one release; the kinds of items share them equally.
    """

    STUDY_ONLY: ClassVar[frozenset[str]] = frozenset({"user_bound", "threshold", "noisy_threshold"})

    items_per_user: int = Field(10, ge=1, le=10_000)
    """m: distinct items of each kind that are kept a user."""
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
    """`modern` only: chosen items counted a user where counts are a second step."""
    user_bound: int = Field(AOL_USERS, ge=1, le=10**12)
    """U, `paper` only: a public upper bound on the number of users. The true number is itself private."""
    threshold: int | None = Field(None, ge=1, le=10**9)
    """τ, `paper` only: pairs below it are dropped before the noise. None: λ rounded up, which makes τ′ least."""
    noisy_threshold: Scale | None = None
    """τ′, `paper` only: what the noisy count must exceed. None: the least the theorem allows."""

    @model_validator(mode="after")
    def _check_kinds(self) -> Self:
        without_repeats(self.kinds, "kinds")
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


class SessionParameters(Parameters):
    """The parameters of session logs (Zhang and Yang 2017): A_Session, A_Click and the two together."""

    sessions_per_user: int = Field(1, ge=1, le=100)
    """l_s: sessions kept a user, the first ones by time."""
    queries_per_session: int = Field(3, ge=2, le=10)
    """l_q: a session is trimmed to its first so many queries. Above 10 the 2^l_q subsequences are out of hand."""
    items: Literal["subsequences", "pairs"] = "subsequences"
    """`sound` only: all ordered subsequences of two or more queries, as in the paper, or ordered pairs alone."""
    clicks_per_user: int = Field(4, ge=1, le=10_000)
    """l: click records (`sound`: distinct (query, url) pairs) kept a user."""
    session_scale: Scale = Field(Fraction(1), validate_default=True)
    """b of A_Session."""
    click_scale: Scale | None = Field(Fraction(1), validate_default=True)
    """b of A_Click; the paper sets it equal to that of A_Session. None: no clicks are released."""
    threshold: int = Field(20, ge=1, le=10**9)
    """K: a count must exceed it (`paper`), or reach at least this and the stability threshold (`sound`)."""
    session_gap_minutes: int = Field(30, ge=1, le=24 * 60)
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


class CrowdParameters(Parameters):
    """The parameters of CrowdLogging (Feild, Allan, Glatt 2011), all five policies."""

    STUDY_ONLY: ClassVar[frozenset[str]] = frozenset({"threshold", "count_scale", "paper_min_d1"})

    artifacts_per_user: int = Field(10, ge=1, le=10_000)
    """d, `sound` only: distinct artifacts of each job that a user sends. The paper's policies derive d from k."""
    jobs: tuple[ArtifactKind, ...] = ("queries",)
    """The mining jobs of the release; each is a release of its own, and they share ε and δ equally."""
    epsilon: Epsilon = Field(LN_10, validate_default=True)
    """ε of the whole release: the privacy quota."""
    delta: Share = Field(Fraction(1, AOL_USERS + 1), validate_default=True)
    """δ of the whole release. The paper's 1/(n+1) lets one person in the log be exposed; prefer 1/(100 n) or less."""
    share_threshold: int = Field(5, ge=1, le=10**6)
    """t_c, `sound` only: users whose shares are needed to decrypt. A cut on the true count, so counts are shifted."""
    threshold: int = Field(100, ge=1, le=10**9)
    """k, the paper's policies only: what a count must reach. DP_a and DP_u take the largest d with k_a or k_u <= k."""
    count_scale: Scale | None = None
    """b_a, DP_a and DP_u only: scale of the noise on printed counts. None: the same as for selection, b = d/ε."""
    paper_min_d1: bool = False
    """DP_a and DP_u only: use d = 1 where no d is allowed, as the paper's figures do. Not private at the stated δ."""

    @model_validator(mode="after")
    def _check_jobs(self) -> Self:
        without_repeats(self.jobs, "jobs")
        return self

    @property
    def job_epsilon(self) -> Fraction:
        """Each job's share of ε."""
        return self.epsilon / len(self.jobs)

    @property
    def job_delta(self) -> Fraction:
        """Each job's share of δ."""
        return self.delta / len(self.jobs)

    @property
    def noise_scale(self) -> Fraction:
        """The scale of `sound` noise: d over the job's ε."""
        return self.artifacts_per_user / self.job_epsilon


class SanitizedParameters(Parameters):
    """The parameters of the sanitised log (Hong, Vaidya, Lu, Wu 2012) and of `synth`, its replacement."""

    objective: Literal["output_size", "frequent_pairs", "diversity"] = "output_size"
    """O-UMP, F-UMP or D-UMP: what the counts of the output maximise."""
    epsilon: Epsilon = Field(Fraction(2), validate_default=True)
    """ε: of the sampling step alone (`paper`), of the whole release (`synth`)."""
    delta: Share = Field(Fraction(1, 10**6), validate_default=True)
    """δ: of the sampling step alone (`paper`; the paper's tables go up to 0.8), of the whole release (`synth`)."""
    pairs_per_user: int = Field(10, ge=1, le=1000)
    """m, `synth` only: distinct (query, url) pairs kept a user."""
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
