"""Noise drawn directly on huge zero domains has the law of noise drawn cell by cell.

Statistical tests are seeded, so deterministic; with random seeds each case would fail wrongly with probability 1e-6.
"""

from __future__ import annotations

import time
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from qlog_assets.errors import ParameterError
from qlog_assets.privacy import zero_domain
from qlog_assets.privacy.noise import discrete_laplace
from qlog_assets.privacy.numbers import laplace_survival
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.privacy.zero_domain import decode_pairs, draw_zero_cells, encode_pairs

FALSE_ALARM = 1e-6
SUPPORT = np.array([0, 3, 4, 17, 39])
DOMAIN = 40
RUNS = 2_000


def by_brute_force(source, scale, threshold, domain_size, support):
    noise = discrete_laplace(source, scale, domain_size)
    cells = np.setdiff1d(np.flatnonzero(noise >= threshold), support)
    return cells, noise[cells]


def same_law(one: np.ndarray, other: np.ndarray) -> bool:
    """Two-sample χ² of small integers, rare values pooled."""
    low, high = min(one.min(), other.min()), max(one.max(), other.max())
    table = np.array([np.bincount(sample - low, minlength=high - low + 1) for sample in (one, other)])
    common = table.sum(axis=0) > 30
    table = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("threshold", [-4, 1, 3, 9])
def test_draws_have_the_law_of_brute_force(threshold):
    """How many cells, which cells and what values: dense shares (thresholds -4 and 1) and sparse ones alike."""
    scale, ours, brute = Fraction(5, 2), SeededRandom(threshold + 50), SeededRandom(threshold + 90)
    drawn = [draw_zero_cells(ours, scale, threshold, DOMAIN, SUPPORT) for _ in range(RUNS)]
    forced = [by_brute_force(brute, scale, threshold, DOMAIN, SUPPORT) for _ in range(RUNS)]
    assert same_law(np.array([len(cells) for cells, _ in drawn]), np.array([len(cells) for cells, _ in forced]))
    cells, values = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    forced_cells, forced_values = (np.concatenate(parts) for parts in zip(*forced, strict=True))
    assert same_law(cells, forced_cells)
    assert same_law(values, forced_values)
    assert not np.isin(cells, SUPPORT).any()


@pytest.mark.parametrize("threshold", [0, 5])
def test_every_zero_cell_is_equally_likely_and_no_two_are_tied(threshold):
    """χ² of single cells, and of pairs of neighbouring cells against the product of their probabilities."""
    source, scale = SeededRandom(threshold), Fraction(3)
    passes = np.zeros((RUNS, DOMAIN), dtype=bool)
    for run in range(RUNS):
        passes[run, draw_zero_cells(source, scale, threshold, DOMAIN, SUPPORT)[0]] = True
    zeros = np.setdiff1d(np.arange(DOMAIN), SUPPORT)
    share = float(laplace_survival(scale, threshold)[0])
    scores = (passes[:, zeros].sum(axis=0) - RUNS * share) / np.sqrt(RUNS * share * (1 - share))
    assert (scores**2).sum() < stats.chi2.isf(FALSE_ALARM, len(zeros))
    together = (passes[:, zeros[:-1]] & passes[:, zeros[1:]]).sum(axis=0)
    pair = share**2
    assert np.abs((together - RUNS * pair) / np.sqrt(RUNS * pair * (1 - pair))).max() < stats.norm.isf(
        FALSE_ALARM / (2 * len(zeros))
    )


def test_values_do_not_depend_on_the_cell_they_land_in():
    """Rank correlation of cell and value over a long draw."""
    cells, values = draw_zero_cells(SeededRandom(3), Fraction(10), 20, 10**6, np.arange(0, 1000, 2))
    assert len(cells) > 50_000
    assert stats.spearmanr(cells, values).pvalue > FALSE_ALARM


@pytest.mark.parametrize("threshold", [-5, 12, 60])
def test_cells_come_back_sorted_distinct_and_outside_the_support(threshold):
    """Sorted, so that order says nothing of how a cell came to be printed."""
    support = np.unique(SeededRandom(1).integers(200_000, 50_000))
    cells, values = draw_zero_cells(SeededRandom(2), Fraction(10), threshold, 200_000, support)
    assert cells.dtype == values.dtype == np.int64
    assert (np.diff(cells) > 0).all()
    assert not np.isin(cells, support).any()
    assert 0 <= cells.min() <= cells.max() < 200_000
    assert values.min() >= threshold


def test_forty_billion_cells_cost_what_is_released_and_not_what_the_domain_holds():
    """n = 200,000 items, 4·10**10 ordered pairs; a byte a cell would be 40 GB. Number released by its own law, 1e-6."""
    items, threshold, scale = 200_000, 150, Fraction(10)
    source = SeededRandom(5)
    first, second = source.integers(items, 100_000), source.integers(items, 100_000)
    different = first != second
    support = np.unique(encode_pairs(first[different], second[different], items))
    draw_zero_cells(source, scale, threshold, 1000, support[:0])  # builds the tables, which do not grow with the domain
    tracemalloc.start()
    start = time.perf_counter()
    cells, values = draw_zero_cells(source, scale, threshold, items * (items - 1), support)
    seconds, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    expected = float(laplace_survival(scale, threshold)[0]) * (items * (items - 1) - len(support))
    low, high = stats.poisson.interval(1 - FALSE_ALARM, expected)
    assert low <= len(cells) == len(values) <= high
    assert peak < 64 * (len(support) + len(cells)) + 20_000_000
    assert seconds < 10


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 300), st.data())
def test_ranks_among_zero_cells_are_the_cells_outside_the_support(domain_size, data):
    support = np.array(sorted(data.draw(st.sets(st.integers(0, domain_size - 1)))), dtype=np.int64)
    zeros = np.setdiff1d(np.arange(domain_size), support)
    ranks = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(zeros)))))) if len(zeros) else [], dtype=int)
    assert zero_domain._outside(support, ranks).tolist() == zeros[ranks].tolist()


@pytest.mark.parametrize(("bound", "count"), [(5, 5), (5, 3), (10**6, 0), (1, 1)])
def test_chosen_numbers_are_distinct_and_every_set_is_equally_likely(bound, count):
    source = SeededRandom(bound)
    sets = [tuple(zero_domain._distinct(source, bound, count).tolist()) for _ in range(1_000)]
    assert all(len(set(chosen)) == count and list(chosen) == sorted(chosen) for chosen in sets)
    observed = np.unique(np.array(sets), axis=0, return_counts=True)[1] if count else np.array([1_000])
    if (bound, count) == (5, 3):
        assert len(observed) == 10
        assert stats.chisquare(observed).pvalue > FALSE_ALARM


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 10**6), st.data())
def test_pairs_and_cells_are_one_to_one(items, data):
    cell = data.draw(st.integers(0, items * (items - 1) - 1))
    first, second = decode_pairs(np.array([cell]), items)
    assert 0 <= first[0] < items
    assert 0 <= second[0] < items
    assert first[0] != second[0]
    assert encode_pairs(first, second, items).tolist() == [cell]


@pytest.mark.parametrize("items", [0, 1, 2, 3, 7, 20])
def test_all_cells_of_a_small_domain_are_all_ordered_pairs(items):
    cells = np.arange(items * max(items - 1, 0))
    pairs = list(zip(*(side.tolist() for side in decode_pairs(cells, items)), strict=True))
    assert pairs == [(i, j) for i in range(items) for j in range(items) if i != j]
    assert encode_pairs(*map(np.array, zip(*pairs, strict=True)), items).tolist() == cells.tolist() if pairs else True


@pytest.mark.parametrize("pair", [(1, 1), (0, 5), (5, 0), (-1, 2)])
def test_a_pair_outside_the_domain_is_refused(pair):
    with pytest.raises(ParameterError):
        encode_pairs(np.array([pair[0]]), np.array([pair[1]]), 5)


@pytest.mark.parametrize("cell", [-1, 20])
def test_a_cell_outside_the_domain_is_refused(cell):
    with pytest.raises(ParameterError):
        decode_pairs(np.array([cell]), 5)


@pytest.mark.parametrize("support", [[3, 2], [2, 2], [-1], [40]])
def test_support_that_is_not_sorted_distinct_and_inside_is_refused(support):
    with pytest.raises(ParameterError):
        draw_zero_cells(SeededRandom(1), Fraction(10), 5, DOMAIN, np.array(support))


@pytest.mark.parametrize("threshold", [-3, 0, 10])
def test_a_domain_too_large_for_its_threshold_is_refused_before_anything_is_drawn(threshold):
    source = SeededRandom(1)
    with pytest.raises(ParameterError, match="raise the threshold"):
        draw_zero_cells(source, Fraction(10), threshold, 4 * 10**10, SUPPORT)
    assert source.bytes(8) == SeededRandom(1).bytes(8)


def test_bad_scales_and_domains_are_refused():
    for scale, size in (
        (Fraction(0), 10),
        (0.5, 10),
        (Fraction(10), -1),
        (Fraction(10), 10**13),
        (Fraction(10**10), 10),
    ):
        with pytest.raises(ParameterError):
            draw_zero_cells(SeededRandom(1), scale, 5, size, SUPPORT[:0])


@pytest.mark.parametrize("threshold", [-2, 3, 10**6])
def test_a_domain_that_is_all_support_has_no_zero_cells(threshold):
    cells, values = draw_zero_cells(SeededRandom(1), Fraction(10), threshold, 5, np.arange(5))
    assert len(cells) == len(values) == 0
