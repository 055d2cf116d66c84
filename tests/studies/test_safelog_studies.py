"""The studies of Safelog's paper: its draws, its prices and its samples, and each study answered by its command."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support.cli import qlog

from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.paper_draws import (
    PaperCounts,
    claimed_epsilon,
    paper_parameters,
    paper_policy,
    pool_of,
)
from qlog_assets.studies.paper_grid import ALL_SCALES, B_ALONE, GridSettings, at_point
from qlog_assets.studies.parts import Fold, SplitSettings, hold_out
from qlog_assets.studies.retrieval_rows import METHODS, by_fold_and_over_folds, split_words
from qlog_assets.studies.safelog_epsilon.theorem import LOOSE, TIGHT, epsilon_columns, turning_points
from qlog_assets.studies.safelog_limits import printed
from qlog_assets.studies.safelog_limits.sampling import UserHistories, view_first_users
from qlog_assets.studies.spread import MONTH, make_twin
from qlog_assets.studies.study import StudyWork

ROWS = 6_000
LIMITS = {"threshold": 6, "queries_per_user": 20, "clicks_per_user": 10}
MINIMUM = 5


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudyWork]:
    warehouse, policy = make_twin(tmp_path_factory.mktemp("safelog"), Policy(), ROWS, 1)
    reads = {"raw_log": warehouse.current("raw_log", MONTH).provenance.shape}
    with Engine.open(warehouse) as engine:
        yield StudyWork(warehouse, engine, policy, None, MONTH, reads=reads)


@pytest.fixture(scope="module")
def fold(work: StudyWork) -> Iterator[Fold]:
    with hold_out(work, 0) as held:
        yield held


# Draws ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_counted_once_is_drawn_as_the_mechanism_draws_it(work: StudyWork, fold: Fold) -> None:
    """Every table, to the last digit of the noise: otherwise a grid would show something else than `qlog simulate`."""
    chosen = paper_parameters(work.policy, **LIMITS)
    view_cleaned(work.engine, fold.trained.cleaned)
    counts = PaperCounts.count(work.engine, pool_of(work), chosen)
    for seed, changes in (
        (1, {}),
        (2, {"selection_scale": Fraction(1, 2), "threshold": 4}),
        (3, {"click_scale": None}),
        (4, {"paper_click_support": "observed_gt_K"}),
    ):
        drawn = fold.trained.draw("safelog", "paper", seed, paper_policy(work.policy, **{**LIMITS, **changes}))
        found = counts.draw(chosen.with_changes(**changes), seed)
        assert found["queries"].num_rows > 10
        assert {name: table.to_pylist() for name, table in found.items()} == {
            name: table.to_pylist() for name, table in drawn.tables.items()
        }


def test_the_grid_changes_b_alone_or_every_scale() -> None:
    chosen = paper_parameters(Policy(), **GridSettings().base)
    alone, every = (at_point(chosen, 30, Fraction(50), growing) for growing in (B_ALONE, ALL_SCALES))
    assert (alone.threshold, alone.selection_scale, alone.queries_per_user) == (30, 50, 100)
    assert {alone.query_scale, alone.click_scale, alone.transition_scale} == {10}
    assert {every.query_scale, every.click_scale, every.transition_scale} == {50}


# Prices ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", printed.EPSILONS)
def test_the_prices_of_table_3_are_those_without_transitions(limit: int) -> None:
    scales = dict.fromkeys(("selection_scale", "query_scale", "click_scale", "transition_scale"), 10)
    chosen = paper_parameters(Policy(), threshold=10, queries_per_user=limit, clicks_per_user=limit, **scales)
    claimed = claimed_epsilon(chosen)
    assert round(claimed["epsilon_without_transitions"], 2) == printed.EPSILONS[limit]
    assert claimed["epsilon"] == pytest.approx(claimed["epsilon_without_transitions"] + (limit - 1) / 10)


def test_the_papers_epsilon_turns_and_the_tight_one_does_not() -> None:
    settings = GridSettings()
    rows = turning_points(settings, 1.0)
    assert [round(row["paper"], 2) for row in rows] == [6.88, 14.43, 20.74, 34.57, pytest.approx(121.4, abs=0.05)]
    assert [row["tight"] for row in rows] == [None] * 5
    for row in rows:
        before, beyond = (epsilon_columns(settings, row["K"], row["paper"] * factor, 1.0) for factor in (0.9, 1.1))
        assert row[LOOSE] < min(before[LOOSE], beyond[LOOSE])
        assert before[TIGHT] > row[TIGHT] > beyond[TIGHT]


def test_a_pool_that_rarely_holds_a_query_has_no_turning_point() -> None:
    assert {row["paper"] for row in turning_points(GridSettings(), 0.4)} == {None}


# Samples --------------------------------------------------------------------------------------------------------------


def test_samples_keep_equally_much_under_every_limit(work: StudyWork, fold: Fold) -> None:
    histories = UserHistories.of_log(work.engine, fold.trained.cleaned)
    total = histories.keep(histories.users, 5, MINIMUM).total
    samples = [histories.sample(total, limit, MINIMUM) for limit in (5, 10, 40, 100)]
    users = [kept.users for kept in samples]
    assert users[0] <= histories.users and users == sorted(users, reverse=True) and len(set(users)) == len(users)
    # One user more or less brings as many queries and clicks as the limits allow, and what becomes frequent by them.
    assert all(total <= kept.total <= total + 0.1 * total for kept in samples)
    fewer = histories.keep(samples[-1].users - 1, 100, MINIMUM)
    assert fewer.total < total


@pytest.mark.slow
def test_a_sample_is_counted_as_the_paper_counts_it(work: StudyWork, fold: Fold) -> None:
    kept = UserHistories.of_log(work.engine, fold.trained.cleaned).keep(30, 10, MINIMUM)
    view_first_users(work.engine, kept.users)
    chosen = paper_parameters(work.policy, queries_per_user=10, clicks_per_user=10, min_frequency=MINIMUM)
    counts = PaperCounts.count(work.engine, pool_of(work), chosen)
    assert kept.queries == counts.events.sum() > 0
    # Clicks after a query that is frequent but beyond everybody's limit are kept, and cannot be released.
    assert 0 < counts.clicks["events"].to_numpy().sum() <= kept.clicks


# Folds ----------------------------------------------------------------------------------------------------------------


def fold_row(fold: int, mean: float | None, half: float, tested: int) -> dict[str, object]:
    """A row as a step's file has it: with its columns in the order of the alphabet."""
    ends = (None, None) if mean is None else (mean - half, mean + half)
    row = {"fold": fold, "K": 5, "tested": tested, "evaluated": 1, "as_paper": mean, "users": 7 + fold}
    return dict(sorted((row | {"with_zeros": mean, "zeros_low": ends[0], "zeros_high": ends[1]}).items()))


def test_folds_are_averaged_and_their_intervals_are_no_narrower_for_it() -> None:
    rows = [fold_row(0, 0.2, 0.03, 10), fold_row(1, 0.4, 0.04, 20)]
    tables = by_fold_and_over_folds("scores", {"scores_by_fold": rows}, ("K",))
    (row,) = tables["scores"]
    assert list(row) == ["K", "tested", "with_zeros", "zeros_low", "zeros_high", "evaluated", "as_paper", "users"]
    assert list(tables["scores_by_fold"][0])[:2] == ["fold", "K"]
    assert (row["tested"], row["users"]) == (30, 8) and row["with_zeros"] == pytest.approx(0.3)
    assert (row["zeros_low"], row["zeros_high"]) == pytest.approx((0.265, 0.335))


def test_a_fold_that_evaluates_nothing_leaves_the_others_as_they_are() -> None:
    rows = [fold_row(0, None, 0, 10), fold_row(1, 0.4, 0.04, 20)]
    (row,) = by_fold_and_over_folds("scores", {"scores_by_fold": rows}, ("K",))["scores"]
    assert row["as_paper"] == 0.4 and row["zeros_low"] == pytest.approx(0.36)


def test_dealing_records_is_called_leaky() -> None:
    assert split_words(SplitSettings()) == "user"
    assert split_words(SplitSettings(split="record")) == "record (leaky)"


# By the command -------------------------------------------------------------------------------------------------------


SMALL = ("--set", "folds=2")
GRID = (*SMALL, "--set", "thresholds=5,20", "--set", "scales=1,10", "--set", "limit=20")
ASKED = {
    "retrieval": (*SMALL, "--set", "threshold=8", "--set", "scale=2", "--set", "split=record"),
    "noise": GRID,
    "epsilon": GRID,
    "limits": (*SMALL, "--set", "limits=5,20", "--set", "threshold=5", "--set", "scale=1"),
}
PICTURES = {
    "retrieval": ("retrieval.png",),
    "noise": ("noise_b_alone.png", "noise_all_scales.png"),
    "epsilon": ("epsilon.png",),
    "limits": ("limits.png",),
}


@pytest.mark.study
def test_the_commands_answer_the_studies_of_a_small_synthetic_month(home: Path) -> None:
    assert qlog(home, "synth", 30_000, "--first", "2006-03", "--last", "2006-03").code == 0
    before = qlog(home, "ledger", "--json").json
    found = {}
    for name, settings in ASKED.items():
        command = ("study", f"safelog-{name}", "--month", "2006-03", *settings, "--json")
        found[name] = qlog(home, *command).json
        rows, path = found[name]["tables"][name], Path(found[name]["path"])
        assert all(0 < row["evaluated"] <= row["tested"] for row in rows if row["with_zeros"])
        assert all(row["with_zeros"] <= row["as_paper"] for row in rows if row["as_paper"] is not None)
        with (path / f"{name}.csv").open(encoding="utf-8") as stream:
            columns = next(csv.reader(stream))
        assert columns.index("with_zeros") < columns.index("as_paper"), "what cannot flatter comes first"
        for picture in PICTURES[name]:
            assert (path / picture).read_bytes().startswith(b"\x89PNG")
        assert (path / "study.md").read_text(encoding="utf-8").count("queries") > 0
        assert {row["fold"] for row in found[name]["tables"][f"{name}_by_fold"]} == {0, 1}
        assert qlog(home, *command).json["tables"] == found[name]["tables"]
    assert qlog(home, "ledger", "--json").json == before, "a study is never charged"
    assert not list((home / "private" / "studies").glob("*tmp*")), "parts of the log are removed"

    retrieval = found["retrieval"]["tables"]["retrieval"]
    assert {row["split"] for row in retrieval} == {"record (leaky)"}
    assert {row["method"] for row in retrieval} == {method.name for method in METHODS}
    logs = list(dict.fromkeys(row["log"] for row in retrieval))
    assert logs == ["original", "paper, K = 8", "sound", "modern"]
    ndcg = {row["log"]: row for row in retrieval if (row["method"], row["measure"]) == ("RW", "ndcg")}
    assert ndcg["original"]["with_zeros"] > ndcg["paper, K = 8"]["with_zeros"] > 0
    assert ndcg["original"]["difference_low"] == ndcg["original"]["difference_high"] == 0
    assert {ndcg[variant]["epsilon"] for variant in ("sound", "modern")} == {2}

    noise, epsilon = (found[name]["tables"][name] for name in ("noise", "epsilon"))
    shared = {(row["K"], row["b"], row["method"]): row for row in noise if row["growing"] == B_ALONE}
    for row in epsilon:
        same = shared[row["K"], row["b"], row["method"]]
        assert {key: same[key] for key in ("with_zeros", "as_paper", "evaluated", "epsilon")}.items() <= row.items()
        assert row[LOOSE] == pytest.approx(row["epsilon_without_transitions"]) and row[TIGHT] <= row[LOOSE]
    limits = found["limits"]["tables"]["limits"]
    kept = {row["limit"]: row["queries_kept"] + row["clicks_kept"] for row in limits}
    assert np.ptp(list(kept.values())) < 0.1 * max(kept.values())
    assert len({row["users"] for row in limits}) == 2
