"""`make bench-peers` on small logs: that months follow one another, that laws are what they say, and what is judged.

No time is asserted, and no figure of a draw that noise could miss.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.peer_log import (
    EXPONENT,
    LEAST_TYPED,
    OTHER_LAWS,
    PLANTED,
    SIZE,
    Law,
    month_log,
    peer_log,
    popular_queries,
    solve_shape,
)
from benchmarks.peer_months import (
    MONTHS,
    ONE_ROUND,
    PER_USER,
    STEERED,
    choose_items,
    draw_month,
    draw_months,
    draw_with_pool,
    open_month,
    with_public,
)
from benchmarks.peer_plots import draw_picture, shown_lines
from benchmarks.peer_scores import accuracy, line, mean_error
from benchmarks.peer_telling import tell, verdicts
from benchmarks.peers import compare

SMALL_LAW = Law(rows=30_000, users=2_000, size=5_000)
FIRST_DIGEST = "bd6fd08b6f9f5c2c281d660b002251608fc1aaa8f8b9dfd752ccc69c6d9b0483"
"""Of 1,000 rows by 100 users, as version 0.1.0 made them: figures of all versions are of one log."""


def test_the_first_month_keeps_its_bytes() -> None:
    log = peer_log(1_000, 100)
    texts = "\n".join([*log["user"].to_pylist(), *log["query"].to_pylist(), ""])
    assert hashlib.sha256(texts.encode()).hexdigest() == FIRST_DIGEST


@pytest.mark.slow
def test_the_law_of_the_task_is_what_its_search_finds() -> None:
    assert solve_shape() == (SIZE, EXPONENT)


def test_months_of_one_law_are_different_logs_of_the_same_queries() -> None:
    first, second = (set(month_log(SMALL_LAW, month)["query"].to_pylist()) for month in (1, 2))
    head = set(popular_queries(SMALL_LAW, 500).to_pylist())
    assert not month_log(SMALL_LAW, 1).equals(month_log(SMALL_LAW, 2))
    assert head <= first and head <= second


def test_a_law_that_replaces_queries_keeps_the_others() -> None:
    """500 queries, of which each is replaced with probability 0.3: fails by chance never, as the seed is fixed."""
    law = Law(rows=30_000, users=2_000, size=5_000, replaced=0.3)
    head = set(popular_queries(law, 500).to_pylist())
    kept = [len(head & set(month_log(law, month)["query"].to_pylist())) / 500 for month in MONTHS]
    assert kept[0] == 1
    assert 0.63 < kept[1] < 0.77 and 0.42 < kept[2] < 0.56


def test_even_users_type_equally_many_rows() -> None:
    owners = month_log(Law(rows=3_000, users=1_000, size=500, even_users=True))["user"].to_pylist()
    assert {owners.count(user) for user in set(owners)} == {3} and len(set(owners)) == 1_000


def test_only_heavy_users_type_what_is_planted_for_them() -> None:
    law = Law(rows=30_000, users=2_000, size=5_000, planted=5)
    with open_month(law, 1) as engine:
        found = engine.connection.execute(
            "SELECT true_users, heavy_users FROM truth WHERE starts_with(query, ?)", [PLANTED]
        ).fetchall()
    assert len(found) == 5
    # Heavy by the law and heavy in the log are nearly the same users.
    assert all(users >= LEAST_TYPED and heavy > 0.8 * users for users, heavy in found)


def test_public_items_get_the_numbers_of_what_is_contributed_and_new_ones_where_nobody_does() -> None:
    with open_month(SMALL_LAW, 1) as engine:
        chosen = choose_items(engine, 1_000, 0)
        texts = pa.array([chosen.texts[7].as_py(), "nobody types this", chosen.texts[3].as_py()])
        known = with_public(engine, chosen, texts, np.array([30, 20, 10]))
        listed = with_public(engine, chosen, texts)
    assert known.public.known.tolist() == [7, len(chosen.texts), 3] == listed.public.listed.tolist()
    assert known.public.known_users.tolist() == [30, 20, 10] and not len(listed.public.known)
    assert known.texts[-1].as_py() == "nobody types this" and known.true_users[-1] == 0
    assert known.true_users[:-1].tolist() == chosen.true_users.tolist()


def test_what_a_limit_leaves_out_is_counted_in_the_truth() -> None:
    with open_month(SMALL_LAW, 1) as engine:
        chosen = choose_items(engine, 3, 0)
        everything = choose_items(engine, SMALL_LAW.rows, 0)
        head = pa.array(["a query of nobody", *everything.texts.to_pylist()])
        told = with_public(engine, chosen, head, np.ones(len(head), dtype=np.int64))
    assert chosen.held_by.sum() < chosen.true_users.sum()
    assert told.true_users[told.public.known].tolist() == [0, *everything.held_by.tolist()]


def test_a_later_month_is_steered_by_its_own_chain() -> None:
    """Only the chain whose release named a query that nobody types any more can name it again.

    A query of all 1,000 users is printed by both, but for noise of over 30 deviations.
    """
    log = Law(rows=1_000, users=1_000, size=1, even_users=True)
    with open_month(log, 2) as engine:
        everybodys = choose_items(engine, 1_000, 0).texts
        nobodys = pa.array(["nobody types this"])
        scores, printed = draw_month(
            engine, [(everybodys, np.array([1_000])), (nobodys, np.array([1_000]))], draws=2, choices=1
        )
    assert [len(scored) for scored in scores.values()] == [2, 2]
    assert all(everybodys[0].as_py() in texts.to_pylist() for texts, _ in printed)
    assert nobodys[0].as_py() not in printed[0][0].to_pylist()
    assert all(len(texts) == len(users) for texts, users in printed)


def test_every_month_has_a_line_of_each_method_with_all_figures() -> None:
    lines = list(draw_months(Law(rows=30_000, users=2_000, size=5_000, planted=3), draws=2, choices=1))
    assert [(one["month"], one["method"]) for one in lines] == [
        (month, method) for month in MONTHS for method in PER_USER
    ]
    for one in lines:
        assert one["released"] > 0 and one["spread"] is not None
        assert one["seconds"] > 0 and one["cpu"] > 0 and one["choosing"] > 0 and one["peak_mb"] > 10
    assert tell(lines).count("\n") > len(lines)


def test_a_pool_is_listed_whatever_the_log_holds() -> None:
    with open_month(SMALL_LAW, 1) as engine:
        told = draw_with_pool(engine, SMALL_LAW, draws=1)
    assert told["method"] == "steered, public pool" and told["released"] > 0


def test_scores_are_against_the_truth() -> None:
    users, true_users = np.array([12, 79, 100, 5]), np.array([10, 100, 100, 0])
    assert accuracy(users, true_users) == {"released": 4, "median_error": 3.5, "near": 0.5}
    assert mean_error(users, true_users) == pytest.approx((0.2 - 0.21 + 0) / 3)
    told = line("qlog", STEERED, 10, [{"released": 3, "peak_mb": 5.0}, {"released": 5, "peak_mb": 7.0}])
    assert (told["released"], told["peak_mb"], told["spread"]) == (4, 7, 1.4)


def measured(method: str, month: int, released: float, error: float, near: float, **more: float) -> dict[str, Any]:
    told = {"released": released, "median_error": error, "near": near, "seconds": 1.0, "cpu": 1.0, "peak_mb": 900.0}
    scores = [{**told, **more}]
    return line("qlog", method, PER_USER[method], scores, log="task", month=month)


GOOD = [
    measured(ONE_ROUND, 1, 2_480, 34, 0.66),
    measured(STEERED, 1, 4_900, 18, 0.6, seconds=3.0),
    measured(ONE_ROUND, 3, 2_480, 34, 0.66),
    measured(STEERED, 3, 7_000, 12, 0.75, peak_mb=2_000),
]


@pytest.mark.parametrize(
    ("worse", "missed"),
    [
        ({}, []),
        ({1: measured(STEERED, 1, 4_899, 18, 0.6)}, ["month 1, ≥ 4,900"]),
        ({1: measured(STEERED, 1, 4_900, 18.1, 0.6)}, ["month 1, median"]),
        ({3: measured(STEERED, 3, 6_999, 12.1, 0.74)}, ["month 3, ≥ 7,000", "month 3, median", "month 3, ≥ 75%"]),
        ({1: measured(STEERED, 1, 4_900, 18, 0.6, seconds=3.1)}, ["time of a draw"]),
        ({3: measured(STEERED, 3, 7_000, 12, 0.75, peak_mb=2_001)}, ["memory"]),
        ({0: measured(ONE_ROUND, 1, 1_999, 34, 0.6)}, ["one round"]),
    ],
)
def test_each_thing_that_is_asked_for_is_judged_on_its_own(worse: dict[int, Any], missed: list[str]) -> None:
    results = [worse.get(place, one) for place, one in enumerate(GOOD)]
    told = verdicts(results)
    assert len(told) == 8
    found = [words.removeprefix("MISSED: ") for words in told if words.startswith("MISSED")]
    assert len(found) == len(missed) and all(one.startswith(start) for one, start in zip(found, missed, strict=True))


def test_what_was_not_measured_is_not_judged() -> None:
    assert verdicts([{"library": "opendp", "missing": "not there"}]) == []
    assert "not run: not there" in tell([{"library": "opendp", "missing": "not there"}])


def test_the_picture_shows_the_task_by_month(tmp_path: Path) -> None:
    results = [*GOOD, {**GOOD[1], "log": OTHER_LAWS[0].name}, {"library": "opendp", "missing": "not there"}]
    assert [one["month"] for one in shown_lines(results)] == [1, 1, 3, 3]
    if draw_picture(results, tmp_path / "pictures" / "peers.png"):
        assert 1_000 < (tmp_path / "pictures" / "peers.png").stat().st_size < 100_000


@pytest.mark.slow
def test_the_whole_comparison_is_run() -> None:
    """Ours in every month and by every method, on the task and one other law; peers where they are installed."""
    other = Law("another", rows=30_000, users=2_000, size=5_000, replaced=0.3)
    lines = list(compare(SMALL_LAW, [other], draws=1))
    ours = [(one["log"], one["month"], one["method"]) for one in lines if one["library"] == "qlog"]
    assert len(ours) == len(set(ours)) + 1 == 6 + 2 * 6  # Gaussian counts have two limits
    assert {one["library"] for one in lines} > {"qlog"}
