"""The objectives on a histogram alone: the asked size to the event, and as near as whole numbers come."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qlog_assets.mechanisms.sanitized.aims import aim

histograms = st.lists(st.integers(0, 60), min_size=1, max_size=8).map(np.array)
OBJECTIVES = ("output_size", "frequent_pairs", "diversity")


@settings(max_examples=200)
@given(histograms, st.sampled_from(OBJECTIVES), st.integers(1, 500), st.sampled_from([0, 2, 5, 20]))
def test_the_asked_size_is_met_by_pairs_that_are_there(
    counts: np.ndarray, objective: str, size: int, share: int
) -> None:
    found = aim(counts, objective, size, Fraction(share, 20))
    assert found.min() >= 0 and not found[counts <= 0].any()
    assert found.sum() == (size if counts.sum() else 0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 30), min_size=2, max_size=4).map(np.array),
    st.integers(1, 7),
    st.sampled_from(["0.1", "0.3", "0.5"]).map(Fraction),
)
def test_no_whole_counts_bring_frequent_pairs_nearer_to_their_supports(
    counts: np.ndarray, size: int, support: Fraction
) -> None:
    """Against every way to share out the size."""
    total = int(counts.sum())
    if total == 0:
        return
    frequent = [int(count) >= support * total for count in counts]

    def distance(output: tuple[int, ...]) -> Fraction:
        return sum(
            (
                abs(Fraction(x, size) - Fraction(int(count), total))
                for x, count, is_frequent in zip(output, counts, frequent, strict=True)
                if is_frequent
            ),
            Fraction(0),
        )

    ways = [
        output
        for output in product(range(size + 1), repeat=counts.size)
        if sum(output) == size and all(x == 0 or count > 0 for x, count in zip(output, counts, strict=True))
    ]
    found = tuple(aim(counts, "frequent_pairs", size, support).tolist())
    assert distance(found) == min(map(distance, ways))


def test_each_objective_does_what_its_name_says() -> None:
    counts = np.array([50, 30, 15, 5])
    assert aim(counts, "output_size", 10).tolist() == [5, 3, 2, 0]
    assert aim(counts, "frequent_pairs", 100, Fraction(1, 10)).tolist() == [50, 30, 15, 5]
    assert aim(counts, "diversity", 3).tolist() == [1, 1, 1, 0]
    assert aim(counts, "diversity", 9).tolist() == [3, 2, 2, 2]
    queries = np.array([0, 0, 1, 2])
    assert aim(counts, "diversity", 3, queries=queries).tolist() == [1, 0, 1, 1]


def test_sizes_and_counts_of_billions_are_shared_out_exactly() -> None:
    counts = np.array([10**9, 10**9 + 1, 1])
    assert aim(counts, "output_size", 10**9 * 4).sum() == 4 * 10**9
