"""SPE, the paper's heuristic for diversity (Algorithm 2): drop the most sensitive pair until everything is allowed."""

from __future__ import annotations

import numpy as np

from qlog_assets.mechanisms.sanitized.programme import ROUNDING_ERROR, Programme


def eliminate_sensitive(programme: Programme, test_first: bool = True) -> np.ndarray:
    """Whether each pair stays: the one with the largest ln t goes until every constraint holds.

    The order never depends on what went before, so the pairs that stay are the longest allowed run of the ascending
    order: one cumulative sum per user finds it. As printed (test_first=False) the first pair goes even where nothing is
    violated. Of equally sensitive pairs the last one goes first.
    """
    steepest, pairs = programme.steepest, programme.pairs
    order = np.lexsort((np.arange(pairs), steepest))
    rank = np.empty(pairs, np.int64)
    rank[order] = np.arange(pairs)
    users, place = programme.losses.indices, rank[programme.owner]
    by_user = np.lexsort((place, users))
    owner, place = users[by_user], place[by_user]
    stay = pairs if test_first else pairs - 1
    if owner.size:
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        spent = np.cumsum(programme.losses.data[by_user])
        spent -= np.repeat(np.r_[0.0, spent][starts], np.diff(np.r_[starts, owner.size]))
        stay = min(stay, int(place[spent > programme.limit * (1 + ROUNDING_ERROR)].min(initial=pairs)))
    return (rank < stay) & programme.held
