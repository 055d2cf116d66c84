"""How near its claim each informative audit comes. An audit that stays far away would also pass a mechanism that lies.

Each test says how near, and why not nearer. Three things keep a bound below the claim: sampling error (the bound holds
but for one chance in a million, five standard deviations), thresholds that are whole numbers, and a loss that is spread
over more than the event looks at.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qlog_assets.attacks.auditor import AuditResult, Claim

pytestmark = pytest.mark.slow

Finding = Callable[[str], AuditResult]


def assert_near(result: AuditResult, least: float, claimed: float) -> None:
    """Measured between `least` and the claim, and the claim is the number stated in the test."""
    assert isinstance(result.claim, Claim)
    claim = result.claim.epsilon if result.test == "ratio" else result.claim.delta
    assert claim == pytest.approx(claimed, rel=1e-3)
    assert least <= result.measured <= claim, result.sentence


def test_a1_sees_the_one_count_that_x_moves_to_within_five_percent(finding: Finding) -> None:
    """0.96 of 1: 101 counts a run allow 60,000 runs. The count of s is 0 either way: that pass is weak on purpose."""
    assert_near(finding("A1 cap only, the one count X moves"), 0.94, 1)
    assert finding("A1 cap only, the count of s").measured == 0


def test_a2_sees_nearly_all_of_delta_and_of_epsilon(finding: Finding) -> None:
    """0.93 % of 1 %: at b = 20 the whole-number threshold wastes up to 5 %. 0.98 of 1 on a public list: sampling."""
    assert_near(finding("A2 stability histogram on pairs"), 0.0090, 0.01)
    assert_near(finding("A2 public url list"), 0.97, 1)


def test_a3_sees_nearly_all_of_epsilon_in_the_pool_and_of_delta_outside_it(finding: Finding) -> None:
    """0.98 of 1 in the pool and 1.35 of 1.40 with a secret pool: sampling. 0.93 % of 1 % outside: whole numbers."""
    assert_near(finding("A3 fixed public pool"), 0.97, 1)
    assert_near(finding("A3 secret pool with p_g = 0.3 claimed as such"), 1.32, 1.404)
    assert_near(finding("A3 hybrid, a query outside the pool"), 0.0090, 0.01)


def test_a4_sees_the_sum_of_sessions_and_clicks(finding: Finding) -> None:
    """1.98 of 2 (sound) and 1.92 of 2 (as printed, whose event is rarer): sampling. One ε for both is refuted."""
    assert_near(finding("A4 sound, the sum"), 1.96, 2)
    assert_near(finding("A4 as printed, the sum"), 1.88, 2)
    assert finding("A4 as printed, one ε for both").measured > 1.88


def test_a5_sees_a_session_of_new_items_use_up_delta(finding: Finding) -> None:
    """0.90 % of 1 %: whole numbers at b = 20, and 300,000 runs. A repeating session prints in 10.9 % at least."""
    assert_near(finding("A5 distinct subsequences of a varied session"), 0.0085, 0.01)
    assert finding("A5 subsequences with multiplicity").measured > 0.10


def test_a6_sees_selection_and_counts_cost_twice_and_the_sound_release_once(finding: Finding) -> None:
    """4.53 of 4.61 as printed and 2.28 of 2.3 sound: sampling. 0.93 % of 1 % for a new artifact: whole numbers."""
    assert_near(finding("A6 as printed, selection and count as two ε"), 4.45, 4.605)
    assert_near(finding("A6 sound, user counts and one draw"), 2.26, 2.3)
    assert_near(finding("A6 sound, an artifact only X sent"), 0.0090, 0.01)
    assert_near(finding("A6 sound, X brings the last key share"), 0.0090, 0.01)


def test_a6_sees_half_of_delta_of_a_new_artifact_under_gaussian_noise(finding: Finding) -> None:
    """0.45 % of 1 %, of which half is for new artifacts: sampling. 2.5 of 3: nothing is new that could use its half."""
    assert_near(finding("A6 Gaussian, an artifact only X sent"), 0.0042, 0.01)
    assert_near(finding("A6 Gaussian, X brings the last key share"), 0.0042, 0.01)
    assert_near(finding("A6 Gaussian, an artifact that others sent"), 2.4, 3)


def test_a6_sees_what_fake_accounts_learn(finding: Finding) -> None:
    """Everything under FT_u; 0.99 of 1 and 2.5 of 3 where noise is added: sampling, and as for accounts of people."""
    assert finding("A6 FT_u, k - 1 fake accounts").measured > 0.99
    assert_near(finding("A6 sound, fake accounts"), 0.97, 1)
    assert_near(finding("A6 Gaussian, fake accounts"), 2.4, 3)


def test_a6_sees_one_report_move_a_count_by_1_where_fake_accounts_lie_and_by_31_if_lies_are_forgotten(
    finding: Finding,
) -> None:
    """Exact: 30 liars."""
    assert finding("A6 wrong shares of fake accounts, right ones counted").measured == 31
    assert finding("A6 wrong shares of fake accounts, right less wrong").measured == 1
    assert finding("A6 another text of fake accounts under X's tag").measured == 1


def test_a7_sees_the_sampling_step_and_the_synthetic_tables_at_their_claims(finding: Finding) -> None:
    """0.465 of 0.5 and 0.61 of 0.69: six trials, where a seventh would break the claim. 1.98 of 2 for the tables.

    3.4 % of 5 % for the whole synthetic log: whole logs are slow to draw, 3,000 of them show no more.
    """
    assert_near(finding("A7 the sampling step alone, outputs with X"), 0.455, 0.5)
    assert_near(finding("A7 the sampling step alone, outputs without X"), 0.59, 0.6931)
    assert_near(finding("A7 synthetic log, its two noisy tables"), 1.96, 2)
    assert_near(finding("A7 synthetic log, a pair only X clicked"), 0.02, 0.05)


def test_a8_sees_new_items_use_up_delta_and_shared_items_epsilon(finding: Finding) -> None:
    """0.95 % of 1 % at b = 30 and 0.98 of 1: whole numbers, then sampling.

    The converse direction (new items whose absence costs 1/(1-p)) is not seen: it shows in events of which δ leaves
    nothing. The proof in `stability_histogram` covers it, and a threshold one too low is caught.
    """
    assert_near(finding("A8 stability histogram, m new items"), 0.0092, 0.01)
    assert_near(finding("A8 stability histogram, m shared items"), 0.96, 1)


def test_a9_sees_integer_noise_at_its_claim(finding: Finding) -> None:
    """0.99 of 1 for the value: sampling. 0.43 of 1 for the lowest bit, which carries less than the value does."""
    assert_near(finding("A9 two-sided geometric, the value"), 0.98, 1)
    assert_near(finding("A9 two-sided geometric, the lowest bit"), 0.41, 1)


def test_a10_sees_one_release_at_its_claim_and_25_far_below_theirs(finding: Finding) -> None:
    """0.19 of 0.2 for one release: sampling. 0.9 of 5 for 25: the worst outcome has probability 3e-7; the mean of 25
    concentrates where the loss is small. It refutes a claim of 0.2, which is what counts."""
    assert_near(finding("A10 one cached release"), 0.18, 0.2)
    assert_near(finding("A10 25 re-runs claimed as 25"), 0.80, 5)


def test_a11_sees_new_items_of_a_steered_selection_use_up_their_delta(finding: Finding) -> None:
    """4.7 % of 5 %, which is the part of δ for new items, and 4.0 and 3.0 % of the 4.5 % that the second look has:
    sampling, in 100,000 to 5,000 runs. 0.45 % of the 0.5 % that the first look has.

    1.2 % of 5 % where X's items must pass the first look by themselves at a small ε. The claim may not count on that,
    as others can help them over it. A threshold one percent too low shows 7.9 %.
    """
    assert_near(finding("A11 steered selection, a new item"), 0.045, 0.05)
    assert_near(finding("A11 steered selection, an item that others leave out"), 0.039, 0.045)
    assert_near(finding("A11 steered selection, several items that others leave out"), 0.029, 0.045)
    assert_near(finding("A11 steered selection, several new items"), 0.0115, 0.05)
    assert_near(finding("A11 steered selection, a new item that the first look names"), 0.0043, 0.005)
    assert finding("A11 steered selection, threshold one percent too low").measured > 0.075
    assert finding("A11 steered selection, threshold of the first look one percent too low").measured > 0.0065


def test_a11_sees_about_half_of_epsilon_in_whether_a_shared_item_is_named(finding: Finding) -> None:
    """1.1 of 2: whether a value passes a threshold shows less than the value, and a tenth of μ² is in the counts.

    0.5 of 3 for a known item: the counts have a third of μ², and it is seen three deviations out. That a known item had
    noise only where it is held would show 4.5.
    """
    assert_near(finding("A11 steered selection, a shared item"), 1.0, 2)
    assert_near(finding("A11 steered selection, a known item"), 0.35, 3)
    assert finding("A11 steered selection, known items noised only where held").measured > 4


def test_zealous_uses_up_its_claims(finding: Finding) -> None:
    """0.95 % of 1 % with the paper's two thresholds, exact but for sampling; 0.92 % sound: whole numbers; 0.99 of 1."""
    assert_near(finding("Z1 with the second threshold"), 0.0092, 0.01)
    assert_near(finding("Z1 sound, X brings the least number of users"), 0.0090, 0.01)
    assert_near(finding("Z1 sound, a frequent item"), 0.97, 1)
    assert_near(finding("Z3 fake accounts against ZEALOUS, sound"), 0.97, 1)


def test_modern_selection_uses_up_its_share_of_the_claims(finding: Finding) -> None:
    """0.82 % of 1 % and 0.88 of 1 for truncated geometric: a whole-number cut-off, then sampling.

    0.36 to 0.44 % of 1 % for the Gaussian ones: new items get half of δ, the Gaussian's own tail the other half.
    """
    assert_near(finding("Z4 truncated geometric, new items"), 0.0075, 0.01)
    assert_near(finding("Z4 truncated geometric, a frequent item"), 0.82, 1)
    for method in ("Gaussian counts", "weighted Gaussian", "SIPS"):
        assert_near(finding(f"Z4 {method}, new items"), 0.0030, 0.01)
