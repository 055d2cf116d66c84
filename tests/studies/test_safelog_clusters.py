"""The study of clusters: its logs come from the register, purity is told where topics are known, sizes everywhere."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from support.cli import qlog

from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.register import study
from qlog_assets.studies.safelog_clusters import comparison
from qlog_assets.studies.safelog_clusters import study as cluster_study
from qlog_assets.studies.safelog_clusters.comparison import (
    AS_PRINTED,
    NO_STRAYS,
    ORIGINAL,
    SAME_QUERIES,
    ClusterSettings,
    cluster_rows,
    has_clicks,
    measure_original,
    measure_paper,
    measure_variant,
    released_variants,
)
from qlog_assets.studies.session_logs import raw_log_of
from qlog_assets.studies.spread import MONTH, make_twin
from qlog_assets.studies.study import StudyWork
from qlog_assets.synthetic import topics

SMALL = ClusterSettings(most_sites=50, least_clicks=(3,), threshold=20, scale=Fraction(2))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudyWork]:
    warehouse, policy = make_twin(tmp_path_factory.mktemp("clusters"), Policy(), 6_000, 1)
    with Engine.open(warehouse) as engine:
        asked = StudyWork(warehouse, engine, policy, SMALL, MONTH)
        yield StudyWork(warehouse, engine, policy, SMALL, MONTH, reads=raw_log_of(asked))


def click_table(rows: list[tuple[str, str, float]]) -> pa.Table:
    queries, urls, counts = zip(*rows, strict=True)
    return pa.table({"query": queries, "url": urls, "count": counts})


def test_safelog_as_printed_has_the_papers_parameters_and_all_else_the_policys() -> None:
    policy = Policy()
    changed = ClusterSettings().as_printed(policy)
    section = changed.section("safelog")
    assert (section.threshold, section.queries_per_user, section.clicks_per_user) == (100, 100, 100)
    assert {section.selection_scale, section.query_scale, section.click_scale, section.transition_scale} == {10}
    assert changed.with_changes(mechanisms=policy.mechanisms) == policy


def test_every_variant_that_may_be_published_is_drawn_and_no_paper_is() -> None:
    found = list(released_variants(Policy()))
    assert {("safelog", "sound"), ("safelog", "modern"), ("zealous", "modern")} <= set(found)
    assert all(variant in mechanism(name).variants for name, variant in found)
    assert not {variant for _, variant in found} & {"paper"}


def test_a_log_is_clustered_with_every_threshold_and_all_or_the_most_clicked_of_its_sites() -> None:
    first, second = topics()[:2]
    clicks = click_table(
        [
            ("a", first.sites[0], 9.0),
            ("a", first.sites[1], 9.0),
            ("a", second.sites[0], 2.0),
            ("b", second.sites[1], 4.0),
        ]
    )
    rows = cluster_rows(ClusterSettings(most_sites=2, least_clicks=(3,)), "some log", clicks)
    assert [(row["most_sites"], row["least_clicks"]) for row in rows] == [(None, 0), (None, 3), (2, 0), (2, 3)]
    everything, cut = rows[:2]
    assert (everything["sites"], everything["clusters"], everything["largest"]) == (4, 2, 3)
    assert (everything["purity"], everything["linked_purity"]) == (0.75, pytest.approx(2 / 3))
    assert (cut["sites"], cut["linked_sites"], cut["linked_purity"]) == (3, 2, 1.0)
    assert {row["epsilon"] for row in rows} == {None}


def test_a_log_without_known_topics_has_sizes_and_no_purity() -> None:
    clicks = click_table([("a", "http://one", 1.0), ("a", "http://two", 1.0)])
    rows = [row for log in (ORIGINAL, SAME_QUERIES, AS_PRINTED) for row in cluster_rows(SMALL, log, clicks)]
    assert {(row["linked_sites"], row["purity"]) for row in rows if row["least_clicks"] == 0} == {(2, None)}
    assert "there is no purity, only sizes" in cluster_study.words({"clusters": rows}, SMALL)
    assert cluster_study.pictures({"clusters": rows})["clusters.png"].startswith(b"\x89PNG")


def test_what_was_found_names_the_papers_purity_and_what_stray_clicks_do() -> None:
    site, other = topics()[0].sites[0], topics()[1].sites[0]
    clicks = click_table([("a", site, 5.0), ("a", other, 5.0)])
    rows = [row for log in (ORIGINAL, SAME_QUERIES, NO_STRAYS, AS_PRINTED) for row in cluster_rows(SMALL, log, clicks)]
    told = cluster_study.words({"clusters": rows}, SMALL)
    assert "original 2 sites in 1 clusters, 0.500 pure" in told
    assert "0.76 on 59 sites in 10 clusters" in told and "of another topic 0.500" in told


def test_a_release_without_a_table_of_clicks_is_no_row(work: StudyWork) -> None:
    assert not has_clicks({"queries": pa.table({"query": ["a"], "users": [1]})})
    assert measure_variant(work, "crowd", "sound") == {"clusters": []}


def test_a_month_without_clicks_is_refused_in_one_line(work: StudyWork, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = click_table([("a", "u", 1.0)]).slice(0, 0)
    monkeypatch.setattr(comparison, "original_clicks", lambda at: nothing)
    with pytest.raises(QlogError, match="has no clicks"):
        measure_original(work)


def test_a_log_that_changed_while_the_study_ran_is_not_mixed_with_the_one_before(work: StudyWork) -> None:
    stale = StudyWork(work.warehouse, work.engine, work.policy, SMALL, MONTH, reads={"raw_log": "another"})
    with pytest.raises(QlogError, match="changed while the study ran"):
        measure_variant(stale, "safelog", "sound")


@pytest.mark.slow
def test_the_true_clicks_of_released_queries_stand_beside_the_noisy_ones(work: StudyWork) -> None:
    original = measure_original(work)["clusters"]
    rows = measure_paper(work)["clusters"]
    assert {row["log"] for row in rows} == {SAME_QUERIES, NO_STRAYS, AS_PRINTED}
    plain = {row["log"]: row for row in rows if row["most_sites"] is None and row["least_clicks"] == 0}
    assert 0 < plain[NO_STRAYS]["sites"] < plain[SAME_QUERIES]["sites"] < original[0]["sites"]
    assert plain[AS_PRINTED]["claimed_epsilon"] > 0 and plain[AS_PRINTED]["epsilon"] is None
    assert plain[NO_STRAYS]["purity"] > plain[SAME_QUERIES]["purity"]


@pytest.mark.study
def test_the_command_answers_the_study_and_no_file_of_it_names_a_site_or_a_query(home: Path) -> None:
    made = ("--world", "3", "--first", "2006-03", "--last", "2006-03")
    assert qlog(home, "synth", 60_000, *made).code == 0
    before = qlog(home, "ledger", "--json").json
    facts = qlog(home, "study", "safelog-clusters", "--month", "2006-03", "--set", "threshold=40", "--json").json
    folder = Path(facts["path"])
    with (folder / "clusters.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert {ORIGINAL, SAME_QUERIES, NO_STRAYS, AS_PRINTED, "safelog sound", "safelog modern"} <= {
        row["log"] for row in rows
    }
    (original,) = (
        row for row in rows if row["log"] == ORIGINAL and row["least_clicks"] == "10" and not row["most_sites"]
    )
    assert 0.6 < float(original["linked_purity"]) < 0.95
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.suffix in {".csv", ".json", ".md"})
    assert b".example" not in written and b"jaguar" not in written
    assert (folder / "clusters.png").read_bytes().startswith(b"\x89PNG")
    assert qlog(home, "ledger", "--json").json == before, "a study is never charged"


def test_the_register_finds_the_study_by_its_folder() -> None:
    assert study("safelog-clusters").asset == "study_safelog_clusters"
