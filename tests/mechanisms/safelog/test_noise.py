"""Safelog's thresholds and parts: what may appear, what it costs, and that a draw never fails half way."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.register import guarantee, mechanism
from qlog_assets.mechanisms.safelog import noise as safelog
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.policy import Policy
from qlog_assets.privacy.public_domain import MOST_FAKES, QUERIES_PER_FAKE
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.privacy.zero_domain import decode_pairs, encode_pairs
from qlog_assets.report.account import survival

NOBODY = np.empty(0, dtype=np.int64)


def parameters_under(policy: Policy) -> SafelogParameters:
    chosen = policy.parameters(mechanism("safelog"))
    assert isinstance(chosen, SafelogParameters)
    return chosen


@given(cells=st.integers(1, 10**12), scale=st.fractions(Fraction(1, 100), 1000), wanted=st.integers(1, 10**6))
def test_a_threshold_is_never_so_low_that_fakes_fill_the_disk(cells: int, scale: Fraction, wanted: int) -> None:
    threshold = safelog.usable_threshold(wanted, cells, scale)
    expected = cells * np.exp(-threshold / float(scale)) / 2
    assert threshold >= wanted
    assert expected <= MOST_FAKES * 1.001
    assert safelog.usable_threshold(None, cells, scale) >= safelog.few_fakes_threshold(cells, scale)


def test_transitions_at_a_threshold_of_one_are_drawn_and_not_refused_after_the_queries() -> None:
    chosen = SafelogParameters(transition_scale=2, transition_threshold=1)
    drawn = safelog.draw_transitions(SeededRandom(1), NOBODY, NOBODY, 30_000, chosen)
    assert 0 < len(drawn.cells) < 2 * MOST_FAKES
    assert drawn.cell_users.min() >= safelog.effective_transition_threshold(30_000, chosen)


@given(queries=st.integers(2, 10**5), scale=st.fractions(Fraction(1, 10), 100))
def test_derived_transitions_are_never_mostly_noise(queries: int, scale: Fraction) -> None:
    """At most one noise row for every twenty released queries, by the exact law, and about one in all."""
    chosen = SafelogParameters(transition_scale=scale)
    threshold = safelog.effective_transition_threshold(queries, chosen)
    expected = queries * (queries - 1) * survival(float(scale), threshold)
    assert expected <= min(queries / QUERIES_PER_FAKE, 2) * (1 + 1e-9)
    if threshold > 1 and queries <= QUERIES_PER_FAKE:
        looser = queries * (queries - 1) * survival(float(scale), threshold - 1)
        assert looser > queries / QUERIES_PER_FAKE, "no higher than it must be"


def test_three_released_queries_without_transitions_show_a_fake_in_few_draws_only() -> None:
    """It fell to 3 at the default scale, and to 1 at a scale of 1/2: noise made most of such tables.

    Of 2,000 draws at most 2,000 · 6 · P[X >= 7] = 226 rows are expected; 300 is five standard deviations above, so a
    false alarm is rarer than one in a million.
    """
    chosen = SafelogParameters()
    assert safelog.effective_transition_threshold(3, chosen) == 7
    assert safelog.effective_transition_threshold(3, SafelogParameters(transition_scale="0.5")) == 2
    source = SeededRandom(3)
    drawn = sum(len(safelog.draw_transitions(source, NOBODY, NOBODY, 3, chosen).cells) for _ in range(2000))
    assert drawn < 300


def test_a_threshold_that_the_policy_sets_has_no_floor_but_that_of_the_disk() -> None:
    assert safelog.effective_transition_threshold(3, SafelogParameters(transition_threshold=1)) == 1


def test_a_public_url_list_leaves_all_of_delta_to_the_queries() -> None:
    listed = parameters_under(Policy(url_list="urls.txt", safelog={"variant": "sound"}))
    assert (listed.click_delta, listed.selection_delta) == (0, listed.delta)
    guaranteed = guarantee("safelog", "sound", listed)
    assert guaranteed.proven is not None
    assert guaranteed.proven.delta == listed.delta
    clicks = next(part for part in guaranteed.parts if part.name == "clicks")
    assert clicks.proven is not None
    assert clicks.proven.delta == 0
    assert "public list" in clicks.sentence


def test_without_delta_and_without_a_list_no_click_is_drawn_and_none_is_charged() -> None:
    pure = parameters_under(Policy(safelog={"variant": "sound", "delta": 0}))
    guaranteed = guarantee("safelog", "sound", pure)
    assert [part.name for part in guaranteed.parts] == ["queries", "transitions"]


def test_modern_cannot_do_without_delta_and_names_the_variant_that_can() -> None:
    with pytest.raises(ParameterError, match='delta: 0 is for variant = "sound"'):
        parameters_under(Policy(safelog={"delta": 0}))


@pytest.mark.parametrize("variant", ["modern", "sound"])
def test_listed_clicks_without_a_list_are_refused(variant: str) -> None:
    with pytest.raises(ParameterError, match="url_list"):
        parameters_under(Policy(safelog={"variant": variant, "click_support": "public_list"}))


def test_one_query_a_user_has_no_transitions_and_pays_for_none() -> None:
    chosen = SafelogParameters(queries_per_user=1)
    assert len(safelog.draw_transitions(SeededRandom(1), NOBODY, NOBODY, 50, chosen).cells) == 0
    guaranteed = guarantee("safelog", "sound", chosen)
    assert guaranteed.proven is not None
    assert guaranteed.proven.epsilon == Fraction(1, 2) + Fraction(1, 2)


@pytest.mark.parametrize("queries", [10**6 + 2, 2**31])
def test_however_many_queries_the_noise_released_their_transitions_are_drawn(queries: int) -> None:
    """Above a million queries the numbering of pairs once failed, after the noise of the queries was drawn."""
    before, after = np.array([0, queries - 1]), np.array([queries - 1, 0])
    cells = encode_pairs(before, after, queries)
    drawn = safelog.draw_transitions(SeededRandom(1), cells, np.array([500, 700]), queries, SafelogParameters())
    assert list(drawn.support.indices) == [0, 1]
    found = decode_pairs(np.concatenate([cells, drawn.cells]), queries)
    assert (found[0][:2] == before).all() and (found[1][:2] == after).all()
    assert (found[0] != found[1]).all() and max(found[0].max(), found[1].max()) < queries
