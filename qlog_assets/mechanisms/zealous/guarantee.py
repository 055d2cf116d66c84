"""What ZEALOUS promises: the two thresholds of its theorem, the stability histogram, and modern selection. No noise.

The paper's theorem, re-derived. Replacing one user changes at most 2m counts by 1, so the noise costs e^(2m/λ). Outputs
that print an item held by exactly τ users form the exceptional set: there are at most U·m/τ such items, and each
passes τ′ with probability ½e^(-(τ′-τ)/λ); their sum is δ by the second term of τ′. An item held by τ users here and
τ - 1 there is missing with probability at least e^(-1/λ) by the first term. That is (ε, δ)-probabilistic DP, which
implies (ε, δ)-DP.

Modern selection. What discrete Gaussian noise and its thresholds cost is proven in `gaussian`; the kinds and steps of a
release share one such budget, or each kind spends its own share of (ε, δ), which costs no more.
"""

from __future__ import annotations

import math
from fractions import Fraction

from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.bounds import at_least, at_most
from qlog_assets.privacy.composition import Noise
from qlog_assets.privacy.gaussian import GaussianBudget, gaussian_budget
from qlog_assets.privacy.gaussian_guarantee import SHARED_FORMULA, gaussian_assumptions, shared_parts
from qlog_assets.privacy.guarantee import (
    RELEASE_ASSUMPTIONS,
    REPLACE,
    Guarantee,
    Part,
    PrivacyLoss,
    add_losses,
    approximate_words,
    counting_loss,
    factor,
)
from qlog_assets.privacy.histogram import stability_threshold

PAPER = (
    "Götz et al.: (ε, δ)-probabilistic differential privacy. The text at hand (a later comparative study) cuts step 5 "
    "short and prints no parameter theorem; τ′ and the theorem are those of the original, re-derived here."
)
COMMON_ASSUMPTIONS = (
    "each user's items are chosen by a rule that reads that user's records only (a keyed hash, or the first m)",
    "items are distinct within a user, so one user moves a count by at most 1",
)
NOISE_ASSUMPTION = "noise is exact and integer, from a secure source, drawn once"


def probabilistic_threshold(items_per_user: int, scale: float, delta: float, user_bound: int, threshold: int) -> float:
    """The least τ′ of the theorem: τ + max{-λ·ln(2 - 2e^(-1/λ)), -λ·ln(2δτ/(U·m))}."""
    missing_item = -scale * math.log(-2 * math.expm1(-1 / scale))
    exceptional = -scale * math.log(2 * delta * threshold / (user_bound * items_per_user))
    return threshold + max(0.0, missing_item, exceptional)


def paper(parameters: ZealousParameters) -> Guarantee:
    """The theorem at the parameters given: λ, τ, τ′ a kind, each kind with its share of ε and δ."""
    epsilon, delta = parameters.kind_epsilon, parameters.kind_delta
    scale = 2 * parameters.items_per_user / epsilon
    threshold = math.ceil(scale) if parameters.threshold is None else parameters.threshold
    least = probabilistic_threshold(
        parameters.items_per_user, float(scale), float(delta), parameters.user_bound, threshold
    )
    noisy = least if parameters.noisy_threshold is None else float(parameters.noisy_threshold)
    kept = noisy >= least
    loss = PrivacyLoss(epsilon, delta) if kept else None
    total = add_losses([loss for _ in parameters.kinds if loss is not None]) if kept else None
    gaps = [
        "the text at hand omits τ′: without step 5 every item of τ users is printed and none of τ - 1, which is δ = 1",
        "choosing the globally most popular of a user's items couples users: not private at any ε",
        "the number of users U is itself data: use a published bound",
        "tuning τ or τ′ on the log is another release",
        "probabilistic DP does not survive post-processing; the implied (ε, δ)-DP is what may be relied on",
        "continuous Laplace noise on doubles reveals the count in its low-order bits",
    ]
    if not kept:
        gaps.insert(
            0, f"τ′ = {at_least(noisy)} is below the {at_most(least)} that the theorem needs: nothing is proven"
        )
    return Guarantee(
        mechanism="zealous",
        variant="paper",
        claimed=total,
        proven=total,
        parts=tuple(
            Part(kind, loss, loss, f"One histogram of {kind}: an equal share of ε and δ.") for kind in parameters.kinds
        ),
        assumptions=(*COMMON_ASSUMPTIONS, "noise is real-valued Laplace, as in the proof, not a double"),
        gaps=tuple(gaps),
        paper=PAPER,
        sentence=(
            f"Replacing one user by another changes the odds of what is printed by at most {factor(total)}, but for a "
            f"probability of at most {at_most(total.delta)}."
            if total is not None
            else "The thresholds are below what the theorem needs, so nothing is promised."
        ),
        formula="λ = 2m/ε;  τ′ = τ + max{-λ·ln(2 - 2e^(-1/λ)), -λ·ln(2δτ/(U·m))};  least at τ = λ",
        relation=REPLACE,
        label="probabilistic differential privacy, and the (ε, δ)-DP it implies",
        thresholds={"before_noise": threshold, "after_noise": math.ceil(noisy)},
        figures={"noise_scale": float(scale), "noisy_threshold": noisy, "least_noisy_threshold": least},
    )


def sound(parameters: ZealousParameters) -> Guarantee:
    """One stability histogram a kind: (m/λ, δ) each, under adding or removing one user."""
    loss = counting_loss(parameters.items_per_user, parameters.noise_scale, parameters.kind_delta)
    total = add_losses([loss for _ in parameters.kinds])
    least = stability_threshold(parameters.items_per_user, parameters.noise_scale, parameters.kind_delta)
    return Guarantee(
        mechanism="zealous",
        variant="sound",
        claimed=total,
        proven=total,
        parts=tuple(
            Part(kind, loss, loss, f"A stability histogram of {kind}: an equal share of ε and δ.")
            for kind in parameters.kinds
        ),
        assumptions=(*COMMON_ASSUMPTIONS, NOISE_ASSUMPTION, *RELEASE_ASSUMPTIONS),
        gaps=(),
        paper=PAPER,
        sentence=approximate_words(total),
        formula="ε = Σ over kinds of m/λ;  δ = Σ over kinds of δ_k;  T least with m·p ≤ δ_k and p ≤ 1 - e^(-1/λ)",
        publishable=True,
        label="approximate differential privacy",
        thresholds=dict.fromkeys(parameters.kinds, least),
        figures={"noise_scale": float(parameters.noise_scale)},
        noise=tuple(Noise(parameters.items_per_user, parameters.noise_scale) for _ in parameters.kinds),
    )


def modern_budget(parameters: ZealousParameters) -> GaussianBudget:
    """The one budget of Gaussian noise and thresholds that the kinds of a release share, each an equal part."""
    counted = parameters.items_per_user if parameters.method == "gaussian_counts" else 0
    return gaussian_budget(parameters.epsilon, parameters.delta, counted * len(parameters.kinds))


def modern(parameters: ZealousParameters) -> Guarantee:
    """Better selection under one total (ε, δ): one Gaussian budget, or equal shares for the truncated geometric."""
    if parameters.method == "truncated_geometric":
        loss = PrivacyLoss(parameters.kind_epsilon, parameters.kind_delta)
        total = add_losses([loss for _ in parameters.kinds])
        formula = "per kind: (ε/kinds, δ/kinds), per item: a further 1/m of both;  optimal selection, truncated noise"
        figures = {"item_epsilon": float(parameters.kind_epsilon / parameters.items_per_user)}
        parts = [
            Part(kind, loss, loss, f"{kind.capitalize()} alone, by truncated geometric.") for kind in parameters.kinds
        ]
    else:
        budget = modern_budget(parameters)
        total = PrivacyLoss(parameters.epsilon, parameters.delta, budget.rho)
        shares = {str(kind): Fraction(1, len(parameters.kinds)) for kind in parameters.kinds}
        parts, formula = shared_parts(budget, shares, parameters.method), SHARED_FORMULA
        figures = {"rho": float(budget.rho), "noise_budget": float(budget.squared)}
    return Guarantee(
        mechanism="zealous",
        variant="modern",
        claimed=total,
        proven=total,
        parts=tuple(parts),
        assumptions=(
            *COMMON_ASSUMPTIONS,
            NOISE_ASSUMPTION,
            *gaussian_assumptions(parameters.method),
            *RELEASE_ASSUMPTIONS,
        ),
        gaps=(),
        paper=PAPER,
        sentence=approximate_words(total),
        formula=formula,
        publishable=True,
        label="approximate differential privacy",
        figures=figures,
    )
