"""What CrowdLogging may be asked to do. The paper's symbols appear in the field comments and nowhere else.

One frozen model for all variants, and the policy's section, which also chooses among those that may be published.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from qlog_assets.crowd.jobs import Application
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

LN_10 = Fraction("2.302585092994046")
"""The ε of the CrowdLogging paper (and of Korolova et al.), ln 10, rounded up in the last place."""
PAPER_DELTA = Fraction(1, AOL_USERS + 1)
"""The δ of the CrowdLogging paper, 1/(n+1), for AOL's n."""
PAPER_VARIANTS = frozenset({"ft_a", "ft_u", "dp_a", "dp_u"})
"""The policies as printed, for studies alone."""


class CrowdParameters(Parameters):
    """The parameters of CrowdLogging (Feild, Allan, Glatt 2011), all six policies."""

    STUDY_ONLY: ClassVar[frozenset[str]] = frozenset({"threshold", "count_scale", "paper_min_d1"})

    artifacts_per_user: int = Field(10, ge=1, le=10_000)
    """d, `sound` and `gaussian` only: distinct artifacts of each job that a user sends. DP_a and DP_u derive d from k,
    FT_a and FT_u have no limit."""
    jobs: Annotated[tuple[Application, ...], Listed, Joined] = ("queries",)
    """The mining jobs of the release, of queries, reformulations, clicks, click_hosts and urls. Each is a table of its
    own, and they share the budget equally."""
    epsilon: Epsilon = Field(LN_10, validate_default=True)
    """ε of the whole release: the privacy quota."""
    delta: Share = Field(PAPER_DELTA, validate_default=True)
    """δ of the whole release. The paper's 1/(n+1) lets one person in the log be exposed; prefer 1/(100 n) or less."""
    share_threshold: int = Field(5, ge=1, le=10**6)
    """t_c, `sound` and `gaussian` only: users whose shares are needed to decrypt. A cut on the true count, so
    counts are shifted."""
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


class CrowdPolicy(CrowdParameters):
    """The parameters of CrowdLogging, and which of its publishable variants a release uses. A release is charged to
    this file's data set: its months add up with those of the log, as if the people who send were those of the log. A
    crowd of other people gets a warehouse (`QLOG_HOME`), and so a budget, of its own."""

    variant: Literal["sound", "gaussian"] = "gaussian"
    """`gaussian`: noise that grows with √artifacts_per_user. `sound`: two-sided geometric noise, which grows with
    artifacts_per_user itself and is less up to 2. The jobs that people were shown must name the same."""
    artifacts_per_user: int = Field(20, ge=1, le=1000)
    """d: distinct artifacts of each job that a user sends, as the jobs say that people were shown. At (2, 1e-6), 9,033
    users of a synthetic log have 74 queries released with 20, 62 with 10 and 65 with 50; `sound` at most 35, with 3."""
    share_threshold: int = Field(5, ge=1, le=1000)
    """t_c, `sound` and `gaussian` only: users whose shares are needed to decrypt. A cut on the true count, so
    counts are shifted."""
    epsilon: Epsilon = Field(Fraction(2), validate_default=True)
    """ε of the whole release. The paper's variants take ln 10 unless it is set."""
    delta: Share = Field(Fraction(1, 10**6), validate_default=True)
    """δ of the whole release. The paper's variants take 1/657,427 unless it is set."""
