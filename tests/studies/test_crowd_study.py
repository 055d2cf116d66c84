"""The study of CrowdLogging: counts as the mechanism's statements have them, thresholds as the paper's, nobody's id."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import qlog
from support.door import warehouse_at

from qlog_assets.crowd.jobs import COLUMNS
from qlog_assets.mechanisms.crowd.central_log import Counted, counts_of_searches
from qlog_assets.mechanisms.crowd.paper import Artifacts, differential_paper, frequency_threshold, limit_artifacts
from qlog_assets.mechanisms.crowd.parameters import LN_10
from qlog_assets.pipeline.cleaned_log import view_searches
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.sources.normalise import normalise_text, normalise_url
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.crowd import study as crowd_study
from qlog_assets.studies.crowd.comparison import Comparison, CrowdStudySettings
from qlog_assets.studies.crowd.counting import Mined, Sent, view_pilot, view_sessions, view_users
from qlog_assets.studies.crowd.policies import (
    DifferentialPolicy,
    Truth,
    differential_rows,
    frequency_rows,
    limits_by_threshold,
    released_above,
)
from qlog_assets.studies.crowd.printed import APPLICATIONS, PILOT, PILOT_INSTANCES
from qlog_assets.studies.study import StudyWork, Tables
from qlog_assets.synthetic import write_log

LIMITS = (1, 2, 3, 7, 50)
NOBODY = np.empty(0, np.int64)


def write_cleaned(path: Path, rows: list[tuple[str, str, datetime, int | None, str | None]]) -> Path:
    columns = zip(("user", "query", "time", "rank", "url"), zip(*rows, strict=True), strict=True)
    pq.write_table(pa.table({name: list(values) for name, values in columns}), path)
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cleaned log of one month of world 2."""
    folder = tmp_path_factory.mktemp("crowd")
    written = write_log(folder / "log.txt", 6_000, 1, "2006-03", "2006-03", world_version=2)
    rows = []
    for line in written.path.read_text(encoding="ascii").splitlines()[1:]:
        user, query, time, rank, url = line.split("\t")
        if normalise_text(query) != "-":
            moment = datetime.fromisoformat(time)
            rows.append((user, normalise_text(query), moment, int(rank or 0), normalise_url(url) or None))
    return write_cleaned(folder / "log.parquet", rows)


@pytest.fixture
def engine(home: Path) -> Iterator[Engine]:
    with Engine.open(warehouse_at(home)) as opened:
        yield opened


def comparison(**changes: Any) -> Comparison:
    return Comparison(cast(StudyWork, SimpleNamespace(settings=CrowdStudySettings(**changes))))


# Counting ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("application", APPLICATIONS)
def test_counts_under_every_limit_are_those_of_the_mechanisms_statements(
    engine: Engine, log: Path, application: Any
) -> None:
    view_users(engine, [log])
    mined = Mined(engine, application)
    kinds: tuple[Counted, ...] = ("users", "instances")
    found = {(kind, sent.limit): np.sort(sent.reports) for kind in kinds for sent in mined.sent(kind, LIMITS)}
    found |= {("users", None): np.sort(mined.held_by), ("instances", None): np.sort(mined.instances)}
    for (kind, limit), reports in found.items():
        counted = counts_of_searches(engine, application, limit, kind)
        assert counted.column_names == [*COLUMNS[application], "users"]
        assert reports.tolist() == np.sort(counted["users"].to_numpy()).tolist(), (kind, limit)


def test_counts_are_numbered_by_text_so_that_a_seed_means_one_draw(engine: Engine, log: Path) -> None:
    view_users(engine, [log])
    mined = Mined(engine, "queries")
    (sent,) = mined.sent("users", [2])
    texts = counts_of_searches(engine, "queries", None, "instances")
    assert mined.instances.tolist() == texts["users"].to_pylist()
    limited = counts_of_searches(engine, "queries", 2)
    assert texts["query"].to_numpy()[sent.artifacts].tolist() == limited["query"].to_pylist()
    assert sent.reports.tolist() == limited["users"].to_pylist()


def test_the_planted_person_is_found_with_the_published_numbers(engine: Engine, log: Path) -> None:
    view_users(engine, [log])
    people = {application: Mined(engine, application).person for application in APPLICATIONS}
    numbers = {name: (person.instances, len(person.artifacts)) for name, person in people.items()}
    # One of her 239 queries is typed right after itself: no client sends that twice.
    assert numbers == {"queries": (238, 224), "reformulations": (237, 237), "clicks": (136, 132)}


def rows_at(*minutes: int, user: str = "1") -> list[tuple[str, str, datetime, int | None, str | None]]:
    return [
        (user, f"q{minute}", datetime(2006, 3, 1 + minute // 1440, minute % 1440 // 60, minute % 60), None, None)
        for minute in minutes
    ]


def test_a_session_is_a_user_where_a_log_has_no_users(engine: Engine, tmp_path: Path) -> None:
    rows = [*rows_at(0, 30, 61, 100), *rows_at(5, user="2")]
    view_sessions(engine, [write_cleaned(tmp_path / "log.parquet", rows)])
    found = engine.connection.execute(
        'SELECT "user", list(query ORDER BY query) FROM cleaned_log GROUP BY 1'
    ).fetchall()
    assert sorted(queries for _, queries in found) == [["q0", "q30"], ["q100"], ["q5"], ["q61"]]
    assert Mined(engine, "queries").users == 4


def test_a_pilot_takes_whole_users_who_search_enough_and_the_same_each_time(engine: Engine, tmp_path: Path) -> None:
    rows = [row for user in range(40) for row in rows_at(*range(0, 50 * (user % 4 + 1), 50), user=str(user))]
    path = write_cleaned(tmp_path / "log.parquet", rows)

    def taken(users: int) -> dict[str, int]:
        view_pilot(engine, [path], users, least_queries=3)
        return dict(engine.connection.execute('SELECT "user", count(*) FROM cleaned_log GROUP BY 1').fetchall())

    few = taken(16)
    assert few == taken(16) and len(few) == 16 and min(few.values()) == 3
    more = taken(30)
    assert len(more) == 30 and set(few) < set(more) and sum(rows >= 3 for rows in more.values()) == 20


# Policies ------------------------------------------------------------------------------------------------------------


@given(
    values=st.lists(st.tuples(st.floats(-5, 30), st.integers(0, 100)), max_size=40),
    thresholds=st.lists(st.integers(1, 25), min_size=1, max_size=10, unique=True),
)
def test_one_pass_over_all_thresholds_sums_what_each_would(
    values: list[tuple[float, int]], thresholds: list[int]
) -> None:
    tested, weights = np.array([value for value, _ in values]), np.array([weight for _, weight in values], np.int64)
    (sums,) = released_above(tested, sorted(thresholds), [weights])
    assert sums.tolist() == [int(weights[tested >= threshold].sum()) for threshold in sorted(thresholds)]


@pytest.fixture(scope="module")
def rows() -> Artifacts:
    rng = np.random.default_rng(3)
    artifacts = np.minimum(rng.zipf(1.6, 3_000) - 1, 199)
    # Every artifact occurs, so that numbers are places among those of the log.
    artifacts[:200] = np.arange(200)
    return Artifacts(rng.integers(0, 120, 3_000), artifacts, artifacts, 200)


def counted(rows: Artifacts) -> tuple[np.ndarray, np.ndarray]:
    users = np.bincount(np.unique(np.stack([rows.users, rows.artifacts], axis=1), axis=0)[:, 1], minlength=rows.domain)
    return np.bincount(rows.artifacts, minlength=rows.domain), users


def test_frequency_thresholds_release_what_the_papers_functions_do(rows: Artifacts) -> None:
    instances, users = counted(rows)
    found = list(frequency_rows(Truth(instances, NOBODY), {"ft_a": instances, "ft_u": users}, range(1, 30)))
    assert len(found) == 2 * 29
    for row in found:
        printed = frequency_threshold(rows, row["k"], "events" if row["policy"] == "ft_a" else "users")
        assert (row["released"], row["impressions"]) == (len(printed.artifacts), int(printed.counts.sum()))
        assert row["sent_impressions"] == row["impressions"] and row["of_person"] is None


@pytest.mark.parametrize("policy", ["dp_a", "dp_u"])
def test_differential_policies_release_what_the_papers_functions_do_with_the_same_noise(
    rows: Artifacts, policy: DifferentialPolicy
) -> None:
    kind: Any = "events" if policy == "dp_a" else "users"
    instances, _ = counted(rows)
    epsilon, delta, thresholds = LN_10, Fraction(1, 121), range(1, 60)
    limits = limits_by_threshold(policy, thresholds, epsilon, delta)
    assert sorted(k for ks in limits.values() for k in ks) == list(thresholds) and 0 in limits and len(limits) > 5
    sent = []
    for limit in filter(None, limits):
        reports = counted(limit_artifacts(rows, limit, "events"))[kind == "users"]
        sent.append(Sent(limit, np.flatnonzero(reports), reports[reports > 0]))
    found = list(differential_rows(Truth(instances, NOBODY), policy, limits, sent, epsilon, seed=7))
    assert {row["k"] for row in found} == set(thresholds)
    for row in found:
        if row["d"] == 0:
            assert row["released"] == 0
            continue
        scale = row["d"] / float(epsilon)
        printed = differential_paper(SeededRandom(7), rows, row["d"], row["k"], scale, scale, kind)
        assert row["released"] == len(printed.artifacts)
        assert row["impressions"] == int(instances[printed.artifacts].sum())


def test_the_limit_is_the_largest_that_a_threshold_allows() -> None:
    """Specification 5.2, AOL: k = 7 allows one artifact, 100 allows 13 of DP_a and 14 of DP_u."""
    for policy, expected in (("dp_a", 13), ("dp_u", 14)):
        name = cast(DifferentialPolicy, policy)
        assert limits_by_threshold(name, [6, 7, 100], LN_10, Fraction(1, 657_427)) == {0: [6], 1: [7], expected: [100]}


# The steps -----------------------------------------------------------------------------------------------------------


def sweep(engine: Engine, log: Path, largest: int, **changes: Any) -> list[dict[str, Any]]:
    view_users(engine, [log])
    return comparison(**changes)._sweep(Mined(engine, "queries"), range(1, largest + 1))


def test_every_policy_has_a_row_for_every_k_and_releases_less_as_frequency_thresholds_grow(
    engine: Engine, log: Path
) -> None:
    rows = sweep(engine, log, 20)
    for policy in ("ft_a", "ft_u", "dp_a", "dp_u"):
        line = sorted((row for row in rows if row["policy"] == policy), key=lambda row: row["k"])
        assert [row["k"] for row in line] == list(range(1, 21))
        if policy.startswith("ft"):
            shares = [row["impressions_share"] for row in line]
            assert shares[0] == 1 and shares == sorted(shares, reverse=True)
    limits = {row["d"] for row in rows if row["policy"] == "dp_u" and row["d"]}
    for policy in ("sound", "gaussian"):
        assert {row["d"] for row in rows if row["policy"] == policy} == limits
    assert all(0 <= row["sent_impressions_share"] <= row["impressions_share"] <= 1 for row in rows)
    assert all(row["sent_impressions_share"] <= row.get("sent_share", 1) for row in rows)


def test_the_same_seed_draws_the_same_and_another_does_not(engine: Engine, log: Path) -> None:
    # At the paper's ε, a hundred users release nothing by any draw.
    one, same, other = (sweep(engine, log, 6, seed=seed, epsilon=5) for seed in (1, 1, 2))
    assert one == same != other


def test_a_log_without_the_planted_person_has_no_figure_5(engine: Engine, tmp_path: Path) -> None:
    view_users(engine, [write_cleaned(tmp_path / "log.parquet", rows_at(0, 40, 90))])
    mined = Mined(engine, "queries")
    assert len(mined.person.artifacts) == 0
    rows = comparison()._sweep(mined, range(1, 3))
    tables: Tables = {"figure_3": rows, "figure_4": rows, "figure_5": []}
    assert "no planted person" in crowd_study.words(tables, CrowdStudySettings(largest_threshold=2))
    assert set(crowd_study.pictures(tables)) == {"figure_3.png", "figure_4.png"}


def test_what_the_paper_prints_adds_up() -> None:
    for application, table in PILOT.items():
        assert [row[0] for row in table] == sorted((row[0] for row in table), reverse=True)
        assert table[0][0] == table[0][1] < PILOT_INSTANCES[application]


def test_a_view_of_a_log_leaves_the_next_one_alone(engine: Engine, log: Path) -> None:
    """Steps share an engine: sessions, a pilot and users again, in any order."""
    view_users(engine, [log])
    first = Mined(engine, "queries")
    view_sessions(engine, [log])
    assert Mined(engine, "queries").users > first.users
    view_pilot(engine, [log], 16, 10)
    assert Mined(engine, "queries").users == 16
    view_users(engine, [log])
    view_searches(engine)
    assert Mined(engine, "queries").instances.tolist() == first.instances.tolist()


@pytest.mark.study
def test_the_command_answers_the_study_and_no_file_of_it_names_anybody(home: Path) -> None:
    made = ("--world", "2", "--first", "2006-03", "--last", "2006-03")
    assert qlog(home, "synth", 30_000, *made).code == 0
    before = qlog(home, "ledger", "--json").json
    command = ("study", "crowd", "--month", "2006-03", "--set", "pilot_queries=50", "--json")
    facts = qlog(home, *command).json
    assert set(facts["tables"]) == {"figure_3", "figure_4", "figure_5", "applications", "person", "pilot"}
    assert len(facts["tables"]["pilot"]) == 15
    assert facts["tables"]["person"][0] == {"application": "queries", "instances": 238, "distinct": 224}
    folder = Path(facts["path"])
    assert {"figure_3.png", "figure_4.png", "figure_5.png", "figure_3.csv", "study.md"} <= {
        path.name for path in folder.iterdir()
    }
    with (folder / "figure_3.csv").open(encoding="utf-8") as stream:
        assert {row["policy"] for row in csv.DictReader(stream)} >= {"ft_a", "ft_u", "dp_a", "dp_u"}
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.suffix in {".csv", ".json", ".md"})
    (landed,) = (home / "landing" / "aol").glob("*world2.txt")
    lines = [line.split(b"\t") for line in landed.read_bytes().splitlines()[1:]]
    assert not {line[0] for line in lines} & set(re.findall(rb"(?<![\d.])\d{8}(?!\d)", written))
    told = written.lower()
    assert not any(b" ".join(line[1].lower().split()) in told for line in lines if b" " in line[1].strip())
    assert "all of them: figure_3.csv" in qlog(home, *command[:-1]).success
    assert qlog(home, "ledger", "--json").json == before, "a study is never charged"
