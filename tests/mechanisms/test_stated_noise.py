"""What is stated of the noise is what the draws do: spreads around the truth, and shares of missing items.

Every comparison allows five standard deviations of what it measures. With independent noise a single one raises a false
alarm with a chance below 1e-6, all of them together below 1e-4; seeds are fixed, so they hold or fail for good.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from qlog_assets.mechanisms.planned_noise import weighted_noise
from qlog_assets.mechanisms.safelog import noise as safelog
from qlog_assets.mechanisms.safelog.draw import known_noise as safelog_noise
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.mechanisms.sanitized import noise as sanitized
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.mechanisms.sessions import noise as sessions
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.mechanisms.zealous import noise as zealous
from qlog_assets.mechanisms.zealous.guarantee import modern_budget
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.privacy.steered import PublicItems, release_steered
from qlog_assets.report.table_noise import GAUSSIAN, TableNoise

ITEMS = 20_000
KURTOSIS = {"two-sided geometric": 6.0, "discrete Gaussian": 3.0}
DOMAIN = "safelog-2006-03-0123456789ab"
Counted = tuple[np.ndarray, np.ndarray, int, TableNoise | None]
"""Places of printed items, printed counts, the least printed count, and what is stated of the noise."""


def zealous_counts(variant: str, **settings: object) -> Callable[[np.ndarray], Counted]:
    chosen = ZealousParameters(**{"kinds": ("queries",), "items_per_user": 5, **settings})

    def draw(users: np.ndarray) -> Counted:
        drawn = zealous.draw_counts(SeededRandom(1), users, variant, chosen)
        return drawn.items, drawn.users, drawn.threshold, drawn.noise

    return draw


def session_counts(variant: str, table: str, **settings: object) -> Callable[[np.ndarray], Counted]:
    chosen = SessionParameters(**settings)
    kind = sessions.kinds(chosen)[table]

    def draw(users: np.ndarray) -> Counted:
        drawn = sessions.draw_counts(SeededRandom(2), users, variant, kind, chosen)
        stated = sessions.known_noise(variant, kind, chosen, None)
        return drawn.indices, drawn.users, sessions.least_count(variant, kind, chosen), stated

    return draw


def session_pairs(users: np.ndarray) -> Counted:
    chosen = SessionParameters(domain=DOMAIN)
    drawn = sessions.draw_pairs(SeededRandom(3), np.arange(len(users)), users, 400, chosen)
    return (
        drawn.support.indices,
        drawn.support.users,
        sessions.pair_threshold(400, chosen),
        sessions.known_pair_noise(chosen),
    )


def sanitized_pairs(users: np.ndarray) -> Counted:
    """The noisy numbers that a made-up log is dealt from, and what they are tested against."""
    chosen = SanitizedParameters(method="stability", pairs_per_user=3)
    drawn, stated = sanitized.draw_counts(SeededRandom(10), users, chosen), sanitized.known_noise(chosen)
    assert stated.tested_from is not None
    return drawn.indices, drawn.users, int(stated.tested_from), stated


def safelog_queries(users: np.ndarray) -> Counted:
    chosen = SafelogParameters(min_users=4)
    drawn = safelog.draw_queries(SeededRandom(4), users, np.ones(len(users), bool), 0, chosen)
    return drawn.support.indices, drawn.support.users, chosen.threshold + 3, safelog_noise("queries", chosen)


def safelog_clicks(users: np.ndarray) -> Counted:
    chosen = SafelogParameters()
    drawn = safelog.draw_clicks(SeededRandom(5), users, chosen)
    return drawn.indices, drawn.users, safelog.click_stability_threshold(chosen) or 0, safelog_noise("clicks", chosen)


def safelog_listed_clicks(users: np.ndarray) -> Counted:
    chosen = SafelogParameters(click_support="public_list", delta=0)
    drawn = safelog.draw_listed_clicks(SeededRandom(6), np.arange(len(users)), users, ITEMS, chosen)
    least = safelog.effective_listed_threshold(ITEMS, chosen)
    return drawn.support.indices, drawn.support.users, least, safelog_noise("clicks", chosen)


def safelog_transitions(users: np.ndarray) -> Counted:
    chosen = SafelogParameters(transition_scale=7)
    drawn = safelog.draw_transitions(SeededRandom(7), np.arange(len(users)), users, 400, chosen)
    least = safelog.effective_transition_threshold(400, chosen)
    return drawn.support.indices, drawn.support.users, least, safelog_noise("transitions", chosen)


PLAIN = {
    "zealous sound": zealous_counts("sound", min_users=3),
    "zealous gaussian_counts": zealous_counts("modern", method="gaussian_counts"),
    "zealous truncated_geometric": zealous_counts("modern", method="truncated_geometric"),
    "sessions sound": session_counts("sound", "sessions"),
    "sessions sound clicks": session_counts("sound", "clicks", click_scale=9),
    "sessions gaussian_counts": session_counts("modern", "clicks", method="gaussian_counts"),
    "sessions over a release": session_pairs,
    "sanitized stability": sanitized_pairs,
    "safelog queries": safelog_queries,
    "safelog clicks": safelog_clicks,
    "safelog clicks on listed urls": safelog_listed_clicks,
    "safelog transitions": safelog_transitions,
}


def assert_spread(printed: np.ndarray, truth: np.ndarray | int, noise: TableNoise) -> None:
    """The root mean square of printed minus true is the stated deviation, but for rounding to whole users."""
    measured = math.sqrt(np.mean((printed - truth) ** 2.0))
    stated = math.hypot(noise.deviation, 0 if noise.law != GAUSSIAN else math.sqrt(1 / 12))
    tolerance = 5 * math.sqrt((KURTOSIS[noise.law] - 1) / (4 * len(printed)))
    assert measured == pytest.approx(stated, rel=tolerance)


@pytest.mark.parametrize("draw", PLAIN.values(), ids=PLAIN)
def test_the_stated_deviation_is_how_far_counts_are_off(draw: Callable[[np.ndarray], Counted]) -> None:
    """Counts so large that none is near a threshold."""
    places, printed, _, noise = draw(np.full(ITEMS, 5_000))
    assert noise is not None and noise.tested and not noise.by_row and len(places) == ITEMS
    assert_spread(printed, 5_000, noise)


@pytest.mark.parametrize("draw", PLAIN.values(), ids=PLAIN)
def test_the_stated_chance_is_the_share_of_missing_items(draw: Callable[[np.ndarray], Counted]) -> None:
    """Counts around the threshold, where the chance is neither 0 nor 1."""
    _, _, threshold, noise = draw(np.full(2, 5_000))
    assert noise is not None
    for shift in (-1.0, -0.3, 0.0, 0.7, 1.5):
        users = max(1, round(threshold + shift * noise.deviation))
        places, _, _, _ = draw(np.full(ITEMS, users))
        chance = noise.chance_missing(users, threshold)
        allowed = 5 * math.sqrt(chance * (1 - chance) / ITEMS) + 1e-4
        assert 0.01 < chance < 0.99
        assert abs(1 - len(places) / ITEMS - chance) < allowed, (users, threshold, chance)


def holders(groups: int, users: int, items: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of (user, item): groups of so many users who all hold the same so many items, and nothing else."""
    group, user, item = (axis.ravel() for axis in np.mgrid[0:groups, 0:users, 0:items])
    return group * users + user, group * items + item


def draw_zealous_rows(method: str, rows: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray, TableNoise]:
    chosen = ZealousParameters(kinds=("queries",), items_per_user=40, method=method)
    drawn = zealous.draw_rows(SeededRandom(8), *rows, chosen)
    assert drawn.threshold == 1
    return drawn.items, drawn.users, drawn.noise


def draw_session_rows(rows: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray, TableNoise]:
    chosen = SessionParameters(clicks_per_user=40, session_scale=None)
    kind = sessions.kinds(chosen)["clicks"]
    drawn = sessions.draw_rows(SeededRandom(9), *rows, kind, chosen)
    return drawn.indices, drawn.users, sessions.known_noise("modern", kind, chosen, drawn.deviation)


def draw_sanitized_rows(rows: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray, TableNoise]:
    chosen = SanitizedParameters(method="weighted_gaussian", pairs_per_user=40)
    drawn, deviation = sanitized.draw_rows(SeededRandom(11), *rows, chosen)
    return drawn.indices, drawn.users, weighted_noise(sanitized.plan_rows(chosen), deviation)


WEIGHED = {
    "zealous weighted_gaussian": lambda rows: draw_zealous_rows("weighted_gaussian", rows),
    "zealous sips": lambda rows: draw_zealous_rows("sips", rows),
    "sessions weighted_gaussian": draw_session_rows,
    "sanitized weighted_gaussian": draw_sanitized_rows,
}


@pytest.mark.parametrize("draw", WEIGHED.values(), ids=WEIGHED)
@pytest.mark.parametrize("items", [1, 40])
def test_the_stated_deviation_of_chosen_items_is_how_far_their_counts_are_off(draw: Callable, items: int) -> None:
    """Users of one item count whole; those of forty count half, and noise is stretched to twice with the counts."""
    users = 250
    found, printed, noise = draw(holders(2_000 // items, users, items))
    assert len(found) == 2_000 and not noise.tested
    assert_spread(printed, users, noise)
    deviations = {each: draw(holders(2_000 // each, users, each))[2].deviation for each in (1, 40)}
    assert deviations[40] == pytest.approx(2 * deviations[1], rel=0.05)


@pytest.mark.parametrize("draw", WEIGHED.values(), ids=WEIGHED)
@pytest.mark.parametrize("place", [0, 1], ids=["nothing else", "most items"])
def test_the_stated_bounds_of_the_chance_are_met_by_users_of_one_item_and_of_most(draw: Callable, place: int) -> None:
    _, _, noise = draw(holders(1, 200, 1))
    reach = noise.reaches[place]
    assert (reach.items, len(noise.reaches)) == ((1, 40)[place], 2)
    for users in (reach.even_users - 1, reach.even_users, reach.even_users + 2):
        found, _, _ = draw(holders(4_000 // reach.items, users, reach.items))
        chance, missing = reach.chance_missing(users), 1 - len(found) / 4_000
        allowed = 5 * math.sqrt(chance * (1 - chance) / 4_000) + 1e-4
        assert missing < chance + allowed
        # In later rounds users of many items hold fewer, and weigh more: there the chance is a bound alone.
        if len(reach.looks) == 1 or reach.items == 1:
            assert abs(missing - chance) < allowed


STEERED = ZealousParameters(kinds=("queries",), items_per_user=40, method="steered")


def draw_steered_rows(rows: tuple[np.ndarray, np.ndarray], items: int) -> zealous.KindDraw:
    return zealous.release_modern(SeededRandom(10), *rows, items, STEERED)


def test_the_errors_of_steered_counts_are_how_far_they_are_off_row_by_row() -> None:
    """Items of 100 to 3,000 users: each count off by its own deviation, of which the least is stated of the table."""
    sizes = np.repeat([100, 300, 1_000, 3_000], [600, 200, 60, 20])
    users, items = np.arange(sizes.sum()), np.repeat(np.arange(len(sizes)), sizes)
    budget, part = modern_budget(STEERED), zealous.kind_part(STEERED)
    drawn = release_steered(SeededRandom(10), users, items, len(sizes), PublicItems(), budget, part)
    assert len(drawn.items) == len(sizes) and drawn.deviations.max() > 2 * drawn.deviations.min()
    measured = math.sqrt(np.mean(((drawn.users - sizes) / drawn.deviations) ** 2))
    assert measured == pytest.approx(1, abs=5 * math.sqrt(2 / (4 * len(sizes))))
    noise = draw_steered_rows((users, items), len(sizes)).noise
    assert noise.by_row and noise.deviation == pytest.approx(drawn.deviations.min(), rel=1e-5)


def test_the_stated_chance_of_steered_items_is_met_by_users_of_nothing_else() -> None:
    (reach,) = draw_steered_rows(holders(1, 200, 1), 1).noise.reaches
    assert reach.every and len(reach.looks) == 2
    for users in (reach.even_users - 1, reach.even_users, reach.even_users + 2):
        found = draw_steered_rows(holders(4_000, users, 1), 4_000).items
        chance = reach.chance_missing(users)
        assert abs(1 - len(found) / 4_000 - chance) < 5 * math.sqrt(chance * (1 - chance) / 4_000) + 1e-4


def test_tables_that_no_row_can_enter_state_no_noise() -> None:
    assert safelog_noise("clicks", SafelogParameters(delta=0)) is None
    assert safelog_noise("transitions", SafelogParameters(queries_per_user=1)) is None
    only_listed = safelog_noise("queries", SafelogParameters(delta=0))
    assert only_listed is not None and only_listed.among == "queries of the public list"
