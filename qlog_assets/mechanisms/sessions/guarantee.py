"""What the session log promises: A_Session, A_Click, the two together as printed and as they add up. No noise.

The paper's parts are proven as printed (with real-valued noise): one user moves counts by at most Δ in total, selection
costs Δ·ln α and the second noise Δ/b, and items nobody else holds are printed with probability at most ½Δe^((Δ-K)/b).
What is not proven is that releasing both parts costs what one of them costs. Sound: items are distinct within a user,
the printed count is the tested one, and each part is a stability histogram of its own. Modern: both parts share one
budget of Gaussian noise, whose price is proven in `privacy/gaussian`: a user holds at most items_per_user sequences and
clicks_per_user clicks, all distinct, so each method's bound on one user's L2 holds.
"""

from __future__ import annotations

from fractions import Fraction

from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.privacy.bounds import at_most
from qlog_assets.privacy.composition import Noise
from qlog_assets.privacy.gaussian import GaussianBudget, gaussian_budget
from qlog_assets.privacy.gaussian_guarantee import SHARED_FORMULA, gaussian_assumptions, shared_parts
from qlog_assets.privacy.guarantee import (
    RELEASE_ASSUMPTIONS,
    Guarantee,
    Part,
    PrivacyLoss,
    add_losses,
    approximate_words,
    counting_loss,
    factor,
)
from qlog_assets.privacy.histogram import stability_threshold
from qlog_assets.privacy.korolova import log_selection_ratio, selection_delta, tight_selection_delta

PAPER = (
    "Zhang and Yang (2017): (ε, δ)-differential privacy for A_Session and for A_Click, and for the release of both "
    "together (DP_S) the weaker of the two."
)

COMMON_ASSUMPTIONS = (
    "sessions are split, chosen by time and cut by rules that read one user's records only",
    "a user's items are a set: each sequence and each pair counts once per user",
)


def selected_twice(items: int, scale: Fraction, threshold: int) -> PrivacyLoss:
    """The paper's loss of one part: selection with one noise, printed counts with another, both of scale b."""
    log_alpha = log_selection_ratio(threshold, float(scale))
    return PrivacyLoss(items * (log_alpha + float(1 / scale)), selection_delta(items, items, float(scale), threshold))


def paper(parameters: SessionParameters) -> Guarantee:
    """The paper's numbers: claimed as if both parts cost one, proven as their sum."""
    items, losses, figures = parameters.subsequences_per_user, {}, {}
    if parameters.session_scale is not None:
        losses["sessions"] = selected_twice(items, parameters.session_scale, parameters.threshold)
        scale, threshold = float(parameters.session_scale), parameters.threshold
        figures = {
            "subsequences_per_user": float(items),
            "session_delta_tight": tight_selection_delta(items, items, scale, threshold),
            "session_delta_distinct": tight_selection_delta(items, parameters.sessions_per_user, scale, threshold),
        }
    if parameters.click_scale is not None:
        losses["clicks"] = selected_twice(parameters.clicks_per_user, parameters.click_scale, parameters.threshold)
    claimed = PrivacyLoss(max(loss.epsilon for loss in losses.values()), max(loss.delta for loss in losses.values()))
    total = add_losses(list(losses.values()))
    proven = total if total.delta < 1 else None
    return Guarantee(
        mechanism="sessions",
        variant="paper",
        claimed=claimed,
        proven=proven,
        parts=tuple(
            Part(
                name,
                loss,
                loss if loss.delta < 1 else None,
                "Δ·(ln α + 1/b) with Δ = l_s·(2^l_q - 1 - l_q)." if name == "sessions" else "l·(ln α + 1/b).",
            )
            for name, loss in losses.items()
        ),
        assumptions=(
            "sessions are split and chosen by rules that read one user's records only",
            "noise is real-valued Laplace, as in the proof, not a double",
        ),
        gaps=(
            "G1 sessions and clicks of the same users are released together: their losses add up, they are not "
            "'bottlenecked by the weaker'",
            "G2 a session that repeats one query holds the same subsequence many times: a threshold lowered on the "
            "ground that a user adds 1 to a count breaks δ",
            "G3 two noises where one would do: the printed count could be the tested one at half the ε",
            "G5 'first l click records' are instances, not distinct pairs",
            "section 5.4 says that doubling l doubles δ; it multiplies δ by 2·e^(Δ/b)",
            "continuous Laplace noise on doubles reveals the count in its low-order bits",
        ),
        paper=PAPER,
        sentence=(
            "With thresholds this low a user's own items are printed almost surely: nothing is promised."
            if proven is None
            else f"Any one user's presence changes the odds of what is published by at most {factor(total)}, but for a "
            f"probability of at most {at_most(total.delta)}; the paper prints e^{at_most(claimed.epsilon)} and "
            f"{at_most(claimed.delta)}."
        ),
        formula=(
            "ε = Δ·(ln α + 1/b);  δ = ½·Δ·e^((Δ-K)/b);  α = max{e^(1/b), 1 + 1/(2e^((K-1)/b) - 1)};  "
            "clicks the same with l for Δ;  the two add up"
        ),
        label="approximate differential privacy",
        thresholds=dict.fromkeys(losses, parameters.threshold),
        figures=figures,
    )


def sound(parameters: SessionParameters) -> Guarantee:
    """Two stability histograms, of distinct items and of distinct click pairs: (ε_s + ε_c, δ_s + δ_c)."""
    parts, thresholds, noise = [], {}, []
    for name, items, scale, delta, words in (
        (
            "sessions",
            parameters.items_per_user,
            parameters.session_scale,
            parameters.session_delta,
            f"At most {parameters.items_per_user} distinct {parameters.items} per user: Δ/b.",
        ),
        (
            "clicks",
            parameters.clicks_per_user,
            parameters.click_scale,
            parameters.click_delta,
            "Distinct (query, url) pairs per user: l/b_c.",
        ),
    ):
        if scale is None:
            continue
        loss = counting_loss(items, scale, delta)
        parts.append(Part(name, loss, loss, words))
        thresholds[name] = max(parameters.threshold, stability_threshold(items, scale, delta))
        noise.append(Noise(items, scale))
    total = add_losses([part.proven for part in parts if part.proven is not None])
    return Guarantee(
        mechanism="sessions",
        variant="sound",
        claimed=total,
        proven=total,
        parts=tuple(parts),
        assumptions=(
            *COMMON_ASSUMPTIONS,
            "noise is exact two-sided geometric from a secure source, drawn once; the printed count is the tested one",
            *RELEASE_ASSUMPTIONS,
        ),
        gaps=(),
        paper=PAPER,
        sentence=approximate_words(total),
        formula="ε = Δ/b + l/b_c;  δ = δ_s + δ_c;  T least with m·p ≤ δ and p ≤ 1 - e^(-1/b), for each part",
        publishable=True,
        label="approximate differential privacy",
        thresholds=thresholds,
        figures={"items_per_user": float(parameters.items_per_user)},
        noise=tuple(noise),
    )


def modern_budget(parameters: SessionParameters) -> GaussianBudget:
    """The one budget of Gaussian noise and thresholds that sequences and clicks share; of the clicks alone where the
    sequences are of a public domain and spend ε of their own."""
    counted = 0
    if parameters.method == "gaussian_counts":
        counted += parameters.items_per_user if parameters.has_sessions else 0
        counted += parameters.clicks_per_user if parameters.has_clicks else 0
    share = parameters.click_part if parameters.over_release else 1
    return gaussian_budget(parameters.epsilon * share, parameters.delta, counted)


def modern(parameters: SessionParameters) -> Guarantee:
    """Better selection under one total (ε, δ)."""
    if parameters.over_release:
        parts, formula, figures = _over_a_release(parameters)
        total = add_losses([part.proven for part in parts if part.proven is not None])
    else:
        parts, formula, figures = _by_one_budget(parameters)
        total = PrivacyLoss(parameters.epsilon, parameters.delta, modern_budget(parameters).rho)
    return Guarantee(
        mechanism="sessions",
        variant="modern",
        claimed=total,
        proven=total,
        parts=tuple(parts),
        assumptions=(
            *COMMON_ASSUMPTIONS,
            "noise is exact and integer, from a secure source, drawn once",
            *gaussian_assumptions(parameters.method),
            *RELEASE_ASSUMPTIONS,
        ),
        gaps=(),
        paper=PAPER,
        sentence=approximate_words(total) if total.delta else pure_words(total),
        formula=formula,
        publishable=True,
        label="approximate differential privacy" if total.delta else "differential privacy",
        figures={**figures, "items_per_user": float(parameters.items_per_user)},
    )


def pure_words(loss: PrivacyLoss) -> str:
    return (
        f"Whether any one user is in the log changes the odds of any published result by at most {factor(loss)}, "
        "without exception; only queries that were public before can appear."
    )


def _by_one_budget(parameters: SessionParameters) -> tuple[list[Part], str, dict[str, float]]:
    """μ² and the δ of new items are shared by the two parts."""
    budget = modern_budget(parameters)
    shares = {"sessions": parameters.session_part, "clicks": parameters.click_part}
    parts, formula = shared_parts(budget, shares, parameters.method), SHARED_FORMULA
    return parts, formula, {"rho": float(budget.rho), "noise_budget": float(budget.squared)}


def _over_a_release(parameters: SessionParameters) -> tuple[list[Part], str, dict[str, float]]:
    """Pairs of a public domain by two-sided geometric noise, which needs no δ; clicks by a budget of their own.

    The domain is a release of the same month: an output that was paid for, so everything that is chosen by it is
    chosen by what is public (adaptive composition), and the two charges add up in the ledger.
    """
    loss = counting_loss(parameters.items_per_user, parameters.pair_scale)
    words = f"At most {parameters.items_per_user} distinct pairs per user, of a public domain: Δ/b."
    parts, figures = [Part("sessions", loss, loss, words)], {"noise_scale": float(parameters.pair_scale)}
    if parameters.has_clicks:
        budget = modern_budget(parameters)
        loss = PrivacyLoss(budget.epsilon, budget.delta, budget.rho)
        method = parameters.method.replace("_", " ")
        parts.append(Part("clicks", loss, loss, f"Clicks, by {method}, with a budget of their own."))
        figures["rho"] = float(budget.rho)
    formula = "ε = Δ/b + ε_c;  δ = δ_c" if parameters.has_clicks else "ε = Δ/b"
    return parts, f"{formula};  every pair of the domain is noised, held or not", figures
