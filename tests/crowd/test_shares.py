"""Shamir's shares: fewer than k say nothing, k give the secret, and wrong ones are corrected or the group dropped."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.share_reference import Point, any_element, as_rows, recover_group, value_through

from qlog_assets.crowd import decoding, shares
from qlog_assets.crowd.decoding import count_net, decode_all, decode_shares, interpolate, sample_sizes
from qlog_assets.crowd.field import PRIME
from qlog_assets.crowd.shares import Polynomial, Recovered, recover

Share = tuple[int, int, int]
"""Group, place and value."""
ELEMENTS = st.integers(0, PRIME - 1)


def make_polynomial(random: Random, threshold: int) -> Polynomial:
    return Polynomial(tuple(random.randrange(PRIME) for _ in range(threshold)))


def make_shares(random: Random, polynomial: Polynomial, number: int, wrong: int = 0) -> list[Point]:
    """Shares at random places, of which so many are off the polynomial."""
    places = [any_element(random) for _ in range(number)]
    return [(x, (polynomial.at(x) + (at < wrong) * any_element(random)) % PRIME) for at, x in enumerate(places)]


def recover_all(rows: list[Share], threshold: int) -> Recovered:
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], []]
    return recover(np.array(columns[0], np.int64), as_rows(columns[1]), as_rows(columns[2]), threshold)


def secrets_of(found: Recovered) -> list[int | None]:
    polynomials = [found.polynomial(group) for group in range(len(found.known))]
    return [None if each is None else each.coefficients[0] for each in polynomials]


def recover_one(points: list[Point], threshold: int) -> tuple[int | None, int, int, int]:
    found = recover_all([(0, x, y) for x, y in points], threshold)
    return secrets_of(found)[0], int(found.right[0]), int(found.wrong[0]), int(found.places[0])


@settings(max_examples=50)
@given(st.integers(2, 12), st.integers(0, 1000), ELEMENTS)
def test_fewer_shares_than_the_threshold_fit_every_secret_equally(threshold: int, seed: int, guess: int) -> None:
    """Exact: for k-1 shares and any secret there is one polynomial through both, and the coefficients are uniform. So
    all secrets are equally likely after k-1 shares, as they were before."""
    random = Random(seed)
    held = make_shares(random, make_polynomial(random, threshold), threshold - 1)
    _, coefficients = interpolate([(0, guess), *held])
    other = Polynomial(tuple(coefficients))
    assert len(coefficients) <= threshold and other.at(0) == guess
    assert all(other.at(x) == y for x, y in held)
    assert recover_one(held, threshold) == (None, 0, 0, threshold - 1)


@settings(max_examples=50)
@given(st.integers(1, 25), st.integers(0, 30), st.integers(0, 1000))
def test_any_shares_from_the_threshold_on_give_the_secret(threshold: int, more: int, seed: int) -> None:
    random = Random(seed)
    polynomial = make_polynomial(random, threshold)
    points = make_shares(random, polynomial, threshold + more)
    expected = (polynomial.coefficients[0], threshold + more, 0, threshold + more)
    assert recover_one(points, threshold) == expected
    assert value_through(points[:threshold], 0) == polynomial.coefficients[0]


def make_group(random: Random, threshold: int) -> list[Point]:
    """Shares of a small group: too few or enough, some wrong, some twice, some places with two values."""
    number = random.randrange(1, threshold + 6)
    points = make_shares(random, make_polynomial(random, threshold), number, random.randrange(0, 4))
    points += random.choices(points, k=random.choice([0, 0, 1, 3]))
    points += [(random.choice(points)[0], random.randrange(PRIME)) for _ in range(random.choice([0, 0, 0, 1, 2]))]
    return points


def sure_points(points: list[Point]) -> set[Point]:
    """Those whose place has one value."""
    distinct = {*points}
    return {point for point in distinct if sum(point[0] == x for x, _ in distinct) == 1}


@pytest.mark.parametrize("threshold", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_recovery_equals_trying_everything_whatever_the_order(
    threshold: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "BLOCK", 7)  # several blocks, and groups larger than one
    random = Random(100 * threshold + seed)
    groups = [make_group(random, threshold) for _ in range(80)]
    expected = [recover_group(points, threshold) for points in groups]
    assert {secret is None for secret, _ in expected} == {True, False}
    rows = [(number, x, y) for number, points in enumerate(groups) for x, y in points]
    for _ in range(2):
        random.shuffle(rows)
        found = recover_all(rows, threshold)
        assert secrets_of(found) == [secret for secret, _ in expected]
        assert found.right.tolist() == [len(fitting) for _, fitting in expected]
        assert found.fits.tolist() == [(x, y) in expected[number][1] for number, x, y in rows]
        assert found.places.tolist() == [len({x for x, _ in points}) for points in groups]
        assert found.wrong.tolist() == [
            len(sure_points(points) - fitting) if fitting else 0
            for points, (_, fitting) in zip(groups, expected, strict=True)
        ]


@pytest.mark.parametrize(("threshold", "number"), [(5, 5), (5, 6), (5, 7), (5, 12), (20, 33), (3, 150)])
def test_wrong_shares_are_corrected_up_to_the_radius_and_beyond_it_the_group_is_dropped(
    threshold: int, number: int
) -> None:
    random = Random(number)
    polynomial = make_polynomial(random, threshold)
    radius = (number - threshold) // 2
    points = make_shares(random, polynomial, number, radius)
    expected = (polynomial.coefficients[0], number - radius, radius, number)
    for order in (points, points[::-1]):  # the wrong ones first, and last
        assert recover_one(order, threshold) == expected
    beyond = make_shares(random, polynomial, number, radius + 1)
    secret, users, wrong, places = recover_one(beyond, threshold)
    assert places == number
    if number == threshold:  # no share is left to contradict the others: decryption has to find it out
        assert secret != polynomial.coefficients[0] and users == number
    else:
        assert (secret, users, wrong) == (None, 0, 0)


def test_two_polynomials_of_equal_weight_give_neither() -> None:
    random = Random(1)
    one, other = make_polynomial(random, 3), make_polynomial(random, 3)
    points = make_shares(random, one, 6) + make_shares(random, other, 6)
    assert recover_one(points, 3) == recover_one(points[::-1], 3) == (None, 0, 0, 12)


def test_a_share_sent_again_counts_once_and_a_place_with_another_value_is_neither_right_nor_wrong() -> None:
    random = Random(2)
    polynomial = make_polynomial(random, 3)
    points = make_shares(random, polynomial, 5)
    secret = polynomial.coefficients[0]
    assert recover_one(points * 3, 3) == (secret, 5, 0, 5)
    assert recover_one([*points, (points[0][0], 1), (points[0][0], 1)], 3) == (secret, 4, 0, 5)
    assert recover_one([*points[:2], *[points[0]] * 9], 3) == (None, 0, 0, 2)


def test_a_large_group_is_decoded_from_a_part_of_it() -> None:
    """4,000 shares, every fifth of them wrong. All of them at once would take the square of their number."""
    random = Random(3)
    polynomial = make_polynomial(random, 10)
    points = make_shares(random, polynomial, 4000, 800)
    assert recover_one(points, 10) == (polynomial.coefficients[0], 3200, 800, 4000)
    found = recover_all([(0, x, y) for x, y in points], 10)
    assert found.polynomial(0) == polynomial
    assert list(sample_sizes(4000, 10)) == [30, 120, 480, 2048]
    assert list(sample_sizes(2000, 10)) == [30, 120, 480, 2000]
    assert list(sample_sizes(9, 10)) == []
    assert list(sample_sizes(10_000, 1000)) == [4000], "of k shares, four times as many"


def test_a_large_group_with_too_many_wrong_shares_is_dropped_from_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding all of them would take hours where there are many, and end in the same."""
    monkeypatch.setattr(decoding, "LARGEST_SAMPLE", 100)
    random = Random(6)
    points = make_shares(random, make_polynomial(random, 3), 1000, 520)
    assert recover_one(points, 3) == recover_one(points[::-1], 3) == (None, 0, 0, 1000)


@pytest.mark.parametrize("wrong", [200, 250])
def test_at_the_edge_of_a_large_groups_count_one_share_more_is_found(
    wrong: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of the sizes that are used; there the bound on a miss is e^-16."""
    monkeypatch.setattr(decoding, "LARGEST_SAMPLE", 512)
    monkeypatch.setattr(decoding, "CHEAP_WRONG", 64)
    random = Random(8)
    polynomial = make_polynomial(random, 5)
    right = 5 + wrong + 2 * (wrong - 64)
    points = make_shares(random, polynomial, right + wrong, wrong)
    assert len(points) > 512 and count_net(right, wrong) == 5
    assert recover_one(points, 5) == (polynomial.coefficients[0], right, wrong, len(points))
    assert recover_one(points[:-1], 5) == (None, 0, 0, len(points) - 1)


def test_where_half_of_a_large_group_is_wrong_no_share_more_flips_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of it would be decoded or not by chance."""
    monkeypatch.setattr(decoding, "LARGEST_SAMPLE", 128)
    monkeypatch.setattr(decoding, "CHEAP_WRONG", 16)
    random = Random(9)
    polynomial = make_polynomial(random, 5)
    points = make_shares(random, polynomial, 515, 250)
    for more in make_shares(random, polynomial, 12):
        assert decode_shares([*points, more], 5) is None


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_a_right_share_counts_1_and_a_wrong_one_takes_at_least_1(right: int, wrong: int) -> None:
    assert count_net(right, 0) == right
    assert count_net(right + 1, wrong) - count_net(right, wrong) == 1
    assert count_net(right, wrong) - count_net(right, wrong + 1) in (1, 3)


def test_a_polynomial_that_is_there_is_missed_with_less_than_the_stated_probability() -> None:
    """Hoeffding's exponent at the edge of the count, for every threshold and for groups of all sizes that are drawn
    from."""
    for threshold in range(1, 1001):
        *_, most = sample_sizes(10**9, threshold)
        for number in (most + 1, 2 * most, 100 * most):
            wrong = max(each for each in edge_of(number, threshold) if count_net(number - each, each) >= threshold)
            above = (most - threshold) / 2 / most - wrong / number
            assert above > 0 and 2 * most * above**2 >= 64


def edge_of(number: int, threshold: int) -> range:
    """How many of so many shares are wrong where about the threshold is left."""
    dear = (number + 2 * decoding.CHEAP_WRONG - threshold) // 4
    return range(dear - 2, dear + 3)


def test_a_part_that_misleads_does_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong shares that lie where the first part is taken from: the answer is the one of all shares."""

    class Misled(Random):
        def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:
            return sorted(population, key=lambda point: point[0] not in taken)[:k]

    monkeypatch.setattr(decoding, "CHANCE", Misled())
    random = Random(4)
    polynomial = make_polynomial(random, 2)
    points = sorted(make_shares(random, polynomial, 120))
    taken = {points[at * 120 // 6][0] for at in range(6)}
    other = make_polynomial(random, 2)
    spoilt = [(x, other.at(x) if x in taken else y) for x, y in points]
    assert decode_all([point for point in spoilt if point[0] in taken], 2) == list(other.coefficients)
    assert decode_shares(spoilt, 2) == list(polynomial.coefficients)


@pytest.mark.parametrize("coefficients", [(0, 0, 0), (7, 0, 0), (0, 0, 5), (PRIME - 1, 1, 0)])
def test_coefficients_that_are_zero_do_no_harm(coefficients: tuple[int, ...]) -> None:
    polynomial = Polynomial(coefficients)
    points = make_shares(Random(5), polynomial, 9)
    assert recover_one(points, 3) == (coefficients[0], 9, 0, 9)
    spoilt = [(points[0][0], points[0][1] + 1 if points[0][1] + 1 < PRIME else 0), *points[1:]]
    assert recover_one(spoilt, 3) == (coefficients[0], 8, 1, 9)


def test_the_largest_threshold_is_recovered() -> None:
    random = Random(7)
    polynomial = make_polynomial(random, 1000)
    points = make_shares(random, polynomial, 1002)
    assert recover_one(points, 1000) == (polynomial.coefficients[0], 1002, 0, 1002)


def test_nothing_is_recovered_from_nothing() -> None:
    found = recover_all([], 3)
    assert secrets_of(found) == [] and len(found.right) == len(found.fits) == 0


def test_a_group_without_shares_is_dropped() -> None:
    found = recover_all([(2, 5, 9)], 1)
    assert secrets_of(found) == [None, None, 9] and found.right.tolist() == [0, 0, 1]


@pytest.mark.parametrize(("x", "y", "reason"), [(0, 1, "place is 0"), (PRIME, 1, "below p"), (1, PRIME, "below p")])
def test_a_share_outside_of_the_field_is_refused(x: int, y: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        recover_one([(x, y)], 1)
