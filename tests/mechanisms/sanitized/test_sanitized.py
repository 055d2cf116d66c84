"""The paper's Algorithm 1 with its worked example and pre-processing, and the synthetic log beside it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare
from support.click_logs import LIMIT, random_counts, shared

from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.sanitized import noise as synthetic
from qlog_assets.mechanisms.sanitized import paper
from qlog_assets.mechanisms.sanitized.guarantee import user_budget
from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.mechanisms.sanitized.objectives import Goal
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.mechanisms.sanitized.programme import Programme, drop_unique_pairs
from qlog_assets.privacy.randomness import SeededRandom

LARGEST = Goal("output_size")
GOALS = [LARGEST, Goal("frequent_pairs", 1 / 100), Goal("diversity")]


def test_table_4_is_above_what_its_own_constraints_allow() -> None:
    """1,980 users at δ = 1e-4: at most 0.198 events, the paper prints 3,759. At its other end 1,649 and 13,901."""
    assert 1980 * user_budget(math.log(1.001), 1e-4) == pytest.approx(0.198, abs=1e-3)
    assert 1980 * user_budget(math.log(2.3), 0.8) == pytest.approx(1649.2, abs=0.1)


# Figure 1 -------------------------------------------------------------------------------------------------------------

CLICKS = np.array([[2, 0, 0], [3, 0, 1], [15, 7, 17], [0, 0, 1], [0, 2, 5]])
"""Figure 1: how often users 081, 082 and 083 clicked each of five pairs; the third is google, the fifth car price."""
OPTIMAL = np.array([0, 3, 20, 0, 4])


def figure_1() -> PairCounts:
    pairs, users = np.nonzero(CLICKS)
    return PairCounts(users, pairs, CLICKS[pairs, users])


def test_the_worked_example_of_figure_1() -> None:
    """Unique pairs have no events, supports are 3/27, 20/27 and 4/27 of the paper, and so are the chances of users.

    χ² on 20,000 samples of the output; each false alarm one in a million, and seeded.
    """
    rows = figure_1()
    assert rows.totals().tolist() == [2, 4, 39, 1, 7] and rows.events.sum() == 53
    shared_rows = drop_unique_pairs(rows)
    assert np.unique(shared_rows.pairs).tolist() == [1, 2, 4] == np.flatnonzero(OPTIMAL).tolist()
    runs = 20_000
    output = paper.sample_users(SeededRandom(11), shared_rows, OPTIMAL * runs)
    assert np.bincount(output.pairs, weights=output.events).tolist() == (OPTIMAL * runs).tolist()
    for pair in (1, 2):
        mine = output.pairs == pair
        expected = OPTIMAL[pair] * runs * CLICKS[pair] / CLICKS[pair].sum()
        drawn = np.bincount(output.users[mine], weights=output.events[mine], minlength=3)
        assert drawn[expected == 0].sum() == 0
        assert chisquare(drawn[expected > 0], expected[expected > 0]).pvalue > 1e-6
    of_082 = int(output.events[(output.pairs == 4) & (output.users == 1)].sum())
    assert binomtest(of_082, 4 * runs, 2 / 7).pvalue > 1e-6
    assert not ((output.pairs == 4) & (output.users == 0)).any(), "user 081 never clicked it"


def test_the_counts_of_figure_1_need_a_limit_that_no_privacy_level_gives() -> None:
    """User 081 alone spends 13.9: e^ε would be a million."""
    rows = drop_unique_pairs(figure_1())
    spent = 13.9 - Programme.of(rows, 5, 13.9).left(OPTIMAL)
    assert spent[0] == pytest.approx(3 * math.log(4) + 20 * math.log(39 / 24))
    assert spent[0] > 13.8


# Section 4.2 ----------------------------------------------------------------------------------------------------------


def test_preprocessing_keeps_everybody_of_1000_and_nobody_of_999() -> None:
    """Gap G3: 692 against 0."""
    assert paper.unstable_users(shared(1000), 1, LIMIT, LARGEST, 0.5).size == 0
    assert paper.unstable_users(shared(999), 1, LIMIT, LARGEST, 0.5).size == 999


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.objective)
def test_preprocessing_solves_equal_users_once_and_right(goal: Goal) -> None:
    rows = random_counts(3, users=25, pairs=8)
    complete = paper.best_counts(rows, 8, LIMIT, goal)
    expected = []
    for user in np.unique(rows.users):
        rest = paper.best_counts(rows.keep(rows.users != user), 8, LIMIT, goal)
        if np.abs(rest - complete).max() > 0.5:
            expected.append(int(user))
    assert paper.unstable_users(rows, 8, LIMIT, goal, 0.5).tolist() == expected
    if goal is LARGEST:
        assert 0 < len(expected) < 25


def test_a_user_without_whom_the_asked_size_does_not_fit_is_unstable() -> None:
    assert paper.unstable_users(shared(10), 1, LIMIT, Goal("frequent_pairs", 0.01, 6.0), 2).size == 10
    assert paper.unstable_users(shared(10), 1, LIMIT, Goal("frequent_pairs", 0.01, 5.0), 2).size == 0


def test_preprocessing_of_a_large_log_is_refused_before_it_takes_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "MOST_TESTED_USERS", 3)
    with pytest.raises(QlogError, match="leave count_epsilon out"):
        paper.unstable_users(random_counts(3, users=25, pairs=8), 8, LIMIT, LARGEST, 0.5)


@pytest.mark.parametrize("objective", ["output_size", "frequent_pairs", "diversity"])
def test_every_objective_is_sampled_with_and_without_noise_on_its_counts(objective: str) -> None:
    rows, queries = random_counts(5, users=30, pairs=8), np.arange(8) // 2
    chosen = SanitizedParameters(objective=objective, epsilon="2", delta="0.5", minimum_support="0.05")
    plain = paper.sanitize(SeededRandom(1), rows, queries, chosen)
    counts = paper.best_counts(rows, 8, LIMIT, paper.goal_of(chosen, queries))
    assert np.bincount(plain.pairs, weights=plain.events, minlength=8).tolist() == counts.tolist()
    assert counts.sum() > 0
    noisy = paper.sanitize(
        SeededRandom(1), rows, queries, chosen.with_changes(count_epsilon="0.2", largest_change="20")
    )
    other = np.bincount(noisy.pairs, weights=noisy.events, minlength=8)
    assert other.tolist() != counts.tolist() and other.sum() > 0
    held = set(zip(rows.users.tolist(), rows.pairs.tolist(), strict=True))
    for output in (plain, noisy):
        assert set(zip(output.users.tolist(), output.pairs.tolist(), strict=True)) <= held


def test_a_log_of_unique_pairs_gives_an_empty_output() -> None:
    rows = PairCounts(np.arange(3), np.arange(3), np.ones(3, np.int64))
    output = paper.sanitize(SeededRandom(1), rows, np.arange(3), SanitizedParameters(delta="0.5"))
    assert output.users.size == 0


# Sampling, and the synthetic log --------------------------------------------------------------------------------------


def test_sampling_gives_each_pair_its_count_and_each_user_her_share() -> None:
    """χ² on 30,000 trials over three users; false alarm one in a million, and seeded."""
    rows = PairCounts(np.array([7, 8, 9, 8]), np.array([0, 0, 0, 2]), np.array([1, 3, 6, 4]))
    output = paper.sample_users(SeededRandom(7), rows, np.array([30_000, 5, 40]))
    assert np.bincount(output.pairs, weights=output.events).tolist() == [30_000, 0, 40]
    assert output.users.tolist() == sorted(output.users.tolist())
    share = output.events[output.pairs == 0]
    assert chisquare(share, [3000, 9000, 18_000]).pvalue > 1e-6


def test_lengths_are_noised_in_every_cell_and_never_negative() -> None:
    lengths = synthetic.release_lengths(SeededRandom(10), np.zeros(1000, np.int64), Fraction(3))
    assert lengths.min() == 0 and 300 < np.count_nonzero(lengths) < 500
