"""What the sanitised log promises: the sampling step of the paper's optimisation, and the synthetic log. No solver.

The paper fixes output counts x, then samples a user for each. Given x, every user's Σ x_ij·ln t_ijk <= B bounds both
what the user's absence changes (ε) and the chance that the user appears at all (δ), B = min{ε, ln 1/(1-δ)}. But x is
computed from the log and printed, which no ε covers. `sound` takes a noisy histogram of pairs (a stability histogram,
or weighted Gaussian selection with counts), one of how many pairs a user holds and, if asked, one of pairs of pairs,
optimises on those (post-processing) and makes users up: composition, nothing else. The proof is in `noise.py`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.privacy.composition import Noise
from qlog_assets.privacy.gaussian import GaussianBudget, gaussian_budget
from qlog_assets.privacy.gaussian_guarantee import STEERING_ASSUMPTION
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

PAPER = (
    "Hong, Vaidya, Lu and Wu (2012): (ε, δ)-probabilistic differential privacy for the whole process, with the output "
    "size maximised under it."
)


def user_budget(epsilon: float, delta: float) -> float:
    """B = min{ε, ln 1/(1-δ)}: what each user's constraint allows. The tables of the paper depend on nothing else."""
    return min(epsilon, -math.log1p(-delta))


def largest_output(users: int, epsilon: float, delta: float) -> float:
    """n·B: no solution prints more tuples, whatever the log.

    Summing the constraint over users: Σ_k ln t_ijk >= Σ_k c_ijk/c_ij = 1 because -ln(1-p) >= p, so Σ x_ij <= n·B.
    """
    return users * user_budget(epsilon, delta)


def least_delta(users: int) -> float:
    """1/n: with a smaller δ only the empty output is feasible, because the chances to be named sum to 1 or more."""
    return 1 / users


def paper(parameters: SanitizedParameters) -> Guarantee:
    """The sampling step's (ε, δ) given x, and what section 4.2 claims for noisy counts; end to end nothing holds."""
    sampling = PrivacyLoss(parameters.epsilon, parameters.delta)
    if parameters.count_epsilon is None:
        counts = None
        words = "x is the solution of a problem whose data is the log, printed as it is."
    else:
        counts = PrivacyLoss(parameters.count_epsilon, Fraction(0))
        words = "x with Laplace(d/ε') per pair, as if one user could move one pair alone, by at most d (gap G3)."
    claimed = sampling if counts is None else add_losses([sampling, counts])
    budget = user_budget(float(parameters.epsilon), float(parameters.delta))
    return Guarantee(
        mechanism="sanitized",
        variant="paper",
        claimed=claimed,
        proven=None,
        parts=(
            Part(
                "sampling",
                sampling,
                sampling,
                "Given output counts that do not depend on the log: the paper's Theorem 1.",
            ),
            Part("output counts", counts, None, words),
        ),
        assumptions=("the output counts x would be the same without the user",),
        gaps=(
            "G1 x depends on the log and is printed: ten users who share a pair give 6 tuples, nine give 5",
            "G2 with δ below 1/n the only feasible output is empty; a real user's own tuple in the output is a breach",
            "G3 the noise of section 4.2 covers a sensitivity of one pair, not of all pairs, and its pre-processing "
            "couples users",
            "G4 a pair with two holders is kept, with one it is dropped",
            "G5 real ids persist across pairs and link them",
            "G6 the optimum is not unique: the solver's tie-breaks are part of the mechanism",
            "Tables 4 to 7 violate the paper's own constraints: no output can exceed n·B tuples",
        ),
        paper=PAPER,
        sentence=(
            "Only the draw of user names is private, and only if the counts were known beforehand; the release as a "
            "whole promises nothing."
        ),
        formula="for every user Σ x_ij·ln(c_ij/(c_ij - c_ijk)) ≤ B;  B = min{ε, ln 1/(1-δ)};  hence Σx ≤ n·B",
        label="sampling-step-only (ε, δ)-pDP given x; end-to-end none",
        figures={"user_budget": budget, "least_users": math.ceil(1 / parameters.delta)},
    )


def pair_budget(parameters: SanitizedParameters) -> GaussianBudget:
    """What weighted selection of pairs may spend: their part of ε and δ."""
    return gaussian_budget(parameters.pair_epsilon, parameters.pair_delta)


def sound(parameters: SanitizedParameters) -> Guarantee:
    """The synthetic log: pairs, activity and, if asked, associations, each with noise of its own; users are made up."""
    loss, formula, noise = _pairs(parameters)
    parts, thresholds = [Part("pairs", loss, loss, formula)], {}
    if noise:
        thresholds["pairs"] = stability_threshold(
            parameters.pairs_per_user, parameters.pair_scale, parameters.pair_delta
        )
    loss = counting_loss(1, parameters.activity_scale)
    parts.append(Part("activity", loss, loss, "How many pairs a user holds: one count of 1..m, 1/b."))
    others = [Noise(1, parameters.activity_scale)]
    if parameters.association_scale is not None:
        counts, scale = parameters.associations_per_user, parameters.association_scale
        loss = counting_loss(counts, scale, parameters.association_delta)
        parts.append(Part("associations", loss, loss, "Pairs of a user's named pairs: m(m-1)/2 / b."))
        thresholds["associations"] = stability_threshold(counts, scale, parameters.association_delta)
        others.append(Noise(counts, scale))
    total = add_losses([part.proven for part in parts if part.proven is not None])
    return Guarantee(
        mechanism="sanitized",
        variant="sound",
        claimed=total,
        proven=total,
        parts=tuple(parts),
        assumptions=(
            "the number of synthetic users, the objective and all settings are public",
            "a user's pairs are a set, cut to m by a rule that reads that user's records only",
            "noise is exact and integer, from a secure source, drawn once",
            "optimising and making users up read the noisy tables only",
            *((STEERING_ASSUMPTION,) if parameters.method == "steered" else ()),
            *RELEASE_ASSUMPTIONS,
        ),
        gaps=(),
        paper=PAPER,
        sentence=approximate_words(total),
        formula=(
            f"ε = {'m/b_1' if noise else 'ε_1'} + 1/b_2 [+ m(m-1)/2 / b_3];  δ = δ_1 [+ δ_3];  "
            "the rest is post-processing"
        ),
        publishable=True,
        label="approximate differential privacy",
        thresholds=thresholds,
        # Gaussian noise is not accounted for with the other kind: their losses are added up.
        noise=(*noise, *others) if noise else (),
    )


def _pairs(parameters: SanitizedParameters) -> tuple[PrivacyLoss, str, tuple[Noise, ...]]:
    """What the pairs cost, in a line, and their two-sided geometric noise; Gaussian noise is none of it."""
    if parameters.method != "stability":
        budget = pair_budget(parameters)
        by = "steered selection" if parameters.method == "steered" else "weighted Gaussian selection"
        return (
            PrivacyLoss(budget.epsilon, budget.delta, budget.rho),
            f"Distinct (query, url) pairs by {by}, then counts of those named: a budget of ε_1.",
            (),
        )
    noise = Noise(parameters.pairs_per_user, parameters.pair_scale)
    loss = counting_loss(noise.counts, noise.scale, parameters.pair_delta)
    return loss, "Distinct (query, url) pairs per user: m/b.", (noise,)
