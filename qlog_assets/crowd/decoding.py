"""Reed-Solomon decoding: the polynomial that nearly all shares lie on, where some are wrong. Python's integers.

Gao's algorithm: with g0 the polynomial that is 0 at all places and g1 the one through all shares, the extended
Euclidean algorithm on (g0, g1) comes to a remainder that is the sought polynomial times the locator of the errors.
Groups without wrong shares do not come here: `shares` recovers them, many at once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

from qlog_assets.crowd.field import PRIME

Point = tuple[int, int]
Coefficients = list[int]
"""The constant one first, the highest not 0; the polynomial 0 has none."""
FIRST_SAMPLE = 3
"""Shares per coefficient that are decoded first."""
SAMPLE_GROWTH = 4
LARGEST_SAMPLE = 2048
"""Shares that are decoded at most, or 4 k if that is more: 6 s. All shares of a month's most frequent query would take
hours, and whoever sends as many wrong ones as there are right ones could ask for that."""
CHEAP_WRONG = LARGEST_SAMPLE // 8
"""So many wrong shares take one right share each from the count, further ones `DEAR` each."""
DEAR = 3
CHANCE = secrets.SystemRandom()
"""Chooses what is decoded. Fresh: senders who could foresee it would put their wrong shares there."""


def value_at(coefficients: Sequence[int], x: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * x + coefficient) % PRIME
    return value


def count_net(right: int, wrong: int) -> int:
    """What a group counts: its right shares, less one for each wrong share, less three for each beyond the first 256.

    One more right share raises it by exactly 1, whatever others sent, and it is at most right - wrong.
    """
    return right - wrong - (DEAR - 1) * max(0, wrong - CHEAP_WRONG)


def decode_shares(points: Sequence[Point], threshold: int) -> Coefficients | None:
    """The polynomial of k coefficients for which `count_net` of the n shares at different places is at least k; None if
    there is none.

    There is at most one: two share at most k - 1 places, so their right - wrong sum to at most 2 (k - 1). So it does
    not matter in which order the shares come, nor how it is found. A random part of the shares is decoded first: the
    time grows with the square of their number, and wherever wrong shares are few a part is enough. What it gives is
    checked on all. What it does not give, larger parts decide, and in the end all shares: up to m = max(2,048, 4 k)
    the answer is exact.

    Of more, m are drawn at random, and a polynomial that is there is missed with a probability below e^-64 (2^-92),
    whatever others sent. Decoding them fails iff more than (m-k)/2 are wrong, and (m-k)/2 is at least 3/8 m. With w of
    n shares wrong, a count of at least k says that w <= 256, an eighth of m, or n >= 4 w + k - 512: then
    w/n <= 1/4 + max(0, 512 - k)/(4m). Either way (m-k)/(2m) is at least 1/8 above w/n, and by Hoeffding's bound, which
    holds for draws without replacement, the probability is at most exp(-2 m / 64) <= e^-64. This is what dear wrong
    shares are for: were each set against one right share, a group with k more right shares than wrong ones would be
    decoded or not by chance, and one share more could flip it.
    """
    for size in sample_sizes(len(points), threshold):
        found = decode_all(CHANCE.sample(points, size), threshold)
        if found is not None:
            right = sum(value_at(found, x) == y for x, y in points)
            if count_net(right, len(points) - right) >= threshold:
                return found
    return None


def sample_sizes(shares: int, threshold: int) -> Iterator[int]:
    """How many shares are tried, the last time as many as may be."""
    most = min(shares, max(LARGEST_SAMPLE, SAMPLE_GROWTH * threshold))
    size = FIRST_SAMPLE * threshold
    while size * SAMPLE_GROWTH <= most:
        yield size
        size *= SAMPLE_GROWTH
    if shares >= threshold:
        yield most


def decode_all(points: Sequence[Point], threshold: int) -> Coefficients | None:
    """Gao's algorithm on all points: the polynomial, if there is one within the radius."""
    vanishing, through = interpolate(points)
    if len(through) <= threshold:
        return through
    # Stop at the first remainder of degree below (n + k) / 2.
    stop = (len(points) + threshold + 1) // 2
    before, remainder = vanishing, through
    before_factor: Coefficients = []
    factor: Coefficients = [1]
    while len(remainder) > stop:
        quotient, rest = divide(before, remainder)
        before, remainder = remainder, rest
        before_factor, factor = factor, subtract_product(before_factor, quotient, factor)
    found, rest = divide(remainder, factor)
    return found if not rest and len(found) <= threshold else None


def interpolate(points: Sequence[Point]) -> tuple[Coefficients, Coefficients]:
    """The polynomial that is 0 at all places, and the one through all points: Newton's way, point after point."""
    vanishing: Coefficients = [1]
    through: Coefficients = []
    for x, y in points:
        missing = (y - value_at(through, x)) * pow(value_at(vanishing, x), -1, PRIME) % PRIME
        through = subtract_product(through, [(-missing) % PRIME], vanishing)
        shifted = [0, *vanishing]
        for place, coefficient in enumerate(vanishing):
            shifted[place] = (shifted[place] - x * coefficient) % PRIME
        vanishing = shifted
    return vanishing, through


def divide(dividend: Sequence[int], divisor: Sequence[int]) -> tuple[Coefficients, Coefficients]:
    """Quotient and remainder."""
    rest = list(dividend)
    quotient = [0] * max(len(dividend) - len(divisor) + 1, 0)
    inverse = pow(divisor[-1], -1, PRIME)
    for place in reversed(range(len(quotient))):
        factor = rest[place + len(divisor) - 1] * inverse % PRIME
        quotient[place] = factor
        for offset, coefficient in enumerate(divisor):
            rest[place + offset] = (rest[place + offset] - factor * coefficient) % PRIME
    return strip(quotient), strip(rest)


def subtract_product(value: Sequence[int], left: Sequence[int], right: Sequence[int]) -> Coefficients:
    """value - left * right."""
    out = list(value) + [0] * max(len(left) + len(right) - 1 - len(value), 0)
    for place, factor in enumerate(left):
        for offset, coefficient in enumerate(right):
            out[place + offset] = (out[place + offset] - factor * coefficient) % PRIME
    return strip(out)


def strip(coefficients: Coefficients) -> Coefficients:
    while coefficients and not coefficients[-1]:
        coefficients.pop()
    return coefficients
