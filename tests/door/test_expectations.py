"""Before a release is charged, one line says what it costs and what is known of it in public, from the policy alone."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from qlog_assets.door.expectations import expected_rows, public_expectations
from qlog_assets.mechanisms.expectations import KNOWN_FAKES
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import mechanism, releasable
from qlog_assets.mechanisms.safelog.noise import plan_modern
from qlog_assets.mechanisms.zealous import noise
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.policy import Policy
from qlog_assets.privacy.gaussian import WEIGHT_UNIT
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.privacy.steered import KNOWN_DEVIATIONS, LISTED_FAKES
from qlog_assets.report.account import survival
from qlog_assets.sources.pool_files import DEFAULT_ROWS

SAFELOG, ZEALOUS = mechanism("safelog"), mechanism("zealous")


SOUND = Policy(safelog={"variant": "sound"})
UNREAD = {"kind": "query_list", "path": Path("nowhere.txt")}


def test_the_cost_and_the_thresholds_are_those_of_the_guarantee() -> None:
    policy = SOUND
    promised = SAFELOG.guarantee("sound", policy.parameters(SAFELOG)).thresholds
    least = {each.rows: each.least for each in expected_rows(SAFELOG, policy)}
    assert least["queries of the pool"] == promised["queries_in_pool"]
    assert least["other queries"] == promised["queries_outside_pool"]
    assert least["clicks"] == promised["clicks"]
    assert public_expectations(SAFELOG, policy).startswith("safelog sound costs ε = 2, δ = 1e-06; ")


def test_transitions_are_said_at_the_thresholds_that_their_draw_uses() -> None:
    assert "6 for transitions (11 for 20 released queries, 20 for 200 released queries)" in public_expectations(
        SAFELOG, SOUND
    )


def test_modern_safelog_says_what_the_plans_of_its_draw_ask_for() -> None:
    policy = Policy()
    plans = plan_modern(DEFAULT_ROWS, policy.parameters(SAFELOG))  # type: ignore[arg-type]
    least = {each.rows: each.least for each in expected_rows(SAFELOG, policy)}
    assert least == {
        "queries of the pool": math.ceil(plans["queries"].listed_threshold / WEIGHT_UNIT),
        "other queries": math.ceil(plans["queries"].threshold / WEIGHT_UNIT),
        "clicks": math.ceil(plans["clicks"].threshold / WEIGHT_UNIT),
        "transitions": math.ceil(plans["transitions"].threshold / WEIGHT_UNIT),
    }
    assert public_expectations(SAFELOG, policy).startswith("safelog modern costs ε = 2, δ = 1e-06; ")


def test_rows_of_the_default_pool_that_nobody_typed_are_counted() -> None:
    policy = SOUND
    (pool,) = (each for each in expected_rows(SAFELOG, policy) if each.rows == "queries of the pool")
    assert pool.noise_rows == pytest.approx(DEFAULT_ROWS * survival(2, 25)) and 1 < pool.noise_rows < 2
    halved = policy.with_settings({"pool.probability": "0.5"})
    (pool,) = (each for each in expected_rows(SAFELOG, halved) if each.rows == "queries of the pool")
    assert pool.noise_rows == pytest.approx(DEFAULT_ROWS / 2 * survival(2, 25))


def test_a_pool_whose_size_is_not_known_is_said_per_million_and_its_file_is_not_opened() -> None:
    policy = SOUND.with_changes(pool=UNREAD)
    line = public_expectations(SAFELOG, policy)
    assert "(noise alone makes at most about 2.3 per million)" in line and "for the public list's size to say" in line


def test_modern_expects_as_many_rows_of_noise_whatever_the_size_of_its_pool() -> None:
    """The threshold of the pool is set for it, so noise makes about one row of it, known or not."""
    shipped, unread = Policy(), Policy(pool=UNREAD)
    for policy in (shipped, unread, shipped.with_settings({"pool.probability": "0.01"})):
        (pool,) = (each for each in expected_rows(SAFELOG, policy) if each.rows == "queries of the pool")
        assert pool.noise_rows == LISTED_FAKES
        assert "at most about 1 rows come from noise alone" in public_expectations(SAFELOG, policy)
    assert "; with a pool of 1,000,000)" in public_expectations(SAFELOG, unread)


@pytest.mark.parametrize("method", ["steered", "weighted_gaussian", "sips", "gaussian_counts", "truncated_geometric"])
def test_every_method_says_how_many_users_an_item_needs(method: str) -> None:
    """An item of half as many users, who hold nothing else, is far from being printed; one of thrice as many is not."""
    chosen = ZealousParameters(kinds=("queries",), method=method, items_per_user=2)
    (needs,) = ZEALOUS.expectations("modern", chosen)
    assert needs.noise_rows == 0 and needs.origin == "derived"
    few, many = needs.least // 2, needs.least * 3
    held = [0] * few + [1] * many
    drawn = noise.release_modern(SeededRandom(1), *_rows(held), 2, chosen)
    assert drawn.items.tolist() == [1]


def _rows(items: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(len(items)), np.array(items)


@pytest.mark.parametrize("asked", [each for each in releasable() if each.may_be_steered], ids=lambda each: each.name)
def test_only_a_steered_release_expects_rows_of_the_month_before(asked: Mechanism) -> None:
    said = "in a later month about one in 740 of the rows of the month before that nobody holds any more, too"
    assert said in public_expectations(asked, Policy())
    other = {
        "safelog": {"variant": "sound"},
        "sanitized": {"method": "stability"},
        "sessions": {"method": "weighted_gaussian"},
        "zealous": {"variant": "sound"},
    }
    assert said not in public_expectations(asked, Policy(**{asked.name: other[asked.name]}))


def test_the_share_of_earlier_rows_that_noise_prints_is_the_one_that_is_said() -> None:
    assert f"about one in {round(1 / NormalDist().cdf(-KNOWN_DEVIATIONS), -1):.0f}" == KNOWN_FAKES


def test_a_minimum_of_users_raises_what_a_row_needs() -> None:
    policy = Policy(zealous={"variant": "sound", "items_per_user": 2, "min_users": 5})
    plain = Policy(zealous={"variant": "sound", "items_per_user": 2})
    assert expected_rows(ZEALOUS, policy)[0].least == expected_rows(ZEALOUS, plain)[0].least + 4


def test_kinds_of_which_the_same_is_known_are_said_once() -> None:
    everything = "for keywords, queries, pairs and clicks"
    assert f"{everything} (who hope for nothing else" in public_expectations(ZEALOUS, Policy())
    weighted = Policy(zealous={"method": "weighted_gaussian"})
    assert f"{everything} (who hold nothing else" in public_expectations(ZEALOUS, weighted)
