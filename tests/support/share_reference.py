"""Recovery of Shamir's secrets by trying everything, in Python's integers: what the fast way is held against."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random

import numpy as np

from qlog_assets.crowd.field import ELEMENT_BYTES, PRIME

Point = tuple[int, int]


def value_through(points: Sequence[Point], x: int) -> int:
    """Lagrange's formula: the value at x of the polynomial through these points."""
    total = 0
    for place, value in points:
        above = below = 1
        for other, _ in points:
            if other != place:
                above = above * (x - other) % PRIME
                below = below * (place - other) % PRIME
        total = (total + value * above * pow(below, -1, PRIME)) % PRIME
    return total


def recover_group(points: Sequence[Point], threshold: int) -> tuple[int | None, set[Point]]:
    """The secret of one group, and the shares on its polynomial at places of one value, by every choice of k shares."""
    distinct = set(points)
    sure = [point for point in distinct if sum(point[0] == x for x, _ in distinct) == 1]
    if len({x for x, _ in distinct}) >= threshold:
        for chosen in combinations(sure, threshold):
            fitting = {(x, y) for x, y in sure if value_through(chosen, x) == y}
            if len(fitting) - (len(sure) - len(fitting)) >= threshold:
                return value_through(chosen, 0), fitting
    return None, set()


def as_rows(values: Sequence[int]) -> np.ndarray:
    """Elements as the recovery takes them: 16 bytes each."""
    data = b"".join(value.to_bytes(ELEMENT_BYTES, "big") for value in values)
    return np.frombuffer(data, np.uint8).reshape(-1, ELEMENT_BYTES)


def any_element(random: Random) -> int:
    return random.randrange(1, PRIME)
