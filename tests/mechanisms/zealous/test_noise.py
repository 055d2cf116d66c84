"""ZEALOUS with both thresholds, and what is left when the second one is forgotten."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from qlog_assets.mechanisms.zealous import noise as zealous
from qlog_assets.mechanisms.zealous.paper import release_paper
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.histogram import stability_threshold
from qlog_assets.privacy.randomness import SeededRandom


def test_counts_below_the_first_threshold_never_appear_whatever_the_noise() -> None:
    users = np.repeat([0, 3, 4], 2000)
    release = release_paper(SeededRandom(1), users, 4, 50.0, -1000.0)
    assert set(users[release.indices].tolist()) == {4} and release.indices.size == 2000


def test_the_printed_count_is_the_one_that_passed_the_second_threshold() -> None:
    release = release_paper(SeededRandom(2), np.full(2000, 10), 4, 5.0, 12.0)
    assert release.counts.min() > 12 and 500 < release.indices.size < 850


def test_without_the_second_threshold_an_item_of_exactly_tau_users_is_always_printed() -> None:
    """Gap 1: certain at τ, impossible at τ - 1."""
    assert release_paper(SeededRandom(3), np.full(500, 4), 4, 1.0, None).indices.size == 500
    assert release_paper(SeededRandom(3), np.full(500, 3), 4, 1.0, None).indices.size == 0


def test_an_item_nobody_holds_is_not_printed_even_with_a_threshold_of_zero() -> None:
    assert release_paper(SeededRandom(4), np.zeros(500, np.int64), 0, 1.0, None).indices.size == 0


def test_sound_release_prints_whole_numbers_at_or_above_the_stability_threshold() -> None:
    scale, delta = Fraction(5), Fraction(1, 1000)
    release = zealous.release(SeededRandom(5), np.full(3000, 40), 2, scale, delta)
    assert release.users.dtype == np.int64 and release.users.min() == stability_threshold(2, scale, delta)


@pytest.mark.parametrize("method", ["truncated_geometric", "gaussian_counts", "weighted_gaussian", "sips"])
def test_modern_methods_release_what_hundreds_hold_with_counts_and_hide_what_one_holds(method: str) -> None:
    """400 users share three items and hold one of their own each; seeded."""
    chosen = ZealousParameters(
        items_per_user=4, kinds=("queries",), epsilon="2.3", delta="1e-6", method=method, counted_items_per_user=4
    )
    users = np.repeat(np.arange(400), 4)
    items = np.column_stack([np.tile([0, 1, 2], (400, 1)), np.arange(3, 403)]).ravel()
    release = zealous.release_modern(SeededRandom(6), users, items, 403, chosen)
    assert release.items.tolist() == [0, 1, 2]
    assert np.abs(release.users - 400).max() < 100 and release.users.min() >= release.threshold
