"""Pictures of the noise show the law's own numbers, stay inside their frame, and say in words what they show."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest

from qlog_assets.report.datasheet_errors import chances_missing, tell_error_of, tell_threshold
from qlog_assets.report.datasheet_numbers import Numbers
from qlog_assets.report.noise_plots import picture_error, picture_missing
from qlog_assets.report.plots import CURVES_HEIGHT, WIDTH
from qlog_assets.report.table_noise import GAUSSIAN, GEOMETRIC, Look, Reach, TableNoise, least_users

NUMBERS = Numbers()
LAWS = {
    "tiny": TableNoise(GEOMETRIC, 0.2),
    "plain": TableNoise(GEOMETRIC, 10.0, min_users=3),
    "cut": TableNoise(GEOMETRIC, 12.5, largest=60),
    "huge": TableNoise(GEOMETRIC, 40_000.0),
    "fine": TableNoise(GAUSSIAN, 9.5, tested_from=20.4),
    "by row": TableNoise(GAUSSIAN, 2.5, by_row=True, tested=False, reaches=(Reach(1, (Look(12.5, 2.5),)),)),
    "weighed": TableNoise(
        GAUSSIAN, 48.0, tested=False, reaches=(Reach(1, (Look(29.5, 4.75),)), Reach(200, (Look(417.2, 67.0),)))
    ),
}


def facts(noise: TableNoise, threshold: int | None = 45, outside: int | None = None) -> dict[str, object]:
    return {"noise": noise.as_json(), "threshold": threshold, "threshold_outside_pool": outside}


def points_in(picture: str) -> list[list[tuple[float, float]]]:
    lines = re.findall(r'<polyline class="[^"]*" points="([^"]*)"', picture)
    return [[tuple(map(float, point.split(","))) for point in line.split()] for line in lines]  # type: ignore[misc]


@pytest.mark.parametrize("noise", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("largest", [None, 7.0])
def test_every_line_is_inside_the_frame_and_falls(noise: TableNoise, largest: float | None) -> None:
    for picture in (picture_error(noise, largest, NUMBERS), picture_missing(noise, facts(noise, 45, 80), NUMBERS)):
        lines = points_in(picture)
        assert lines
        for line in lines:
            assert all(0 <= x <= WIDTH and 0 <= y <= CURVES_HEIGHT for x, y in line)
            # y counts downwards: a share that falls goes down the page.
            assert all(after >= before for (_, before), (_, after) in pairwise(line))


def test_the_picture_of_missing_rows_is_the_law_at_every_point() -> None:
    """Two-sided geometric noise of scale 10, a threshold of 45: the sum of the law's tail, written out here."""
    noise, threshold = LAWS["plain"], 45
    (line,) = points_in(picture_missing(noise, facts(noise, threshold), NUMBERS))
    chance = chances_missing(noise, facts(noise, threshold))["Chance that it is missing"]
    weights = {z: math.exp(-abs(z) / 10) for z in range(-2000, 2001)}
    whole = sum(weights.values())
    top, foot = min(y for _, y in line), max(y for _, y in line)
    for users in (4, 40, 44, 60, 80):
        exact = sum(weight for z, weight in weights.items() if users + z < threshold) / whole
        assert chance(users) == pytest.approx(exact, abs=1e-9)
        place = line[0][0] + (line[-1][0] - line[0][0]) * users / 120
        drawn = min(line, key=lambda point: abs(point[0] - place))[1]
        assert (foot - drawn) / (foot - top) == pytest.approx(exact, abs=0.02)


def test_the_error_of_a_count_of_100_is_marked_and_told() -> None:
    picture = picture_error(LAWS["plain"], None, NUMBERS)
    assert "At a count of 100: standard error 15 %, 19 of 20 counts are within 30 %." in picture
    assert re.search(r'<circle class="mark"[^>]*/><text[^>]*>15 %<', picture)
    assert "<circle" not in picture_error(LAWS["huge"], None, NUMBERS)


def test_rows_that_differ_are_told_between_the_least_error_and_the_largest() -> None:
    noise = LAWS["by row"]
    assert "least of all rows 2.5 %" in picture_error(noise, 7.0, NUMBERS)
    assert len(points_in(picture_error(noise, None, NUMBERS))) == 1
    told = tell_error_of(100, facts(noise, 1), 7.0, NUMBERS)
    assert "by no more than 4.9 users (4.9 %) where it is least, and by no more than 14 users (14 %)" in told
    assert "about twice its standard_error" in told
    assert "by more elsewhere" in tell_error_of(100, facts(noise, None), None, NUMBERS)


def test_the_threshold_in_effect_is_where_a_row_is_as_likely_as_not() -> None:
    assert tell_threshold(facts(LAWS["plain"], 45, 80)) == "45 users, on a public list; 80 users, on none"
    weighed = tell_threshold(facts(LAWS["weighed"], 1))
    assert weighed == "30 users who hold nothing else; 418 users who hold 200 items each"
    assert tell_threshold({"threshold": 20, "threshold_outside_pool": None}) == "a noisy count of 20"
    assert tell_threshold({"threshold": None, "threshold_outside_pool": None}) == ""
    for reach, users in zip(LAWS["weighed"].reaches, (30, 418), strict=True):
        assert least_users(reach.chance_missing, 0.5) == reach.even_users == users


def test_a_table_whose_chances_nobody_knows_has_no_picture_of_them() -> None:
    noise = TableNoise(GAUSSIAN, 3.0, tested=False)
    assert picture_missing(noise, facts(noise, 1), NUMBERS) == ""
