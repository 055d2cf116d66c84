"""The study of Safelog's pool: what a share of a list costs and finds, and earlier releases as a month's pool."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from support.cli import qlog
from support.door import MARCH, warehouse_at
from support.instances import MONTHS, POPULAR, edit_policy

from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.measures.retrieval import TestedClicks
from qlog_assets.studies.safelog_pool.months import BOTH, EARLIER, OWN, Chain, logs_until, measure_months
from qlog_assets.studies.safelog_pool.printed_queries import PoolReader
from qlog_assets.studies.safelog_pool.settings import PoolSettings, fitted
from qlog_assets.studies.safelog_pool.shares import measure_shares
from qlog_assets.studies.search_log import SearchLog
from qlog_assets.studies.study import StudyWork

APRIL = MONTHS[1]
LISTED = 400
"""Queries of the list that nobody types."""
SETTINGS = PoolSettings(shares=("0.5", "1"), thresholds=(1, 20), scale="1", limit=5)


@pytest.fixture
def work(ingested: Path) -> Iterator[StudyWork]:
    """April of the small log, with a list of two popular queries and many that nobody types."""
    texts = [*POPULAR[:2], *(f"book {number}" for number in range(LISTED))]
    (ingested / "pool.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    edit_policy(ingested, safelog='variant = "sound"')
    warehouse = warehouse_at(ingested)
    with Engine.open(warehouse) as engine:
        asked = StudyWork(warehouse, engine, Policy.load(ingested / "policy.toml"), SETTINGS, APRIL)
        yield replace(asked, reads=logs_until(asked))


@pytest.mark.slow
def test_a_share_of_the_list_costs_its_logarithm_and_prints_its_share_of_fakes(work: StudyWork) -> None:
    """K = b = 1: each of the list's queries that nobody types is printed with probability 1/2e."""
    rows = {(row["variant"], row["K"], row["p_g"]): row for row in measure_shares(work, 0)["shares_by_fold"]}
    whole, half = rows["paper", 1, 1.0], rows["paper", 1, 0.5]
    assert whole["pool_queries"] == LISTED + 2 > half["pool_queries"] > LISTED / 3
    assert half["epsilon_tight"] - whole["epsilon_tight"] == pytest.approx(5 * math.log(2))
    assert half["epsilon"] > whole["epsilon"] >= whole["epsilon_tight"] and whole["proven"] is None
    # The noise is seeded, so this holds or it does not; with other seeds six deviations would fail in one of 10^8.
    for row in (whole, half):
        untyped = row["pool_queries"] - row["pool_typed"]
        expected = untyped / (2 * math.e)
        assert abs(row["fakes"] - expected) < 6 * math.sqrt(expected)
    assert rows["paper", 20, 1.0]["fakes"] == 0 and rows["paper", 20, 1.0]["found_in_pool"] == 2
    searched = rows["paper", 20, 1.0]
    assert searched["as_paper"] == 1, "everybody clicks the same page for a popular query"
    assert searched["with_zeros"] == pytest.approx(searched["evaluated"] / searched["tested"])
    (sound,) = (row for (variant, _, share), row in rows.items() if (variant, share) == ("sound", 1.0))
    assert sound["proven"] == sound["epsilon"] and sound["epsilon_tight"] is None


@pytest.mark.slow
def test_earlier_releases_serve_the_next_month_and_nothing_is_charged_or_published(
    work: StudyWork, ingested: Path
) -> None:
    before = qlog(ingested, "ledger", "--json").json
    rows = {(row["variant"], row["pool"], row["month"]): row for row in measure_months(work)["months"]}
    first, then = rows["sound", EARLIER, MARCH], rows["sound", EARLIER, APRIL]
    assert first["pool_queries"] == LISTED + 2, "as long as nothing was released, the policy's list serves"
    assert then["pool_queries"] == first["queries"] > 0
    assert then["found_in_pool"] == first["queries"] - first["fakes"], "what was popular is so again"
    assert then["fakes"] <= first["fakes"], "what nobody typed can only come from fakes of the month before"
    assert rows["sound", BOTH, APRIL]["pool_queries"] > rows["sound", OWN, APRIL]["pool_queries"]
    assert then["K"] < rows["sound", OWN, APRIL]["K"]
    assert {row["epsilon"] for (variant, *_), row in rows.items() if variant == "sound"} == {first["epsilon"]}
    assert qlog(ingested, "ledger", "--json").json == before
    assert list(work.warehouse.studies.iterdir()) == [], "the lists go with the parts that they were drawn with"


def test_a_study_is_made_from_the_months_before_it_and_no_later_one(work: StudyWork) -> None:
    assert set(work.reads) == {"raw_log", f"raw_log of {MARCH}"}
    assert set(logs_until(replace(work, month=MARCH))) == {"raw_log"}


def test_a_chain_of_releases_has_what_its_earlier_months_printed() -> None:
    def texts(*queries: str) -> pa.ChunkedArray:
        return pa.chunked_array([list(queries)])

    own = texts("a", "b")
    for kind, expected in ((OWN, {"a", "b"}), (EARLIER, {"b", "c", "d"}), (BOTH, {"a", "b", "c", "d"})):
        chain = Chain("sound", kind)
        assert set(chain.pool_texts(own).to_pylist()) == {"a", "b"}
        chain.released += [texts("b", "c"), texts("c", "d")]
        found = chain.pool_texts(own).to_pylist()
        assert set(found) == expected and len(found) == len(expected)


def test_fakes_are_what_nobody_typed_and_only_the_pool_can_have_printed() -> None:
    clicks = pa.table({"query": ["weather"], "url": ["http://weather.example"], "rank": [1]})
    reader = PoolReader(pa.chunked_array([["weather", "news", "own"]]), TestedClicks.of_clicks(clicks), 1)
    log = SearchLog.of_tables(
        {
            "queries": pa.table({"query": ["weather", "own", "chess"], "users": [5, 4, 3]}),
            "clicks": pa.table({"query": ["weather"], "url": ["http://weather.example"], "users": [4]}),
        }
    )
    found = reader.columns(log, pa.chunked_array([["weather", "news", "chess", "phone book"]]))
    counted = {"pool_queries": 4, "pool_typed": 2, "queries": 3, "found_in_pool": 1, "fakes": 1}
    assert {name: found[name] for name in counted} == counted
    assert found["with_zeros"] == found["as_paper"] == 1


def test_the_threshold_of_a_release_falls_with_the_size_of_the_pool() -> None:
    def threshold(pool_queries: int) -> int:
        section = fitted(Policy(), "sound", pool_queries).section("safelog")
        assert isinstance(section, SafelogParameters)
        return section.threshold

    assert [threshold(2 * math.floor(math.exp(power))) for power in (0, 5, 12)] == [1, 10, 24]
    assert fitted(Policy(), "modern", 10) == Policy()


@pytest.mark.study
def test_the_command_answers_the_study_with_tables_a_picture_and_words(ingested: Path) -> None:
    asked = ("study", "safelog-pool", "--month", APRIL, "--set", "shares=0.6,1", "--set", "thresholds=20", "--json")
    facts = qlog(ingested, *asked).json
    assert set(facts["tables"]) == {"shares", "shares_by_fold", "months"} and facts["finished"]
    folder = Path(facts["path"])
    assert {"shares.csv", "months.csv", "shares.png", "study.md"} <= {path.name for path in folder.iterdir()}
    assert "as the pool" in (folder / "study.md").read_text(encoding="utf-8")
    assert {Fraction(row["p_g"]).limit_denominator(10) for row in facts["tables"]["shares"]} == {Fraction(3, 5), 1}
