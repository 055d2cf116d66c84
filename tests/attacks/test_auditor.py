"""The auditor itself: its bounds are exact, its false-alarm rate is what it says, and it refuses to be misused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from qlog_assets.attacks import auditor as audit
from qlog_assets.privacy.noise import discrete_laplace
from qlog_assets.privacy.randomness import RandomSource, SeededRandom

WITH, WITHOUT = {"a": 1, "X": 1}, {"a": 1}


def coin(probability_with: float, probability_without: float) -> audit.Mechanism:
    """An event of known probability on either log."""

    def mechanism(log: audit.Log, source: RandomSource, runs: int) -> np.ndarray:
        probability = probability_with if "X" in log else probability_without
        return source.integers(10**6, runs) < round(probability * 10**6)

    return mechanism


@pytest.mark.parametrize(("hits", "runs"), [(0, 50), (1, 50), (25, 50), (50, 50), (300, 100_000)])
def test_bounds_are_those_of_clopper_and_pearson(hits: int, runs: int) -> None:
    interval = binomtest(hits, runs).proportion_ci(confidence_level=0.98, method="exact")
    assert audit.lower_bound(hits, runs, 0.01) == pytest.approx(interval.low, rel=1e-9)
    assert audit.upper_bound(hits, runs, 0.01) == pytest.approx(interval.high, rel=1e-9)


def test_blindness_limit_is_what_privacy_1_7_says() -> None:
    """ln(n/7) where each bound errs with e^-7; the default rate of one in a million costs 0.78 of it."""
    assert audit.blindness_limit(100_000, false_alarm=4 * math.exp(-7)) == pytest.approx(math.log(1e5 / 7), abs=1e-3)
    assert audit.blindness_limit(100_000) == pytest.approx(math.log(1e5 / 15.2), abs=1e-3)
    assert audit.blindness_limit(100_000, delta=0.5) == pytest.approx(math.log(0.5e5 / 15.2), abs=1e-3)
    assert audit.epsilon_lower_bound(100_000, 0, 100_000) == pytest.approx(audit.blindness_limit(100_000))


def test_a_claim_above_the_limit_passes_and_the_sentence_says_it_was_not_seen() -> None:
    result = audit.audit_ratio(coin(0.9, 0.0), WITH, WITHOUT, audit.Claim(20), SeededRandom(1), 1000)
    assert result.verdict == "pass" and result.measured < result.limit < 20
    assert "unseen" in result.sentence


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_a_true_claim_fails_no_more_often_than_the_false_alarm_rate(delta: float) -> None:
    """Exact, by summing binomial probabilities: a mechanism that uses its whole claim, alarm rate 5 %, 200 runs."""
    runs, epsilon, rate = 200, 1.0, 0.05
    without = 0.2
    with_user = math.exp(epsilon) * without + delta
    p_with, p_without = (binom.pmf(np.arange(runs + 1), runs, p) for p in (with_user, without))
    alarm = 0.0
    for hits_with in range(runs + 1):
        for hits_without in range(runs + 1):
            weight = p_with[hits_with] * p_without[hits_without]
            if weight > 1e-9 and audit.epsilon_lower_bound(hits_with, hits_without, runs, delta, rate) > epsilon:
                alarm += weight
    assert alarm <= rate


@pytest.mark.parametrize(("first", "second"), [(0.9, 0.3), (0.3, 0.9), (0.1, 0.7), (0.7, 0.1)])
def test_both_directions_and_the_complement_are_looked_at(first: float, second: float) -> None:
    result = audit.audit_ratio(coin(first, second), WITH, WITHOUT, audit.Claim(0.9), SeededRandom(2), 20_000)
    ratios = [first / second, second / first, (1 - first) / (1 - second), (1 - second) / (1 - first)]
    assert result.verdict == "fail"
    assert math.log(max(ratios)) - 0.3 < result.measured < math.log(max(ratios))


def test_an_event_outside_the_claim_s_exceptions_may_leave_its_complement_out() -> None:
    result = audit.audit_ratio(
        coin(0.5, 1.0), WITH, WITHOUT, audit.Claim(0.7), SeededRandom(3), 20_000, complement=False
    )
    assert result.verdict == "pass" and 0.6 < result.measured < math.log(2)


def test_the_measured_bound_comes_close_to_an_exact_mechanism() -> None:
    def tail(log: audit.Log, source: RandomSource, runs: int) -> np.ndarray:
        return len(log) + discrete_laplace(source, Fraction(2), runs) >= 2

    result = audit.audit_ratio(tail, WITH, WITHOUT, audit.Claim(0.5), SeededRandom(4), 400_000)
    assert result.verdict == "pass" and 0.48 < result.measured < 0.5


def test_structural_zero_fails_only_above_delta() -> None:
    for probability, verdict in ((0.02, "fail"), (0.0099, "pass")):
        result = audit.audit_structural_zero(
            coin(probability, 0), WITH, WITHOUT, audit.Claim(30, 0.01), SeededRandom(5), 200_000
        )
        assert result.verdict == verdict and 0.85 * probability < result.measured < probability


def test_structural_zero_refuses_an_event_that_is_not_one() -> None:
    with pytest.raises(ValueError, match="no structural zero"):
        audit.audit_structural_zero(coin(0.5, 0.1), WITH, WITHOUT, audit.Claim(1), SeededRandom(6), 1000)


@pytest.mark.parametrize("other", [{"a": 1, "X": 1}, {"a": 2}, {}, {"b": 1}])
def test_logs_that_are_not_neighbours_are_refused(other: audit.Log) -> None:
    with pytest.raises(ValueError, match="not neighbours"):
        audit.audit_ratio(coin(0.5, 0.5), WITH, other, audit.Claim(1), SeededRandom(7), 10)


def test_a_mechanism_that_returns_something_else_than_one_boolean_a_run_is_refused() -> None:
    for answer in (np.ones(9, bool), np.ones(10)):
        with pytest.raises(ValueError, match="booleans"):
            audit.count_hits(lambda log, source, runs, answer=answer: answer, WITH, SeededRandom(8), 10)


def test_batches_make_up_all_runs() -> None:
    sizes: list[int] = []

    def mechanism(log: audit.Log, source: RandomSource, runs: int) -> np.ndarray:
        sizes.append(runs)
        return np.ones(runs, bool)

    assert audit.count_hits(mechanism, WITH, SeededRandom(9), 25, batch=10) == 25
    assert sizes == [10, 10, 5]


def test_sensitivity_measures_the_worst_single_removal_in_every_norm() -> None:
    log = {"a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": {"z": -3}}

    def total(part: dict[str, dict[str, int]]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for mine in part.values():
            for item, count in mine.items():
                counts[item] = counts.get(item, 0) + count
        return counts

    assert audit.sensitivity(total, log) == {"l1": 3.0, "l2": 3.0, "linf": 3.0}
    assert audit.audit_sensitivity(total, log, audit.Bounds(l1=3, l2=3, linf=3)).verdict == "pass"
    assert audit.audit_sensitivity(total, log, audit.Bounds(l1=3, l2=3, linf=2)).verdict == "fail"
    assert audit.audit_sensitivity(total, {}, audit.Bounds(l1=0)).verdict == "pass"


def test_a_result_reads_as_a_row_of_the_table() -> None:
    result = audit.audit_ratio(coin(0.5, 0.5), WITH, WITHOUT, audit.Claim(1, 1e-6), SeededRandom(10), 1000)
    assert result.row() == ("", "", "ε=1, δ=1e-06", "ε≥0", "pass", "")
    assert result.as_expected
