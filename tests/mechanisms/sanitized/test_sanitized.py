"""The sanitized log: optimisation problems within their own bounds, sampling, pre-processing; and the synthetic one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chisquare

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.sanitized import noise as synthetic
from qlog_assets.mechanisms.sanitized import paper as sanitized
from qlog_assets.mechanisms.sanitized.guarantee import user_budget
from qlog_assets.privacy.histogram import Released
from qlog_assets.privacy.randomness import SeededRandom

LIMIT = math.log(2)


def random_counts(seed: int, users: int = 80, pairs: int = 40) -> sanitized.PairCounts:
    """Clicks with popular and rare pairs, one row a user and pair, unique pairs included."""
    generator = np.random.default_rng(seed)
    clicks = np.stack([generator.integers(users, size=900), generator.zipf(1.5, size=900) % pairs], axis=1)
    rows, events = np.unique(clicks, axis=0, return_counts=True)
    return sanitized.PairCounts(rows[:, 0], rows[:, 1], events)


def shared(users: int) -> sanitized.PairCounts:
    return sanitized.PairCounts(np.arange(users), np.zeros(users, np.int64), np.ones(users, np.int64))


def matrix_of(rows: sanitized.PairCounts, pairs: int = 40) -> csr_array:
    return sanitized.constraints(sanitized.drop_unique_pairs(rows), pairs)


@pytest.mark.parametrize("limit", [0.01, LIMIT, 3.0])
def test_no_solver_exceeds_users_times_budget(limit: float) -> None:
    """Σx ≤ n·B follows from the constraints (specification 6.2); Table 4 of the paper prints up to 20,000 times it."""
    matrix = matrix_of(random_counts(1))
    users = matrix.shape[0]
    outputs = [
        sanitized.largest_output(matrix, limit),
        sanitized.whole(sanitized.largest_output(matrix, limit)),
        sanitized.most_pairs(matrix, limit),
        sanitized.eliminate_sensitive(matrix, limit).astype(int),
    ]
    for output in outputs:
        assert output.sum() <= users * limit * (1 + 1e-9)
        assert (matrix @ output <= limit * (1 + 1e-6)).all()


def test_table_4_is_above_what_its_own_constraints_allow() -> None:
    """1,980 users at δ = 1e-4: at most 0.198 events, the paper prints 3,759. At its other end 1,649 and 13,901."""
    assert 1980 * user_budget(math.log(1.001), 1e-4) == pytest.approx(0.198, abs=1e-3)
    assert 1980 * user_budget(math.log(2.3), 0.8) == pytest.approx(1649.2, abs=0.1)


def test_the_relaxed_optimum_is_linear_in_the_budget() -> None:
    matrix = matrix_of(random_counts(2))
    once, twice = (sanitized.largest_output(matrix, limit).sum() for limit in (LIMIT, 2 * LIMIT))
    assert twice == pytest.approx(2 * once, rel=1e-6)


def test_output_counts_tell_ten_users_from_nine() -> None:
    """Gap G1: a deterministic function of the log, printed."""
    for users, expected in ((10, 6), (9, 5)):
        best = sanitized.whole(sanitized.largest_output(matrix_of(shared(users), 1), LIMIT))
        assert best.tolist() == [expected]


def test_a_whole_number_the_solver_only_approaches_is_not_lost() -> None:
    assert sanitized.whole(np.array([0.99999999, 1.0, 1.9])).tolist() == [1, 1, 1]
    assert sanitized.whole(sanitized.largest_output(matrix_of(shared(2), 1), LIMIT)).tolist() == [1]


def test_preprocessing_keeps_everybody_of_1000_and_nobody_of_999() -> None:
    """Gap G3: 692 against 0."""
    assert sanitized.unstable_users(shared(1000), LIMIT, 0.5).size == 0
    assert sanitized.unstable_users(shared(999), LIMIT, 0.5).size == 999


def test_preprocessing_solves_equal_users_once_and_right() -> None:
    rows = random_counts(3, users=25, pairs=8)
    complete = sanitized.whole(sanitized.largest_output(matrix_of(rows, 8), LIMIT))
    expected = []
    for user in np.unique(rows.users):
        rest = sanitized.whole(sanitized.largest_output(matrix_of(rows.keep(rows.users != user), 8), LIMIT))
        if np.abs(rest - complete).max() > 0.5:
            expected.append(int(user))
    assert sanitized.unstable_users(rows, LIMIT, 0.5).tolist() == expected
    assert 0 < len(expected) < 25


def test_a_pair_of_one_user_alone_is_refused_by_the_constraints_and_dropped_before() -> None:
    rows = sanitized.PairCounts(np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([1, 2, 5]))
    with pytest.raises(ParameterError, match="drop_unique_pairs"):
        sanitized.constraints(rows, 2)
    assert sanitized.drop_unique_pairs(rows).pairs.tolist() == [0, 0]


def test_frequent_pairs_keep_their_support_and_the_size_is_met() -> None:
    rows = sanitized.drop_unique_pairs(random_counts(4))
    matrix = sanitized.constraints(rows, 40)
    totals = np.bincount(rows.pairs, weights=rows.events, minlength=40)
    size = sanitized.largest_output(matrix, LIMIT).sum() / 4
    close = sanitized.closest_support(matrix, LIMIT, totals, 1 / 100, size)
    assert close.sum() == pytest.approx(size)
    assert (matrix @ close <= LIMIT * (1 + 1e-6)).all()
    frequent = totals / totals.sum() >= 1 / 100
    largest = sanitized.largest_output(matrix, LIMIT)

    def distance(output: np.ndarray) -> float:
        return float(np.abs(output / output.sum() - totals / totals.sum())[frequent].sum())

    assert distance(close) <= distance(largest * (size / largest.sum())) + 1e-9


def test_an_output_size_above_the_largest_is_refused() -> None:
    matrix = matrix_of(shared(10), 1)
    with pytest.raises(ParameterError, match="output size"):
        sanitized.closest_support(matrix, LIMIT, np.array([10]), 0.01, 7.0)


@pytest.mark.parametrize("test_first", [True, False])
@pytest.mark.parametrize("limit", [0.05, 0.5, 100.0])
def test_elimination_is_the_printed_loop(test_first: bool, limit: float) -> None:
    matrix = matrix_of(random_counts(5))
    dense = matrix.toarray()
    kept = dense.any(axis=0)
    order = sorted(np.flatnonzero(kept), key=lambda pair: (-dense[:, pair].max(), -pair))
    if not test_first:
        kept[order.pop(0)] = False
    while (dense @ kept > limit * (1 + 1e-12)).any():
        kept[order.pop(0)] = False
    assert sanitized.eliminate_sensitive(matrix, limit, test_first).tolist() == kept.tolist()


def test_sampling_gives_each_pair_its_count_and_each_user_her_share() -> None:
    """χ² on 30,000 trials over three users; false alarm one in a million, and seeded."""
    rows = sanitized.PairCounts(np.array([7, 8, 9, 8]), np.array([0, 0, 0, 2]), np.array([1, 3, 6, 4]))
    output = sanitized.sample_users(SeededRandom(7), rows, np.array([30_000, 5, 40]))
    assert np.bincount(output.pairs, weights=output.events).tolist() == [30_000, 0, 40]
    assert output.users.tolist() == sorted(output.users.tolist())
    share = output.events[output.pairs == 0]
    assert chisquare(share, [3000, 9000, 18_000]).pvalue > 1e-6


def test_synthetic_log_holds_only_released_pairs_and_the_public_number_of_users() -> None:
    output = synthetic.synthetic_log(
        SeededRandom(8), np.array([3, 5, 9]), np.array([10, 0, 30]), np.array([0, 50, 50]), users=400
    )
    assert np.unique(output.users).tolist() == list(range(400))
    assert set(output.pairs.tolist()) == {3, 9}
    clicks = np.bincount(output.users, weights=output.events)
    assert set(clicks.tolist()) == {2, 3}
    share = output.events[output.pairs == 9].sum() / output.events.sum()
    assert abs(share - 0.75) < 0.07  # about 1,000 draws: five standard deviations


def test_synthetic_log_survives_noise_that_leaves_nothing() -> None:
    empty = synthetic.synthetic_log(SeededRandom(9), np.empty(0, int), np.empty(0, int), np.array([0, 0]), users=5)
    assert empty.users.size == 0
    some = synthetic.synthetic_log(SeededRandom(9), np.array([1]), np.array([2]), np.array([0, 0]), users=5)
    assert np.unique(some.users).size == 5


def test_objectives_are_computed_from_the_noisy_histogram_alone() -> None:
    noisy = Released(np.array([0, 1, 2, 3]), np.array([50, 30, 15, 5]))
    assert synthetic.aim(noisy, "output_size").tolist() == [50, 30, 15, 5]
    assert synthetic.aim(noisy, "diversity").tolist() == [1, 1, 1, 1]
    assert synthetic.aim(noisy, "frequent_pairs", size=10, minimum_support=0.1).tolist() == [5, 3, 2, 0]
    assert synthetic.aim(noisy, "frequent_pairs", size=7).sum() == 7


def test_lengths_are_noised_in_every_cell_and_never_negative() -> None:
    lengths = synthetic.release_lengths(SeededRandom(10), np.zeros(1000, np.int64), Fraction(3))
    assert lengths.min() == 0 and 300 < np.count_nonzero(lengths) < 500
