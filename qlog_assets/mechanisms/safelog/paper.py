"""Safelog's Algorithm 1 as printed, for studies. It claims Theorem 1 and has the gaps of specification 2.3.

Counts are numbers of events, not of users; noise is continuous and drawn twice; clicks are printed for observed pairs.
Nothing made here may be published. The sound variant is `noise.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qlog_assets.mechanisms.safelog.noise import few_fakes_threshold
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.privacy.paper_noise import continuous_laplace
from qlog_assets.privacy.paper_selection import PaperReleased, select_then_print
from qlog_assets.privacy.randomness import RandomSource


@dataclass(frozen=True)
class PaperPairs:
    """Transitions as Algorithm 1 prints them, those whose noisy count reaches the study's cut."""

    before: np.ndarray
    after: np.ndarray
    counts: np.ndarray


def draw_paper_queries(
    source: RandomSource, events: np.ndarray, untouched_pool: int, parameters: SafelogParameters
) -> tuple[PaperReleased, PaperReleased]:
    """Lines 6 and 7 for queries: what is printed of the queries somebody typed, and of the pool's that nobody did."""
    counts = np.concatenate([np.asarray(events, dtype=np.int64), np.zeros(untouched_pool, dtype=np.int64)])
    printed = select_then_print(
        source,
        counts,
        counts,
        float(parameters.selection_scale),
        float(parameters.query_scale or parameters.selection_scale),
        parameters.threshold,
    )
    typed = printed.indices < len(events)
    return (
        PaperReleased(printed.indices[typed], printed.counts[typed]),
        PaperReleased(printed.indices[~typed] - len(events), printed.counts[~typed]),
    )


def draw_paper_clicks(source: RandomSource, clicks: np.ndarray, parameters: SafelogParameters) -> PaperReleased:
    """Line 7 for clicks: observed pairs of a released query with Laplace(b_c) noise (gap G2), by index.

    The algorithm passes K to this step without a word on it. As `observed` no pair is left out; as `observed_gt_K` the
    noisy count must be above K.
    """
    if parameters.click_scale is None:
        return PaperReleased(np.empty(0, dtype=np.int64), np.empty(0))
    noisy = np.asarray(clicks) + continuous_laplace(source, float(parameters.click_scale), len(clicks))
    least = parameters.threshold if parameters.paper_click_support == "observed_gt_K" else -np.inf
    indices = np.flatnonzero(noisy > least)
    return PaperReleased(indices, noisy[indices])


def draw_paper_transitions(
    source: RandomSource,
    before: np.ndarray,
    after: np.ndarray,
    events: np.ndarray,
    queries: int,
    parameters: SafelogParameters,
) -> PaperPairs:
    """Line 8: every ordered pair of released queries with Laplace(b_t) noise, cut where a file can hold the rest.

    The paper prints all n² pairs. The cut is post-processing of that table: of the pairs nobody made, a binomial
    number passes it, at uniform places, each with a value beyond the cut by an exponential excess (specification 7).
    """
    if parameters.transition_scale is None or queries < 2:
        nothing = np.empty(0, dtype=np.int64)
        return PaperPairs(nothing, nothing, np.empty(0))
    scale, domain = float(parameters.transition_scale), queries * queries
    cut = parameters.transition_threshold or few_fakes_threshold(domain, parameters.transition_scale)
    noisy = events + continuous_laplace(source, scale, len(events))
    kept = noisy > cut
    generator = np.random.Generator(np.random.Philox(source.bigint(128)))
    fakes = generator.binomial(domain - len(events), 0.5 * np.exp(-cut / scale))
    made = before.astype(np.int64) * queries + after
    candidates = generator.choice(domain, size=min(domain, fakes + len(made)), replace=False)
    cells = candidates[~np.isin(candidates, made)][:fakes]
    values = cut + generator.exponential(scale, len(cells))
    return PaperPairs(
        np.concatenate([before[kept], cells // queries]),
        np.concatenate([after[kept], cells % queries]),
        np.concatenate([noisy[kept], values]),
    )
