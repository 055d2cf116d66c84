"""What the paper maximises, as linear programmes over the counts: output size, supports of frequent pairs, diversity.

The relaxed problems O-, F- and D-UMP. How their answers become whole numbers is in rounding.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csc_array, eye_array, hstack, vstack

from qlog_assets.mechanisms.sanitized.programme import Programme
from qlog_assets.mechanisms.sanitized.solvers import SUPPORT_TOLERANCE, LinearProgramme, solve

Objective = Literal["output_size", "frequent_pairs", "diversity"]


@dataclass(frozen=True)
class Goal:
    """What the counts are to be best at."""

    objective: Objective
    minimum_support: float = 1 / 500
    """s, `frequent_pairs`: the share of all events from which a pair is frequent."""
    size: float | None = None
    """|O|, `frequent_pairs`: the size of the output. None: half of the largest."""
    infrequent_stay: bool = False
    """`frequent_pairs`: whether pairs below the minimum support must stay below it in the output. The paper takes this
    for granted and does not ask for it; only with it is precision 1."""
    queries: np.ndarray | None = None
    """`diversity`: the query of each pair, where different queries are counted. None: different pairs are."""


def frequent(programme: Programme, minimum_support: float) -> np.ndarray:
    """Which pairs are frequent in the log."""
    return programme.events >= minimum_support * max(int(programme.events.sum()), 1)


def relaxed(programme: Programme, goal: Goal) -> np.ndarray:
    """The best counts, not whole, allowed by every user's constraint."""
    if goal.objective == "frequent_pairs":
        asked = closest_support(programme, goal)
    else:
        asked = most_events(programme, goal, programme.limit)
    return programme.scale_into(solve(asked)[: programme.pairs])


def largest_size(programme: Programme) -> float:
    """λ: the largest output, relaxed. Linear in B."""
    return float(relaxed(programme, Goal("output_size")).sum())


def asked_size(programme: Programme, goal: Goal) -> float:
    """|O| of `frequent_pairs`."""
    return largest_size(programme) / 2 if goal.size is None else goal.size


def most_events(programme: Programme, goal: Goal, left: float | np.ndarray) -> LinearProgramme:
    """O-UMP, and D-UMP relaxed to at most one event per pair, or per query; `left` is what users have.

    More than one event of a query's pairs makes no further query: that the paper's other reading needs no variables of
    its own follows.
    """
    above = np.maximum(np.broadcast_to(np.asarray(left, float), (programme.users,)), 0)
    tops = np.where(programme.held, 1.0 if goal.objective == "diversity" else np.inf, 0.0)
    matrix = programme.losses
    if goal.objective == "diversity" and goal.queries is not None:
        number, pairs = int(goal.queries.max(initial=-1)) + 1, np.arange(programme.pairs)
        one_each = csc_array((np.ones(programme.pairs), (goal.queries, pairs)), shape=(number, programme.pairs))
        matrix, above = vstack([matrix, one_each], format="csc"), np.concatenate([above, np.ones(number)])
    return LinearProgramme(-np.ones(programme.pairs), matrix, above, tops)


def closest_support(programme: Programme, goal: Goal) -> LinearProgramme:
    """F-UMP: Σx = size, and Σ |x/|O| - c/|D|| over frequent pairs least, by a distance variable for each of them."""
    size, pairs = asked_size(programme, goal), programme.pairs
    support = programme.events / max(int(programme.events.sum()), 1)
    chosen = np.flatnonzero(frequent(programme, goal.minimum_support) & programme.held)
    picks = csc_array((np.full(chosen.size, 1 / size), (np.arange(chosen.size), chosen)), shape=(chosen.size, pairs))
    distance = eye_array(chosen.size, format="csc")
    matrix = hstack(
        [
            vstack([programme.losses, picks, -picks]),
            vstack([csc_array((programme.users, chosen.size)), -distance, -distance]),
        ],
        format="csc",
    )
    above = np.concatenate([np.full(programme.users, programme.limit), support[chosen], -support[chosen]])
    tops = np.where(programme.held, np.inf, 0.0)
    if goal.infrequent_stay:
        tops[~frequent(programme, goal.minimum_support)] = goal.minimum_support * size
    return LinearProgramme(
        gain=np.concatenate([np.zeros(pairs), np.ones(chosen.size)]),
        matrix=matrix,
        above=above,
        tops=np.concatenate([tops, np.full(chosen.size, np.inf)]),
        total=np.concatenate([np.ones(pairs), np.zeros(chosen.size)]),
        size=size,
        tolerance=SUPPORT_TOLERANCE,
    )
