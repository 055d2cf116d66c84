"""What each CrowdLogging policy shows to analysts, leaks of the paper's ones included."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from qlog_assets.api.planning import explain_guarantee
from qlog_assets.attacks.auditor import sensitivity
from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.crowd import paper as crowd
from qlog_assets.mechanisms.crowd.noise import draw_counts, draw_nothing, plan_job
from qlog_assets.mechanisms.crowd.noise import release as release_sound
from qlog_assets.mechanisms.crowd.parameters import LN_10, PAPER_DELTA, CrowdParameters, CrowdPolicy
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.policy import Policy
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


@pytest.mark.parametrize("variant", ["sound", "gaussian"])
def test_what_too_few_shares_hide_is_never_released_and_the_next_share_makes_it_a_new_artifact(variant: str) -> None:
    """Four of five shares shift to 0, which gets no noise; a fifth makes the law that of a count of 1 without a key."""
    chosen = CrowdParameters(artifacts_per_user=1, epsilon=1, delta="0.5")
    assert draw_counts(SeededRandom(6), np.full(5000, 4), variant, chosen).artifacts.size == 0
    alone = chosen.with_changes(share_threshold=1)
    shifted = draw_counts(SeededRandom(7), np.full(5000, 5), variant, chosen)
    plain = draw_counts(SeededRandom(7), np.full(5000, 1), variant, alone)
    assert plain.artifacts.size > 0 and shifted.artifacts.tolist() == plain.artifacts.tolist()
    assert (shifted.users - 4).tolist() == plain.users.tolist() and shifted.threshold == plain.threshold + 4


@pytest.mark.parametrize("variant", ["sound", "gaussian"])
def test_the_stated_noise_tells_how_often_an_artifact_is_missing(variant: str) -> None:
    """20,000 draws: the share is off by 0.018 with a chance of one in two million."""
    chosen = CrowdParameters(artifacts_per_user=3, epsilon=2, delta="1e-3")
    told = draw_nothing(variant, chosen)
    for users in (told.threshold - 1, told.threshold + 2):
        drawn = draw_counts(SeededRandom(8), np.full(20_000, users), variant, chosen)
        missing = 1 - drawn.artifacts.size / 20_000
        assert missing == pytest.approx(told.noise.chance_missing(users, told.threshold), abs=0.018)
        assert drawn.users.min() >= told.threshold


THRESHOLDS = {1: (12, 16), 2: (20, 21), 3: (27, 25), 5: (43, 32), 10: (83, 44), 20: (167, 61), 50: (432, 96)}


@pytest.mark.parametrize(("artifacts_per_user", "needed"), THRESHOLDS.items())
def test_gaussian_noise_needs_fewer_users_from_three_artifacts_on(
    artifacts_per_user: int, needed: tuple[int, int]
) -> None:
    chosen = CrowdPolicy(artifacts_per_user=artifacts_per_user)
    assert tuple(draw_nothing(variant, chosen).threshold for variant in ("sound", "gaussian")) == needed


def test_jobs_share_one_gaussian_budget() -> None:
    """Two jobs have twice the variance of one, where two budgets of half an ε would ask for four times as much."""
    one, two = (plan_job(CrowdPolicy(jobs=jobs)).variance for jobs in ("queries", "queries,urls"))
    assert two / one == pytest.approx(2, rel=1e-3)


def test_jobs_are_typed_as_words() -> None:
    chosen = CrowdParameters(jobs="queries, click_hosts")
    assert chosen.jobs == ("queries", "click_hosts") and chosen.as_public()["jobs"] == "queries,click_hosts"
    promised = explain_guarantee("crowd", None, {"jobs": "queries,urls"})
    assert [part["name"] for part in promised["parts"]] == ["queries", "urls"]
    for jobs in ("queries,queries", "", "keywords"):
        with pytest.raises(ParameterError, match="jobs"):
            CrowdParameters(jobs=jobs)


def test_a_policy_asks_for_no_more_shares_than_a_job_may_say() -> None:
    assert CrowdPolicy(share_threshold=1000).share_threshold == 1000
    with pytest.raises(ParameterError, match="share_threshold"):
        CrowdPolicy(share_threshold=1001)


def test_the_papers_variants_keep_the_papers_budget_unless_it_is_set() -> None:
    asked = mechanism("crowd")
    released = Policy().section("crowd")
    assert (released.epsilon, released.delta, released.variant) == (2, Fraction(1, 10**6), "gaussian")
    studied = Policy().for_variant(asked, "dp_u").section("crowd")
    assert (studied.epsilon, studied.delta) == (LN_10, PAPER_DELTA)
    studied = Policy(crowd={"epsilon": 1}).for_variant(asked, "dp_u").section("crowd")
    assert (studied.epsilon, studied.delta) == (1, PAPER_DELTA)
    assert Policy().for_variant(asked, "sound").section("crowd").epsilon == 2
