"""The comparison of all systems: who takes part, at which cost, and scores that tell a good release from a bad one."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support.cli import qlog

from qlog_assets.mechanisms.register import mechanism, releasable, simulated
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.compare.choosing import TWIN_SEED, choose, twin_rows
from qlog_assets.studies.compare.comparison import judged_fold
from qlog_assets.studies.compare.drawing import draw_apart
from qlog_assets.studies.compare.same_law import check_same_law, is_same
from qlog_assets.studies.compare.scoring import Judge
from qlog_assets.studies.compare.systems import PURE, SAME, CompareSettings, compared_mechanisms, systems_of
from qlog_assets.studies.parts import hold_out
from qlog_assets.studies.planning.population import Population
from qlog_assets.studies.planning.twin import population_of_twin
from qlog_assets.studies.search_log import SearchLog
from qlog_assets.studies.spread import MONTH, make_twin
from qlog_assets.studies.study import Row, StudyWork

ROWS = 6_000
SETTINGS = CompareSettings(twin_rows=1_000, test_sessions=500, cached_queries=50)
HIGHER = {"impressions_share", "ndcg_walk", "ndcg_feedback", "answered_queries", "precision_at_5", "answered_prefixes",
          "cache_hits", "purity"}  # fmt: skip
LOWER = {"median_error", "median_relative_error", "nobodys", "one_persons", "one_persons_clicks"}
SIZES = {"queries", "clicks", "transitions", "clustered_sites"}
ASKED = {"tested_queries", "tested_prefixes"}
"""What was asked, whatever the log."""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudyWork]:
    warehouse, policy = make_twin(tmp_path_factory.mktemp("compare"), Policy(), ROWS, 1)
    reads = {"raw_log": warehouse.current("raw_log", MONTH).provenance.shape}
    with Engine.open(warehouse) as engine:
        yield StudyWork(warehouse, engine, policy, SETTINGS, MONTH, reads=reads)


@pytest.fixture(scope="module")
def people() -> Population:
    return population_of_twin(2_000, 1)


@pytest.fixture(scope="module")
def choices(people: Population) -> list[Row]:
    # No warehouse: whatever is chosen is chosen without looking at any log.
    blind = StudyWork(cast(Any, None), cast(Any, None), Policy(), SETTINGS, MONTH)
    return [row for each in releasable() for row in choose(blind, each, people, 500)]


@pytest.fixture(scope="module")
def judge(work: StudyWork) -> Judge:
    """A judge of people who searched just as those did whose log is released: then a perfect release is known."""
    with hold_out(work, 0) as fold:
        public = pa.array([], pa.string())
        return Judge.of_fold(work.engine, fold.trained.cleaned, fold.trained.cleaned, public, SETTINGS)


def perfect_release(judge: Judge) -> SearchLog:
    """All that two people share, with exact counts."""
    log = judge.truth
    queries = log.queries.filter(pc.greater(log.queries["count"], 1))
    known = {name: pc.is_in(log.transitions[name], queries["query"]) for name in ("query", "next_query")}
    return SearchLog(
        queries,
        log.clicks.filter(pc.and_(pc.is_in(log.clicks["query"], queries["query"]), pc.greater(log.clicks["count"], 1))),
        log.transitions.filter(pc.and_(known["query"], known["next_query"])),
    )


def useless_release(judge: Judge) -> SearchLog:
    """Texts that nobody typed, with counts that nobody made, and one of them leading to every site."""
    names = [f"nothing {number}" for number in range(40)]
    urls = judge.truth.clicks["url"].unique().to_pylist()
    return SearchLog(
        pa.table({"query": names, "count": [100.0] * len(names)}),
        pa.table({"query": ["nothing 0"] * len(urls), "url": urls, "count": [5.0] * len(urls)}),
        pa.table({"query": names[:-1], "next_query": names[1:], "count": [5.0] * (len(names) - 1)}),
    )


def test_every_score_puts_a_perfect_release_before_a_useless_one(judge: Judge) -> None:
    perfect, useless = (judge.score(log) for log in (perfect_release(judge), useless_release(judge)))
    assert HIGHER | LOWER | SIZES | ASKED == set(perfect) == set(useless)

    def value(scores: dict[str, Any], name: str) -> float:
        assert scores[name] is not None, name
        return float(scores[name])

    for name in HIGHER:
        assert value(perfect, name) > value(useless, name), name
    # What is made up is nobody's click; that one person's clicks are counted is a test of its own.
    for name in LOWER - {"one_persons_clicks"}:
        assert value(perfect, name) < value(useless, name), name
    assert all(perfect[name] == useless[name] and value(perfect, name) > 0 for name in ASKED)
    assert {perfect[name] for name in LOWER} == {0}
    # The useless one knows nothing that is asked for.
    assert [useless[name] for name in HIGHER - {"purity"}] == [0] * (len(HIGHER) - 1)


def test_a_release_without_a_row_scores_zero_and_has_no_errors(judge: Judge) -> None:
    scores = judge.score(SearchLog.of_tables({}))
    assert {scores[name] for name in (HIGHER | SIZES) - {"purity"}} == {0}
    assert {scores[name] for name in ("purity", "median_error", "median_relative_error")} == {None}


def test_a_query_that_one_person_typed_is_counted_unless_it_was_public(judge: Judge) -> None:
    own = judge.truth.queries.filter(pc.equal(judge.truth.queries["count"], 1))["query"].to_pylist()[:3]
    log = SearchLog.of_tables({"queries": pa.table({"query": own, "users": [9, 9, 9]})})
    assert judge.score(log)["one_persons"] == 3
    known = replace(judge, public=pa.array(own[:2]))
    assert known.score(log)["one_persons"] == 1


def test_a_click_that_one_person_made_is_counted_even_if_page_and_query_are_public(judge: Judge) -> None:
    own = judge.truth.clicks.filter(pc.equal(judge.truth.clicks["count"], 1)).slice(0, 3)
    log = SearchLog.of_tables({"clicks": own})
    assert judge.score(log)["one_persons_clicks"] == 3
    public = pa.concat_arrays([own[name].combine_chunks() for name in ("query", "url")])
    assert replace(judge, public=public).score(log)["one_persons_clicks"] == 3
    assert judge.score(perfect_release(judge))["one_persons_clicks"] == 0


@pytest.mark.parametrize("counted", ["users", "events"])
def test_printed_counts_are_held_against_what_they_are_counts_of(judge: Judge, counted: str) -> None:
    true = judge.truth.queries["count"] if counted == "users" else pa.array(judge.truth_events)
    log = SearchLog.of_tables({"queries": pa.table({"query": judge.truth.queries["query"], counted: true})})
    assert judge.score(log)["median_error"] == 0
    unknown = SearchLog.of_tables({"queries": pa.table({"query": judge.truth.queries["query"], "printed": true})})
    assert judge.score(unknown)["median_error"] is None


@pytest.mark.slow
def test_held_out_people_are_in_no_log_that_is_drawn_from(work: StudyWork) -> None:
    with judged_fold(work, 0) as (fold, judge):
        trained, tested = (
            set(pq.read_table(part.warehouse.current("raw_log", MONTH).files("log"))["user"].to_pylist())
            for part in (fold.trained, fold.tested)
        )
        assert judge.truth.queries.num_rows > 0 and not trained & tested


@pytest.mark.slow
def test_settings_cost_what_was_asked_and_are_chosen_without_any_log(choices: list[Row]) -> None:
    policy = Policy()
    for each in releasable():
        chosen = [system for system in systems_of(each, policy, choices, 500) if system.kind in (SAME, PURE)]
        assert {system.variant for system in chosen} == {
            name for name in each.variants if each.guarantee(name, each.parameters()).publishable
        }
        for system in chosen:
            proven = each.guarantee(system.variant, system.policy.parameters(each)).proven
            assert proven is not None and proven.epsilon <= SETTINGS.epsilon
            assert proven.delta <= (0 if system.kind == PURE else SETTINGS.delta)


@pytest.mark.slow
def test_pure_epsilon_is_among_the_systems(choices: list[Row]) -> None:
    assert [(row["mechanism"], row["variant"]) for row in choices if row["kind"] == PURE] == [("safelog", "sound")]


@pytest.mark.slow
def test_every_variant_that_can_be_drawn_takes_part_once(choices: list[Row]) -> None:
    found = [system for each in compared_mechanisms() for system in systems_of(each, Policy(), choices, 500)]
    drawn = {f"{each.name} {name}" for each in simulated() for name, variant in each.variants.items() if variant.draw}
    assert {system.name for system in found if system.kind != PURE} == drawn
    assert len({system.name for system in found}) == len(found)


@pytest.mark.slow
def test_papers_are_drawn_as_printed_whatever_the_policy_says(choices: list[Row]) -> None:
    policy = Policy(safelog={"queries_per_user": 7}, crowd={"epsilon": "1"})
    printed = {
        system.name: system.policy.for_variant(system.mechanism, system.variant).section(system.mechanism.name)
        for each in releasable()
        for system in systems_of(each, policy, choices, 500)
    }
    safelog = mechanism("safelog").plain_parameters(printed["safelog paper"])
    claimed = mechanism("safelog").guarantee("paper", safelog).claimed
    # Figure 3 says 29.99.
    assert claimed is not None and float(claimed.epsilon) == pytest.approx(30, abs=0.02)
    assert float(cast(Any, printed["crowd dp_a"]).epsilon) == pytest.approx(np.log(10))


def test_the_twin_is_as_large_as_the_month_to_one_digit_and_not_the_month(work: StudyWork) -> None:
    free = CompareSettings()
    assert [twin_rows(free, rows) for rows in (12, 1_499, 47_000, 2_400_000)] == [1_000, 1_000, 50_000, 1_000_000]
    assert twin_rows(SETTINGS, 47_000) == 1_000
    assert TWIN_SEED > 10**6


@pytest.mark.slow
def test_a_draw_in_a_process_of_its_own_is_the_draw(work: StudyWork) -> None:
    (system,) = [each for each in systems_of(mechanism("baselines"), work.policy, [], 1) if each.variant == "users"]
    changed = system.policy.with_changes(mechanisms={"baselines": {"k": 3}})
    system = replace(system, policy=changed)
    with hold_out(work, 0) as fold:
        apart = draw_apart(system, fold.trained, 1)
        here = fold.trained.draw("baselines", "users", 1, changed).tables
    assert apart.tables["queries"].num_rows > 0
    assert {name: table.to_pylist() for name, table in apart.tables.items()} == {
        name: table.to_pylist() for name, table in here.items()
    }
    assert apart.proven is None and apart.seconds > 0 and apart.megabytes > 50


@pytest.mark.slow
def test_a_system_that_cannot_be_drawn_releases_nothing_and_says_why(work: StudyWork) -> None:
    (system,) = [each for each in systems_of(mechanism("sanitized"), work.policy, [], 1) if each.variant == "paper"]
    refused = replace(system, variant="sound", policy=system.policy.with_changes(has_urls=False))
    with hold_out(work, 0) as fold:
        drawn = draw_apart(refused, fold.trained, 1)
    assert drawn.tables == {} and "urls" in drawn.note


def test_crowd_and_zealous_have_one_law_where_their_parameters_are_equal() -> None:
    users = np.random.default_rng(1).zipf(1.5, 5_000).clip(max=4_000)
    rows = check_same_law(users, Fraction(2), Fraction(1, 10**6), 1)
    assert is_same(rows) and all(row["printed"] for row in rows)
    # And the check would notice: another threshold, other noise, another draw.
    for change in ({"crowd_threshold": 1}, {"same_noise": False}, {"same_draws": False}):
        assert not is_same([*rows[1:], {**rows[0], **change}])


def test_every_mechanism_says_who_must_be_trusted() -> None:
    told = {each.name: each.trust for each in simulated()}
    assert all(len(words) > 40 and words.endswith(".") for words in told.values())
    assert "Nobody holds the log" in told["crowd"] and "every reader" in told["baselines"]


@pytest.mark.study
def test_the_command_writes_a_page_and_a_table_that_name_nobody_and_ask_nobody(home: Path) -> None:
    qlog(home, "synth", "4000", "--first", "2006-03", "--last", "2006-03")
    words = ("compare", "--month", "2006-03", "--epsilon", "4", "--delta", "1e-5", "--set", "twin_rows=1000", "--json")
    facts = qlog(home, *words).json
    folder = Path(facts["path"])
    page = (folder / "compare.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=\"(?!data:)", page) and "<script" not in page
    with (folder / "comparison.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert all(f"<td>{row['system']}</td>" in page and row["trust"] for row in rows)
    assert {row["proven_epsilon"] for row in rows if row["kind"] in (SAME, PURE)} == {"4.0"}
    assert {(row["one_persons"], row["one_persons_clicks"]) for row in rows if row["kind"] in (SAME, PURE)} == {
        ("0", "0")
    }
    assert facts["tables"]["same_law"] and is_same(facts["tables"]["same_law"])
    assert (folder / "items.png").stat().st_size > 0
    # Asked again, it is answered from the folder.
    assert qlog(home, *words).json["path"] == facts["path"]
