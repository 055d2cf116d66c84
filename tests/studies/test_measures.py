"""The measures of a release's usefulness, on examples small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.studies.measures import caching, frequent, sanitization, substitution
from qlog_assets.studies.sanitized.sweeps import Clicks, take_users

TRUTH = frequent.Truth(users=np.array([100, 60, 52, 48, 5]), events=np.array([500, 100, 100, 200, 100]))


def test_inaccuracy_ignores_items_within_the_slack() -> None:
    """τ = 50, ζ = 5: item 0 printed, 1 missing (60 ≥ 55, wrong), 2 missing and 3 printed (both within the slack)."""
    result = frequent.compare(TRUTH, np.array([0, 3]), np.array([90, 58]), frequent=50, slack=5)
    assert result.inaccuracy == 1
    assert (result.precision, result.recall) == (0.5, pytest.approx(1 / 3))
    assert (result.impressions_share, result.distinct_share) == (0.7, 0.4)
    assert result.count_error == 10 and result.relative_error == pytest.approx((0.1 + 10 / 48) / 2)


def test_a_rare_item_that_is_printed_counts_as_wrong() -> None:
    assert frequent.compare(TRUTH, np.arange(5), TRUTH.users, 50, 5).inaccuracy == 1


def test_an_empty_release_misses_everything_and_has_no_error() -> None:
    result = frequent.compare(TRUTH, np.empty(0, np.int64), np.empty(0), 50, 0)
    assert (result.inaccuracy, result.recall, result.precision, result.count_error) == (3, 0.0, None, None)


def test_the_cache_takes_what_is_looked_up_most_for_its_size_and_fits() -> None:
    counts, sizes = np.array([10, 9, 8, 0]), np.array([10.0, 1.0, 2.0, 0.1])
    kept = caching.fill_cache(counts, sizes, capacity=3)
    assert kept.tolist() == [1, 2]
    assert caching.hit_rate(kept, np.array([1, 2, 1, 0])) == 0.75
    assert caching.hit_rate(kept, np.zeros(4)) == 0


def test_substitutes_in_the_order_of_the_raw_log_are_perfect() -> None:
    raw = {"cars": [("auto", 9.0), ("used cars", 4.0)], "cats": [("kittens", 3.0)]}
    best = substitution.compare(raw, raw)
    assert (best.coverage, best.precision, best.average_precision) == (1, 1, 1) and best.ndcg == pytest.approx(1)


def test_missing_queries_score_nothing_and_a_wrong_order_costs() -> None:
    raw = {"cars": [("auto", 9.0), ("used cars", 4.0)], "cats": [("kittens", 3.0)]}
    released = {"cars": [("used cars", 30.0), ("other", 20.0), ("auto", 10.0)]}
    result = substitution.compare(raw, released)
    assert (result.queries, result.coverage, result.precision) == (2, 0.5, 0.5)
    assert result.average_precision == pytest.approx((1 + 2 / 3) / 2 / 2)
    ideal = 9 + 4 / np.log2(3)
    assert result.ndcg == pytest.approx((4 + 9 / 2) / ideal / 2)


def test_nothing_to_compare_is_zero() -> None:
    assert substitution.compare({}, {}) == substitution.Substitutions(0, 0, 0, 0, 0)


CLICKED = np.array([50, 30, 15, 5])


def test_a_sanitized_log_of_the_same_shares_has_every_frequent_pair_where_it_was() -> None:
    kept = sanitization.compare(CLICKED, CLICKED // 5, 0.1)
    assert (kept.size, kept.precision, kept.recall, kept.diversity) == (20, 1, 1, 1)
    assert kept.distance_sum == kept.distance_mean == 0


def test_an_infrequent_pair_that_became_frequent_costs_precision_and_a_lost_one_recall() -> None:
    kept = sanitization.compare(CLICKED, np.array([5, 0, 2, 3]), 0.1)
    assert (kept.precision, kept.recall, kept.diversity) == (pytest.approx(2 / 3), pytest.approx(2 / 3), 0.75)
    assert kept.distance_sum == pytest.approx(0 + 0.3 + 0.05) and kept.distance_mean == pytest.approx(0.35 / 3)


def test_an_empty_sanitized_log_keeps_nothing_and_has_no_distance() -> None:
    kept = sanitization.compare(CLICKED, np.zeros(4, np.int64), 0.1)
    assert (kept.size, kept.recall, kept.precision, kept.distance_sum, kept.diversity) == (0, 0, None, None, 0)


def test_the_difference_ratio_compares_each_users_share_before_and_after() -> None:
    """Equation (10) on four triplets of ten events, of which the third is not looked at: 1/10 became 2/4, 2/10 0."""
    log = PairCounts(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 2]), np.array([1, 2, 3, 4]))
    output = PairCounts(np.array([0, 2]), np.array([0, 2]), np.array([2, 2]))
    ratios = sanitization.difference_ratios(log, output, np.array([True, False, True]))
    assert ratios.tolist() == pytest.approx([4.0, 1.0, 0.25])


def shared_clicks(users: int, pairs: int) -> Clicks:
    rng = np.random.default_rng(3)
    held = np.unique(rng.integers(0, users * pairs, 4 * users))
    rows = PairCounts(held // pairs, held % pairs, np.ones(held.size, np.int64))
    rows = rows.keep(np.bincount(rows.pairs)[rows.pairs] > 1)
    kept, numbers = np.unique(rows.pairs, return_inverse=True)
    return Clicks("the month", PairCounts(rows.users, numbers, rows.events), np.arange(kept.size))


def test_of_a_month_that_is_too_large_for_the_solver_some_users_are_taken_whole() -> None:
    whole = shared_clicks(2_000, 3_000)
    taken = take_users(whole, 500, seed=1)
    assert 250 // 4 < taken.queries.size <= 500
    everybody = np.unique(whole.rows.users).size
    assert taken.name in {f"{everybody // parts:,} of {everybody:,} users of the month" for parts in (2, 4, 8)}
    assert np.bincount(taken.rows.pairs).min() >= 2, "a pair of one user alone"
    assert taken.queries.size == taken.rows.pairs.max() + 1
    again = take_users(whole, 500, seed=1)
    assert np.array_equal(again.rows.users, taken.rows.users) and np.array_equal(again.queries, taken.queries)


def test_a_month_within_the_solvers_reach_is_taken_as_it_is() -> None:
    whole = shared_clicks(50, 60)
    assert take_users(whole, whole.queries.size, seed=1) is whole
