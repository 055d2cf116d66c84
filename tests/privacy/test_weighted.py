"""Weighted selection from pairs: what one user can move, who is chosen, what stays hidden, how good the counts are."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chisquare

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.gaussian import (
    COUNT_UNIT,
    WEIGHT_UNIT,
    gaussian_budget,
    plan_set_counts,
    plan_weighted,
    plan_weights,
)
from qlog_assets.privacy.histogram import stability_histogram
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.weighted import (
    Contributions,
    draw_set_counts,
    draw_weighted,
    exact_sums,
    gaussian_counts_of_set,
    numbered,
    shrunk_weights,
    shuffled_within,
    sips,
    weighted_gaussian,
)

METHODS: list[Callable] = [weighted_gaussian, sips]
EPSILON, DELTA = Fraction(2), Fraction(1, 10**4)
LOGS = st.lists(st.tuples(st.integers(0, 8), st.integers(-3, 30)), max_size=120)


class NoDraw(RandomSource):
    """A source that must not be asked: bad parameters are refused before anything is drawn."""

    secure = False

    def _key(self, number: int) -> bytes:
        raise AssertionError("something was drawn")


class TwoBits(SeededRandom):
    """Random words of which only two bits are random, so that ties are everywhere."""

    def words(self, n: int) -> np.ndarray:
        return super().words(n) & np.uint64(3 << 62)


def arrays(log: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array(log, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def zipf_log(seed: int, rows: int = 300_000, users: int = 8_000, items: int = 200_000) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    popularity = np.arange(1, items + 1) ** -0.8
    activity = generator.lognormal(0, 1.2, users)
    user_ids = generator.choice(users, rows, p=activity / activity.sum())
    return user_ids, generator.choice(items, rows, p=popularity / popularity.sum())


@settings(max_examples=100, deadline=None)
@given(log=LOGS)
def test_pairs_are_made_distinct_and_keep_their_ids(log: list[tuple[int, int]]) -> None:
    contributions = Contributions.of(*arrays(log))
    users = np.unique(arrays(log)[0])
    pairs = set(zip(users[contributions.owners], contributions.names[contributions.items], strict=True))
    assert pairs == set(log) and len(contributions.items) == len(pairs)
    assert (np.diff(contributions.owners) >= 0).all()


@settings(max_examples=50, deadline=None)
@given(ids=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5), max_size=30))
def test_numbering_is_the_same_for_dense_and_scattered_ids(ids: list[int]) -> None:
    names, numbers = numbered(np.array(ids, dtype=np.int64))
    assert np.array_equal(names[numbers], ids) and np.array_equal(names, np.unique(np.array(ids, dtype=np.int64)))


@settings(max_examples=60, deadline=None)
@given(log=LOGS, limit=st.integers(1, 40), seed=st.integers(0, 1000))
def test_no_user_moves_the_weighted_sums_by_more_than_one_in_l2(
    log: list[tuple[int, int]], limit: int, seed: int
) -> None:
    """Deterministic sensitivity, in exact integers: all sums with and without each user, the choices being fixed."""
    sample = Contributions.of(*arrays(log)).sampled(SeededRandom(seed), limit)
    table = np.array([0, *plan_weights(limit, Fraction(1), Fraction(1, 10)).weights])

    def sums(pairs: Contributions) -> np.ndarray:
        return exact_sums(pairs.items, table[pairs.degrees()[pairs.owners]], len(pairs.names))

    for user in np.unique(sample.owners):
        change = sums(sample) - sums(sample.where(sample.owners != user))
        assert sum(int(value) ** 2 for value in change) <= WEIGHT_UNIT**2
        assert np.count_nonzero(change) <= limit


@settings(max_examples=60, deadline=None)
@given(log=LOGS, counted=st.integers(1, 12))
def test_no_user_moves_the_counts_of_a_set_by_more_than_their_bound_in_l2(
    log: list[tuple[int, int]], counted: int
) -> None:
    pairs = Contributions.of(*arrays(log))

    def sums(kept: Contributions) -> np.ndarray:
        weights = shrunk_weights(kept.degrees(), counted)[kept.owners]
        return exact_sums(kept.items, weights, len(kept.names))

    for user in np.unique(pairs.owners):
        change = sums(pairs) - sums(pairs.where(pairs.owners != user))
        assert sum(int(value) ** 2 for value in change) <= counted * COUNT_UNIT**2


def test_shrunk_weights_are_whole_for_quiet_users_and_rounded_down_for_others() -> None:
    weights = shrunk_weights(np.array([0, 1, 10, 11, 40, 10**6]), 10)
    assert list(weights[:3]) == [COUNT_UNIT] * 3 and weights[4] == COUNT_UNIT // 2
    assert 10**6 * int(weights[5]) ** 2 <= 10 * COUNT_UNIT**2


def test_sampling_keeps_every_user_within_the_limit_and_quiet_users_whole() -> None:
    pairs = Contributions.of(*zipf_log(1, rows=50_000))
    sample = pairs.sampled(SeededRandom(1), 7)
    assert np.array_equal(sample.degrees(), np.minimum(pairs.degrees(), 7))
    width = len(pairs.names)
    assert np.isin(sample.owners * width + sample.items, pairs.owners * width + pairs.items).all()
    assert pairs.sampled(NoDraw(), int(pairs.degrees().max())) is pairs


@pytest.mark.parametrize("source", [SeededRandom(2), TwoBits(2)])
def test_every_order_of_a_users_items_is_equally_likely_also_when_words_tie(source: RandomSource) -> None:
    """30,000 users of three items, six orders. False-alarm rate 1e-6, fixed seed."""
    groups = np.repeat(np.arange(30_000), 3)
    order = shuffled_within(source, groups)
    assert np.array_equal(groups[order], groups)
    codes = (order.reshape(-1, 3) % 3) @ np.array([9, 3, 1])
    counts = [np.count_nonzero(codes == 9 * a + 3 * b + c) for a, b, c in permutations(range(3))]
    assert sum(counts) == 30_000 and chisquare(counts).pvalue > 1e-6


def test_a_users_choice_does_not_depend_on_anyone_else() -> None:
    """Each of a user's 4 items is kept (2 of 4) equally often beside very different company. False-alarm rate 1e-6."""
    for company in (0, 50):
        user_ids = np.r_[np.repeat(np.arange(20_000), 4), np.repeat(10**6, company)]
        item_ids = np.r_[np.tile(np.arange(4), 20_000), np.arange(company)]
        sample = Contributions.of(user_ids, item_ids).sampled(SeededRandom(company), 2)
        kept = np.bincount(sample.items[sample.owners < 20_000])
        assert kept.sum() == 40_000 and chisquare(kept).pvalue > 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_items_of_one_user_stay_hidden_as_often_as_promised(method: Callable) -> None:
    """20,000 users of three items nobody else holds, δ = 0.2, of which half is theirs. False-alarm rate 1e-9."""
    users, delta = 20_000, Fraction(1, 5)
    user_ids = np.repeat(np.arange(users), 3)
    drawn = method(SeededRandom(4), user_ids, np.arange(3 * users), 3, Fraction(2), delta)
    caught = len(np.unique(drawn.items // 3))
    assert 0 < caught <= binom.isf(1e-9, users, float(delta / 2))


@pytest.mark.parametrize("method", METHODS)
def test_common_items_are_named_and_each_only_once(method: Callable) -> None:
    user_ids, item_ids = np.repeat(np.arange(500), 4), np.tile(np.array([7, -2, 10**12, 30]), 500)
    drawn = method(SeededRandom(5), user_ids, item_ids, 4, EPSILON, DELTA)
    assert list(drawn.items) == [-2, 7, 30, 10**12] and drawn.users is None


@pytest.mark.parametrize("method", METHODS)
def test_equal_seeds_give_equal_releases_and_the_cost_is_what_was_asked(method: Callable) -> None:
    log = zipf_log(6, rows=60_000)
    runs = [method(SeededRandom(seed), *log, 20, EPSILON, DELTA, Fraction(9, 10)) for seed in (1, 1, 2)]
    assert np.array_equal(runs[0].items, runs[1].items) and np.array_equal(runs[0].users, runs[1].users)
    assert not np.array_equal(runs[0].users, runs[2].users)
    assert (runs[0].loss.epsilon, runs[0].loss.delta) == (EPSILON, DELTA)
    assert runs[0].loss.rho == gaussian_budget(EPSILON, DELTA).rho


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("share", [Fraction(1), Fraction(1, 2)])
def test_nothing_comes_of_nothing(method: Callable, share: Fraction) -> None:
    empty = np.empty(0, dtype=np.int64)
    drawn = method(SeededRandom(7), empty, empty, 5, EPSILON, DELTA, share)
    assert len(drawn.items) == 0 and (drawn.users is None) == (share == 1)


def test_a_later_round_looks_only_at_what_is_not_out_yet() -> None:
    """Nine common items and a limit of three: one round names what it may, three rounds find room for the rest."""
    user_ids, item_ids = np.repeat(np.arange(60), 9), np.tile(np.arange(9), 60)
    budget = gaussian_budget(Fraction(8), Fraction(1, 100))
    plan = plan_weighted("sips", 3, budget)
    drawn = draw_weighted(SeededRandom(8), Contributions.of(user_ids, item_ids), plan)
    assert list(drawn.items) == list(range(9))


def test_counts_of_a_set_are_close_and_unbiased_on_a_long_tailed_log() -> None:
    """Mean error over the named items within 5 % of the mean count, fixed seed; each error is noise and shrinkage."""
    user_ids, item_ids = zipf_log(9)
    pairs = Contributions.of(user_ids, item_ids)
    drawn = weighted_gaussian(SeededRandom(9), user_ids, item_ids, 100, EPSILON, DELTA, Fraction(4, 5), 10)
    truth = np.bincount(pairs.items)[np.searchsorted(pairs.names, drawn.items)]
    assert drawn.users is not None and drawn.users.min() >= 1
    assert abs(np.mean(drawn.users - truth)) < 0.05 * np.mean(truth)
    assert np.median(np.abs(drawn.users - truth)) < 0.25 * np.median(truth)


def test_an_unclear_total_does_not_stretch_the_counts() -> None:
    """Few users with many items: the noisy total is useless, so counts stay as drawn, below the truth."""
    user_ids, item_ids = np.repeat(np.arange(30), 40), np.tile(np.arange(40), 30)
    plan = plan_set_counts(10, 40, Fraction(4), Fraction(1, 1000))
    assert plan.total_variance is not None and plan.total_variance > (1200 / 20) ** 2
    drawn = draw_set_counts(SeededRandom(10), Contributions.of(user_ids, item_ids), np.arange(40), plan)
    assert abs(drawn.users.mean() - 15) < 2  # √(10/40) of thirty users
    assert drawn.deviation == math.sqrt(plan.variance) / COUNT_UNIT
    clear = plan_set_counts(10, 40, Fraction(10**4))
    drawn = draw_set_counts(SeededRandom(10), Contributions.of(user_ids, item_ids), np.arange(40), clear)
    assert np.abs(drawn.users - 30).max() <= 2
    # Thirty is twice fifteen: the noise grows as the counts do.
    assert drawn.deviation == pytest.approx(2 * math.sqrt(clear.variance) / COUNT_UNIT, rel=0.02)


def test_a_public_set_is_counted_whole_whoever_holds_it() -> None:
    user_ids, item_ids = np.arange(1000), np.where(np.arange(1000) < 900, 5, 6)
    drawn = gaussian_counts_of_set(
        SeededRandom(11), user_ids, item_ids, np.array([99, 5, -4, 5]), 1, 1, Fraction(4), Fraction(1, 100)
    )
    assert list(drawn.items) == [-4, 5, 99] and drawn.users is not None
    assert abs(drawn.users[1] - 900) < 20 and drawn.users[[0, 2]].max() < 20


def test_weighted_selection_names_more_than_a_laplace_threshold() -> None:
    user_ids, item_ids = zipf_log(12)
    pairs = Contributions.of(user_ids, item_ids)
    users = np.bincount(pairs.sampled(SeededRandom(1), 10).items, minlength=len(pairs.names))
    laplace = stability_histogram(SeededRandom(12), users, 10, 10 / EPSILON, DELTA)
    for method in METHODS:
        drawn = method(SeededRandom(12), user_ids, item_ids, 50, EPSILON, DELTA, Fraction(9, 10))
        assert len(drawn.items) > 2 * len(laplace.indices)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": Fraction(0)},
        {"epsilon": 2.3},
        {"epsilon": float("nan")},
        {"delta": Fraction(0)},
        {"delta": Fraction(1)},
        {"delta": 1e-6},
        {"items_per_user": 0},
        {"items_per_user": 2.0},
        {"set_share": Fraction(0)},
        {"set_share": Fraction(3, 2)},
        {"set_share": Fraction(1, 2), "counted_items_per_user": 0},
        {"user_ids": np.array([1, 2])},
        {"item_ids": np.array([1.0])},
        {"item_ids": np.array([[1]])},
        {"item_ids": np.array([2**63], dtype=np.uint64)},
    ],
)
def test_bad_parameters_are_refused_before_anything_is_drawn(method: Callable, changes: dict) -> None:
    arguments = {
        "user_ids": np.array([1]),
        "item_ids": np.array([1]),
        "items_per_user": 3,
        "epsilon": EPSILON,
        "delta": DELTA,
        **changes,
    }
    with pytest.raises(ParameterError):
        method(NoDraw(), **arguments)
