"""Arithmetic modulo p = 2^127 - 1 on whole arrays: five limbs of 26 bits each, in 64-bit words.

An array of elements has the limbs first: shape (5, ...), least significant limb first. Limbs may be larger than 26
bits, so that additions and subtractions carry nothing; `multiply` carries. Two bounds hold everywhere:

- settled: every limb is below 2^27 - 16. Results of `multiply`, `settle` and `from_words` are.
- wide: every limb is below 2^29. `multiply` takes these: a column of its product has at most 33 products of two limbs
  (one and four times 8, because 2^130 = 8 modulo p) and one summand, and 33 * 2^58 + 2^29 is below 2^64.
"""

from __future__ import annotations

import math
import threading

import numpy as np
from numpy.typing import NDArray

Elements = NDArray[np.uint64]
Words = NDArray[np.uint64]

PRIME = (1 << 127) - 1
"""A Mersenne prime: what exceeds 127 bits is added at the low end."""
ELEMENT_BYTES = 16
"""An element outside of this module: big endian."""
LIMBS = 5
BITS = np.uint64(26)
MASK = np.uint64((1 << 26) - 1)
WRAP = np.uint64(3)
"""2^130 = 2^3 modulo p: a carry out of the highest limb goes into the lowest, shifted by this."""
TOP_BITS = np.uint64(23)
"""Bits of the highest limb of a number below 2^127."""
TOP_MASK = np.uint64((1 << 23) - 1)
ROOM = threading.local()
FEW = 16
"""So few elements are inverted one by one: the calls on short arrays would take longer."""


ZERO_ABOVE = np.array([(1 << 27) - 16, *[(1 << 27) - 2] * (LIMBS - 1)], np.uint64)
"""16 p, with no limb below those of a settled element: added before a subtraction so that no limb falls below 0."""


def split_words(data: NDArray[np.uint8]) -> tuple[Words, Words]:
    """The high and the low word of each row of 16 bytes, big endian. They sort as the numbers do."""
    words = np.ascontiguousarray(data).view(">u8")
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)


def from_words(high: Words, low: Words) -> Elements:
    """Elements of any shape from the words of numbers below 2^127."""
    out = np.empty((LIMBS, *high.shape), np.uint64)
    out[0] = low & MASK
    out[1] = low >> BITS & MASK
    out[2] = (low >> np.uint64(52) | high << np.uint64(12)) & MASK
    out[3] = high >> np.uint64(14) & MASK
    out[4] = high >> np.uint64(40)
    return out


def to_rows(elements: Elements) -> NDArray[np.uint8]:
    """A row of elements as 16 bytes each, of the numbers below p."""
    limbs = reduce(elements)
    words = np.empty((elements.shape[1], 2), ">u8")
    words[:, 1] = limbs[0] | limbs[1] << BITS | limbs[2] << np.uint64(52)
    words[:, 0] = limbs[2] >> np.uint64(12) | limbs[3] << np.uint64(14) | limbs[4] << np.uint64(40)
    return words.view(np.uint8)


def to_ints(elements: Elements) -> list[int]:
    """The same as Python's integers."""
    data = to_rows(elements).tobytes()
    return [int.from_bytes(data[at : at + ELEMENT_BYTES], "big") for at in range(0, len(data), ELEMENT_BYTES)]


def from_ints(values: list[int]) -> Elements:
    """A row of elements from Python's integers."""
    data = b"".join(value.to_bytes(ELEMENT_BYTES, "big") for value in values)
    return from_words(*split_words(np.frombuffer(data, np.uint8).reshape(-1, ELEMENT_BYTES)))


def zeros(shape: tuple[int, ...]) -> Elements:
    return np.zeros((LIMBS, *shape), np.uint64)


def settle(elements: Elements) -> Elements:
    """Carry once, in place: wide limbs become settled."""
    carry = elements >> BITS
    elements &= MASK
    elements[1:] += carry[:-1]
    elements[0] += carry[-1] << WRAP
    return elements


def negate(elements: Elements) -> Elements:
    """-e, wide, of settled elements."""
    return ZERO_ABOVE.reshape(LIMBS, *(1,) * (elements.ndim - 1)) - elements


def subtract(left: Elements, right: Elements) -> Elements:
    """left - right, wide, of settled elements."""
    return left + negate(right)


def multiply(left: Elements, right: Elements, plus: Elements | None = None) -> Elements:
    """left * right + plus, settled, of wide elements; the shapes of left and right are broadcast."""
    shape = (LIMBS, *np.broadcast_shapes(left.shape[1:], right.shape[1:]))
    size = math.prod(shape)
    room = take_room(2 * size + left.size)
    columns, product = room[: 2 * size].reshape(2, *shape)
    wrapped = room[2 * size :].reshape(left.shape)
    np.left_shift(left, WRAP, out=wrapped)
    np.multiply(left[0], right, out=columns)
    for place in range(1, LIMBS):
        np.multiply(left[place], right[:-place], out=product[place:])
        np.multiply(wrapped[place], right[-place:], out=product[:place])
        columns += product
    if plus is not None:
        columns += plus
    # Columns below 2^64 leave limbs below 2^26 + 2^41, and those leave limbs below 2^26 + 2^18.
    for into in (columns, np.empty(columns.shape, np.uint64)):
        np.right_shift(columns, BITS, out=product)
        np.bitwise_and(columns, MASK, out=into)
        into[1:] += product[:-1]
        product[-1] <<= WRAP
        into[0] += product[-1]
    return into


def take_room(size: int) -> Elements:
    """Room for so many limbs, kept from call to call.

    Arrays of this size are given back to the operating system when they are freed, and fetching their pages again
    takes longer than to multiply. Each thread has a room of its own.
    """
    room: Elements | None = getattr(ROOM, "room", None)
    if room is None or len(room) < size:
        room = ROOM.room = np.empty(size, np.uint64)
    return room[:size]


def reduce(elements: Elements) -> Elements:
    """The same elements with the limbs of numbers below p: equal elements have equal limbs."""
    out = elements.copy()
    # The first round leaves less than 2^127 + 2^8, the second one at most p.
    for _ in range(2):
        for place in range(LIMBS - 1):
            out[place + 1] += out[place] >> BITS
            out[place] &= MASK
        out[0] += out[-1] >> TOP_BITS
        out[-1] &= TOP_MASK
    is_prime = (out[-1] == TOP_MASK) & (out[:-1] == MASK).all(axis=0)
    out[:, is_prime] = 0
    return out


def are_zero(elements: Elements) -> NDArray[np.bool_]:
    return np.logical_not(reduce(elements).any(axis=0))


def invert(elements: Elements) -> Elements:
    """1 / e for each element; none may be 0.

    Montgomery's way, as a tree: elements are multiplied in pairs until few are left, those are inverted, and each
    inverse of a product gives two of its factors. Three multiplications for an element, and hardly any division.
    """
    flat = elements.reshape(LIMBS, -1)
    size = flat.shape[1]
    if size <= FEW:
        inverses = from_ints([pow(value, -1, PRIME) for value in to_ints(flat)])
    else:
        half = (size + 1) // 2
        left, right = flat[:, :half], flat[:, half:]
        paired = left.copy()
        paired[:, : size - half] = multiply(left[:, : size - half], right)
        of_products = invert(paired)
        inverses = np.empty_like(flat)
        inverses[:, half:] = multiply(of_products[:, : size - half], left[:, : size - half])
        inverses[:, :half] = of_products
        inverses[:, : size - half] = multiply(of_products[:, : size - half], right)
    return inverses.reshape(elements.shape)
