"""The sound counterpart of the sanitized log: what is drawn from the log, and all that a made-up user may know of it.

Three noisy tables: users of distinct (query, url) pairs, how many pairs a user holds, and, if asked, users of pairs of
pairs. Everything after them is post-processing and free: `aims.py` chooses how often each pair occurs, `people.py`
makes users up. Pure functions on integer arrays; counting is SQL (`sql/sanitized`).

Proof. A user holds at most m = pairs_per_user distinct pairs: moves at most m pair counts by 1 (stability histogram:
m/b_1 and δ_1; or weighted or steered selection, whose price is proven in `privacy/gaussian` and `privacy/steered`),
exactly one cell of the length histogram by 1 (1/b_2, every cell is noised), and at most m(m-1)/2 counts of pairs of
pairs by 1 (stability histogram: ε_3 and δ_3). Pairs of pairs are counted among the named pairs alone: those names are
drawn by then, and for each set of names the bound is the same (adaptive composition). The three add up. ∎
No real id survives, so the objection to the paper (a true tuple of a real user costs δ ≥ 1/n) does not arise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.planned_noise import geometric_noise
from qlog_assets.mechanisms.sanitized.guarantee import pair_budget
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.privacy.gaussian import SelectionPlan, plan_weighted
from qlog_assets.privacy.histogram import Released, stability_histogram, stability_threshold
from qlog_assets.privacy.noise import checked_scale, discrete_laplace
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.steered import plan_part
from qlog_assets.privacy.weighted import Contributions, draw_weighted
from qlog_assets.report.table_noise import TableNoise

MOST_EVENTS = 10**6
"""How many events a made-up log may have. Each row has its texts again, at most 2,000 bytes of them
(`sql/sanitized/clicked_pairs.sql`), and one Arrow array of texts holds two gigabytes."""
MOST_LINKED_PAIRS = 50
"""Pairs per user with associations: beyond it their noise leaves nothing, and counting them grows with the square."""


@dataclass(frozen=True)
class PairCounts:
    """One row a user and (query, url) pair: how often that user clicked it. Users and pairs are numbers."""

    users: np.ndarray
    pairs: np.ndarray
    events: np.ndarray

    def keep(self, rows: np.ndarray) -> PairCounts:
        """The same with only these rows."""
        return PairCounts(self.users[rows], self.pairs[rows], self.events[rows])

    def totals(self) -> np.ndarray:
        """Events of each pair, all users together, indexed by pair."""
        return np.bincount(self.pairs, weights=self.events).astype(np.int64)


def takes_rows(parameters: SanitizedParameters) -> bool:
    """Whether pairs are drawn from rows of (user, pair), by `draw_rows`, and not from finished counts."""
    return parameters.method == "weighted_gaussian"


def is_steered(parameters: SanitizedParameters) -> bool:
    """Whether pairs are drawn by `privacy.steered`."""
    return parameters.method == "steered"


def release_pairs(
    source: RandomSource, users: np.ndarray, pairs_per_user: int, scale: Fraction, delta: Fraction
) -> Released:
    """The noisy pair histogram, from users of each pair after the limit of distinct pairs per user."""
    return stability_histogram(source, users, pairs_per_user, scale, delta)


def draw_counts(source: RandomSource, users: np.ndarray, parameters: SanitizedParameters) -> Released:
    """`stability`: the same by the parameters."""
    return release_pairs(source, users, parameters.pairs_per_user, parameters.pair_scale, parameters.pair_delta)


def plan_rows(parameters: SanitizedParameters) -> SelectionPlan:
    """The noise and the threshold of `weighted_gaussian`."""
    return plan_weighted(
        "weighted_gaussian",
        parameters.pairs_per_user,
        pair_budget(parameters),
        set_share=parameters.set_share,
        counted_items_per_user=parameters.counted_pairs_per_user,
    )


def draw_rows(
    source: RandomSource, user_ids: np.ndarray, pair_ids: np.ndarray, parameters: SanitizedParameters
) -> tuple[Released, float]:
    """`weighted_gaussian`: a set is named first and counted with what is left; the deviation of the counts' noise."""
    drawn = draw_weighted(source, Contributions.of(user_ids, pair_ids), plan_rows(parameters))
    assert drawn.users is not None and drawn.deviation is not None  # set_share is below 1
    return Released(drawn.items, drawn.users), drawn.deviation


def known_noise(parameters: SanitizedParameters) -> TableNoise:
    """What is publicly known of the noise on the users of pairs by `stability`. They are tested, and not printed."""
    least = stability_threshold(parameters.pairs_per_user, parameters.pair_scale, parameters.pair_delta)
    return replace(geometric_noise(parameters.pair_scale), tested_from=float(least))


def release_lengths(source: RandomSource, users: np.ndarray, scale: Fraction) -> np.ndarray:
    """Noisy numbers of users by how many pairs they hold (cell i: i + 1). Every cell is noised; none goes below 0."""
    users = np.asarray(users, np.int64)
    return np.maximum(users + discrete_laplace(source, scale, users.size), 0)


def release_associations(source: RandomSource, users: np.ndarray, parameters: SanitizedParameters) -> Released:
    """Which pairs of pairs enough users hold together, with noisy numbers of those users."""
    scale = parameters.association_scale
    assert scale is not None  # asked only where associations have a share
    return stability_histogram(source, users, parameters.associations_per_user, scale, parameters.association_delta)


def check_draw(parameters: SanitizedParameters) -> None:
    """Draw tables of no items, seeded: parameters that cannot be drawn raise here."""
    nothing, source = np.empty(0, dtype=np.int64), SeededRandom(0)
    if not parameters.clicks:
        raise ParameterError("has_urls = false says that the log has no urls, and without clicks there are no pairs")
    if is_steered(parameters):
        for with_known in (False, True):
            plan_part(pair_budget(parameters), with_known=with_known)
    elif takes_rows(parameters):
        draw_rows(source, nothing, nothing, parameters)
    else:
        draw_counts(source, nothing, parameters)
    checked_scale(parameters.activity_scale)
    if parameters.association_scale is not None:
        release_associations(source, nothing, parameters)
        if parameters.pairs_per_user > MOST_LINKED_PAIRS:
            raise ParameterError(f"association_share: lower pairs_per_user to {MOST_LINKED_PAIRS} or less")
    _refuse_too_many_events(parameters)


def _refuse_too_many_events(parameters: SanitizedParameters) -> None:
    active = parameters.synthetic_users * parameters.pairs_per_user
    for what, number in (("asked_size", parameters.asked_size or 0), ("synthetic_users times pairs_per_user", active)):
        if number > MOST_EVENTS:
            raise ParameterError(f"{what} is {number:,}: a made-up log has at most {MOST_EVENTS:,} events")
