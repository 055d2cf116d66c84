"""Safelog's arithmetic: from counts to the noisy counts of queries, clicks and transitions. Pure; files are elsewhere.

`draw_queries`, `draw_clicks`, `draw_listed_clicks` and `draw_transitions` are the `sound` variant (specification 2.3).
Each user holds at most q distinct queries, c distinct clicked pairs and q-1 distinct transitions, so adding or removing
one user moves at most that many counts by one each. Queries inside a fixed public pool are noised whether anybody typed
them or not and tested against K; queries outside it only where somebody typed them, against the stability threshold.
Clicks and transitions are then drawn for the queries just released, which are public by then: the three budgets add up.

Algorithm 1 as the paper prints it is `paper.py`.
"""

from __future__ import annotations

import numpy as np

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.safelog.guarantee import modern_budget
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.privacy.bounds import at_most
from qlog_assets.privacy.histogram import (
    Released,
    hybrid_histogram,
    stability_histogram,
    stability_threshold,
)
from qlog_assets.privacy.noise import checked_scale
from qlog_assets.privacy.numbers import laplace_survival
from qlog_assets.privacy.public_domain import (
    DomainDraw,
    draw_public,
    few_fakes_threshold,
    mostly_real_threshold,
    usable_threshold,
)
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.steered import SteeredPlan, plan_part

MOST_POOL_FAKES = 20_000_000
"""The same of queries: their texts must fit the two gigabytes of one Arrow array."""


def out_of_pool_threshold(parameters: SafelogParameters) -> int | None:
    """T: what a query outside the pool must reach besides K. None where such queries are never released (delta = 0)."""
    if parameters.selection_delta == 0:
        return None
    return stability_threshold(parameters.queries_per_user, parameters.selection_scale, parameters.selection_delta)


def click_stability_threshold(parameters: SafelogParameters) -> int | None:
    """What a clicked pair must reach where no public url list exists. None where no such pair is released."""
    if parameters.click_scale is None or parameters.click_delta == 0:
        return None
    return stability_threshold(parameters.clicks_per_user, parameters.click_scale, parameters.click_delta)


def draw_queries(
    source: RandomSource,
    users: np.ndarray,
    in_pool: np.ndarray,
    untouched_pool: int,
    parameters: SafelogParameters,
) -> DomainDraw:
    """The released queries: `users` and `in_pool` describe those somebody typed, `untouched_pool` counts the rest.

    Costs q/b, and δ_q for the queries outside the pool.
    """
    indices = np.arange(len(users), dtype=np.int64)
    if parameters.selection_delta == 0:
        indices = np.flatnonzero(in_pool)
    support, cells, cell_users = hybrid_histogram(
        source,
        users[indices],
        in_pool[indices],
        untouched_pool,
        parameters.selection_scale,
        parameters.threshold,
        parameters.queries_per_user,
        parameters.selection_delta,
        min_users=parameters.min_users,
    )
    return DomainDraw(Released(indices[support.indices], support.users), cells, cell_users)


def draw_clicks(source: RandomSource, users: np.ndarray, parameters: SafelogParameters) -> Released:
    """The released clicked pairs, by stability histogram on distinct pairs. Costs c/b_c and δ_c."""
    if parameters.click_scale is None or parameters.click_delta == 0:
        return nothing()
    return stability_histogram(
        source,
        users,
        parameters.clicks_per_user,
        parameters.click_scale,
        parameters.click_delta,
        at_least=parameters.click_threshold or 0,
    )


def draw_listed_clicks(
    source: RandomSource, cells: np.ndarray, users: np.ndarray, domain: int, parameters: SafelogParameters
) -> DomainDraw:
    """The released clicks on a public url list: every (released query, listed url) is a cell. Costs c/b_c, no δ."""
    if parameters.click_scale is None:
        return DomainDraw(nothing(), *untouched())
    threshold = effective_listed_threshold(domain, parameters)
    return draw_public(source, cells, users, domain, parameters.click_scale, threshold)


def effective_listed_threshold(domain: int, parameters: SafelogParameters) -> int:
    """The threshold that `draw_listed_clicks` uses on a domain of so many (released query, listed url) cells."""
    if parameters.click_scale is None:
        return 1
    return usable_threshold(parameters.click_threshold, domain, parameters.click_scale)


def draw_transitions(
    source: RandomSource, cells: np.ndarray, users: np.ndarray, queries: int, parameters: SafelogParameters
) -> DomainDraw:
    """The released transitions among `queries` released queries: every ordered pair is a cell. Costs (q-1)/b_t."""
    if parameters.transition_scale is None or queries < 2 or parameters.transitions_per_user == 0:
        return DomainDraw(nothing(), *untouched())
    domain = queries * (queries - 1)
    threshold = effective_transition_threshold(queries, parameters)
    return draw_public(source, cells, users, domain, parameters.transition_scale, threshold)


def effective_transition_threshold(queries: int, parameters: SafelogParameters) -> int:
    """The threshold that `draw_transitions` uses when so many queries were released."""
    scale, wanted = parameters.transition_scale, parameters.transition_threshold
    if scale is None:
        return 1
    if wanted is None and queries > 1:
        wanted = max(few_fakes_threshold(queries * (queries - 1), scale), mostly_real_threshold(queries, scale))
    return usable_threshold(wanted, queries * (queries - 1), scale)


def plan_modern(pool: int, parameters: SafelogParameters, *, with_known: bool = False) -> dict[str, SteeredPlan]:
    """`modern`: the plan of each table, with a pool of so many queries."""
    budget = modern_budget(parameters)
    return {
        table: plan_part(budget, part, pool if table == "queries" else 0, with_known=with_known)
        for table, part in parameters.parts.items()
    }


def check_modern(pool: int, parameters: SafelogParameters) -> None:
    """Raise for what `modern` could not draw: plans follow from parameters and the size of the pool alone."""
    for with_known in (False, True):
        plan_modern(pool, parameters, with_known=with_known)


def check_draw(pool: int, parameters: SafelogParameters) -> None:
    """Raise for what `draw` could not do with these parameters and a pool of so many queries. Public numbers alone.

    Asked before anything is charged, so that nothing of this is found out in the middle of a draw. The tables after
    the queries raise their own thresholds where they would have too many fakes (`usable_threshold`).
    """
    expected = pool * laplace_survival(parameters.selection_scale, parameters.threshold, 64)[1]
    if expected > MOST_POOL_FAKES:
        raise ParameterError(
            f"up to {at_most(expected, 3)} of the pool's {pool:,} queries would pass threshold = "
            f"{parameters.threshold} although nobody typed them, and no more than {MOST_POOL_FAKES:,} may: raise the "
            "threshold"
        )
    for scale in (parameters.selection_scale, parameters.click_scale, parameters.transition_scale):
        if scale is not None:
            checked_scale(scale)


def nothing() -> Released:
    return Released(*untouched())


def untouched() -> tuple[np.ndarray, np.ndarray]:
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
