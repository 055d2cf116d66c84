"""What CrowdLogging promises: FT_a, FT_u, DP_a, DP_u as printed, and the two releases. No cryptography, no noise.

Frequency thresholds (FT) are k-anonymity: fake accounts break them, no ε covers them. DP_a and DP_u set their threshold
so that selection alone spends the whole ε, and then print noisy counts, exact counts of undecrypted strings and raw
spellings besides. Released: noisy user counts of each job, one draw, nothing below the threshold. Decryption needs t_c
users, which is a cut on the true count c, so noise and threshold see max(0, c - (t_c - 1)).

Why the shift is sound. It is a function of one count that moves by at most 1 when c does, so one user who sends d
artifacts still moves at most d shifted counts by 1 each: L1 = d, L2 = √d. And a shifted count that is not 0 is at least
1: where one user makes an artifact readable, she makes its shifted count 1, as if she alone had sent it. So the proofs
of `histogram.stability_histogram` (`sound`) and of `gaussian` (`gaussian`) hold for shifted counts as they stand.
"""

from __future__ import annotations

import math
from fractions import Fraction

from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.privacy.bounds import at_most
from qlog_assets.privacy.composition import Noise
from qlog_assets.privacy.gaussian import GaussianBudget, gaussian_budget
from qlog_assets.privacy.gaussian_guarantee import SHARED_FORMULA, shared_parts
from qlog_assets.privacy.guarantee import (
    RELEASE_ASSUMPTIONS,
    Guarantee,
    Part,
    PrivacyLoss,
    add_losses,
    approximate_words,
    counting_loss,
)
from qlog_assets.privacy.histogram import stability_threshold
from qlog_assets.privacy.korolova import log_selection_ratio, selection_delta

PAPER = (
    "Feild, Allan and Glatt (2011): k-anonymity for FT_a (k instances) and FT_u (k users); (ε, δ)-differential privacy "
    "with ε = ln 10 and δ = 1/(n+1) for DP_a and DP_u."
)
THRESHOLD_GAPS = (
    "G9 not differential privacy: one user with k instances (FT_a) or k - 1 fake accounts (FT_u) reveals an artifact",
    "G6 the key is a hash of the artifact, so anyone can test a guess offline",
    "G1 undecrypted strings are published with exact counts",
    "G2 raw spellings are published exactly",
)
DIFFERENTIAL_GAPS = (
    "G1 undecrypted strings are published with exact counts: one user more is one string more. No finite ε covers it",
    "G2 raw spellings of a released artifact are published exactly",
    "G3 the threshold spends all of ε on selection; the noisy counts cost d/b_a more",
    "G4 a limit on distinct artifacts does not limit instances: one user can move an artifact count by hundreds",
    "G5 the key shares decrypt on the true count: the server learns what the noisy threshold would have hidden",
    "G6 the key is a hash of the artifact, so anyone can test a guess offline",
    "G7 the encrypted user id links a user's artifacts at the server",
    "G8 every mining job costs again, and δ = 1/(n+1) is a private number that allows one person to be exposed",
)

RELEASED_ASSUMPTIONS = (
    "it is towards readers of the release: the collector sees the true counts of what t_c users sent, and how often "
    "each tag came",
    "the user's own clients follow the protocol: they send an artifact of a job from one place, with a share on its "
    "polynomial and its one ciphertext; what others send may be wrong: it is set against what is right, and where too "
    "little is left the artifact is dropped",
    "an account is one user, and no account is issued more than d tokens per job; each is spent once, and none tells "
    "whose it is",
    "artifacts are normalised before they are counted, raw spellings are never printed, nothing below the threshold is "
    "printed",
)
LABEL = "approximate differential privacy towards analysts"


def artifact_threshold(artifacts: int, epsilon: float, delta: float) -> float:
    """k_a = d·(1 - ln(2δ/d)/ε): where one user may hold one artifact d times."""
    return artifacts * (1 - math.log(2 * delta / artifacts) / epsilon)


def user_threshold(artifacts: int, epsilon: float, delta: float) -> float:
    """k_u = 1 - d·ln(2δ/d)/ε: where users are counted, so one user adds 1 to an artifact."""
    return 1 - artifacts * math.log(2 * delta / artifacts) / epsilon


def largest_allowed(threshold: float, epsilon: float, delta: float, *, count_users: bool) -> int:
    """The largest d whose k_a (or k_u) is at most k; 0 where even one artifact a user needs more. Both grow with d."""
    least = user_threshold if count_users else artifact_threshold
    low, high = 0, 1
    while least(high, epsilon, delta) <= threshold:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if least(middle, epsilon, delta) <= threshold else (low, middle)
    return low


def artifact_frequency(parameters: CrowdParameters) -> Guarantee:
    """FT_a: an artifact is released once it occurs k times."""
    return frequency_policy(parameters, "ft_a", "instances")


def user_frequency(parameters: CrowdParameters) -> Guarantee:
    """FT_u: an artifact is released once k users hold it."""
    return frequency_policy(parameters, "ft_u", "users")


def frequency_policy(parameters: CrowdParameters, variant: str, counted: str) -> Guarantee:
    """A cut on true counts: no differential privacy is claimed, and none holds."""
    return Guarantee(
        mechanism="crowd",
        variant=variant,
        claimed=None,
        proven=None,
        parts=tuple(
            Part(job, None, None, f"Artifacts with {parameters.threshold} {counted}.") for job in parameters.jobs
        ),
        assumptions=("nobody else controls accounts, and nobody's guesses matter",),
        gaps=THRESHOLD_GAPS,
        paper=PAPER,
        sentence=(
            f"An artifact is shown once it has {parameters.threshold} {counted}. Somebody who makes the others up "
            "learns for certain whether one person holds it."
        ),
        formula=f"released iff {counted} ≥ k",
        label="k-anonymity; not differential privacy",
        thresholds={counted: parameters.threshold},
    )


def artifact_differential(parameters: CrowdParameters) -> Guarantee:
    """DP_a: noisy instance counts against k_a."""
    return differential_policy(parameters, "dp_a", count_users=False)


def user_differential(parameters: CrowdParameters) -> Guarantee:
    """DP_u: noisy user counts against k_u."""
    return differential_policy(parameters, "dp_u", count_users=True)


def differential_policy(parameters: CrowdParameters, variant: str, *, count_users: bool) -> Guarantee:
    """The printed claim, the d it allows at the threshold, and what its own theorem says once counts are printed."""
    epsilon, delta = float(parameters.job_epsilon), float(parameters.job_delta)
    allowed = largest_allowed(parameters.threshold, epsilon, delta, count_users=count_users)
    forced = allowed == 0 and parameters.paper_min_d1
    artifacts = 1 if forced else allowed
    claimed, parts, gaps = None, [], list(DIFFERENTIAL_GAPS)
    figures = {"artifacts_per_user": float(artifacts), "artifacts_allowed": float(allowed)}
    if artifacts:
        claimed = PrivacyLoss(parameters.epsilon, parameters.delta)
        scale = artifacts / parameters.job_epsilon
        count_scale = scale if parameters.count_scale is None else parameters.count_scale
        log_alpha = log_selection_ratio(parameters.threshold, float(scale))
        for job in parameters.jobs:
            selection = PrivacyLoss(parameters.job_epsilon, parameters.job_delta)
            counts = PrivacyLoss(artifacts / count_scale, Fraction(0))
            parts.append(Part(f"{job}: selection", selection, None, "d·ln α = d/b with b = d/ε."))
            parts.append(Part(f"{job}: counts", counts, None, "d/b_a, which the claimed ε leaves out."))
        least = user_threshold if count_users else artifact_threshold
        figures |= {
            "least_threshold": least(artifacts, epsilon, delta),
            "noise_scale": float(scale),
            "epsilon_with_counts": len(parameters.jobs) * (artifacts * log_alpha + float(artifacts / count_scale)),
            "delta_at_threshold": selection_delta(
                artifacts, 1 if count_users else artifacts, float(scale), parameters.threshold
            ),
        }
    if forced:
        gaps.insert(0, "d = 1 at a threshold that allows none (paper_min_d1): δ is larger than stated")
    return Guarantee(
        mechanism="crowd",
        variant=variant,
        claimed=claimed,
        proven=None,
        parts=tuple(parts),
        assumptions=("the server is trusted, and analysts see only what the policy releases",),
        gaps=tuple(gaps),
        paper=PAPER,
        sentence=(
            f"At k = {parameters.threshold} nothing can be released at the stated δ."
            if claimed is None
            else f"The paper says e^{at_most(claimed.epsilon)} with d = {artifacts}; its own theorem gives "
            f"e^{at_most(figures['epsilon_with_counts'])} once counts are printed, and the exact counts printed beside "
            "them leave nothing finite."
        ),
        formula=("k_u = 1 - d·ln(2δ/d)/ε" if count_users else "k_a = d·(1 - ln(2δ/d)/ε)")
        + ";  b = d/ε;  claimed ε, by its theorem d·ln α + d/b_a",
        label="approximate differential privacy (claimed)",
        thresholds={"users" if count_users else "instances": parameters.threshold},
        figures=figures,
    )


def sound(parameters: CrowdParameters) -> Guarantee:
    """One stability histogram of shifted user counts per job."""
    artifacts, scale = parameters.artifacts_per_user, parameters.noise_scale
    loss = counting_loss(artifacts, scale, parameters.job_delta)
    total = add_losses([loss for _ in parameters.jobs])
    least = stability_threshold(artifacts, scale, parameters.job_delta)
    return Guarantee(
        mechanism="crowd",
        variant="sound",
        claimed=total,
        proven=total,
        parts=tuple(
            Part(job, loss, loss, f"At most {artifacts} distinct artifacts per user: d/b.") for job in parameters.jobs
        ),
        assumptions=(
            *RELEASED_ASSUMPTIONS,
            "noise is exact two-sided geometric from a secure source, drawn once; the printed count is the tested one",
            *RELEASE_ASSUMPTIONS,
        ),
        gaps=(),
        paper=PAPER,
        sentence=approximate_words(total),
        formula="ε = Σ over jobs of d/b;  δ = Σ over jobs of δ_j;  SSH on max(0, users - (t_c - 1))",
        publishable=True,
        label=LABEL,
        thresholds=dict.fromkeys(parameters.jobs, least),
        figures={"noise_scale": float(scale)},
        noise=tuple(Noise(artifacts, scale) for _ in parameters.jobs),
    )


def job_budget(parameters: CrowdParameters) -> GaussianBudget:
    """The one budget of Gaussian noise and thresholds that the jobs of a release share, each an equal part."""
    moved = parameters.artifacts_per_user * len(parameters.jobs)
    return gaussian_budget(parameters.epsilon, parameters.delta, moved)


def gaussian(parameters: CrowdParameters) -> Guarantee:
    """Gaussian noise on shifted user counts, L2 √d per job, all jobs from one budget."""
    budget = job_budget(parameters)
    total = PrivacyLoss(parameters.epsilon, parameters.delta, budget.rho)
    shares = {str(job): Fraction(1, len(parameters.jobs)) for job in parameters.jobs}
    return Guarantee(
        mechanism="crowd",
        variant="gaussian",
        claimed=total,
        proven=total,
        parts=tuple(shared_parts(budget, shares, "gaussian_counts")),
        assumptions=(
            *RELEASED_ASSUMPTIONS,
            "noise is exact discrete Gaussian from a secure source, drawn once; the printed count is the tested one",
            *RELEASE_ASSUMPTIONS,
        ),
        gaps=(),
        paper=PAPER,
        sentence=approximate_words(total),
        formula=f"{SHARED_FORMULA};  Δ² = d on max(0, users - (t_c - 1))",
        publishable=True,
        label=LABEL,
        figures={"rho": float(budget.rho), "noise_budget": float(budget.squared)},
    )
