"""The k-anonymity baselines do what they say, and fall to the attack that Götz et al. describe."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from qlog_assets.attacks.auditor import FALSE_ALARM, epsilon_lower_bound
from qlog_assets.mechanisms.baselines import paper as baselines
from qlog_assets.mechanisms.zealous import noise as zealous
from qlog_assets.privacy.histogram import stability_threshold
from qlog_assets.privacy.limits import count_users
from qlog_assets.privacy.randomness import SeededRandom

USERS, ITEMS = np.array([0, 0, 0, 1, 2]), np.array([0, 0, 1, 0, 1])


def test_baselines_print_exact_counts_of_frequent_items() -> None:
    by_users = baselines.anonymous_by_users(USERS, ITEMS, 3, 2)
    assert by_users.indices.tolist() == [0, 1] and by_users.counts.tolist() == [2, 2]
    by_frequency = baselines.anonymous_by_frequency(ITEMS, 3, 3)
    assert by_frequency.indices.tolist() == [0] and by_frequency.counts.tolist() == [3]
    shared = baselines.secret_shared(USERS, ITEMS, 3, 2)
    assert shared.indices.tolist() == [0, 1] and shared.counts.tolist() == [3, 2]


def test_one_user_reaches_the_frequency_threshold_alone() -> None:
    repeated = np.zeros(5, np.int64)
    assert baselines.anonymous_by_frequency(repeated, 1, 5).indices.size == 1
    assert baselines.anonymous_by_users(repeated, repeated, 1, 5).indices.size == 0
    assert baselines.secret_shared(repeated, repeated, 1, 5).indices.size == 0


@pytest.mark.parametrize("accounts", [2, 5, 100])
def test_fake_accounts_reveal_the_victim_with_certainty(accounts: int) -> None:
    """k - 1 accounts hold a guessed query: it is printed exactly when the victim holds it too."""
    for victim in (0, 1):
        users = np.arange(accounts - 1 + victim)
        items = np.zeros(users.size, np.int64)
        printed = {
            baselines.anonymous_by_users(users, items, 1, accounts).indices.size,
            baselines.anonymous_by_frequency(items, 1, accounts).indices.size,
            baselines.secret_shared(users, items, 1, accounts).indices.size,
        }
        assert printed == {victim}


@pytest.mark.parametrize("fewer", [0, 3, 8])
def test_fake_accounts_gain_no_more_than_the_claim_under_zealous(fewer: int) -> None:
    """The attacker tries several numbers of accounts; seeded, with a false-alarm rate of one in a million each."""
    scale, delta, runs = Fraction(1), Fraction(1, 10**6), 200_000
    accounts = stability_threshold(1, scale, delta) - 1 - fewer
    hits = []
    for victim in (1, 0):
        users = np.arange(accounts + victim)
        counts = count_users(users, np.zeros(users.size, np.int64), 1)
        hits.append(zealous.release(SeededRandom(fewer), np.tile(counts, runs), 1, scale, delta).indices.size)
    assert epsilon_lower_bound(*hits, runs, float(delta), FALSE_ALARM) <= 1
