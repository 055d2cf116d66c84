"""The papers' printed numbers: those our formulas reproduce, and, one test each, those that do not hold.

A test of the second kind asserts our number and names the paper's in its docstring. No noise is drawn here.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from qlog_assets.mechanisms.crowd.guarantee import artifact_threshold, largest_allowed, user_threshold
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.mechanisms.register import guarantee
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.mechanisms.sanitized.guarantee import largest_output, least_delta, user_budget
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.mechanisms.zealous.guarantee import (
    approximate_threshold,
    korolova_threshold,
    probabilistic_scale,
    probabilistic_threshold,
)
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.histogram import stability_threshold
from qlog_assets.privacy.korolova import (
    log_selection_ratio,
    log_tight_selection_ratio,
    selection_delta,
    tight_selection_delta,
    turning_point,
)

AOL_USERS = 657_426
LN_10 = math.log(10)
AOL_DELTA = 1 / (AOL_USERS + 1)


def safelog(**changes: object) -> SafelogParameters:
    """Table 3's setting: K = b = b_q = b_c = 10, no transitions."""
    table = {"threshold": 10, "selection_scale": 10, "query_scale": 10, "click_scale": 10, "transition_scale": None}
    return SafelogParameters(**(table | changes))


# Printed values that a formula reproduces ----------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "printed"), [(10, 4.27), (50, 21.36), (100, 42.73), (150, 64.09), (200, 85.45)])
def test_safelog_table_3(limit: int, printed: float) -> None:
    claimed = guarantee("safelog", "paper", safelog(queries_per_user=limit, clicks_per_user=limit)).claimed
    assert claimed is not None
    assert round(float(claimed.epsilon), 2) == printed
    assert claimed.delta == 0


SESSION_TABLE_4 = [
    # b, K, l_s, l_q, printed ε, printed δ
    (1, 10, 1, 3, 8.00, 4.95e-3),
    (1, 20, 1, 3, 8.00, 2.25e-7),
    (1, 30, 1, 3, 8.00, 1.02e-11),
    (3, 20, 1, 3, 2.67, 9.66e-3),
    (3, 30, 1, 3, 2.67, 3.44e-4),
    (1, 20, 1, 4, 22.00, 6.79e-4),
    (2, 30, 1, 4, 11.00, 4.12e-4),
    (1, 20, 2, 3, 16.00, 2.46e-5),
    (2, 30, 2, 3, 8.00, 6.68e-5),
]


def session_row(scale: int, threshold: int, sessions: int, queries: int) -> SessionParameters:
    return SessionParameters(
        session_scale=scale,
        threshold=threshold,
        sessions_per_user=sessions,
        queries_per_session=queries,
        click_scale=None,
    )


@pytest.mark.parametrize("row", SESSION_TABLE_4)
def test_session_table_4(row: tuple[int, int, int, int, float, float]) -> None:
    """All 18 values. δ to one unit of the last printed digit, which only the truncated 4.95e-3 (4.957e-3) needs."""
    *setting, epsilon, delta = row
    claimed = guarantee("sessions", "paper", session_row(*setting)).claimed
    assert claimed is not None
    assert round(float(claimed.epsilon), 2) == epsilon
    unit = 10.0 ** (math.floor(math.log10(delta)) - 2)
    assert abs(float(claimed.delta) - delta) < unit


CROWD_THRESHOLDS = {
    1: (6.52, 6.52),
    2: (13.64, 12.64),
    3: (20.98, 18.98),
    4: (28.48, 25.48),
    5: (36.08, 32.08),
    10: (75.2, 66.2),
    15: (115.4, 101.4),
    20: (156.4, 137.4),
    25: (197.9, 173.9),
}


@pytest.mark.parametrize(("artifacts", "expected"), CROWD_THRESHOLDS.items())
def test_crowdlogging_thresholds_for_the_aol_log(artifacts: int, expected: tuple[float, float]) -> None:
    digits = 2 if artifacts <= 5 else 1
    least = (artifact_threshold(artifacts, LN_10, AOL_DELTA), user_threshold(artifacts, LN_10, AOL_DELTA))
    assert (round(least[0], digits), round(least[1], digits)) == expected


CROWD_ALLOWED = [
    (range(1, 7), (0, 0)),
    (range(7, 13), (1, 1)),
    (range(13, 14), (1, 2)),
    (range(14, 19), (2, 2)),
    (range(19, 21), (2, 3)),
    (range(21, 26), (3, 3)),
    (range(26, 29), (3, 4)),
    (range(29, 33), (4, 4)),
    (range(50, 51), (6, 7)),
    (range(100, 101), (13, 14)),
    (range(150, 151), (19, 21)),
    (range(160, 161), (20, 23)),
    (range(200, 201), (25, 28)),
]


@pytest.mark.parametrize(("thresholds", "expected"), CROWD_ALLOWED)
def test_crowdlogging_allowed_artifacts_for_the_aol_log(thresholds: range, expected: tuple[int, int]) -> None:
    for threshold in thresholds:
        parameters = CrowdParameters(threshold=threshold)
        found = tuple(
            int(guarantee("crowd", variant, parameters).figures["artifacts_allowed"]) for variant in ("dp_a", "dp_u")
        )
        assert found == expected


def test_crowdlogging_threshold_and_delta_are_inverse_of_each_other() -> None:
    for artifacts in (1, 3, 10, 30):
        scale = artifacts / LN_10
        k_a, k_u = artifact_threshold(artifacts, LN_10, AOL_DELTA), user_threshold(artifacts, LN_10, AOL_DELTA)
        assert selection_delta(artifacts, artifacts, scale, k_a) == pytest.approx(AOL_DELTA, rel=1e-9)
        assert selection_delta(artifacts, 1, scale, k_u) == pytest.approx(AOL_DELTA, rel=1e-9)
        # The paper assumes that e^(1/b) is the larger of α's two terms; it is, at these thresholds.
        assert log_selection_ratio(math.ceil(k_u), scale) == pytest.approx(1 / scale)


def test_crowdlogging_misspelling_example_lies_in_the_range_of_d_3() -> None:
    """Section 4.1: 'oggle' to 'google' by 22 users is released for the k that correspond to d = 3."""
    assert 3 in (largest_allowed(22, LN_10, AOL_DELTA, count_users=users) for users in (True, False))


UMP_TABLE_4 = {
    1.001: (3759, 4007, 4007, 4007, 4007, 4007, 4007),
    1.01: (3759, 4007, 4879, 4879, 4879, 4879, 4879),
    1.1: (3759, 4007, 4891, 8382, 8382, 8382, 8382),
    1.4: (3759, 4007, 4891, 8874, 10445, 11419, 11419),
    1.7: (3759, 4007, 4891, 8874, 10445, 12438, 12438),
    2.0: (3759, 4007, 4891, 8874, 10445, 13088, 13088),
    2.3: (3759, 4007, 4891, 8874, 10445, 13088, 13901),
}
UMP_DELTAS = (1e-4, 1e-3, 1e-2, 1e-1, 0.2, 0.5, 0.8)
UMP_USERS = 1980
UMP_CELLS = [
    (math.log(ratio), delta, size)
    for ratio, sizes in UMP_TABLE_4.items()
    for delta, size in zip(UMP_DELTAS, sizes, strict=True)
]


def test_ump_table_4_depends_on_b_alone_and_grows_with_it() -> None:
    cells = sorted((user_budget(epsilon, delta), size) for epsilon, delta, size in UMP_CELLS)
    assert len(cells) == 49
    sizes = [size for _, size in cells]
    assert sizes == sorted(sizes)
    by_budget: dict[float, set[int]] = {}
    for budget, size in cells:
        by_budget.setdefault(round(budget, 9), set()).add(size)
    assert all(len(found) == 1 for found in by_budget.values())
    assert len({size for _, size in cells}) == 11
    assert round(100 * min(sizes) / 53_067, 2) == 7.08
    assert round(100 * max(sizes) / 53_067, 1) == 26.2


# Printed claims that do not hold -------------------------------------------------------------------------------------


def test_safelog_29_99_is_30_00() -> None:
    """Figure 3 prints ε = 29.99 for K = 500, b = 10; q_f = c_f = 100 and b_q = b_c = 10 give 30.00."""
    claimed = guarantee("safelog", "paper", safelog(threshold=500, queries_per_user=100, clicks_per_user=100)).claimed
    assert claimed is not None
    assert float(claimed.epsilon) == pytest.approx(30.00, abs=1e-9)
    # Many other settings give exactly 29.99, so the paper's cannot be told from its text.
    for limit in (75, 90):
        probability = Fraction(math.exp(0.3 - 29.99 / limit))
        other = safelog(threshold=500, queries_per_user=limit, clicks_per_user=limit, pool_probability=probability)
        found = guarantee("safelog", "paper", other).claimed
        assert found is not None
        assert float(found.epsilon) == pytest.approx(29.99, abs=1e-6)


def test_safelog_table_3_leaves_the_transitions_out() -> None:
    """Theorem 1 has (q_f - 1)/b_t; Table 3 prints 4.27 and 85.45 without it. With b_t = 10: 5.17 and 105.35."""
    for limit, expected in ((10, 5.17), (200, 105.35)):
        parameters = safelog(queries_per_user=limit, clicks_per_user=limit, transition_scale=10)
        claimed = guarantee("safelog", "paper", parameters).claimed
        assert claimed is not None
        assert round(float(claimed.epsilon), 2) == expected


def test_safelog_as_printed_has_no_finite_guarantee() -> None:
    """Theorem 1 claims pure ε for Algorithm 1; filter, observed clicks and the pool leave nothing finite."""
    promise = guarantee("safelog", "paper", safelog())
    assert promise.proven is None
    assert not promise.publishable
    assert [gap[:2] for gap in promise.gaps[:3]] == ["G1", "G2", "G3"]


@pytest.mark.parametrize(("limit", "plain", "with_transitions"), [(10, 3.0, 3.9), (200, 60.0, 79.9)])
def test_safelog_table_3_repaired_costs_less_than_printed(limit: int, plain: float, with_transitions: float) -> None:
    """Table 3 prints 4.27 to 85.45; the sound release at its scales (and one more noise, as printed) costs 3 to 60."""
    parameters = safelog(queries_per_user=limit, clicks_per_user=limit)
    tight = guarantee("safelog", "paper", parameters).figures["epsilon_with_tight_alpha"]
    assert tight == pytest.approx(plain)
    three_tables = guarantee("safelog", "paper", parameters.with_changes(transition_scale=10))
    assert three_tables.figures["epsilon_with_tight_alpha"] == pytest.approx(with_transitions)
    one_noise = guarantee("safelog", "sound", parameters).proven
    assert one_noise is not None
    assert float(one_noise.epsilon) == pytest.approx(plain * 2 / 3)


TURNING_POINTS = {10: 6.88, 30: 14.43, 50: 20.74, 100: 34.57, 500: 121.4}


@pytest.mark.parametrize(("threshold", "scale"), TURNING_POINTS.items())
def test_safelog_turning_points_in_b_are_an_artefact(threshold: int, scale: float) -> None:
    """Figure 5 recommends the b where ε is least. The paper's formula does turn there; the tight bound never does."""
    found = turning_point(threshold)
    assert found == pytest.approx(scale, rel=1e-3)
    x = math.exp(1 / found)
    assert 2 * x ** (threshold - 2) * (x - 1) == pytest.approx(1)
    grid = [found * factor for factor in (0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0)]
    printed = [log_selection_ratio(threshold, scale) for scale in grid]
    assert printed[:4] == sorted(printed[:4], reverse=True)
    assert printed[3:] == sorted(printed[3:])
    for scale_of_noise in grid:
        assert log_tight_selection_ratio(threshold, scale_of_noise) == pytest.approx(1 / scale_of_noise)


def test_safelog_turning_points_move_with_the_pool_probability() -> None:
    """At p_g = 0.95 they are 7.98, 18.1, 27.5, 49.9 and 224.6; at p_g <= ½ there are none."""
    found = [turning_point(threshold, 0.95) for threshold in TURNING_POINTS]
    assert found == pytest.approx([7.98, 18.1, 27.5, 49.9, 224.6], rel=2e-3)
    assert turning_point(100, 0.5) is None


def test_session_and_click_budgets_add_up() -> None:
    """Table 5 prints DP_S, sessions and clicks of the same users, as (8, 2.25e-7); together they cost (16, 4.50e-7)."""
    promise = guarantee("sessions", "paper", SessionParameters())
    assert promise.claimed is not None
    assert promise.proven is not None
    assert float(promise.claimed.epsilon) == pytest.approx(8)
    assert float(promise.claimed.delta) == pytest.approx(2.25e-7, rel=1e-3)
    assert float(promise.proven.epsilon) == pytest.approx(16)
    assert float(promise.proven.delta) == pytest.approx(4.50e-7, rel=1e-3)


def test_doubling_the_session_limit_multiplies_delta_by_109() -> None:
    """Section 5.4: 'if we double l (or l_s) … a doubled δ value'. Table 4 itself shows a factor of 109."""
    single = guarantee("sessions", "paper", session_row(1, 20, 1, 3)).claimed
    double = guarantee("sessions", "paper", session_row(1, 20, 2, 3)).claimed
    assert single is not None
    assert double is not None
    assert float(double.delta) / float(single.delta) == pytest.approx(109.2, abs=0.05)


def test_session_delta_is_loose_where_items_are_distinct() -> None:
    """Table 4's δ against the tight one with repeated items, and with each item once a session (specification 4.2)."""
    tight = [1.24e-3, 5.63e-8, 2.55e-12, 3.55e-3, 1.27e-4, 6.17e-5, 3.74e-5, 3.07e-6, 8.35e-6]
    distinct = [2.47e-4, 1.12e-8, 5.09e-13, 3.55e-3, 1.27e-4, 3.08e-8, 2.77e-6, 3.05e-8, 2.02e-6]
    for row, with_repeats, without in zip(SESSION_TABLE_4, tight, distinct, strict=True):
        figures = guarantee("sessions", "paper", session_row(*row[:4])).figures
        assert figures["session_delta_tight"] == pytest.approx(with_repeats, rel=5e-3)
        assert figures["session_delta_distinct"] == pytest.approx(without, rel=5e-3)


def test_one_noise_halves_the_session_epsilon_at_a_lower_threshold() -> None:
    """The paper spends ε = 8 at K = 20 for two draws; one draw costs 4 and its threshold is 18 at the same δ."""
    parameters = SessionParameters(click_scale=None, delta=Fraction("2.25e-7"), threshold=1)
    promise = guarantee("sessions", "sound", parameters)
    assert promise.proven is not None
    assert promise.proven.epsilon == 4
    assert promise.thresholds["sessions"] == 18


def test_crowdlogging_allows_nothing_up_to_k_6() -> None:
    """Section 4.1: 'for 1 <= k <= 7 both policies are allowed only one query per user'; it is none up to k = 6."""
    for variant in ("dp_a", "dp_u"):
        for threshold in range(1, 7):
            promise = guarantee("crowd", variant, CrowdParameters(threshold=threshold))
            assert promise.figures["artifacts_per_user"] == 0
            assert promise.claimed is None
        assert guarantee("crowd", variant, CrowdParameters(threshold=7)).figures["artifacts_per_user"] == 1


def test_crowdlogging_with_one_artifact_forced_is_not_private_at_its_delta() -> None:
    """`paper_min_d1` redraws the paper's figures; at k = 3 its δ is then not 1/(n+1) but thousands of times that."""
    promise = guarantee("crowd", "dp_u", CrowdParameters(threshold=3, paper_min_d1=True))
    assert promise.figures["artifacts_per_user"] == 1
    assert promise.figures["delta_at_threshold"] == pytest.approx(0.005, rel=1e-6)
    assert promise.figures["delta_at_threshold"] > 3000 * AOL_DELTA
    assert "paper_min_d1" in promise.gaps[0]


def test_crowdlogging_epsilon_without_its_count_term() -> None:
    """The simulation states ε = ln 10; the theorem's d/b_a for printed counts makes it 2·ln 10 = 4.605 at b_a = b."""
    for variant in ("dp_a", "dp_u"):
        promise = guarantee("crowd", variant, CrowdParameters(threshold=7))
        assert promise.claimed is not None
        assert float(promise.claimed.epsilon) == pytest.approx(LN_10)
        assert promise.figures["epsilon_with_counts"] == pytest.approx(4.605, abs=1e-3)
        assert promise.proven is None


def test_crowdlogging_pilot_epsilon_is_a_delta() -> None:
    """Section 5 prints 'n = 16 and ε = 1/(n+1)'. Read literally k_u(1) = 37 exceeds all 16 users; as δ it is 1.93."""
    assert user_threshold(1, 1 / 17, 1 / 17) == pytest.approx(37.4, abs=0.05)
    assert user_threshold(1, LN_10, 1 / 17) == pytest.approx(1.93, abs=0.005)


def test_ump_table_4_exceeds_what_its_constraints_allow() -> None:
    """Table 4 prints 3759 to 13901 tuples; summing Eq. (4) over the 1,980 users allows 0.198 to 1649.2."""
    bounds = sorted({size: largest_output(UMP_USERS, epsilon, delta) for epsilon, delta, size in UMP_CELLS}.items())
    expected = [0.198, 1.98, 19.7, 19.9, 188.7, 208.6, 441.8, 666.2, 1050.6, 1372.4, 1649.2]
    assert [bound for _, bound in bounds] == pytest.approx(expected, rel=3e-3)
    assert all(size > 8 * bound for size, bound in bounds)


def test_ump_fixed_output_sizes_and_diversity_are_infeasible() -> None:
    """Tables 5 and 6 fix |O| >= 3000 at e^ε = 2, δ = ½, where at most 1372 fit; Table 7 keeps 774 pairs where 2 fit."""
    assert largest_output(UMP_USERS, math.log(2), 0.5) == pytest.approx(1372.4, abs=0.1)
    assert round(3000 / UMP_USERS, 3) == 1.515
    assert math.exp(3000 / UMP_USERS) == pytest.approx(4.55, abs=0.01)
    assert 1 - math.exp(-3000 / UMP_USERS) == pytest.approx(0.78, abs=0.001)
    assert round(0.128 * 6043) == 774
    assert largest_output(UMP_USERS, math.log(2), 1e-3) == pytest.approx(1.98, abs=0.01)


def test_ump_is_private_in_its_sampling_step_only() -> None:
    """The paper claims (ε, δ) for 'the entire process'; the counts it samples from are the log's, printed exactly."""
    promise = guarantee("sanitized", "paper", SanitizedParameters(epsilon="0.69", delta="0.5"))
    assert promise.proven is None
    assert promise.label.startswith("sampling-step-only")
    sampling, counts = promise.parts
    assert sampling.proven == promise.claimed
    assert counts.proven is None
    # A meaningful δ, below one in the number of users, leaves an empty output.
    assert largest_output(UMP_USERS, 10.0, 0.99 * least_delta(UMP_USERS)) < 1


ZEALOUS_EXAMPLES = [
    # m, ε, λ, τ, τ′ of probabilistic DP, τ′ of (ε, δ)-DP (replace, then add or remove), the Korolova setting
    (1, LN_10, 0.87, 1, 24.0, 12.4, 6.7, 6.7),
    (5, LN_10, 4.34, 5, 120.2, 65.0, 33.0, 37.0),
    (10, 10.0, 2.0, 2, 58.3, 31.8, 16.4, 25.4),
    (20, 10.0, 4.0, 4, 116.5, 65.5, 33.2, 52.2),
]


@pytest.mark.parametrize("row", ZEALOUS_EXAMPLES)
def test_the_korolova_setting_is_too_low_for_zealous_noise(row: tuple[float, ...]) -> None:
    """Attributed to Götz et al.: λ = 2m/ε with τ′ = m(1 - ln(2δ/m)/ε). The proof needs up to twice that at this λ."""
    items, threshold, delta = int(row[0]), int(row[3]), 1e-6
    _, epsilon, scale, _, noisy, replaced, removed, korolova = row
    assert probabilistic_scale(items, epsilon) == pytest.approx(scale, abs=0.005)
    assert math.ceil(probabilistic_scale(items, epsilon)) == threshold
    needed = probabilistic_threshold(items, 2 * items / epsilon, delta, AOL_USERS, threshold)
    assert needed == pytest.approx(noisy, abs=0.051)
    assert approximate_threshold(items, 2 * items / epsilon, delta) == pytest.approx(replaced, abs=0.051)
    assert approximate_threshold(items, items / epsilon, delta) == pytest.approx(removed, abs=0.051)
    setting = korolova_threshold(items, epsilon, delta)
    assert setting == pytest.approx(korolova, abs=0.051)
    assert setting < approximate_threshold(items, 2 * items / epsilon, delta)
    assert setting >= approximate_threshold(items, items / epsilon, delta) - 1e-9


def test_zealous_with_a_threshold_below_its_theorem_promises_nothing() -> None:
    parameters = ZealousParameters(items_per_user=5, epsilon="2.3", kinds=("queries",))
    least = guarantee("zealous", "paper", parameters).figures["least_noisy_threshold"]
    low = guarantee("zealous", "paper", parameters.with_changes(noisy_threshold=math.floor(least)))
    assert low.claimed is None
    assert low.proven is None
    high = guarantee("zealous", "paper", parameters.with_changes(noisy_threshold=math.ceil(least)))
    assert high.proven is not None


def test_tight_selection_delta_is_the_maximum_over_all_splits() -> None:
    def brute(items: int, cap: int, scale: float, threshold: int) -> float:
        best = [0.0] * (items + 1)
        for total in range(1, items + 1):
            best[total] = max(
                best[total - part] + 0.5 * math.exp((part - threshold) / scale)
                for part in range(1, min(cap, total) + 1)
            )
        return min(1.0, best[items])

    for items in (1, 4, 7, 11):
        for cap in (1, 2, 3, 5, 11):
            for scale in (0.5, 1.0, 2.5, 4.0, 10.0):
                found = tight_selection_delta(items, min(cap, items), scale, 20)
                assert found == pytest.approx(brute(items, min(cap, items), scale, 20))


def test_stability_threshold_replaces_the_papers_at_the_same_loss() -> None:
    """k_u(10) is 66.2 for the AOL log; the exact threshold of the sound release, counts included, is 67."""
    assert stability_threshold(10, CrowdParameters().noise_scale, Fraction(1, AOL_USERS + 1)) == 67
