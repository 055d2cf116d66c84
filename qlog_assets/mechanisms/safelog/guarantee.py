"""What Safelog promises: Theorem 1 as printed, its tight form, and the sound release. Formulas only, no noise.

Sound release, proof in short. One user holds at most q distinct queries, c distinct click pairs and q - 1 distinct
transitions, so adding or removing the user moves that many counts by 1 each. A public-domain count with two-sided
geometric noise of scale b is (1/b)-DP. An item outside the public domain enters the support with the user: it is
printed with probability p <= δ/m, and its absence costs a factor 1/(1-p) <= e^(1/b) by the second condition on the
stability threshold. Products over the at most m items of a table give (m/b, δ), tables add up, thresholds and
sorting are post-processing. The transition table's domain is made of the released queries: adaptive composition.
"""

from __future__ import annotations

from fractions import Fraction

from qlog_assets.mechanisms.safelog.parameters import PaperParameters, SafelogParameters
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
from qlog_assets.privacy.korolova import chance, log_selection_ratio, log_tight_selection_ratio, turning_point
from qlog_assets.privacy.parameters import decimal_text

PAPER = (
    "Zhang, Yang, Singh and Xiong (2016), Theorem 1: ε-differential privacy with δ = 0 for the whole release, "
    "because queries from a pool appear beside the real ones."
)
PAPER_FORMULA = (
    "α = max{e^(1/b)/p_g, 1 + 1/(2e^((K-1)/b) - 1)};  ε = q_f·ln α + q_f/b_q + c_f/b_c + (q_f - 1)/b_t;  δ = 0"
)
OBSERVED_PAIRS = (
    "G2 clicks only for observed pairs: every observed pair of a printed query is printed, so a pair that only one "
    "user clicked is printed if that user is in the log, and never otherwise."
)
OBSERVED_PAIRS_ABOVE = (
    "G2 clicks only for observed pairs, those with a noisy count above K: a pair that only one user clicked is printed "
    "with a chance of up to {chance:.2g} (½e^((M-K)/b_c) for M = c_f clicks on it) if that user is in the log, and "
    "never otherwise. Theorem 1 has no δ for it."
)
PUBLIC_SAMPLE = (
    "pool.probability = {share} keeps a share of the list by a public hash, so everybody knows which queries are in "
    "the pool: p_g would be true of a secret sample that is drawn afresh, and of no other."
)
PAPER_GAPS = (
    "G1 frequency filter before the cap: queries rarer than τ are dropped before each user's first q_f are taken, so "
    "one user's presence can move a count by hundreds. No finite ε covers it.",
    "G3 a query outside the pool is printed only if its user is in the log; a pool that covers every string with "
    "positive probability cannot exist, and a pool sampled from the log is the log.",
    "G4 transitions: Table 3 leaves their cost out, and counting them before the cap leaves it unbounded.",
    "G5 repeated queries: one user may move one count by q_f; pure ε survives it, thresholds and tighter accounting "
    "do not.",
    "G6 'first' queries at equal times: a tie broken across users couples them.",
    "G8 continuous Laplace noise on doubles reveals the count in its low-order bits; every re-run costs again.",
)


def paper(parameters: SafelogParameters) -> Guarantee:
    """Theorem 1 to the letter: what the paper claims. Nothing finite is proven end to end (gaps G1 to G3)."""
    queries, clicks = parameters.queries_per_user, parameters.clicks_per_user
    # Parameters that come from no policy are of no pool in particular: the whole list, which is the default.
    share = parameters.pool_probability if isinstance(parameters, PaperParameters) else Fraction(1)
    scale, pool_probability = float(parameters.selection_scale), float(share)
    log_alpha = log_selection_ratio(parameters.threshold, scale, pool_probability)
    log_tight = log_tight_selection_ratio(parameters.threshold, scale, pool_probability)
    turning = turning_point(parameters.threshold, pool_probability)
    counts_cost = Fraction(0) if parameters.query_scale is None else queries / parameters.query_scale
    parts = [
        Part(
            "queries",
            PrivacyLoss(queries * log_alpha + counts_cost, Fraction(0)),
            None,
            "Selecting queries costs q_f·ln α, their second noise q_f/b_q; unproven because of G1 and G3.",
        )
    ]
    if parameters.click_scale is not None:
        loss = PrivacyLoss(clicks / parameters.click_scale, Fraction(0))
        parts.append(Part("clicks", loss, None, "Click counts cost c_f/b_c; unproven because of G1 and G2."))
    if parameters.transition_scale is not None:
        loss = PrivacyLoss(parameters.transitions_per_user / parameters.transition_scale, Fraction(0))
        parts.append(Part("transitions", loss, None, "Transitions cost (q_f - 1)/b_t; unproven because of G1 and G4."))
    claimed = add_losses([part.claimed for part in parts if part.claimed is not None])
    return Guarantee(
        mechanism="safelog",
        variant="paper",
        claimed=claimed,
        proven=None,
        parts=tuple(parts),
        assumptions=(
            f"every query is in the pool with probability at least p_g = {decimal_text(share)}, whatever the log holds",
            "each user's first q_f queries and c_f clicks are the only ones read",
        ),
        gaps=paper_gaps(parameters, share),
        paper=PAPER,
        sentence=(
            f"The paper says that nobody's presence changes the odds of any output by more than a factor "
            f"e^{at_most(claimed.epsilon)}; as printed, the algorithm keeps no such promise for any finite number."
        ),
        formula=PAPER_FORMULA,
        label="pure differential privacy (claimed)",
        thresholds={"queries": parameters.threshold},
        figures={
            "log_alpha": log_alpha,
            "log_alpha_tight": log_tight,
            "epsilon_with_tight_alpha": float(claimed.epsilon) + queries * (log_tight - log_alpha),
            **({} if turning is None else {"turning_point_scale": turning}),
        },
    )


def paper_gaps(parameters: SafelogParameters, share: Fraction) -> tuple[str, ...]:
    """What Theorem 1 leaves open, with how clicks are chosen and what the pool was sampled by."""
    clicks = OBSERVED_PAIRS
    if parameters.paper_click_support == "observed_gt_K" and parameters.click_scale is not None:
        most = chance(parameters.clicks_per_user, float(parameters.click_scale), parameters.threshold)
        clicks = OBSERVED_PAIRS_ABOVE.format(chance=min(1.0, most))
    frequency, pool, *others = PAPER_GAPS
    sampled = "" if share == 1 else " " + PUBLIC_SAMPLE.format(share=decimal_text(share))
    return frequency, clicks, pool + sampled, *others


def sound(parameters: SafelogParameters) -> Guarantee:
    """The release that may be published: pure ε where delta is 0, else a public pool plus a stability threshold."""
    pure = parameters.delta == 0
    listed = pure or parameters.click_support == "public_list"
    noise = [Noise(parameters.queries_per_user, parameters.selection_scale)]
    losses = [counting_loss(parameters.queries_per_user, parameters.selection_scale, parameters.selection_delta)]
    names, thresholds = ["queries"], {"queries_in_pool": parameters.threshold}
    sentences = [
        "Distinct queries per user: q_f/b."
        + (" Only pool queries can appear." if pure else " δ_q pays for queries outside the pool.")
    ]
    if not pure:
        least = stability_threshold(parameters.queries_per_user, parameters.selection_scale, parameters.selection_delta)
        thresholds["queries_outside_pool"] = max(parameters.threshold, least)
    if parameters.click_scale is not None:
        names.append("clicks")
        noise.append(Noise(parameters.clicks_per_user, parameters.click_scale))
        losses.append(counting_loss(parameters.clicks_per_user, parameters.click_scale, parameters.click_delta))
        sentences.append(
            "Distinct (query, url) pairs per user: c_f/b_c."
            + (" Urls from a public list only." if listed else " δ_c pays for pairs that only the user holds.")
        )
        if not listed:
            least = stability_threshold(parameters.clicks_per_user, parameters.click_scale, parameters.click_delta)
            thresholds["clicks"] = max(parameters.click_threshold or 1, least)
        elif parameters.click_threshold is not None:
            thresholds["clicks"] = parameters.click_threshold
    if parameters.transition_scale is not None:
        names.append("transitions")
        noise.append(Noise(parameters.transitions_per_user, parameters.transition_scale))
        losses.append(counting_loss(parameters.transitions_per_user, parameters.transition_scale))
        sentences.append("Distinct transitions per user over all pairs of released queries: (q_f - 1)/b_t.")
    total = add_losses(losses)
    return Guarantee(
        mechanism="safelog",
        variant="sound",
        claimed=total,
        proven=total,
        parts=tuple(
            Part(name, loss, loss, sentence) for name, loss, sentence in zip(names, losses, sentences, strict=True)
        ),
        assumptions=(
            "the pool, and the url list where there is one, are public and were fixed without looking at this log",
            "caps, tie-breaks, sessions and normalisation read one user's records only",
            "items are distinct within a user, so one user moves a count by at most 1",
            "noise is exact two-sided geometric from a secure source, drawn once; the printed count is the tested one",
            *RELEASE_ASSUMPTIONS,
        ),
        gaps=(),
        paper=PAPER,
        sentence=pure_words(total) if pure else approximate_words(total),
        formula=(
            "ε = q_f/b + c_f/b_c + (q_f - 1)/b_t;  "
            + ("δ = 0" if pure else "δ = δ_q + δ_c;  outside the pool: least T with m·p ≤ δ and p ≤ 1 - e^(-1/b)")
        ),
        publishable=True,
        label="pure differential privacy" if pure else "approximate differential privacy",
        thresholds=thresholds,
        noise=tuple(noise),
    )


def modern_budget(parameters: SafelogParameters) -> GaussianBudget:
    """The one budget of Gaussian noise and thresholds that the tables of `modern` share."""
    return gaussian_budget(parameters.epsilon, parameters.delta)


def modern(parameters: SafelogParameters) -> Guarantee:
    """Steered selection of queries, then of clicks and transitions of the queries that were released, in one budget.

    What the two looks, the counts and the thresholds cost is proven in `privacy/steered`. Which clicks and transitions
    count is decided by queries that are public by then, and by a public url list: adaptive composition.
    """
    budget = modern_budget(parameters)
    total = PrivacyLoss(parameters.epsilon, parameters.delta, budget.rho)
    return Guarantee(
        mechanism="safelog",
        variant="modern",
        claimed=total,
        proven=total,
        parts=tuple(shared_parts(budget, parameters.parts, "steered")),
        assumptions=(
            "the pool, and the url list where there is one, are public and were fixed without looking at this log",
            "caps, tie-breaks, sessions and normalisation read one user's records only",
            "items are distinct within a user, so one user moves a count by at most 1",
            "noise is exact and integer, from a secure source, drawn once",
            *gaussian_assumptions("steered"),
            *RELEASE_ASSUMPTIONS,
        ),
        gaps=(),
        paper=PAPER,
        sentence=approximate_words(total),
        formula=SHARED_FORMULA,
        publishable=True,
        label="approximate differential privacy",
        figures={"rho": float(budget.rho), "noise_budget": float(budget.squared)},
    )


def pure_words(loss: PrivacyLoss) -> str:
    """A pure guarantee as a sentence for somebody who does not read formulas."""
    return (
        f"Whether any one user is in the log changes the odds of any published result by at most {factor(loss)}, "
        "without exception; only queries and urls from public lists can appear."
    )
