"""Arithmetic modulo 2^127 - 1 on limbs, against Python's integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.share_reference import as_rows

from qlog_assets.crowd.field import (
    BITS,
    LIMBS,
    PRIME,
    ZERO_ABOVE,
    are_zero,
    from_ints,
    invert,
    multiply,
    settle,
    split_words,
    subtract,
    to_ints,
)

EDGES = [0, 1, 2, (1 << 26) - 1, 1 << 26, (1 << 64) - 1, 1 << 64, (1 << 126) - 1, 1 << 126, PRIME - 2, PRIME - 1]
ELEMENTS = st.sampled_from(EDGES) | st.integers(0, PRIME - 1)
PAIRS = st.lists(st.tuples(ELEMENTS, ELEMENTS), min_size=1, max_size=40)


def whole(limbs: np.ndarray) -> list[int]:
    """What limbs of any size stand for, modulo p."""
    return [
        sum(int(limb) << int(BITS) * place for place, limb in enumerate(column)) % PRIME for column in limbs.T.tolist()
    ]


@given(PAIRS)
def test_sums_differences_and_products_are_those_of_integers(pairs: list[tuple[int, int]]) -> None:
    left, right = (from_ints(list(column)) for column in zip(*pairs, strict=True))
    assert to_ints(left) == [a for a, _ in pairs]
    assert to_ints(settle(left + right)) == [(a + b) % PRIME for a, b in pairs]
    assert to_ints(settle(subtract(left, right))) == [(a - b) % PRIME for a, b in pairs]
    assert to_ints(multiply(left, right)) == [a * b % PRIME for a, b in pairs]
    both = multiply(subtract(left, right), left + right)
    assert to_ints(both) == [(a - b) * (a + b) % PRIME for a, b in pairs]


@given(st.lists(ELEMENTS.filter(bool), min_size=1, max_size=100))
def test_inverses_are_those_of_integers(values: list[int]) -> None:
    assert to_ints(invert(from_ints(values))) == [pow(value, -1, PRIME) for value in values]


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(0, (1 << 29) - 1), min_size=LIMBS, max_size=LIMBS), min_size=1, max_size=20))
def test_no_product_of_wide_limbs_overflows(rows: list[list[int]]) -> None:
    largest = [(1 << 29) - 1] * LIMBS
    wide = np.array([*rows, largest], np.uint64).T
    product = multiply(wide, wide)
    assert (product < (1 << 27) - 16).all(), "a product is settled"
    assert to_ints(product) == [value * value % PRIME for value in whole(wide)]
    assert whole(settle(wide.copy())) == whole(wide)


def test_shapes_are_broadcast() -> None:
    table, row = from_ints(list(range(1, 7))).reshape(LIMBS, 2, 3), from_ints([10, 20, 30]).reshape(LIMBS, 1, 3)
    assert to_ints(multiply(table, row).reshape(LIMBS, 6)) == [10, 40, 90, 40, 100, 180]


def test_all_ways_to_write_zero_are_zero() -> None:
    many = np.stack([ZERO_ABOVE, from_ints([0])[:, 0], from_ints([PRIME])[:, 0], from_ints([1])[:, 0]], axis=1)
    assert are_zero(many).tolist() == [True, True, True, False]
    assert whole(ZERO_ABOVE[:, None]) == [0]


@given(st.lists(ELEMENTS, min_size=1, max_size=20))
def test_words_sort_as_the_numbers_do(values: list[int]) -> None:
    high, low = split_words(as_rows(values))
    assert [values[at] for at in np.lexsort((low, high))] == sorted(values)
