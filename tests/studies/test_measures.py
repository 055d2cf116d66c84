"""The measures of a release's usefulness, on examples small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from qlog_assets.studies.measures import caching, frequent, substitution

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
