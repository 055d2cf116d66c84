"""Guarantees as a whole: monotone in every parameter, refused for bad ones, complete, and honest in JSON."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.register import guarantee, names
from qlog_assets.mechanisms.register import mechanism as known
from qlog_assets.mechanisms.safelog.parameters import PaperParameters, SafelogParameters
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.gaussian import gaussian_budget
from qlog_assets.privacy.guarantee import Guarantee, PrivacyLoss, printed
from qlog_assets.privacy.korolova import turning_point

ALL = [(mechanism, variant) for mechanism in names() for variant in known(mechanism).variants]
SHARED_BUDGET = {("safelog", "modern"), ("zealous", "modern"), ("sessions", "modern"), ("crowd", "gaussian")}
"""Tables share one budget: ρ adds up to the whole, each table's own ε and δ do not."""
PUBLISHABLE = SHARED_BUDGET | {
    ("safelog", "sound"),
    ("zealous", "sound"),
    ("sessions", "sound"),
    ("crowd", "sound"),
    ("crowd", "gaussian"),
    ("sanitized", "sound"),
}

# Monotone in every parameter ------------------------------------------------------------------------------------------

SCALE = st.fractions(min_value=Fraction(1, 2), max_value=200, max_denominator=20)
EPSILON = st.fractions(min_value=Fraction(1, 10), max_value=10, max_denominator=50)
DELTA = st.integers(4, 40).map(lambda power: Fraction(1, 2**power))
SHARE = st.integers(1, 8).map(lambda tenths: Fraction(tenths, 20))
COUNT = st.integers(1, 60)
THRESHOLD = st.integers(1, 300)

VALUES: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "baselines": {"k": COUNT},
    "safelog": {
        "queries_per_user": COUNT,
        "clicks_per_user": COUNT,
        "epsilon": EPSILON,
        "click_share": SHARE,
        "transition_share": SHARE,
        "selection_scale": SCALE,
        "click_scale": SCALE,
        "transition_scale": SCALE,
        "threshold": THRESHOLD,
        "click_threshold": THRESHOLD,
        "click_support": st.sampled_from(["public_list", "stability"]),
        "transition_threshold": THRESHOLD,
        "delta": DELTA,
        "delta_share_clicks": SHARE,
        "min_users": COUNT,
        "min_frequency": COUNT,
        "query_scale": SCALE,
        "paper_click_support": st.sampled_from(["observed", "observed_gt_K"]),
    },
    "zealous": {
        "items_per_user": COUNT,
        "kinds": st.sampled_from([("queries",), ("queries", "clicks"), ("keywords", "queries", "pairs", "clicks")]),
        "epsilon": EPSILON,
        "delta": DELTA,
        "min_users": COUNT,
        "method": st.sampled_from(["gaussian_counts", "sips", "steered", "truncated_geometric", "weighted_gaussian"]),
        "set_share": SHARE,
        "counted_items_per_user": COUNT,
        "user_bound": st.integers(1000, 10**7),
        "threshold": THRESHOLD,
        "noisy_threshold": st.integers(10**5, 10**6),
    },
    "sessions": {
        "sessions_per_user": st.integers(1, 5),
        "queries_per_session": st.integers(2, 10),
        "items": st.sampled_from(["pairs", "subsequences"]),
        "collapse_repeats": st.booleans(),
        "clicks_per_user": COUNT,
        "session_scale": SCALE,
        "click_scale": SCALE,
        "threshold": THRESHOLD,
        "session_gap_minutes": COUNT,
        "delta": DELTA,
        "delta_share_clicks": SHARE,
        "epsilon": EPSILON,
        "click_share": SHARE,
        "method": st.sampled_from(["gaussian_counts", "steered", "weighted_gaussian"]),
        "set_share": SHARE,
        "counted_items_per_user": COUNT,
        "domain": st.just("open"),  # pairs over a release are priced by themselves below
    },
    "crowd": {
        "artifacts_per_user": COUNT,
        "jobs": st.sampled_from([("queries",), ("clicks", "queries"), ("click_hosts", "queries", "urls")]),
        "epsilon": EPSILON,
        "delta": DELTA,
        "share_threshold": COUNT,
        "threshold": THRESHOLD,
        "count_scale": SCALE,
        "paper_min_d1": st.booleans(),
    },
    "sanitized": {
        "objective": st.sampled_from(["diversity", "frequent_pairs", "output_size"]),
        "minimum_support": SHARE,
        "asked_size": COUNT,
        "diversity_of": st.sampled_from(["pairs", "queries"]),
        "infrequent_stay": st.booleans(),
        "rounding": st.sampled_from(["fill", "mip", "printed", "tested_first"]),
        "solver_seconds": COUNT,
        "count_epsilon": EPSILON,
        "largest_change": SCALE,
        "epsilon": EPSILON,
        "delta": DELTA,
        "pairs_per_user": st.integers(2, 60),
        "method": st.sampled_from(["stability", "steered", "weighted_gaussian"]),
        "set_share": SHARE,
        "counted_pairs_per_user": COUNT,
        "clicks": st.booleans(),
        "activity_share": SHARE,
        "association_share": SHARE,
        "delta_share_associations": SHARE,
        "synthetic_users": COUNT,
    },
}

# How ε and δ move when a parameter grows: +1 never down, -1 never up, 0 not at all. What is not listed moves neither.
UP, DOWN, SAME = 1, -1, 0
TOTALS = {"epsilon": (UP, SAME), "delta": (SAME, UP)}
DIRECTIONS: dict[tuple[str, str], dict[str, tuple[int, int]]] = {
    ("safelog", "modern"): TOTALS,
    ("safelog", "sound"): {
        "queries_per_user": (UP, SAME),
        "clicks_per_user": (UP, SAME),
        "selection_scale": (DOWN, SAME),
        "click_scale": (DOWN, SAME),
        "transition_scale": (DOWN, SAME),
        "delta": (SAME, UP),
    },
    ("safelog", "paper"): {
        "queries_per_user": (UP, SAME),
        "clicks_per_user": (UP, SAME),
        "click_scale": (DOWN, SAME),
        "transition_scale": (DOWN, SAME),
        "query_scale": (DOWN, SAME),
        "threshold": (DOWN, SAME),
    },
    ("zealous", "sound"): TOTALS,
    ("zealous", "modern"): TOTALS,
    ("zealous", "paper"): TOTALS,
    ("sessions", "sound"): {
        "sessions_per_user": (UP, SAME),
        "queries_per_session": (UP, SAME),
        "items": (UP, SAME),
        "clicks_per_user": (UP, SAME),
        "session_scale": (DOWN, SAME),
        "click_scale": (DOWN, SAME),
        "delta": (SAME, UP),
    },
    ("sessions", "modern"): TOTALS,
    ("sessions", "paper"): {
        "sessions_per_user": (UP, UP),
        "queries_per_session": (UP, UP),
        "clicks_per_user": (UP, UP),
        "threshold": (DOWN, DOWN),
    },
    ("crowd", "sound"): TOTALS,
    ("crowd", "gaussian"): TOTALS,
    ("crowd", "ft_a"): {},
    ("crowd", "ft_u"): {},
    ("crowd", "dp_a"): TOTALS,
    ("crowd", "dp_u"): TOTALS,
    ("sanitized", "sound"): TOTALS,
    ("sanitized", "paper"): {**TOTALS, "count_epsilon": (UP, SAME)},
}
# The scale b in a formula with the papers' α has a turning point: tested by itself below.
TURNING = {("safelog", "paper"): {"selection_scale"}, ("sessions", "paper"): {"session_scale", "click_scale"}}


def moved(before: PrivacyLoss | None, after: PrivacyLoss | None, directions: tuple[int, int]) -> bool:
    """Whether both losses exist only to move as stated (to a relative 1e-12 where they are floats)."""
    if before is None or after is None:
        return True
    for first, second, direction in (
        (before.epsilon, after.epsilon, directions[0]),
        (before.delta, after.delta, directions[1]),
    ):
        slack = 1e-12 * (1 + abs(float(first)))
        grown = float(second) - float(first)
        if (direction <= SAME and grown > slack) or (direction >= SAME and grown < -slack):
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "variant"), ALL)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data())
def test_guarantees_are_monotone_in_every_parameter(mechanism: str, variant: str, data: st.DataObject) -> None:
    model, values = known(mechanism).parameters, VALUES[mechanism]
    assert set(values) == set(model.model_fields), "a parameter without a stated direction"
    base = model(**{field: data.draw(values[field], label=field) for field in values})
    guaranteed = guarantee(mechanism, variant, base)
    for field, strategy in values.items():
        if field in TURNING.get((mechanism, variant), ()):
            continue
        ends = [getattr(base, field), data.draw(strategy, label=f"other {field}")]
        grown = guarantee(mechanism, variant, base.with_changes(**{field: max(ends)}))
        shrunk = (
            guaranteed
            if min(ends) == ends[0]
            else guarantee(mechanism, variant, base.with_changes(**{field: min(ends)}))
        )
        directions = DIRECTIONS.get((mechanism, variant), {}).get(field, (SAME, SAME))
        assert moved(shrunk.claimed, grown.claimed, directions), field
        assert moved(shrunk.proven, grown.proven, directions), field


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    items=st.tuples(COUNT, COUNT).map(sorted),
    epsilons=st.tuples(EPSILON, EPSILON).map(sorted),
    deltas=st.tuples(DELTA, DELTA).map(sorted),
)
def test_stability_thresholds_rise_with_items_and_fall_with_epsilon_and_delta(
    items: list[int], epsilons: list[Fraction], deltas: list[Fraction]
) -> None:
    def threshold(items_per_user: int, epsilon: Fraction, delta: Fraction) -> int:
        parameters = ZealousParameters(items_per_user=items_per_user, epsilon=epsilon, delta=delta, kinds=("queries",))
        return guarantee("zealous", "sound", parameters).thresholds["queries"]

    assert threshold(items[0], epsilons[0], deltas[0]) <= threshold(items[1], epsilons[0], deltas[0])
    assert threshold(items[0], epsilons[0], deltas[0]) >= threshold(items[0], epsilons[1], deltas[0])
    assert threshold(items[0], epsilons[0], deltas[0]) >= threshold(items[0], epsilons[0], deltas[1])


@settings(max_examples=15, deadline=None, derandomize=True)
@given(shares=st.tuples(COUNT, COUNT).map(sorted), threshold=THRESHOLD, scale=SCALE)
def test_a_smaller_pool_never_lowers_what_safelogs_paper_claims(
    shares: list[int], threshold: int, scale: Fraction
) -> None:
    small, large = (
        guarantee(
            "safelog",
            "paper",
            PaperParameters(threshold=threshold, selection_scale=scale, pool_probability=Fraction(share, 60)),
        ).claimed
        for share in shares
    )
    assert moved(small, large, (DOWN, SAME))


@pytest.mark.parametrize("threshold", [10, 30, 50, 100, 500])
def test_the_scale_of_safelogs_paper_formula_has_a_turning_point(threshold: int) -> None:
    """The exception: ε falls with b up to the turning point and rises after it, so more noise looks less private."""
    turn = turning_point(threshold)
    assert turn is not None

    def epsilon(scale: float) -> float:
        parameters = SafelogParameters(threshold=threshold, selection_scale=str(round(scale, 6)))
        claimed = guarantee("safelog", "paper", parameters).claimed
        assert claimed is not None
        return float(claimed.epsilon)

    left = [epsilon(turn * factor) for factor in (0.2, 0.5, 0.9, 0.999)]
    right = [epsilon(turn * factor) for factor in (1.001, 1.1, 2.0, 5.0)]
    assert left == sorted(left, reverse=True)
    assert right == sorted(right)
    # The sound release has no such point: more noise is always more private.
    sound = [
        guarantee("safelog", "sound", SafelogParameters(selection_scale=scale)).proven for scale in (1, 7, 35, 500)
    ]
    epsilons = [float(loss.epsilon) for loss in sound if loss is not None]
    assert epsilons == sorted(epsilons, reverse=True)


def test_the_scale_of_the_session_papers_formula_turns_too() -> None:
    """It borrows the same α: at K = 20 its ε is 0.80 at b = 10 but 1.06 at b = 20, and δ grows with b besides."""
    losses = []
    for scale in (10, 20):
        claimed = guarantee(
            "sessions", "paper", SessionParameters(session_scale=scale, click_scale=None, threshold=20)
        ).claimed
        assert claimed is not None
        losses.append(claimed)
    assert [round(float(loss.epsilon), 2) for loss in losses] == [0.80, 1.06]
    assert losses[1].delta > losses[0].delta


def test_a_part_switched_off_costs_nothing_and_disappears() -> None:
    parameters = SafelogParameters(queries_per_user=10, selection_scale=10)
    names = [part.name for part in guarantee("safelog", "sound", parameters).parts]
    assert names == ["queries", "clicks", "transitions"]
    for off in ("click_scale", "transition_scale"):
        for variant in ("sound", "paper"):
            whole = guarantee("safelog", variant, parameters).claimed
            rest = guarantee("safelog", variant, parameters.with_changes(**{off: None}))
            assert whole is not None
            assert rest.claimed is not None
            assert rest.claimed.epsilon < whole.epsilon
            assert len(rest.parts) == 2
    queries_only = parameters.with_changes(click_scale=None, transition_scale=None)
    proven = guarantee("safelog", "sound", queries_only).proven
    assert proven == PrivacyLoss(Fraction(1), Fraction(1, 10**6), Fraction(1, 20))


def test_pure_safelog_has_no_delta_and_no_stability_threshold() -> None:
    guaranteed = guarantee("safelog", "sound", SafelogParameters(delta=0, threshold=100))
    assert guaranteed.proven is not None
    assert guaranteed.proven.delta == 0
    assert guaranteed.thresholds == {"queries_in_pool": 100}
    assert guaranteed.label == "pure differential privacy"
    assert "public" in guaranteed.sentence


def test_a_single_query_a_user_has_no_transitions_to_pay_for() -> None:
    guaranteed = guarantee("safelog", "sound", SafelogParameters(queries_per_user=1, transition_scale=1))
    assert guaranteed.parts[2].proven == PrivacyLoss(Fraction(0), Fraction(0), Fraction(0))


# Completeness and the JSON contract -----------------------------------------------------------------------------------


def default(mechanism: str, variant: str) -> Guarantee:
    return guarantee(mechanism, variant, known(mechanism).parameters())


@pytest.mark.parametrize(("mechanism", "variant"), ALL)
def test_json_holds_the_contract_and_only_finite_numbers(mechanism: str, variant: str) -> None:
    answer = json.loads(json.dumps(default(mechanism, variant).as_json(), allow_nan=False))
    assert answer["mechanism"] == mechanism
    assert answer["variant"] == variant
    for key in ("claimed", "proven"):
        assert answer[key] is None or {"epsilon", "delta"} <= set(answer[key])
    for part in answer["parts"]:
        assert {"name", "claimed", "proven"} <= set(part)
    assert isinstance(answer["gaps"], list)


@pytest.mark.parametrize(("mechanism", "variant"), ALL)
def test_only_sound_variants_are_publishable_and_only_they_are_without_gaps(mechanism: str, variant: str) -> None:
    guaranteed = default(mechanism, variant)
    assert guaranteed.publishable == ((mechanism, variant) in PUBLISHABLE)
    assert (not guaranteed.gaps) == guaranteed.publishable
    if guaranteed.publishable:
        assert guaranteed.claimed == guaranteed.proven
        assert guaranteed.proven is not None
        assert isinstance(guaranteed.proven.epsilon, Fraction)
        assert isinstance(guaranteed.proven.delta, Fraction)
        assert guaranteed.relation == "add-or-remove-one-user"
    for text in (guaranteed.paper, guaranteed.sentence, guaranteed.formula, guaranteed.label, *guaranteed.assumptions):
        assert text


@pytest.mark.parametrize(("mechanism", "variant"), sorted(PUBLISHABLE - SHARED_BUDGET))
def test_the_parts_of_a_sound_release_add_up_to_it(mechanism: str, variant: str) -> None:
    guaranteed = default(mechanism, variant)
    parts = [part.proven for part in guaranteed.parts if part.proven is not None]
    assert guaranteed.proven is not None
    assert sum(loss.epsilon for loss in parts) == guaranteed.proven.epsilon
    assert sum(loss.delta for loss in parts) == guaranteed.proven.delta
    assert sum(loss.rho or 0 for loss in parts) == guaranteed.proven.rho


@pytest.mark.parametrize("method", ["steered", "gaussian_counts", "weighted_gaussian", "sips", "truncated_geometric"])
def test_modern_selection_spends_its_total_and_no_more(method: str) -> None:
    parameters = ZealousParameters(method=method, epsilon="2.3", delta="1e-6", kinds=("queries", "clicks"))
    assert_shared(guarantee("zealous", "modern", parameters), adds_up=method != "truncated_geometric")


@pytest.mark.parametrize("method", ["steered", "gaussian_counts", "weighted_gaussian"])
def test_sequences_and_clicks_spend_their_total_and_no_more(method: str) -> None:
    parameters = SessionParameters(method=method, epsilon="2.3", delta="1e-6")
    assert_shared(guarantee("sessions", "modern", parameters), adds_up=True)


def test_queries_clicks_and_transitions_spend_their_total_and_no_more() -> None:
    parameters = SafelogParameters(epsilon="2.3", delta="1e-6")
    assert_shared(guarantee("safelog", "modern", parameters), adds_up=True)


def test_a_table_of_modern_safelog_that_is_off_leaves_its_share_to_the_queries() -> None:
    parameters = SafelogParameters()
    whole = guarantee("safelog", "modern", parameters)
    assert [part.name for part in whole.parts] == ["queries", "clicks", "transitions"]
    for off in ("click_share", "transition_share"):
        rest = guarantee("safelog", "modern", parameters.with_changes(**{off: None}))
        assert len(rest.parts) == 2 and rest.proven == whole.proven
        before, after = whole.parts[0].proven, rest.parts[0].proven
        assert before is not None and after is not None and after.epsilon > before.epsilon
    alone = guarantee("safelog", "modern", parameters.with_changes(click_share=None, transition_share=None))
    assert alone.parts[0].proven == alone.proven == whole.proven


def test_pairs_over_a_release_cost_no_delta_and_clicks_bring_their_own() -> None:
    parameters = SessionParameters(domain="zealous-2006-03-0123456789ab", epsilon=2, delta="1e-6", click_share="1/4")
    both = guarantee("sessions", "modern", parameters)
    assert both.proven is not None
    assert (both.proven.epsilon, both.proven.delta) == (2, Fraction("1e-6"))
    assert [(part.proven.epsilon, part.proven.delta) for part in both.parts if part.proven is not None] == [
        (Fraction(3, 2), 0),
        (Fraction(1, 2), Fraction("1e-6")),
    ]
    alone = guarantee("sessions", "modern", parameters.with_changes(click_scale=None))
    assert alone.proven is not None
    assert (alone.proven.epsilon, alone.proven.delta) == (2, 0)
    for refused in ({"items": "subsequences"}, {"session_scale": None}):
        with pytest.raises(ParameterError, match="a release is for items = pairs"):
            parameters.with_changes(**refused)


def assert_shared(guaranteed: Guarantee, *, adds_up: bool) -> None:
    assert guaranteed.proven is not None
    assert guaranteed.proven.epsilon == Fraction("2.3")
    assert guaranteed.proven.delta == Fraction("1e-6")
    for part in guaranteed.parts:
        assert part.proven is not None
        assert part.proven.epsilon < guaranteed.proven.epsilon
        assert part.proven.delta < guaranteed.proven.delta
    if adds_up:
        rhos = [part.proven.rho or 0 for part in guaranteed.parts if part.proven is not None]
        assert sum(rhos) == guaranteed.proven.rho


@pytest.mark.parametrize("method", ["steered", "gaussian_counts", "weighted_gaussian"])
def test_modern_kinds_with_a_budget_each_spend_no_more_than_one_shared_budget(method: str) -> None:
    for epsilon in (Fraction(1, 2), Fraction("2.3"), Fraction(8)):
        for delta in (Fraction(1, 1000), Fraction(1, 10**6)):
            parameters = ZealousParameters(method=method, epsilon=epsilon, delta=delta)
            proven = guarantee("zealous", "modern", parameters).proven
            counted = parameters.items_per_user if method == "gaussian_counts" else 0
            one_kind = gaussian_budget(parameters.kind_epsilon, parameters.kind_delta, counted)
            assert proven is not None
            assert proven.rho is not None
            assert 4 * one_kind.rho <= proven.rho


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.fractions(min_value=0, max_value=1000))
def test_a_printed_loss_is_never_below_the_proven_one(value: Fraction) -> None:
    number = printed(value)
    assert Fraction(number) >= value or Fraction(repr(number)) == value


def test_decimals_print_as_they_were_written() -> None:
    assert [printed(Fraction(text)) for text in ("0.1", "1e-6", "2.3", "0")] == [0.1, 1e-6, 2.3, 0.0]
