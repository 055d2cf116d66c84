"""Session logs (Zhang and Yang 2017): frequent query sequences and clicks. Segmentation, items, and what is released.

An item is an ordered subsequence of two or more queries of one session, not necessarily adjacent ones. Pure functions
on integer arrays; reading logs, texts of queries and budgets are elsewhere, and at scale the same segmentation, limits
and items are SQL (`sql/sessions`), which tests compare with these. What the paper prints is `paper.py`.

Sensitivity. A user keeps at most `sessions_per_user` sessions of at most `queries_per_session` queries, so holds at
most SessionParameters.items_per_user items. With `repeats` an item may be held several times ((a, a) six times by the
session a, a, a, a): L1 is the same, but one count moves by more than 1, and a threshold made for counts of 1 no longer
keeps δ (gap G2). What is released counts users of distinct items: L1 ≤ items_per_user and L∞ = 1, which is all that
the stability histogram and the Gaussian methods ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from qlog_assets.mechanisms.planned_noise import count_noise, geometric_noise, weighted_noise
from qlog_assets.mechanisms.sessions.guarantee import modern_budget
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.privacy.gaussian import SelectionPlan, plan_counts, plan_weighted
from qlog_assets.privacy.histogram import Released, stability_histogram, stability_threshold
from qlog_assets.privacy.limits import SESSION_GAP_MINUTES, position_within
from qlog_assets.privacy.noise import checked_scale
from qlog_assets.privacy.public_domain import (
    DomainDraw,
    draw_public,
    few_fakes_threshold,
    mostly_real_threshold,
    usable_threshold,
)
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.selection import draw_gaussian_counts
from qlog_assets.privacy.steered import plan_part
from qlog_assets.privacy.weighted import Contributions, draw_weighted
from qlog_assets.report.table_noise import TableNoise

NO_QUERY = -1  # pads sessions and items to one width


def segment(users: np.ndarray, seconds: np.ndarray, gap: int = 60 * SESSION_GAP_MINUTES) -> np.ndarray:
    """A session number a row: new where the user changes or more than `gap` seconds pass. Rows by user and time."""
    users, seconds = np.asarray(users), np.asarray(seconds)
    if users.size == 0:
        return np.empty(0, np.int64)
    starts = np.r_[True, (users[1:] != users[:-1]) | (seconds[1:] - seconds[:-1] > gap)]
    return np.cumsum(starts) - 1


def collapse_repeats(sessions: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Which rows are kept where a query right after itself in a session falls away. Rows by (user, time)."""
    sessions, queries = np.asarray(sessions), np.asarray(queries)
    kept = np.ones(len(queries), bool)
    kept[1:] = (sessions[1:] != sessions[:-1]) | (queries[1:] != queries[:-1])
    return kept


def limit_sessions(
    users: np.ndarray, sessions: np.ndarray, queries: np.ndarray, sessions_per_user: int, queries_per_session: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first sessions of each user that have two queries or more, each cut to its first queries.

    Returns the owner of each kept session and a matrix of its queries, padded with NO_QUERY. Rows by (user, time).
    """
    users, sessions, queries = (np.asarray(column, np.int64) for column in (users, sessions, queries))
    _, first, numbers, lengths = np.unique(sessions, return_index=True, return_inverse=True, return_counts=True)
    owners = users[first]
    several = lengths >= 2
    kept = several.copy()
    kept[several] = position_within(owners[several]) < sessions_per_user
    column = position_within(sessions)
    cells = kept[numbers] & (column < queries_per_session)
    new_number = np.cumsum(kept) - 1
    matrix = np.full((int(kept.sum()), queries_per_session), NO_QUERY, np.int64)
    matrix[new_number[numbers[cells]], column[cells]] = queries[cells]
    return owners[kept], matrix


def places_of_items(queries_per_session: int, pairs_only: bool) -> list[tuple[int, ...]]:
    """The places in a session that its items are made of: every choice of two or more, or of just two."""
    longest = 2 if pairs_only else queries_per_session
    return [places for size in range(2, longest + 1) for places in combinations(range(queries_per_session), size)]


def session_items(
    owners: np.ndarray, matrix: np.ndarray, repeats: bool = False, pairs_only: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(user, item) rows: every subsequence of every kept session; each user and item once unless `repeats`.

    Items are rows of queries as wide as the session matrix, padded with NO_QUERY.
    """
    width = matrix.shape[1]
    lengths = (matrix != NO_QUERY).sum(axis=1)
    users, items = [np.empty(0, np.int64)], [np.empty((0, width), np.int64)]
    for places in places_of_items(width, pairs_only):
        long_enough = lengths > places[-1]
        part = np.full((int(long_enough.sum()), width), NO_QUERY, np.int64)
        part[:, : len(places)] = matrix[long_enough][:, places]
        users.append(owners[long_enough])
        items.append(part)
    rows = np.column_stack([np.concatenate(users), np.concatenate(items)])
    if not repeats:
        rows = np.unique(rows, axis=0)
    return rows[:, 0], rows[:, 1:]


def count_items(items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct items and how many rows each has: users after distinct rows, events after repeated ones."""
    distinct_items, counts = np.unique(items, axis=0, return_counts=True)
    return distinct_items, counts.astype(np.int64)


# What is released ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """Sessions or clicks as the noise sees them: how many items one user holds, and what is spent on them."""

    items_per_user: int
    scale: Fraction
    """The scale of `sound` noise."""
    delta: Fraction
    """δ in `sound`."""
    part: Fraction
    """The part of the budget of `modern`."""


@dataclass(frozen=True)
class Chosen(Released):
    """The same of items that were chosen before they were counted, with the standard deviation of their noise."""

    deviation: float


def kinds(parameters: SessionParameters) -> dict[str, Kind]:
    """What is released, by table."""
    found = {}
    if parameters.session_scale is not None:
        found["sessions"] = Kind(
            parameters.items_per_user, parameters.session_scale, parameters.session_delta, parameters.session_part
        )
    if parameters.click_scale is not None:
        part = Fraction(1) if parameters.over_release else parameters.click_part
        found["clicks"] = Kind(parameters.clicks_per_user, parameters.click_scale, parameters.click_delta, part)
    return found


def release_items(
    source: RandomSource, users: np.ndarray, per_user: int, scale: Fraction, delta: Fraction, at_least: int = 0
) -> Released:
    """`sound`, for sessions and for clicks: the stability histogram on distinct items; costs (per_user/scale, delta).

    Sessions and clicks come from the same users, so releasing both costs the sum of the two (gap G1).
    """
    return stability_histogram(source, users, per_user, scale, delta, at_least=at_least)


def takes_rows(variant: str, parameters: SessionParameters) -> bool:
    """Whether a table is drawn from rows of (user, item), by `draw_rows`, and not from finished counts."""
    return variant == "modern" and parameters.method == "weighted_gaussian"


def is_steered(variant: str, parameters: SessionParameters) -> bool:
    """Whether a table is drawn by `privacy.steered`; over a release that is clicks alone."""
    steered = variant == "modern" and parameters.method == "steered"
    return steered and (parameters.has_clicks or not parameters.over_release)


def draw_counts(
    source: RandomSource, users: np.ndarray, variant: str, kind: Kind, parameters: SessionParameters
) -> Released:
    """Some items from counts of users. Items are noised one by one: the counts of a table may be given in parts."""
    if variant == "sound":
        per_user, at_least = kind.items_per_user, parameters.threshold
        return release_items(source, users, per_user, kind.scale, kind.delta, at_least)
    plan = plan_counts(kind.items_per_user, modern_budget(parameters), kind.part)
    return Released(*draw_gaussian_counts(source, users, plan))


def least_count(variant: str, kind: Kind, parameters: SessionParameters) -> int:
    """The least noisy count that a table can print."""
    if variant == "sound":
        return max(parameters.threshold, stability_threshold(kind.items_per_user, kind.scale, kind.delta))
    if takes_rows(variant, parameters) or is_steered(variant, parameters):
        return 1
    return plan_counts(kind.items_per_user, modern_budget(parameters), kind.part).threshold


def plan_rows(kind: Kind, parameters: SessionParameters) -> SelectionPlan:
    """The noise and thresholds of a table that is drawn from rows."""
    return plan_weighted(
        "weighted_gaussian",
        kind.items_per_user,
        modern_budget(parameters),
        kind.part,
        parameters.set_share,
        parameters.counted_items_per_user,
    )


def draw_rows(
    source: RandomSource, user_ids: np.ndarray, item_ids: np.ndarray, kind: Kind, parameters: SessionParameters
) -> Chosen:
    """The weighted method: a set is chosen first and counted with what is left."""
    items, users, deviation = draw_weighted(source, Contributions.of(user_ids, item_ids), plan_rows(kind, parameters))
    assert users is not None and deviation is not None  # set_share is below 1
    return Chosen(items, users, deviation)


def known_noise(variant: str, kind: Kind, parameters: SessionParameters, deviation: float | None) -> TableNoise:
    """What is publicly known of the noise on a table's counts; `deviation` is that of items chosen by `draw_rows`."""
    if deviation is not None:
        return weighted_noise(plan_rows(kind, parameters), deviation)
    if variant == "sound":
        return geometric_noise(kind.scale)
    return count_noise(plan_counts(kind.items_per_user, modern_budget(parameters), kind.part))


def known_pair_noise(parameters: SessionParameters) -> TableNoise:
    """The same of pairs of a release's queries."""
    return geometric_noise(parameters.pair_scale, among="pairs of queries of the release that was named")


def is_over_release(variant: str, parameters: SessionParameters) -> bool:
    """Whether pairs are those of a public domain, drawn by `draw_pairs`."""
    return variant == "modern" and parameters.over_release


def pair_threshold(queries: int, parameters: SessionParameters) -> int:
    """The least noisy count of a pair among so many public queries: few rows are then made by noise alone."""
    scale, cells = parameters.pair_scale, queries * (queries - 1)
    if queries < 2:
        return 1
    return usable_threshold(max(few_fakes_threshold(cells, scale), mostly_real_threshold(queries, scale)), cells, scale)


def draw_pairs(
    source: RandomSource, cells: np.ndarray, users: np.ndarray, queries: int, parameters: SessionParameters
) -> DomainDraw:
    """Pairs of different ones among `queries` public queries: every ordered pair is a cell. Costs items_per_user over
    the scale, no δ."""
    if queries < 2:
        nothing = np.empty(0, dtype=np.int64)
        return DomainDraw(Released(nothing, nothing), nothing, nothing)
    threshold = pair_threshold(queries, parameters)
    return draw_public(source, cells, users, queries * (queries - 1), parameters.pair_scale, threshold)


def check_draw(variant: str, parameters: SessionParameters) -> None:
    """Draw tables of no items, which takes no random bit: parameters that cannot be drawn raise here."""
    nothing = np.empty(0, dtype=np.int64)
    for name, kind in kinds(parameters).items():
        if name == "sessions" and is_over_release(variant, parameters):
            checked_scale(parameters.pair_scale)
        elif is_steered(variant, parameters):
            for with_known in (False, True):
                plan_part(modern_budget(parameters), kind.part, with_known=with_known)
        elif takes_rows(variant, parameters):
            draw_rows(SeededRandom(0), nothing, nothing, kind, parameters)
        else:
            draw_counts(SeededRandom(0), nothing, variant, kind, parameters)
