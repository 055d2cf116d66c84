"""Simulations: the sound variants as the door would draw them, and the papers' own to the letter, all of it private."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.cli import Answer, qlog
from support.instances import AOL_HEADER, MONTHS, POPULAR, USERS, edit_policy, make_home

MARCH = MONTHS[0]
QUIET = ("selection_scale=0.001", "query_scale=0.001", "click_scale=0.001", "transition_scale=0.001")
"""So little noise that counts are printed as they are, but for a chance far below 1e-100."""

Simulate = Callable[..., dict[str, Any]]


@pytest.fixture
def simulate(ingested: Path) -> Simulate:
    """A simulation of the small log's March; returns its tables by name, and its facts."""

    def simulating(*settings: str, variant: str = "paper", home: Path = ingested) -> dict[str, Any]:
        words = [word for setting in (*QUIET, *settings) for word in ("--set", setting)]
        facts = qlog(home, "simulate", "safelog", "--month", MARCH, "--variant", variant, *words, "--json").json
        path = Path(facts["path"])
        assert json.loads((path / "study.json").read_text(encoding="utf-8"))["rows"] == facts["rows"]
        return {**facts, **{file.stem: pq.read_table(file).to_pylist() for file in path.glob("*.parquet")}}

    return simulating


def counts(rows: list[dict[str, Any]], *keys: str, of: str = "events") -> dict[Any, int]:
    return {tuple(row[key] for key in keys) if len(keys) > 1 else row[keys[0]]: round(row[of]) for row in rows}


def test_the_papers_algorithm_counts_events_of_queries_that_are_frequent_and_not_capped(simulate: Simulate) -> None:
    """Five queries per user, the fourth nobody else's: the filter drops it before the cap of four counts."""
    found = simulate("threshold=5", "min_frequency=5")
    assert counts(found["queries"], "query") == dict.fromkeys(POPULAR, USERS)
    assert found["proven"] is None and found["claimed"]["epsilon"] > 0 and found["gaps"]
    assert counts(found["transitions"], "query", "next_query") == {
        (POPULAR[0], POPULAR[1]): USERS,
        (POPULAR[1], POPULAR[2]): USERS,
        (POPULAR[2], POPULAR[3]): USERS,
    }


def test_without_the_papers_filter_the_rare_query_takes_a_place_in_the_cap(simulate: Simulate) -> None:
    """What one user's rare query can do to everybody's counts: gap G1, shown by its absence."""
    found = simulate("threshold=5", "min_frequency=1")
    assert counts(found["queries"], "query") == dict.fromkeys(POPULAR[:3], USERS)


def test_the_papers_claim_is_priced_by_the_share_of_the_pool_that_is_kept(simulate: Simulate, ingested: Path) -> None:
    """Theorem 1 with p_g = 0.3: what each of the four queries adds to ln α is ln(1/0.3), and the claim says so."""
    (ingested / "pool.txt").write_text("".join(f"book {number}\n" for number in range(100)), encoding="utf-8")
    settings = ("threshold=5", "selection_scale=1")
    whole, sampled = simulate(*settings), simulate(*settings, "pool.probability=0.3")
    per_user = sampled["parameters"]["queries_per_user"]
    dearer = sampled["claimed"]["epsilon"] - whole["claimed"]["epsilon"]
    assert dearer == pytest.approx(per_user * math.log(1 / 0.3))
    assert sampled["parameters"]["pool_probability"] == "0.3" and whole["parameters"]["pool_probability"] == "1"
    words = [word for setting in (*QUIET, *settings, "pool.probability=0.3") for word in ("--set", setting)]
    asked = qlog(ingested, "guarantee", "safelog", "--variant", "paper", *words, "--json").json
    assert asked["claimed"] == sampled["claimed"]
    assert any("pool.probability = 0.3" in gap for gap in sampled["gaps"])
    assert not any("pool.probability" in gap for gap in whole["gaps"])


def test_there_is_one_key_for_the_papers_pool(ingested: Path) -> None:
    edit_policy(ingested, safelog='pool_probability = "0.3"')
    assert "pool_probability: is written as probability, in [pool]" in qlog(ingested, "guarantee", "safelog").refusal


def test_the_papers_clicks_are_all_observed_pairs_or_those_above_its_threshold(
    tmp_path: Path, simulate: Simulate
) -> None:
    """Algorithm 1 can be read both ways. A page that one person of twenty clicked is printed, or it is not."""
    home = make_home(tmp_path / "clicking")
    log = tmp_path / "clicking.txt"
    pages = ["http://first.example"] * 12 + ["http://second.example"] * 7 + ["http://alone.example"]
    rows = [f"{user}\tnews\t2006-03-01 10:00:00\t1\t{page}\n" for user, page in enumerate(pages)]
    log.write_text(AOL_HEADER + "".join(rows), encoding="utf-8")
    assert qlog(home, "ingest", log, "--format", "aol").success
    every = simulate("threshold=10", home=home)
    above = simulate("threshold=10", "paper_click_support=observed_gt_K", home=home)
    assert counts(every["clicks"], "url") == {page: pages.count(page) for page in pages}
    assert counts(above["clicks"], "url") == {"http://first.example": 12}
    assert every["queries"] == above["queries"] and every["claimed"] == above["claimed"]
    assert any("every observed pair" in gap for gap in every["gaps"])
    assert any("above K" in gap for gap in above["gaps"])


def test_the_sound_variant_never_shows_what_one_user_typed(simulate: Simulate) -> None:
    found = simulate("threshold=5", "min_frequency=1", variant="sound")
    assert counts(found["queries"], "query", of="users") == dict.fromkeys(POPULAR[:3], USERS)
    assert found["proven"]["epsilon"] == found["claimed"]["epsilon"] and found["gaps"] == []


@pytest.mark.study
def test_the_papers_repeated_queries_count_each_time_and_the_sound_ones_once(
    tmp_path: Path, simulate: Simulate
) -> None:
    home = make_home(tmp_path / "repeating")
    log = tmp_path / "repeating.txt"
    rows = [f"{user}\tnews\t2006-03-0{day} 10:00:00\t\t\n" for user in range(20) for day in (1, 2, 3)]
    log.write_text(AOL_HEADER + "".join(rows), encoding="utf-8")
    assert qlog(home, "ingest", log, "--format", "aol").success
    assert counts(simulate("threshold=5", home=home)["queries"], "query") == {"news": 60}
    assert counts(simulate("threshold=5", variant="sound", home=home)["queries"], "query", of="users") == {"news": 20}


@pytest.mark.study
def test_parts_that_are_switched_off_are_not_drawn(simulate: Simulate) -> None:
    for variant in ("paper", "sound"):
        found = simulate("click_scale=none", "transition_scale=none", "threshold=5", variant=variant)
        assert found.get("clicks", []) == [] and found.get("transitions", []) == [] and found["queries"]


@pytest.mark.parametrize("variant", ["sound", "modern", "paper"])
def test_every_variant_of_zealous_can_be_simulated(ingested: Path, variant: str) -> None:
    facts = qlog(ingested, "simulate", "zealous", "--month", MARCH, "--variant", variant, "--json").json
    assert facts["variant"] == variant and facts["charged"] is False and facts["rows"]
    assert (facts["proven"] is None) <= (variant == "paper")


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["users", "frequency", "secret_sharing"])
def test_a_baseline_prints_what_k_users_have_with_exact_counts_and_promises_nothing(
    ingested: Path, variant: str
) -> None:
    """The same command and the same parameters of the policy as every other simulation; k is the only one."""

    def printed(k: int) -> dict[str, int]:
        words = ("simulate", "baselines", "--month", MARCH, "--variant", variant, "--set", f"k={k}", "--json")
        facts = qlog(ingested, *words).json
        assert facts["parameters"] == {"k": k} and facts["charged"] is False and facts["variant"] == variant
        assert facts["claimed"] is None and facts["proven"] is None and facts["gaps"]
        rows = pq.read_table(Path(facts["path"]) / "queries.parquet").to_pylist()
        return counts(rows, "query", of="users" if variant == "users" else "events")

    assert printed(USERS) == dict.fromkeys(POPULAR, USERS)
    assert printed(USERS + 1) == {}


@pytest.mark.slow
def test_looking_at_a_month_before_its_release_is_said_in_one_line_and_after_it_no_more(released: Path) -> None:
    def simulated(month: str, *words: str) -> Answer:
        return qlog(released, "simulate", "safelog", "--month", month, *words)

    before, after = simulated(MONTHS[1], "--json").json["warning"], simulated(MARCH, "--json").json["warning"]
    assert before.startswith(f"{MONTHS[1]} has no safelog release yet: parameters chosen after looking at this are")
    assert "qlog plan" in before and after is None
    assert simulated(MONTHS[1]).success.splitlines()[0] == before
    assert "release yet" not in simulated(MARCH).success
    # The month has a Safelog release, which says nothing for a release of ZEALOUS.
    zealous = qlog(released, "simulate", "zealous", "--month", MARCH, "--json").json["warning"]
    assert zealous.startswith(f"{MARCH} has no zealous release yet")
    assert qlog(released, "simulate", "baselines", "--month", MARCH, "--json").json["warning"] is None
