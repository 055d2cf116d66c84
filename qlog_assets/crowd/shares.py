"""Shamir's shares of an artifact's secret: k of them give it, fewer say nothing.

The client's side evaluates one polynomial in Python's integers. The collector's side recovers the polynomials of all
groups of shares at once: each is interpolated from k shares in Newton's form, and the others are checked on it. Only
groups in which shares contradict each other are decoded one by one (`decoding`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qlog_assets.crowd.decoding import Point, decode_shares, value_at
from qlog_assets.crowd.field import (
    ELEMENT_BYTES,
    LIMBS,
    PRIME,
    Elements,
    Words,
    are_zero,
    from_words,
    invert,
    multiply,
    negate,
    settle,
    split_words,
    subtract,
    to_rows,
)

Integers = NDArray[np.int64]

BLOCK = 1 << 15
"""Shares that are worked on at once: as few as keep the calls of numpy long enough to pay."""
PRODUCTS = 1 << 22
"""Squares of the threshold that are worked on at once: interpolation keeps half as many products, here 84 MB."""


@dataclass(frozen=True)
class Polynomial:
    """A polynomial over GF(p), the constant coefficient first: that one is the secret."""

    coefficients: tuple[int, ...]

    def at(self, x: int) -> int:
        """Its value at x: the share of whoever holds the place x."""
        return value_at(self.coefficients, x)

    def pack(self) -> bytes:
        """Its coefficients, 16 bytes each."""
        return b"".join(value.to_bytes(ELEMENT_BYTES, "big") for value in self.coefficients)

    @staticmethod
    def unpack(data: bytes) -> Polynomial:
        """The polynomial of such bytes."""
        parts = (data[at : at + ELEMENT_BYTES] for at in range(0, len(data), ELEMENT_BYTES))
        return Polynomial(tuple(int.from_bytes(part, "big") for part in parts))


@dataclass
class Recovered:
    """What the shares of each group give. A group is dropped if it has too few places or too many wrong shares.

    A place to which two values came is contested: it is counted as a place, and neither as right nor as wrong.
    """

    known: NDArray[np.bool_]
    """Per group: whether its shares give a polynomial; if not, it is dropped."""
    coefficients: NDArray[np.uint8]
    """Per group and coefficient 16 bytes; 0 if it is dropped."""
    right: Integers
    """Per group: places whose share lies on the polynomial; 0 if it is dropped."""
    wrong: Integers
    """Per group: places whose share does not; 0 if it is dropped."""
    places: Integers
    """Per group: distinct places. Below the threshold, that is why it is dropped."""
    fits: NDArray[np.bool_]
    """Per share, in the order they came: whether its place is counted as right."""

    def polynomial(self, group: int) -> Polynomial | None:
        """What a group's shares lie on; None if it is dropped."""
        return Polynomial.unpack(self.coefficients[group].tobytes()) if self.known[group] else None


@dataclass(frozen=True)
class Points:
    """Distinct shares by group, place and value: a row per share, in an order that is theirs and not the senders'."""

    group: Integers
    x: tuple[Words, Words]
    y: tuple[Words, Words]
    again: NDArray[np.bool_]
    """Whether the row before has the same group and place, and so another value."""

    def places(self, rows: Integers) -> Elements:
        return from_words(self.x[0][rows], self.x[1][rows])

    def values(self, rows: Integers) -> Elements:
        return from_words(self.y[0][rows], self.y[1][rows])

    def as_ints(self, rows: slice) -> list[Point]:
        columns = (words[rows].tolist() for words in (*self.x, *self.y))
        return [(a << 64 | b, c << 64 | d) for a, b, c, d in zip(*columns, strict=True)]


def recover(groups: Integers, xs: NDArray[np.uint8], ys: NDArray[np.uint8], threshold: int) -> Recovered:
    """The polynomial of each group of shares, and how many places are right and wrong.

    `groups` numbers each share's group from 0; `xs` and `ys` hold 16 bytes per share. Shares may come in any order, and
    more than once: the same one counts once. A group has a polynomial iff `count_net` of its right and wrong places is
    at least k; `decode_shares` says with what certainty it is found above 2,048 places.
    """
    points, point_of = sort_points(groups, xs, ys)
    number = int(groups.max()) + 1 if len(groups) else 0
    rows = np.bincount(points.group, minlength=number)
    places = np.bincount(points.group[~points.again], minlength=number)
    starts = np.concatenate([[0], np.cumsum(rows)])[:-1]
    known, coefficients = np.zeros(number, bool), np.zeros((number, threshold, ELEMENT_BYTES), np.uint8)
    right, wrong = np.zeros(number, np.int64), np.zeros(number, np.int64)
    fitting = np.zeros(len(points.group), bool)

    enough = places >= threshold
    plain = enough & (rows == places)
    doubtful = enough & ~plain
    for block, found, agree in recover_plain(points, np.flatnonzero(plain), starts, rows, threshold):
        doubtful[block[~agree]] = True
        coefficients[block[agree]] = found[agree]
    known[plain & ~doubtful] = True
    right[known] = places[known]
    fitting[known[points.group]] = True

    for group in np.flatnonzero(doubtful).tolist():
        span = slice(int(starts[group]), int(starts[group] + rows[group]))
        shares, again = points.as_ints(span), points.again[span]
        contested = again.copy()
        contested[:-1] |= again[1:]
        decoded = decode_shares([p for p, other in zip(shares, contested, strict=True) if not other], threshold)
        if decoded is not None:
            polynomial = Polynomial((*decoded, *[0] * (threshold - len(decoded))))
            known[group] = True
            coefficients[group] = np.frombuffer(polynomial.pack(), np.uint8).reshape(-1, ELEMENT_BYTES)
            fitting[span] = [polynomial.at(x) == y for x, y in shares] & ~contested
            right[group] = np.count_nonzero(fitting[span])
            wrong[group] = np.count_nonzero(~contested) - right[group]
    return Recovered(known, coefficients, right, wrong, places, fitting[point_of])


def sort_points(groups: Integers, xs: NDArray[np.uint8], ys: NDArray[np.uint8]) -> tuple[Points, Integers]:
    """The distinct shares in order, and for each share as it came the row where it is."""
    x, y = split_words(xs), split_words(ys)
    limit = np.uint64(PRIME >> 64)
    full = np.uint64(PRIME & (1 << 64) - 1)
    for high, low in (x, y):
        if ((high > limit) | ((high == limit) & (low == full))).any():
            raise ValueError("a share is not below p")
    if ((x[0] | x[1]) == 0).any():
        raise ValueError("a share's place is 0")
    # Half of a place is nearly always enough to tell places apart; only rows that it does not are sorted by the rest.
    order = np.lexsort((x[0], groups))
    tied = repeats(groups[order], x[0][order])
    tied[:-1] |= tied[1:]
    rows = order[tied]
    order[tied] = rows[np.lexsort((y[1][rows], y[0][rows], x[1][rows], x[0][rows], groups[rows]))]
    group, x, y = groups[order], (x[0][order], x[1][order]), (y[0][order], y[1][order])
    again = repeats(group, *x)
    new = ~(again & repeats(*y))
    point_of = np.empty(len(order), np.int64)
    point_of[order] = np.cumsum(new) - 1
    return Points(group[new], (x[0][new], x[1][new]), (y[0][new], y[1][new]), again[new]), point_of


def repeats(*columns: Integers | Words) -> NDArray[np.bool_]:
    """Whether each row is equal to the one before in all columns."""
    equal = np.ones(len(columns[0]), bool)
    equal[:1] = False
    for column in columns:
        equal[1:] &= column[1:] == column[:-1]
    return equal


def recover_plain(
    points: Points, plain: Integers, starts: Integers, rows: Integers, threshold: int
) -> Iterator[tuple[Integers, NDArray[np.uint8], NDArray[np.bool_]]]:
    """Groups without a contested place, block by block: their numbers, their coefficients by the first k shares, and
    whether all their other shares agree with those. Blocks are worked on by one thread per core: numpy lets others run
    while it computes."""

    def recover_block(block: Integers) -> tuple[Integers, NDArray[np.uint8], NDArray[np.bool_]]:
        base = np.arange(threshold)[:, None] + starts[block]
        places = points.places(base)
        coefficients = interpolate(places, points.values(base))
        agree = np.ones(len(block), bool)
        others = rows[block] - threshold
        for part in range(0, int(others.sum()), BLOCK):
            member, row = locate(others, starts[block] + threshold, part, part + BLOCK)
            off = differ(coefficients, places, member, points.places(row), points.values(row))
            agree[member[off]] = False
        powers = to_rows(as_powers(coefficients, places).reshape(LIMBS, -1))
        return block, powers.reshape(threshold, len(block), ELEMENT_BYTES).swapaxes(0, 1), agree

    step = max(min(BLOCK // threshold, PRODUCTS // threshold**2), 1)
    with ThreadPoolExecutor(os.cpu_count() or 1, "shares") as threads:
        yield from threads.map(recover_block, [plain[at : at + step] for at in range(0, len(plain), step)])


def locate(lengths: Integers, starts: Integers, first: int, last: int) -> tuple[Integers, Integers]:
    """Of runs that are laid end to end, the items from first to last: the run of each, and its row where runs start."""
    ends = np.cumsum(lengths)
    item = np.arange(first, min(last, int(ends[-1])))
    run = np.searchsorted(ends, item, side="right")
    return run, starts[run] + item - (ends - lengths)[run]


def interpolate(places: Elements, values: Elements) -> Elements:
    """Newton's coefficients of the polynomials through k shares each; arrays of shape (5, k, groups).

    The polynomial is c_0 + c_1 (x-x_0) + c_2 (x-x_0)(x-x_1) + ...; c_j is what is left of y_j when the terms before are
    taken away, divided by the product of (x_j - x_i) over i < j. All those products are inverted together.
    """
    threshold = places.shape[1]
    coefficients = np.empty_like(places)
    coefficients[:, 0] = values[:, 0]
    rest = settle(subtract(values[:, 1:], values[:, :1]))
    products: list[Elements] = []  # products[j][:, i]: (x - x_0) ... (x - x_j) at x_(j+1+i)
    for j in range(threshold - 1):
        spans = subtract(places[:, j + 1 :], places[:, j : j + 1])
        products.append(multiply(products[-1][:, 1:], spans) if products else spans)
    if products:
        inverses = invert(np.stack([product[:, 0] for product in products], axis=1))
    for j in range(1, threshold):
        coefficients[:, j] = multiply(rest[:, 0], inverses[:, j - 1])
        rest = multiply(negate(coefficients[:, j : j + 1]), products[j - 1][:, 1:], rest[:, 1:])
    return coefficients


def as_powers(coefficients: Elements, places: Elements) -> Elements:
    """The coefficients of 1, x, x^2, ... from Newton's: from the innermost bracket out, times (x - x_j) plus c_j."""
    threshold = places.shape[1]
    powers = np.empty_like(coefficients)
    powers[:, 0] = coefficients[:, -1]
    for j in reversed(range(threshold - 1)):
        size = threshold - 1 - j
        shifted = np.concatenate([coefficients[:, j : j + 1], powers[:, : size - 1]], axis=1)
        powers[:, size] = powers[:, size - 1]
        powers[:, :size] = multiply(negate(places[:, j : j + 1]), powers[:, :size], shifted)
    return powers


def evaluate(coefficients: Elements, places: Elements, x: Elements, member: Integers) -> Elements:
    """The value at each x of the polynomial that is a member of the block."""
    value = coefficients[:, -1, member]
    for j in reversed(range(coefficients.shape[1] - 1)):
        value = multiply(value, subtract(x, places[:, j, member]), coefficients[:, j, member])
    return value


def differ(coefficients: Elements, places: Elements, member: Integers, x: Elements, y: Elements) -> NDArray[np.bool_]:
    """Which shares do not lie on the polynomial of their group."""
    return ~are_zero(settle(subtract(evaluate(coefficients, places, x, member), y)))
