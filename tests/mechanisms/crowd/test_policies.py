"""What each CrowdLogging policy shows to analysts, leaks of the paper's ones included."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from qlog_assets.attacks.auditor import sensitivity
from qlog_assets.mechanisms.crowd import paper as crowd
from qlog_assets.mechanisms.crowd.noise import release as release_sound
from qlog_assets.privacy.limits import count_events, count_users, last_distinct
from qlog_assets.privacy.randomness import SeededRandom

# (user, artifact, spelling): artifact 0 is sent by three users, five times; 1 by one user three times; 2 once.
ROWS = [(0, 0, 0), (0, 0, 1), (1, 0, 0), (2, 1, 2), (2, 1, 2), (2, 1, 2), (2, 0, 0), (1, 0, 0), (3, 2, 3)]


def artifacts(rows: list[tuple[int, int, int]] = ROWS, domain: int = 4) -> crowd.Artifacts:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return crowd.Artifacts(table[:, 0], table[:, 1], table[:, 2], domain)


def test_ft_a_decrypts_what_one_user_repeats_and_ft_u_does_not() -> None:
    by_events = crowd.frequency_threshold(artifacts(), 3, "events")
    assert by_events.artifacts.tolist() == [0, 1] and by_events.counts.tolist() == [5, 3]
    by_users = crowd.frequency_threshold(artifacts(), 3, "users")
    assert by_users.artifacts.tolist() == [0] and by_users.counts.tolist() == [5]


def test_paper_policies_leak_undecrypted_counts_and_spellings_exactly() -> None:
    release = crowd.frequency_threshold(artifacts(), 3, "users")
    assert release.undecrypted.tolist() == [1, 3]
    assert release.spellings.tolist() == [[0, 0, 4], [0, 1, 1]]


def test_a_share_from_the_same_user_does_not_help_to_decrypt_under_ft_u() -> None:
    repeated = artifacts([(0, 0, 0)] * 10)
    assert crowd.frequency_threshold(repeated, 2, "users").artifacts.size == 0


def test_the_limit_keeps_the_most_recent_rows_or_distinct_artifacts() -> None:
    events = crowd.limit_artifacts(artifacts(), 1, "events")
    rows = np.column_stack([events.users, events.artifacts]).tolist()
    assert rows == [[0, 0], [2, 0], [1, 0], [3, 2]]
    distinct = crowd.limit_artifacts(artifacts(), 1, "distinct")
    assert count_events(distinct.artifacts, 4).tolist() == [5, 0, 1, 0]


def test_dp_policies_choose_by_noisy_counts_and_hide_nothing_else() -> None:
    """A huge gap between counts and threshold makes the choice certain to one in 10^8; the leaks are the same."""
    many = artifacts([(user, 0, 0) for user in range(50)] + [(50, 1, 2)])
    for count in ("events", "users"):
        release = crowd.differential_paper(SeededRandom(5), many, 2, 25.0, 1.0, 1.0, count)
        assert release.artifacts.tolist() == [0] and abs(release.counts[0] - 50) < 25
        assert release.undecrypted.tolist() == [1] and release.spellings.tolist() == [[0, 0, 50]]


def test_one_user_moves_user_counts_within_the_limit_and_uncapped_events_beyond_it() -> None:
    generator = np.random.default_rng(4)
    log = {f"user {user}": generator.integers(6, size=generator.integers(1, 30)).tolist() for user in range(50)}

    def rows(part: dict[str, list[int]]) -> crowd.Artifacts:
        numbered = enumerate(part.values())
        return artifacts([(user, item, item) for user, items in numbered for item in items], domain=6)

    def by_users(part: dict[str, list[int]]) -> dict[int, int]:
        table = rows(part)
        return dict(enumerate(count_users(*last_distinct(table.users, table.artifacts, 2), 6).tolist()))

    def by_events(part: dict[str, list[int]]) -> dict[int, int]:
        return dict(enumerate(count_events(crowd.limit_artifacts(rows(part), 2, "distinct").artifacts, 6).tolist()))

    assert sensitivity(by_users, log) == {"l1": 2.0, "l2": 2**0.5, "linf": 1.0}
    assert sensitivity(by_events, log)["l1"] > 2


def test_sound_release_never_uses_what_too_few_shares_would_hide() -> None:
    """Four of five shares: shifted to 0, so no noise can bring it out, whatever δ is."""
    release = release_sound(SeededRandom(6), np.full(5000, 4), 1, Fraction(50), Fraction(9, 10), min_shares=5)
    assert release.indices.size == 0
