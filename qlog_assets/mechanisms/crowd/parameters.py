"""What CrowdLogging may be asked to do. The paper's symbols appear in the field comments and nowhere else.

One frozen model for all variants; it checks itself when it is made.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from qlog_assets.privacy.parameters import AOL_USERS, Epsilon, Parameters, Scale, Share, refuse_repeats

LN_10 = Fraction("2.302585092994046")
"""The ε of the CrowdLogging paper (and of Korolova et al.), ln 10, rounded up in the last place."""


ArtifactKind = Literal["queries", "reformulations", "clicks"]


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
        refuse_repeats(self.jobs, "jobs")
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
