"""The synthetic log: its format, its shape against AOL's marginals, its determinism, and its canaries, each alone."""

import hashlib
import subprocess
import sys
from collections import Counter
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path

import duckdb
import pytest

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.synthetic import SyntheticFacts, canaries, plant, public_queries, site_directory, write_log

HEADER = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL"
MILLION = 1_000_000


def read_rows(path: Path) -> list[list[str]]:
    header, *lines = path.read_text(encoding="ascii").removesuffix("\n").split("\n")
    assert header == HEADER
    return [line.split("\t") for line in lines]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SyntheticFacts:
    return write_log(tmp_path_factory.mktemp("small") / "log.txt", 30_000, seed=5)


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    path = tmp_path_factory.mktemp("million") / "log.txt"
    write_log(path, MILLION, seed=7)
    connection = duckdb.connect()
    connection.execute(
        """create table log as from read_csv(?, delim='\t', header=true, quote='', escape='', columns={
        'person': 'VARCHAR', 'query': 'VARCHAR', 'time': 'TIMESTAMP', 'rank': 'INTEGER', 'url': 'VARCHAR'})""",
        [str(path)],
    )
    path.unlink()
    return connection


def number(connection: duckdb.DuckDBPyConnection, query: str) -> float:
    row = connection.execute(query).fetchone()
    assert row is not None
    return float(row[0])


@pytest.mark.parametrize("rows", [1_000, 12_345, 100_001])
def test_log_has_exactly_the_rows_asked_for(tmp_path: Path, rows: int) -> None:
    facts = write_log(tmp_path / "log.txt", rows, seed=3)
    written = read_rows(facts.path)
    assert len(written) == facts.rows == rows
    assert len({row[0] for row in written}) == facts.users == round(rows * 657_426 / 36_389_567)
    assert sum(row[4] != "" for row in written) == facts.clicks
    assert len({(row[0], row[1], row[2]) for row in written if row[4]}) <= facts.searches
    assert not list(tmp_path.glob(".*"))


def test_same_seed_writes_the_same_bytes_and_another_seed_does_not(tmp_path: Path) -> None:
    one = write_log(tmp_path / "one.txt", 80_000, seed=11)
    same = write_log(tmp_path / "same.txt", 80_000, seed=11)
    other = write_log(tmp_path / "other.txt", 80_000, seed=12)
    assert digest(one.path) == digest(same.path) != digest(other.path)
    assert one.canaries == same.canaries != other.canaries


def test_a_seed_means_the_same_log_as_when_it_was_pinned(tmp_path: Path) -> None:
    """Whoever changes the generator changes every published figure measured on it: say so by pinning a new digest."""
    assert digest(write_log(tmp_path / "log.txt", 5_000, seed=1).path)[:16] == "4c7468777ea14ce8"


def test_rows_are_in_the_aol_format_sorted_by_user_and_time(small: SyntheticFacts) -> None:
    rows = read_rows(small.path)
    assert all(len(row) == 5 for row in rows)
    keys = [(int(user), datetime.strptime(time, "%Y-%m-%d %H:%M:%S")) for user, _, time, _, _ in rows]
    assert keys == sorted(keys)
    assert all((rank == "") == (url == "") for _, _, _, rank, url in rows)
    assert all(1 <= int(rank) <= 16 for _, _, _, rank, _ in rows if rank)
    assert all(query == query.strip() and "  " not in query and query for _, query, _, _, _ in rows)


@pytest.mark.parametrize(("first", "last"), [("2006-03", "2006-05"), ("2006-02", "2006-02"), ("2005-11", "2006-02")])
def test_times_stay_within_the_months_and_reach_all_of_them(tmp_path: Path, first: str, last: str) -> None:
    facts = write_log(tmp_path / "log.txt", 40_000, seed=2, first=first, last=last)
    months = {row[2][:7] for row in read_rows(facts.path)}
    assert min(months) == first and max(months) == last
    assert len(months) == {"2006-03": 3, "2006-02": 1, "2005-11": 4}[first]


def test_searches_follow_aols_conventions(small: SyntheticFacts) -> None:
    """Several clicks repeat the row with the same time; a next page repeats the query later and has no click."""
    rows = read_rows(small.path)
    kinds: Counter[str] = Counter()
    for before, row in pairwise(rows):
        if row[:2] != before[:2]:
            continue
        if row[2] == before[2]:
            assert before[4] and row[4], "a row with the same user, query and time is a further click"
            kinds["further click"] += 1
        elif not row[4]:
            kinds["next page or repeated search"] += 1
    assert kinds["further click"] > 0.1 * len(rows)
    assert kinds["next page or repeated search"] > 0.1 * len(rows)
    assert 0.001 < sum(row[1] == "-" for row in rows) / len(rows) < 0.01


def test_sessions_are_more_than_thirty_minutes_apart_and_hold_several_searches(small: SyntheticFacts) -> None:
    sessions = searches = 0
    silences = []
    for _, group in groupby(read_rows(small.path), key=lambda row: row[0]):
        rows = list(group)
        times = [datetime.fromisoformat(row[2]) for row in rows]
        gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
        sessions += 1 + sum(gap > 1800 for gap in gaps)
        searches += len({(row[1], row[2]) for row in rows})
        silences += gaps
    assert 2 < searches / sessions < 5
    # Nothing between the longest pause of a session and the silence that ends it: the cut is where it is meant to be.
    assert not any(1500 < gap <= 1800 for gap in silences)


def test_shape_at_a_million_rows_is_that_of_aol(million: duckdb.DuckDBPyConnection) -> None:
    """Fixed seed. Tolerances: users exact but for rounding, clicks 1 %, distinct queries 3 % of the fitted 0.346."""
    users = number(million, "select count(distinct person) / 1e6 from log")
    clicks = number(million, "select count(url) / 1e6 from log")
    distinct = number(million, "select count(distinct query) / 1e6 from log")
    assert users == pytest.approx(657_426 / 36_389_567, abs=1e-6)
    assert clicks == pytest.approx(19_442_629 / 36_389_567, rel=0.01)
    assert distinct == pytest.approx(0.346, rel=0.03)
    # More than AOL's share at 36 times the rows, as Heaps' law has it.
    assert distinct > 10_154_742 / 36_389_567


def test_users_and_queries_are_heavy_tailed_at_a_million_rows(million: duckdb.DuckDBPyConnection) -> None:
    million.execute("create or replace table searches as select distinct person, query, time from log")
    million.execute("create or replace table queries as select query, count(*) events from searches group by query")
    million.execute("create or replace table people as select person, count(*) events from log group by person")
    # New searches and next-page requests: all that differ in user, query or time.
    requests = (21_011_340 + 7_887_022) / 36_389_567
    assert number(million, "select count(*) / 1e6 from searches") == pytest.approx(requests, rel=0.01)
    # A tenth of the users make over half of the rows, and the median user a third of the mean.
    tenth = "select sum(events) / 1e6 from (from people order by events desc limit (select count(*) // 10 from people))"
    assert 0.5 < number(million, tenth) < 0.65
    assert 0.25 < number(million, "select median(events) / avg(events) from people") < 0.45
    # One query in a hundred is the same, most distinct queries are typed once, Zipf in between.
    assert 0.006 < number(million, "select max(events) / sum(events) from queries") < 0.014
    assert number(million, "select avg((events = 1)::int) from queries") > 0.6
    slope = """select regr_slope(ln(events), ln(place)) from (
        select events, row_number() over (order by events desc) place from queries) where place between 10 and 3000"""
    assert -1.1 < number(million, slope) < -0.6


def test_enough_people_share_the_head_for_a_private_release(million: duckdb.DuckDBPyConnection) -> None:
    shared = """select count(*) from (select query from log where month(time) = 4
        group by query having count(distinct person) >= 50)"""
    assert number(million, shared) > 150


def test_each_canary_is_typed_by_one_user_only_several_times_and_clicked(small: SyntheticFacts) -> None:
    rows = read_rows(small.path)
    planted = plant(30_000, 5)
    assert planted == list(small.canaries)
    assert [canary.query for canary in planted] == canaries(30_000, 5)
    assert {canary.kind for canary in planted} == {"email", "card", "phone", "ssn", "name"}
    for canary in planted:
        typed = [row for row in rows if row[1] == canary.query]
        assert len(typed) >= 4 and len({row[0] for row in typed}) == 1
        assert len({row[2][:7] for row in typed}) > 1, "typed in more than one month"
        assert {row[0] for row in rows if row[4] == canary.url} == {typed[0][0]}


def test_canaries_are_shaped_like_what_they_stand_for() -> None:
    for canary in plant(1_000_000, 9):
        digits = [int(letter) for letter in canary.query if letter.isdigit()]
        if canary.kind == "card":
            doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
            assert len(digits) == 16 and (doubled + sum(digits[-1::-2])) % 10 == 0
        elif canary.kind == "email":
            assert canary.query.count("@") == 1 and " " not in canary.query
        elif canary.kind in {"phone", "ssn"}:
            middle = 3 if canary.kind == "phone" else 2
            assert [len(part) for part in canary.query.split("-")] == [3, middle, 4]
        else:
            assert len(canary.query.split()) == 2 and not digits


def test_no_canary_is_in_a_public_list() -> None:
    pool, directory = set(public_queries()), set(site_directory())
    words = {word for query in pool for word in query.split()}
    for seed in range(50):
        for canary in plant(20_000, seed):
            assert canary.query not in pool and canary.url not in directory
            assert not set(canary.query.split()) & words


def test_as_many_canaries_as_asked_for_are_planted(tmp_path: Path) -> None:
    none = write_log(tmp_path / "none.txt", 2_000, seed=1, canaries=0)
    some = write_log(tmp_path / "some.txt", 2_000, seed=1, canaries=12)
    assert none.canaries == () and len(some.canaries) == 12
    assert len(read_rows(some.path)) == 2_000
    with pytest.raises(ParameterError, match="canaries"):
        write_log(tmp_path / "many.txt", 2_000, seed=1, canaries=1_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 999}, "1,000 to"),
        ({"rows": 10**9}, "1,000 to"),
        ({"seed": -1}, "seed"),
        ({"first": "2006-13"}, "written like"),
        ({"first": "march"}, "written like"),
        ({"first": "2006-06"}, "0 months"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_before_a_file_is_made(
    tmp_path: Path, arguments: dict[str, object], message: str
) -> None:
    request: dict[str, object] = {"rows": 1_000, "seed": 1, **arguments}
    with pytest.raises(ParameterError, match=message):
        write_log(tmp_path / "log.txt", **request)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_landing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("somebody's log")
    with pytest.raises(QlogError, match="never changed"):
        write_log(path, 1_000, seed=1)
    assert path.read_text() == "somebody's log"


def test_an_interrupted_log_leaves_nothing_behind(tmp_path: Path) -> None:
    def stop(_rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_log(tmp_path / "log.txt", 1_000, seed=1, progress=stop)
    assert not list(tmp_path.iterdir())


def test_progress_counts_up_to_all_rows(tmp_path: Path) -> None:
    told: list[int] = []
    write_log(tmp_path / "log.txt", 100_000, seed=1, progress=told.append)
    assert told == sorted(told) and told[-1] == 100_000 and len(told) > 2


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Peak memory of a fresh process, 800,000 rows against 200,000: a list of the rows would take 45 MB more."""
    program = (
        "import resource, sys; from pathlib import Path; from qlog_assets.synthetic import write_log;"
        "write_log(Path(sys.argv[1]), int(sys.argv[2]), 1);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = []
    for rows in (200_000, 800_000):
        command = [sys.executable, "-c", program, str(tmp_path / f"{rows}.txt"), str(rows)]
        peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    assert (peaks[1] - peaks[0]) * 1024 < 12 * 2**20
