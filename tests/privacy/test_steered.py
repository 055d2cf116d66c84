"""Steered selection: what one user can move in either look, who decides ties, what it costs, how much it names.

What stays hidden, and that each mistake in it would be seen, is in `test_steered_secrets`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qlog_assets.errors import ParameterError
from qlog_assets.privacy import steered
from qlog_assets.privacy.gaussian import WEIGHT_UNIT, gaussian_budget
from qlog_assets.privacy.holdings import even_sums, even_weights
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.steered import (
    MOST_WEIGHED_ITEMS,
    PublicItems,
    draw_steered,
    look_first,
    plan_part,
    plan_steered,
    release_steered,
    steer_weights,
)
from qlog_assets.privacy.weighted import Contributions, weighted_gaussian

ITEMS = 30
LOGS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, ITEMS - 1)), max_size=150)
BUDGET = gaussian_budget(Fraction(2), Fraction(1, 10**4))
EMPTY = np.empty(0, dtype=np.int64)
Weights = dict[tuple[int, int], int]


class NoDraw(RandomSource):
    """A source that must not be asked: bad parameters are refused before anything is drawn."""

    secure = False

    def _key(self, number: int) -> bytes:
        raise AssertionError("something was drawn")


def pairs_of(log: list[tuple[int, int]], items: int = ITEMS) -> Contributions:
    table = np.array(log, dtype=np.int64).reshape(-1, 2)
    return Contributions.among(table[:, 0], table[:, 1], items)


def made_plan(weighed_items: int) -> steered.SteeredPlan:
    return plan_steered(BUDGET.squared, BUDGET.new_item_delta, listed_items=5, weighed_items=weighed_items)


def drawn_first(seed: int, plan: steered.SteeredPlan) -> np.ndarray:
    """Some Y: as noise makes it, or at the edges: around c, equal, beyond all sense, below zero."""
    generator = np.random.default_rng(seed)
    hopeful = plan.least_hopeful(plan.threshold)
    edges = [-5, 0, hopeful - 1, hopeful, hopeful + 1, plan.threshold, hopeful << 23, 1 << 50, (1 << 53) - 1]
    likely = generator.normal(hopeful, plan.threshold, ITEMS).astype(np.int64)
    return np.where(generator.random(ITEMS) < generator.random(), generator.choice(edges, ITEMS), likely)


def steered_weights(pairs: Contributions, first: np.ndarray, listed: np.ndarray, plan: steered.SteeredPlan) -> Weights:
    chosen, weights = steer_weights(pairs, first, listed, plan)
    keys = zip(chosen.owners.tolist(), chosen.items.tolist(), strict=True)
    return dict(zip(keys, weights.tolist(), strict=True))


def by_user(weights: Weights) -> dict[int, list[int]]:
    users: dict[int, list[int]] = {}
    for (user, _), weight in weights.items():
        users.setdefault(user, []).append(weight)
    return users


def within_the_bound(weights: Weights) -> bool:
    return all(sum(weight**2 for weight in own) <= WEIGHT_UNIT**2 for own in by_user(weights).values())


@settings(max_examples=60, deadline=None)
@given(log=LOGS)
def test_no_user_moves_the_first_look_by_more_than_the_unit_in_l2(log: list[tuple[int, int]]) -> None:
    pairs = pairs_of(log)
    weights = even_weights(pairs)
    for user in np.unique(pairs.owners):
        own = weights[pairs.owners == user].tolist()
        assert len(own) * own[0] ** 2 == sum(weight**2 for weight in own) <= WEIGHT_UNIT**2
        assert even_weights(pairs.where(pairs.owners == user)).tolist() == own  # whoever else is there


@settings(max_examples=150, deadline=None)
@given(log=LOGS, seed=st.integers(0, 10**6), most=st.sampled_from([1, 2, 5]), pool=st.sets(st.integers(0, ITEMS - 1)))
def test_no_user_moves_the_second_look_by_more_than_the_unit_whatever_the_first_said(
    log: list[tuple[int, int]], seed: int, most: int, pool: set[int]
) -> None:
    plan, listed = made_plan(most), np.isin(np.arange(ITEMS), list(pool))
    pairs, first = pairs_of(log), drawn_first(seed, plan)
    weights = steered_weights(pairs, first, listed, plan)
    assert within_the_bound(weights) and all(weight >= 0 for weight in weights.values())
    assert all(len(own) <= most for own in by_user(weights).values())
    held = set(zip(pairs.owners.tolist(), pairs.items.tolist(), strict=True))
    hopeful = np.where(listed, plan.least_hopeful(plan.listed_threshold), plan.least_hopeful(plan.threshold))
    assert set(weights) <= held and all(first[item] >= hopeful[item] for _, item in weights)


@settings(max_examples=60, deadline=None)
@given(log=LOGS, seed=st.integers(0, 10**6), most=st.sampled_from([1, 2, 5]))
def test_a_user_who_comes_or_goes_changes_nobody_elses_weights(
    log: list[tuple[int, int]], seed: int, most: int
) -> None:
    plan, listed = made_plan(most), np.zeros(ITEMS, dtype=bool)
    pairs, first = pairs_of(log), drawn_first(seed, plan)
    weights = steered_weights(pairs, first, listed, plan)
    for user in np.unique(pairs.owners):
        others = steered_weights(pairs.where(pairs.owners != user), first, listed, plan)
        assert others == {key: weight for key, weight in weights.items() if key[0] != user}


@settings(max_examples=40, deadline=None)
@given(log=LOGS, seed=st.integers(0, 10**6), gaps=st.lists(st.integers(1, 3), min_size=ITEMS, max_size=ITEMS))
def test_items_that_somebody_else_brings_into_the_numbering_change_nobodys_weights(
    log: list[tuple[int, int]], seed: int, gaps: list[int]
) -> None:
    """The same items with other numbers between theirs: ties are decided by the order alone."""
    plan, pairs = made_plan(3), pairs_of(log)
    first = drawn_first(seed, plan)
    renumbered = np.cumsum(gaps)
    spread = np.full(renumbered[-1] + 1, 1 << 40)
    spread[renumbered] = first
    moved = pairs_of([(user, int(renumbered[item])) for user, item in log], len(spread))
    weights = steered_weights(moved, spread, np.zeros(len(spread), dtype=bool), plan)
    expected = steered_weights(pairs, first, np.zeros(ITEMS, dtype=bool), plan)
    assert weights == {(user, int(renumbered[item])): weight for (user, item), weight in expected.items()}


def test_of_equal_items_a_user_takes_the_first_in_number_and_of_others_those_nearest_to_hope() -> None:
    plan, listed = made_plan(3), np.zeros(ITEMS, dtype=bool)
    hopeful = plan.least_hopeful(plan.threshold)
    pairs = pairs_of([(0, item) for item in (9, 4, 7, 2, 11)] + [(1, item) for item in range(ITEMS)])
    equal = np.full(ITEMS, 2 * hopeful)
    assert {item for user, item in steered_weights(pairs, equal, listed, plan) if user == 0} == {2, 4, 7}
    falling = hopeful * (ITEMS + 1 - np.arange(ITEMS))
    weights = steered_weights(pairs, falling, listed, plan)
    assert {item for user, item in weights if user == 0} == {7, 9, 11}
    assert weights[0, 7] < weights[0, 9] < weights[0, 11]  # what is certain needs little


def test_a_user_of_one_item_gives_it_all() -> None:
    plan = made_plan(20)
    first = np.full(ITEMS, plan.threshold)
    assert list(even_weights(pairs_of([(3, 3)]))) == [WEIGHT_UNIT]
    assert steered_weights(pairs_of([(3, 3)]), first, first < 0, plan) == {(0, 3): WEIGHT_UNIT}


def test_the_busiest_weighing_allowed_does_not_overflow() -> None:
    items = MOST_WEIGHED_ITEMS + 10
    plan = plan_steered(BUDGET.squared, BUDGET.new_item_delta, weighed_items=MOST_WEIGHED_ITEMS)
    first = np.full(items, plan.least_hopeful(plan.threshold))
    pairs = Contributions.among(np.zeros(items, np.int64), np.arange(items), items)
    weights = steered_weights(pairs, first, first < 0, plan)
    assert len(weights) == MOST_WEIGHED_ITEMS and within_the_bound(weights) and min(weights.values()) > 0


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0.01", "1e-6"), ("0.5", "1e-30"), ("50", "1e-6"), ("50", "1e-30"), ("1000", "0.5")]
)
def test_extreme_budgets_keep_the_bound_and_spend_no_more_than_they_are(epsilon: str, delta: str) -> None:
    budget = gaussian_budget(Fraction(epsilon), Fraction(delta))
    plan = plan_part(budget, listed_items=3)
    assert spent(plan) <= budget.squared
    pairs = pairs_of([(user, item) for user in range(40) for item in range(user % 7, ITEMS)])
    first = look_first(SeededRandom(1), even_sums(pairs), np.zeros(ITEMS, dtype=bool), plan)
    assert within_the_bound(steered_weights(pairs, first, np.zeros(ITEMS, dtype=bool), plan))
    highest = np.full(ITEMS, plan.least_hopeful(plan.threshold))  # c·2**24 must fit
    assert set(steered_weights(pairs_of([(0, 0)]), highest, highest < 0, plan).values()) == {WEIGHT_UNIT}
    draw_steered(SeededRandom(2), pairs, PublicItems(listed=np.arange(3)), plan)


def test_too_small_a_budget_is_refused_when_it_is_planned() -> None:
    with pytest.raises(ParameterError, match="more noise than can be drawn"):
        plan_part(gaussian_budget(Fraction(1, 100), Fraction(1, 10**30)))


def spent(plan: steered.SteeredPlan) -> Fraction:
    """μ² of the two looks, the counts and the total, by the variances that are drawn."""
    looks = [(WEIGHT_UNIT**2, plan.first_variance), (WEIGHT_UNIT**2, plan.second_variance)]
    counts = plan.counting
    tables = [*looks, (counts.squared_limit, counts.variance), (counts.most_items**2, counts.total_variance)]
    return sum((Fraction(moved, variance - 64) for moved, variance in tables), Fraction(0))


@pytest.mark.parametrize("with_known", [False, True])
@pytest.mark.parametrize("part", [Fraction(1), Fraction(1, 3)])
def test_a_plan_spends_its_part_of_the_budget_and_hardly_less(part: Fraction, with_known: bool) -> None:
    plan = plan_part(BUDGET, part, with_known=with_known)
    assert Fraction(999, 1000) * BUDGET.squared * part < spent(plan) <= BUDGET.squared * part


def test_known_items_cost_no_weight_in_either_look() -> None:
    """A user of one unknown item gives it all, however many known ones they hold."""
    log = [(user, item) for user in range(60) for item in range(10)]
    alone = [(user, 9) for user in range(60)]
    public = PublicItems(known=np.arange(9), known_users=np.full(9, 50))
    plan = plan_part(BUDGET, with_known=True)
    kept = pairs_of(log).where(pairs_of(log).items == 9)
    assert np.array_equal(even_weights(kept), even_weights(pairs_of(alone)))
    with_them = draw_steered(SeededRandom(3), pairs_of(log), public, plan)
    assert 9 in with_them.items
    crowded = draw_steered(SeededRandom(3), pairs_of(log), PublicItems(), plan)
    assert len(crowded.items) < 10  # where they are unknown the same weight does not name all ten


def test_estimates_and_deviations_agree_where_users_have_one_item() -> None:
    """600 items of 30 to 629 users. Deviation of z-scores within 0.15 of 1: five of its own deviations, fixed seed."""
    sizes = np.arange(30, 630)
    items = np.repeat(np.arange(600), sizes)
    drawn = release_steered(SeededRandom(4), np.arange(len(items)), items, 600, PublicItems(), BUDGET)
    errors = drawn.users - sizes[drawn.items]
    assert len(errors) > 550 and abs(np.std(errors / drawn.deviations) - 1) < 0.15
    assert abs(errors.mean()) < 0.05 * sizes.mean()


@pytest.mark.parametrize("largest", [3_000, 20_000])
def test_a_stated_deviation_holds_the_noise_of_the_correction_and_nothing_is_corrected_for_nothing(
    largest: int,
) -> None:
    """One large item and twenty small ones, one item per user: nothing to correct, and a total that is mostly noise.

    100 draws. The spread of z-scores is within 0.36 of 1, their mean within 0.5 of 0: five of their own deviations.
    """
    sizes = np.array([largest] + [60] * 20)
    items = np.repeat(np.arange(len(sizes)), sizes)
    budget = gaussian_budget(Fraction(2), Fraction(1, 10**6))
    scores = []
    for seed in range(100):
        drawn = release_steered(SeededRandom(seed), np.arange(len(items)), items, len(sizes), PublicItems(), budget)
        assert drawn.items[0] == 0
        scores.append((drawn.users[0] - largest) / drawn.deviations[0])
    assert abs(np.std(scores) - 1) < 0.36 and abs(np.mean(scores)) < 0.5


@pytest.mark.parametrize("shared", [10, 50, 200])
def test_what_everybody_holds_is_named_however_many_items_each_user_has(shared: int) -> None:
    """6,000 users who hold one item, and `shared` of 10 times as many others that 600 users hold: more than anybody may
    weigh. False-alarm rate far below 1e-6: the item is dozens of deviations above its threshold."""
    generator = np.random.default_rng(shared)
    users, others = 6_000, 10 * shared
    own = np.argsort(generator.random((users, others)), axis=1)[:, :shared] + 1
    user_ids = np.repeat(np.arange(users), shared + 1)
    item_ids = np.hstack([np.zeros((users, 1), dtype=np.int64), own]).ravel()
    budget = gaussian_budget(Fraction(2), Fraction(1, 10**6))
    for seed in range(3):
        drawn = release_steered(SeededRandom(seed), user_ids, item_ids, others + 1, PublicItems(), budget)
        assert drawn.items[0] == 0
    listed = PublicItems(listed=np.array([0, others + 1]))
    drawn = release_steered(SeededRandom(9), user_ids, item_ids, others + 2, listed, budget)
    assert drawn.items[0] == 0


def zipf_log(seed: int, rows: int = 300_000, users: int = 8_000, items: int = 200_000) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    popularity = np.arange(1, items + 1) ** -0.8
    activity = generator.lognormal(0, 1.2, users)
    user_ids = generator.choice(users, rows, p=activity / activity.sum())
    return user_ids, generator.choice(items, rows, p=popularity / popularity.sum())


def test_steering_names_at_least_1_7_times_as_many_as_one_round() -> None:
    user_ids, item_ids = zipf_log(9)
    steered_items = release_steered(SeededRandom(1), user_ids, item_ids, 200_000, PublicItems(), BUDGET).items
    for limit in (50, 100, 200):
        one = weighted_gaussian(
            SeededRandom(1), user_ids, item_ids, limit, BUDGET.epsilon, BUDGET.delta, Fraction(9, 10)
        )
        assert len(steered_items) >= 1.7 * len(one.items)


def test_equal_seeds_give_equal_releases_in_ascending_order() -> None:
    user_ids, item_ids = zipf_log(6, rows=60_000, items=20_000)
    public = PublicItems(known=np.array([5, 3]), known_users=np.array([100, 200]), listed=np.array([900, 7]))
    one, same, other = (
        release_steered(SeededRandom(seed), user_ids, item_ids, 20_000, public, BUDGET) for seed in (1, 1, 2)
    )
    assert np.array_equal(one.items, same.items) and np.array_equal(one.users, same.users)
    assert not np.array_equal(one.users, other.users)
    assert (np.diff(one.items) > 0).all() and one.users.min() >= 1 and {3, 5} <= set(one.items.tolist())


@pytest.mark.parametrize("items", [0, 5])
def test_nothing_comes_of_nothing(items: int) -> None:
    assert len(release_steered(SeededRandom(7), EMPTY, EMPTY, items, PublicItems(), BUDGET).items) == 0


def test_numbers_beyond_those_held_are_never_named() -> None:
    user_ids, item_ids = np.arange(500), np.zeros(500, dtype=np.int64)
    assert list(release_steered(SeededRandom(8), user_ids, item_ids, 10**5, PublicItems(), BUDGET).items) == [0]


@pytest.mark.parametrize(
    "changes",
    [
        {"known": np.array([-1]), "known_users": np.array([5])},
        {"known": np.array([3]), "known_users": np.array([5])},
        {"listed": np.array([-1])},
        {"listed": np.array([3])},
        {"known": np.array([0]), "known_users": np.array([0])},
        {"known": np.array([0]), "known_users": np.array([-3])},
        {"known": np.array([0]), "known_users": np.array([1, 2])},
        {"known": np.array([0, 0]), "known_users": np.array([1, 2])},
        {"known": np.array([0]), "known_users": np.array([1]), "listed": np.array([0])},
        {"listed": np.array([True, False, True])},
        {"known": np.array([0]), "known_users": np.array([float("nan")])},
    ],
)
def test_public_items_that_are_no_items_are_refused_before_anything_is_drawn(changes: dict[str, np.ndarray]) -> None:
    with pytest.raises(ParameterError):
        release_steered(NoDraw(), np.array([1]), np.array([1]), 3, PublicItems(**changes), BUDGET)


@pytest.mark.parametrize("part", [Fraction(0), Fraction(-1), Fraction(2)])
def test_a_part_is_never_more_than_the_whole_budget(part: Fraction) -> None:
    with pytest.raises(ParameterError, match="share"):
        release_steered(NoDraw(), EMPTY, EMPTY, 3, PublicItems(), BUDGET, part)


@pytest.mark.parametrize("weighed_items", [0, MOST_WEIGHED_ITEMS + 1])
def test_a_plan_for_too_few_or_too_many_items_is_refused(weighed_items: int) -> None:
    with pytest.raises(ParameterError, match="weighed items"):
        plan_steered(Fraction(1), Fraction(1, 100), weighed_items=weighed_items)
