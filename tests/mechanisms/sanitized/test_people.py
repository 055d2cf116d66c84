"""Users who never lived: the asked size to the event, every pair as often as given, and pairs that go together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.sanitized import noise
from qlog_assets.mechanisms.sanitized.aims import aim
from qlog_assets.mechanisms.sanitized.draw import _make_up
from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.mechanisms.sanitized.people import Associations, deal, deal_linked, draw_activity, share_events
from qlog_assets.privacy.histogram import Released
from qlog_assets.privacy.randomness import SeededRandom

LENGTHS = np.array([0, 50, 50])  # nobody holds one pair, as many hold two as three
HELD = np.array([40, 30, 20, 10])


def made_up(size: int, associations: Associations | None = None, users: int = 400, seed: int = 8) -> PairCounts:
    source = SeededRandom(seed)
    activity = draw_activity(source, LENGTHS, users)
    return deal(source, aim(HELD, "output_size", size), HELD, activity, associations)


@pytest.mark.parametrize("size", [100, 5000])
@pytest.mark.parametrize("linked", [False, True])
def test_the_asked_size_is_met_to_the_event_and_each_pair_occurs_as_often_as_it_was_given(
    size: int, linked: bool
) -> None:
    """Sizes 100 and 5,000 once gave the same log."""
    together = Associations(np.array([0, 1]), np.array([1, 3]), np.array([25, 5])) if linked else None
    output = made_up(size, together)
    assert output.events.sum() == size and output.events.min() >= 1
    assert output.totals().tolist() == aim(HELD, "output_size", size).tolist()
    assert output.users.min() >= 0 and output.users.max() < 400


def test_activity_follows_the_histogram_and_is_kept_where_no_size_is_asked() -> None:
    activity = draw_activity(SeededRandom(8), LENGTHS, 400)
    assert set(activity.tolist()) == {2, 3}
    assert abs(int((activity == 3).sum()) - 200) < 50  # five standard deviations
    assert share_events(SeededRandom(1), activity, int(activity.sum())).tolist() == activity.tolist()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=20).map(np.array), st.integers(0, 300))
def test_events_are_shared_by_activity_to_less_than_one_round(activity: np.ndarray, size: int) -> None:
    events = share_events(SeededRandom(3), activity, size)
    whole, rest = divmod(size, int(activity.sum()))
    assert events.sum() == size
    assert (activity * whole <= events).all() and (events <= activity * (whole + bool(rest))).all()


def test_pairs_that_go_together_meet_in_one_made_up_user_far_more_often_than_by_chance() -> None:
    """Without associations about 1 in 10 users who hold pair 0 hold pair 1 too: pair 1 is 1 of 20 events."""
    held, lengths = np.full(20, 100), np.array([0, 1])
    together = Associations(np.arange(0, 20, 2), np.arange(1, 20, 2), np.full(10, 100))

    def share(associations: Associations | None) -> float:
        source = SeededRandom(5)
        activity = draw_activity(source, lengths, 1000)
        output = deal(source, aim(held, "output_size", 2000), held, activity, associations)
        sets: dict[int, set[int]] = {}
        for user, pair in zip(output.users.tolist(), output.pairs.tolist(), strict=True):
            sets.setdefault(user, set()).add(pair)
        return sum({pair ^ 1 for pair in mine} == mine for mine in sets.values()) / len(sets)

    assert share(None) < 0.15 and share(together) > 0.85


def test_a_pair_follows_another_with_the_noisy_share_of_users_who_hold_both() -> None:
    """300 of 1,000 holders of pair 0 hold pair 1 too. Five standard deviations of the share are left to chance."""
    held = np.full(4, 1000)
    together = Associations(np.array([0]), np.array([1]), np.array([300]))
    source = SeededRandom(12)
    events = np.full(10_000, 2)
    counts = np.full(4, 5000)
    stock = np.repeat(np.arange(4), counts)[np.random.default_rng(1).permutation(20_000)]
    dealt = deal_linked(source, stock, counts, held, events, together).reshape(-1, 2)
    first = dealt[:5000][dealt[:5000, 0] == 0]  # before anything is used up
    by_lot = 0.7 * np.mean(dealt[:5000][dealt[:5000, 0] > 1][:, 1] == 1)
    assert abs(np.mean(first[:, 1] == 1) - (0.3 + by_lot)) < 5 * np.sqrt(0.25 / len(first))


def test_what_goes_together_is_spread_over_all_users_whatever_their_number() -> None:
    """Chains use a pair up before the last users are served: who is served last is decided by lot."""
    held = np.array([900, 600, 300, 300])
    source, activity = SeededRandom(4), np.full(3000, 3)
    together = Associations(np.array([0]), np.array([1]), np.array([300]))
    output = deal(source, aim(held, "output_size", 9000), held, activity, together)
    holders = np.bincount(output.users[output.pairs == 1] // 300, minlength=10)
    assert holders.min() > 0.75 * holders.mean()  # one tenth of users had .04 of its share once


def test_a_release_deals_by_the_associations_that_were_drawn() -> None:
    """They were priced and never drawn once."""
    named, lengths = Released(np.arange(20), np.full(20, 100)), np.array([0, 1])
    together = Associations(np.arange(0, 20, 2), np.arange(1, 20, 2), np.full(10, 100))
    chosen = SanitizedParameters(synthetic_users=1000, association_share="0.1")

    def met(linked: Associations | None) -> int:
        output = _make_up(SeededRandom(5), named, np.zeros(20, np.int64), lengths, linked, chosen)
        pairs = {user: output.pairs[output.users == user] for user in range(100)}
        return sum(len(mine) == 2 and mine[0] ^ 1 == mine[1] for mine in pairs.values())

    assert met(None) < 20 and met(together) > 80


def test_associations_never_go_beyond_what_there_is_of_a_pair() -> None:
    """Everybody who holds pair 0 holds pair 1, of which there is one event."""
    together = Associations(np.array([0]), np.array([1]), np.array([10**6]))
    source, activity = SeededRandom(6), np.full(50, 4)
    output = deal(source, np.array([199, 1]), np.array([1000, 1000]), activity, together)
    assert output.totals().tolist() == [199, 1]


def test_noise_that_leaves_nothing_gives_an_empty_log_and_any_length() -> None:
    nothing = np.empty(0, np.int64)
    source = SeededRandom(9)
    activity = draw_activity(source, np.array([0, 0]), 500)
    assert set(activity.tolist()) == {1, 2}
    for associations in (None, Associations(nothing, nothing, nothing)):
        output = deal(source, aim(nothing, "diversity", 100), nothing, activity, associations)
        assert output.users.size == output.events.size == 0


def test_a_log_that_memory_cannot_hold_is_refused_before_anything_is_drawn() -> None:
    noise.check_draw(SanitizedParameters(synthetic_users=100_000))
    for changes, says in (
        ({"asked_size": 10**6 + 1}, "asked_size is 1,000,001"),
        ({"synthetic_users": 100_001}, "synthetic_users times pairs_per_user is 1,000,010"),
        ({"association_share": "0.1", "pairs_per_user": 51}, "lower pairs_per_user to 50 or less"),
        ({"clicks": False}, "has_urls = false"),
    ):
        with pytest.raises(ParameterError, match=says):
            noise.check_draw(SanitizedParameters(**changes))
