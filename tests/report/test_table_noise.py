"""What is said of noise: deviations and chances are those of the laws, and what was said comes back as it was."""

from __future__ import annotations

import json
import math
from statistics import NormalDist

import pytest

from qlog_assets.report.table_noise import GAUSSIAN, GEOMETRIC, Look, Reach, TableNoise

PLAIN = TableNoise(GEOMETRIC, 10.0, min_users=3, among="pairs of released queries")
WEIGHED = TableNoise(
    GAUSSIAN, 48.2, tested=False, reaches=(Reach(1, (Look(29.5, 4.75),)), Reach(200, (Look(417.2, 67.0),)))
)


def masses(scale: float, largest: int) -> dict[int, float]:
    """The two-sided geometric law on [-largest, largest], summing to 1."""
    weights = {value: math.exp(-abs(value) / scale) for value in range(-largest, largest + 1)}
    whole = sum(weights.values())
    return {value: weight / whole for value, weight in weights.items()}


@pytest.mark.parametrize("scale", [0.3, 1.0, 10.0, 400.0])
def test_the_deviation_of_geometric_noise_is_that_of_its_law(scale: float) -> None:
    law = masses(scale, math.ceil(50 * scale))
    deviation = math.sqrt(sum(mass * value**2 for value, mass in law.items()))
    assert TableNoise(GEOMETRIC, scale).deviation == pytest.approx(deviation, rel=1e-6)


def test_most_gaussian_noise_stays_within_what_is_said() -> None:
    gaussian = TableNoise(GAUSSIAN, 48.0)
    assert [round(gaussian.within(share) / 48, 3) for share in (0.5, 0.95)] == [0.674, 1.96]


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("cut", [None, 0, 1, 7])
def test_the_share_of_geometric_noise_that_is_said_stays_within_and_one_less_is_too_few(
    share: float, cut: int | None
) -> None:
    """Against the exact law, at scales small and large: noise is whole numbers, so most shares are passed by a jump."""
    for scale in [*(step / 20 for step in range(2, 120)), 10.0, 20.0, 41.7, 300.0]:
        law = masses(scale, cut if cut is not None else math.ceil(40 * scale))
        within = TableNoise(GEOMETRIC, scale, largest=cut).within(share)
        assert within == math.floor(within) >= 0
        assert sum(mass for value, mass in law.items() if abs(value) <= within) >= share - 1e-12, scale
        assert within == 0 or sum(mass for value, mass in law.items() if abs(value) < within) < share, scale


@pytest.mark.parametrize(
    ("scale", "half", "most"), [(1.0, 1, 3), (4.0, 3, 12), (10.0, 7, 30), (1e12, 693147180560, 2995732273554)]
)
def test_what_is_said_of_usual_scales(scale: float, half: int, most: int) -> None:
    noise = TableNoise(GEOMETRIC, scale)
    assert (noise.within(0.5), noise.within(0.95)) == pytest.approx((half, most), rel=1e-11)


def test_pages_in_earlier_words_go_on_saying_what_they_said() -> None:
    assert TableNoise(GEOMETRIC, 4.0).nearly_within(0.5) == pytest.approx(4 * math.log(2))
    assert TableNoise(GAUSSIAN, 48.0).nearly_within(0.95) == TableNoise(GAUSSIAN, 48.0).within(0.95)


@pytest.mark.parametrize("users", [1, 10, 40, 45, 60, 101, 200])
@pytest.mark.parametrize("largest", [None, 44])
def test_the_chance_of_a_missing_row_is_the_sum_of_the_laws_tail(users: int, largest: int | None) -> None:
    threshold = 45
    law = masses(10.0, largest or 3000)
    missing = sum(mass for value, mass in law.items() if users + value < threshold)
    noise = TableNoise(GEOMETRIC, 10.0, largest=largest)
    assert noise.chance_missing(users, threshold) == pytest.approx(missing, abs=1e-9)


def test_counts_below_the_minimum_are_never_printed_unless_the_list_is_public() -> None:
    noise = TableNoise(GEOMETRIC, 10.0, min_users=30)
    assert noise.chance_missing(29, 60) == 1 > noise.chance_missing(30, 60)
    # On a public list they are noised as one less than the minimum: somebody's doing it makes no difference.
    listed = [noise.chance_missing(users, 60, only_if_held=False) for users in (0, 10, 29, 30)]
    assert listed[0] == listed[1] == listed[2] > listed[3]


def test_a_finer_threshold_than_whole_users_is_the_one_that_counts() -> None:
    noise = TableNoise(GAUSSIAN, 2.0, tested_from=20.4)
    assert noise.chance_missing(20, 20) == pytest.approx(0.5793, abs=1e-4)


def test_users_who_hold_nothing_else_reach_most() -> None:
    alone, full = WEIGHED.reaches
    assert (alone.even_users, full.even_users) == (30, 418)
    assert all(alone.chance_missing(users) <= full.chance_missing(users) for users in (10, 50, 100, 500))
    assert alone.chance_missing(alone.even_users) < 0.5 < alone.chance_missing(alone.even_users - 1)
    three = Reach(1, (Look(40.0, 5.0), Look(30.0, 5.0), Look(20.0, 5.0)))
    assert three.even_users == 20 and three.chance_missing(20) < 0.5


@pytest.mark.parametrize("every", [True, False])
def test_however_large_the_noise_is_the_users_that_it_takes_are_found_at_once(every: bool) -> None:
    looks = (Look(1000.0, 1e9), Look(1000.0, 1e9))
    users = Reach(1, looks, every=every).even_users
    # Both of two equal looks are passed as likely as not where each is with chance √½.
    both = 1000 + 1e9 * NormalDist().inv_cdf(math.sqrt(0.5))
    assert users == (pytest.approx(both, rel=1e-6) if every else 1000)


@pytest.mark.parametrize("noise", [PLAIN, WEIGHED], ids=["plain", "weighed"])
def test_what_was_said_comes_back(noise: TableNoise) -> None:
    assert TableNoise.from_json(json.loads(json.dumps(noise.as_json()))) == noise


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_noise_without_a_size_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="a scale above 0"):
        TableNoise(GAUSSIAN, scale)
