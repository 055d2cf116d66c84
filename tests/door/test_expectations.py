"""Before a release is charged, one line says what it costs and what is known of it in public, from the policy alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qlog_assets.door.expectations import expected_rows, public_expectations
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.mechanisms.zealous import noise
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.policy import Policy
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.report.account import survival
from qlog_assets.sources.pool_files import DEFAULT_ROWS

SAFELOG, ZEALOUS = mechanism("safelog"), mechanism("zealous")


def test_the_cost_and_the_thresholds_are_those_of_the_guarantee() -> None:
    policy = Policy()
    promised = SAFELOG.guarantee("sound", policy.parameters(SAFELOG)).thresholds
    least = {each.rows: each.least for each in expected_rows(SAFELOG, policy)}
    assert least["queries of the pool"] == promised["queries_in_pool"]
    assert least["other queries"] == promised["queries_outside_pool"]
    assert least["clicks"] == promised["clicks"]
    assert public_expectations(SAFELOG, policy).startswith("safelog sound costs ε = 2, δ = 1e-06; ")


def test_transitions_are_said_at_the_thresholds_that_their_draw_uses() -> None:
    assert "6 for transitions (11 for 20 released queries, 20 for 200 released queries)" in public_expectations(
        SAFELOG, Policy()
    )


def test_rows_of_the_default_pool_that_nobody_typed_are_counted() -> None:
    policy = Policy()
    (pool,) = (each for each in expected_rows(SAFELOG, policy) if each.rows == "queries of the pool")
    assert pool.noise_rows == pytest.approx(DEFAULT_ROWS * survival(2, 25)) and 1 < pool.noise_rows < 2
    halved = policy.with_settings({"pool.probability": "0.5"})
    (pool,) = (each for each in expected_rows(SAFELOG, halved) if each.rows == "queries of the pool")
    assert pool.noise_rows == pytest.approx(DEFAULT_ROWS / 2 * survival(2, 25))


def test_a_pool_whose_size_is_not_known_is_said_per_million_and_its_file_is_not_opened() -> None:
    policy = Policy(pool={"kind": "query_list", "path": Path("nowhere.txt")})
    line = public_expectations(SAFELOG, policy)
    assert "(noise alone makes at most about 2.3 per million)" in line and "for the public list's size to say" in line


@pytest.mark.parametrize("method", ["weighted_gaussian", "sips", "gaussian_counts", "truncated_geometric"])
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


def test_a_minimum_of_users_raises_what_a_row_needs() -> None:
    policy = Policy(zealous={"variant": "sound", "items_per_user": 2, "min_users": 5})
    plain = Policy(zealous={"variant": "sound", "items_per_user": 2})
    assert expected_rows(ZEALOUS, policy)[0].least == expected_rows(ZEALOUS, plain)[0].least + 4


def test_kinds_of_which_the_same_is_known_are_said_once() -> None:
    assert "for keywords, queries, pairs and clicks (who hold nothing else" in public_expectations(ZEALOUS, Policy())
