"""What a missing row tells: about how many users something has that a table does not print."""

from __future__ import annotations

from typing import Any

import pytest

from qlog_assets.report.table_noise import GAUSSIAN, GEOMETRIC, Look, Reach, TableNoise
from qlog_assets.report.unprinted import Unprinted, tell_unprinted


def facts(threshold: int | None, outside: int | None = None) -> dict[str, Any]:
    return {"threshold": threshold, "threshold_outside_pool": outside}


def test_a_tested_count_needs_about_the_threshold_and_the_higher_one_where_there_are_two() -> None:
    noise = TableNoise(GEOMETRIC, 10)
    assert tell_unprinted(facts(100), noise) == Unprinted(100)
    assert tell_unprinted(facts(100, 250), noise) == Unprinted(250)
    assert tell_unprinted(facts(100, 250), None) == Unprinted(250), "of a version that did not state its noise"
    assert tell_unprinted(facts(100), TableNoise(GAUSSIAN, 20, tested_from=120.5)) == Unprinted(121)


@pytest.mark.parametrize(
    "noise", [TableNoise(GEOMETRIC, 3), TableNoise(GAUSSIAN, 8), TableNoise(GEOMETRIC, 5, largest=40)]
)
def test_from_there_on_a_row_is_as_likely_as_not_and_one_user_less_is_not_enough(noise: TableNoise) -> None:
    told = tell_unprinted(facts(60), noise)
    assert told is not None
    assert noise.chance_missing(told.users, 60) <= 0.5 < noise.chance_missing(told.users - 1, 60)


def test_where_fewer_users_are_never_looked_at_those_are_what_it_takes() -> None:
    assert tell_unprinted(facts(5), TableNoise(GEOMETRIC, 2, min_users=9)) == Unprinted(9)


def test_of_weights_the_bound_for_users_of_many_items_is_told_or_that_it_is_of_users_of_one_alone() -> None:
    alone = Reach(1, (Look(20, 4),))
    many = Reach(8, (Look(90, 12),))
    listed = Reach(1, (Look(10, 4),), listed=True)
    weighted = {"law": GAUSSIAN, "scale": 5.0, "by_row": True, "tested": False}
    assert tell_unprinted(facts(1), TableNoise(**weighted, reaches=(listed, alone, many))) == Unprinted(90)
    told = tell_unprinted(facts(1), TableNoise(**weighted, reaches=(listed, alone)))
    assert told is not None and told.users == 20 and "users who did nothing else" in told.condition
    assert tell_unprinted(facts(1), TableNoise(**weighted)) is None, "nothing is known"


def test_a_table_that_counts_nothing_tells_nothing() -> None:
    assert tell_unprinted(facts(None), None) is None
    told = tell_unprinted(facts(30), TableNoise(GEOMETRIC, 2, among="addresses of the list"))
    assert told == Unprinted(30, "said of addresses of the list alone")
