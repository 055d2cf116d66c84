"""What is printed of one person: with them and without them, under attackers, and nothing of a real one in the open."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.door import MARCH, warehouse_at
from support.instances import PRIVATE_QUERY, make_home, small_log

from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.register import mechanism, simulated
from qlog_assets.pipeline.batches import ingest_batch
from qlog_assets.pipeline.landing import batch_of
from qlog_assets.pipeline.raw_log import assemble_raw_log
from qlog_assets.policy import Policy
from qlog_assets.settings import Settings
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.scratch import PREFIX
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.parts import Part, change_people
from qlog_assets.studies.person import study
from qlog_assets.studies.person.attackers import be_right, count_told_apart, is_exact
from qlog_assets.studies.person.examination import PersonSettings, by_chance, describe, drawable, examine, variants
from qlog_assets.studies.person.person import find_person
from qlog_assets.studies.person.seen import longest_linked
from qlog_assets.studies.person.who import (
    HANDED_OVER,
    digest_of_person,
    find_users,
    handed_over,
    handing_over,
    read_user_file,
)
from qlog_assets.studies.study import StudyWork
from qlog_assets.synthetic import PERSONS_OWN_QUERY, write_log
from qlog_assets.synthetic.person import DISTINCT_CLICKS, DISTINCT_QUERIES, PRIVATE

ROWS = 4_000


def make_world(folder: Path, world_version: int) -> Warehouse:
    warehouse = Warehouse(Settings(home=folder)).make()
    path = warehouse.landing / "aol" / "log.txt"
    path.parent.mkdir()
    write_log(path, ROWS, 1, MARCH, MARCH, world_version=world_version)
    with Engine.open(warehouse) as engine:
        ingest_batch(warehouse, engine, batch_of(path, "aol"), Policy().admission)
    assemble_raw_log(warehouse, MARCH)
    return warehouse


def work_on(warehouse: Warehouse, engine: Engine, **settings: Any) -> StudyWork:
    reads = {"raw_log": warehouse.current("raw_log", MARCH).provenance.shape}
    policy = Policy().with_changes(first=MARCH, last=MARCH)
    return StudyWork(warehouse, engine, policy, PersonSettings(**{"draws": 2, **settings}), MARCH, reads=reads)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudyWork]:
    """World 2, which has a planted person."""
    warehouse = make_world(tmp_path_factory.mktemp("person"), 2)
    with Engine.open(warehouse) as engine:
        yield work_on(warehouse, engine)


def raw_rows(part: Part) -> pa.Table:
    return pq.read_table(part.warehouse.current("raw_log", part.month).files("log"))


# The person and the logs that are compared ---------------------------------------------------------------------------


def test_the_planted_person_is_found_with_the_published_numbers(work: StudyWork) -> None:
    (row,) = describe(work)["person"]
    assert row["in_the_log"] and row["queries"] == DISTINCT_QUERIES and row["clicks"] == DISTINCT_CLICKS
    assert row["queries_of_nobody_else"] >= PRIVATE
    person = find_person(work)
    assert person is not None and person.guessed in person.own and PERSONS_OWN_QUERY in person.own
    assert 0 < person.session_rows.num_rows < person.all_rows.num_rows
    assert PERSONS_OWN_QUERY not in repr(person) and person.users["user"][0].as_py() not in repr(person)


def test_nobody_is_planted_in_world_1(tmp_path: Path) -> None:
    warehouse = make_world(tmp_path, 1)
    with Engine.open(warehouse) as engine, pytest.raises(QlogError, match="nobody is planted in 2006-03"):
        find_person(work_on(warehouse, engine))


def test_the_log_without_a_person_lacks_their_rows_alone_and_accounts_repeat_them(work: StudyWork) -> None:
    person = find_person(work)
    assert person is not None
    whole = pq.read_table(work.warehouse.current("raw_log", MARCH).files("log"))
    with change_people(work, person.users) as without, change_people(work, None, person.session_rows, 3) as attacked:
        rest, more = raw_rows(without), raw_rows(attacked)
        homes = [part.warehouse.home for part in (without, attacked)]
        stated = [str(part.warehouse.current("raw_log", MARCH).provenance) for part in (without, attacked)]
    theirs = pc.is_in(whole["user"], person.users["user"].combine_chunks())
    order = [(name, "ascending") for name in whole.column_names]
    assert rest.sort_by(order).to_pylist() == whole.filter(pc.invert(theirs)).sort_by(order).to_pylist()
    assert more.num_rows == whole.num_rows + 3 * person.session_rows.num_rows
    assert len(pc.unique(more["user"])) == len(pc.unique(whole["user"])) + 3
    assert not any(home.exists() for home in homes)
    assert all(person.users["user"][0].as_py() not in text and person.guessed not in text for text in stated)


# What is said --------------------------------------------------------------------------------------------------------


def test_baselines_are_certain_to_accounts_and_sound_systems_keep_within_their_bound(work: StudyWork) -> None:
    tables = examine(work, mechanism("baselines"))
    accounts = [row for row in tables["attackers"] if row["attacker"] == "k - 1 accounts"]
    assert {row["variant"] for row in accounts} == set(mechanism("baselines").variants)
    assert all((row["with"], row["without"], row["right"]) == (1, 0, 1) for row in accounts)
    assert all(row["promise"] == "none" and not row["may_be_published"] for row in tables["systems"])
    # Whoever repeats everything of hers links all of it, once she is the k-th.
    (printed,) = [row for row in tables["printed"] if row["variant"] == "users" and row["kind"] == "queries"]
    assert printed["theirs"] == DISTINCT_QUERIES and printed["with"] >= printed["without"]
    assert len(tables["items"]) == sum(
        len({(row["kind"], row["item"]) for row in tables["items"] if row["variant"] == variant})
        for variant in mechanism("baselines").variants
    )


@pytest.mark.slow
def test_a_system_with_a_guarantee_says_what_is_allowed_and_one_without_proof_that_its_claim_fails(
    work: StudyWork,
) -> None:
    tables = examine(work, mechanism("crowd"))
    by_variant = {row["variant"]: row for row in tables["systems"]}
    allowed = by_variant["sound"]["allowed"]
    assert allowed == pytest.approx(math.exp(2) / (1 + math.exp(2)), rel=1e-5)
    assert by_variant["dp_u"]["promise"].endswith("the claim fails") and by_variant["dp_u"]["allowed"] is None
    assert "because G1" in by_variant["dp_u"]["sentence"] and by_variant["ft_u"]["promise"] == "none"
    attackers = {row["attacker"] for row in tables["attackers"]}
    assert attackers == {"k - 1 accounts", "dictionary", "re-runs", "linking"}
    assert "drawn with the person and without" in study.words(tables, PersonSettings())


@pytest.mark.slow
@pytest.mark.parametrize("each", drawable(), ids=lambda each: each.name)
def test_a_variant_that_claims_nothing_draws_no_noise(work: StudyWork, each: Any) -> None:
    """What is drawn once, because every draw is the same."""
    with change_people(work) as part:
        for variant in variants(each):
            with Engine.open(part.warehouse) as engine:
                prepared = part.prepare(engine, each.name, variant)
                if is_exact(prepared.guarantee):
                    one, other = (prepared.draw(seed).tables for seed in (1, 2))
                    assert all(one[name].equals(other[name]) for name in one), variant


def test_every_mechanism_that_can_be_simulated_is_examined() -> None:
    assert [each.name for each in drawable()] == [each.name for each in simulated()]


def test_prepared_draws_are_the_draws_of_a_simulation(work: StudyWork) -> None:
    with change_people(work) as part, Engine.open(part.warehouse) as engine:
        prepared = part.prepare(engine, "crowd", "dp_u")
        drawn = [prepared.draw(seed).tables for seed in (5, 6)]
        again = [part.draw("crowd", "dp_u", seed).tables for seed in (5, 6)]
    assert all(one[name].equals(other[name]) for one, other in zip(drawn, again, strict=True) for name in one)


def test_whoever_sees_nothing_is_right_half_of_the_time_and_averaging_makes_certain() -> None:
    assert be_right(0.3, 0.3) == 0.5 and be_right(1, 0) == be_right(0, 1) == 1
    assert count_told_apart(0, 1) == 1
    assert 0.5 < count_told_apart(10, 1) < count_told_apart(10, 25) < 0.6 < count_told_apart(2.5, 25) < 0.85
    assert by_chance(0, 10) == 0 and 0.43 < by_chance(1, 10) < 0.44 and by_chance(20, 10) < by_chance(200, 10) <= 1


def test_what_stands_together_is_counted_by_row_and_by_printed_user() -> None:
    theirs = pa.array(["a", "b", "c"])
    lists = pa.array([["a", "x"], ["a", "b", "a"], ["c"]], pa.list_(pa.string()))
    assert longest_linked({"histories": pa.table({"history": lists, "printed": [1, 1, 1]})}, theirs) == 2
    log = pa.table({"user": [1, 1, 1, 2], "query": ["a", "b", "c", "x"], "url": ["u"] * 4, "count": [1] * 4})
    assert longest_linked({"log": log}, theirs) == 3
    steps = pa.table({"query": ["a", "x"], "next_query": ["x", "x"], "users": [1, 1]})
    assert longest_linked({"transitions": steps, "words": pa.table({"keyword": ["a"], "users": [1]})}, theirs) == 1
    assert longest_linked({"transitions": steps.slice(0, 0)}, theirs) == 0


# A real person -------------------------------------------------------------------------------------------------------

REAL_ID = "84127635907"
REAL_QUERY = PRIVATE_QUERY.format(7)


@pytest.fixture
def searched(tmp_path: Path) -> Path:
    """A warehouse in which somebody with a striking id has something of their own."""
    home = make_home(tmp_path / "warehouse")
    log = tmp_path / "log.txt"
    log.write_text(small_log().replace("\n7\t", f"\n{REAL_ID}\t"), encoding="utf-8")
    qlog(home, "ingest", log, "--format", "aol").success  # noqa: B018
    return home


def user_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "asked.txt"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def files_with(folder: Path, *texts: str) -> list[Path]:
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and any(text.encode() in path.read_bytes() for text in texts)
    ]


@pytest.mark.study
def test_nothing_of_a_real_person_gets_to_the_terminal_or_to_dagster(searched: Path, tmp_path: Path) -> None:
    asked = user_file(tmp_path, f"{REAL_ID}\n")
    words = ("person", "--month", MARCH, "--user-file", asked, "--set", "draws=2", "--set", "baselines.k=10")
    answers = [qlog(searched, *words, *further) for further in ((), ("--json",))]
    facts = answers[1].json
    for answer in answers:
        assert REAL_ID not in answer.out + answer.err and "thoughts" not in answer.out + answer.err
    assert facts["tables"] == {} and "attackers" not in answers[0].out
    assert files_with(searched / "dagster", REAL_ID, REAL_QUERY) == []
    folder = Path(facts["path"])
    assert folder.parent == searched / "private" / "studies" and not (folder.parent / "person.user").exists()
    assert all(path.stat().st_mode & 0o077 == 0 for path in (folder, *folder.rglob("*")))
    assert "nothing of it anywhere else" in (folder / "study.md").read_text(encoding="utf-8")
    with (folder / "attackers.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["system"] for row in rows} == {each.name for each in simulated()}
    # Nobody's id is in the answer either; the texts are in one file.
    assert files_with(folder, REAL_ID) == []
    assert {path.name for path in files_with(folder, REAL_QUERY)} <= {"items.csv", *os.listdir(folder / "steps")}


@pytest.mark.study
def test_that_somebody_is_not_in_the_log_is_said_in_the_private_file_alone(searched: Path, tmp_path: Path) -> None:
    def ask(user: str) -> tuple[str, Path]:
        answer = qlog(
            searched, "person", "--month", MARCH, "--user-file", user_file(tmp_path, user), "--set", "draws=2"
        )
        place = Path(answer.success.split("private: ")[1].replace("\n", ""))
        return answer.success.replace(str(place), ""), place

    absent, folder = ask("somebody-else-1")
    assert "False" in (folder / "person.csv").read_text(encoding="utf-8")
    assert (folder / "attackers.csv").read_text(encoding="utf-8").strip() == ""
    assert "not" not in absent.replace("cannot", "").split("private:")[0].replace("does not cover", "")


@pytest.mark.slow
def test_an_id_that_others_may_read_is_refused_and_none_is_quoted(searched: Path, tmp_path: Path) -> None:
    refused = {
        user_file(tmp_path, REAL_ID, 0o644): "others may read it",
        tmp_path / "nothing.txt": "no such file",
    }
    for path, reason in refused.items():
        answer = qlog(searched, "person", "--month", MARCH, "--user-file", path)
        assert reason in answer.refusal and REAL_ID not in answer.err
    for text in ("", f"{REAL_ID}\n{REAL_ID}", "null", "7" * 2000):
        answer = qlog(searched, "person", "--month", MARCH, "--user-file", user_file(tmp_path, text))
        assert "that is no user id" in answer.refusal and REAL_ID not in answer.err
    assert "is no setting here" in qlog(searched, "person", "--month", MARCH, "--set", "who=named").err
    assert "nobody was named" in qlog(searched, "study", "person", "--month", MARCH, "--set", "who=named").err
    assert "nobody is planted" in qlog(searched, "person", "--month", MARCH).err


def test_a_folders_name_tells_nobody_whose_it_is(home: Path, tmp_path: Path) -> None:
    digests = []
    for place in (home, tmp_path / "another"):
        warehouse = warehouse_at(place).make()
        for _ in range(2):
            with handing_over(warehouse, f" {REAL_ID}.0\n"):
                digests.append(digest_of_person(warehouse))
        with pytest.raises(QlogError, match="nobody was named"):
            digest_of_person(warehouse)
        with Engine.open(warehouse) as engine, handing_over(warehouse, "somebody else"):
            settings, reads = PersonSettings(who="named"), {"person": digests[-1]}
            asked = StudyWork(warehouse, engine, Policy(), settings, MARCH, reads=reads)
            with pytest.raises(QlogError, match="another person was named in the meantime"):
                find_users(asked)
    assert digests[0] == digests[1] != digests[2] == digests[3]
    assert read_user_file(user_file(tmp_path, REAL_ID)) == REAL_ID
    assert replace(study.STUDY).withheld(PersonSettings(who="named")) == study.TABLES


def test_an_id_that_a_killed_run_left_is_nobodys_answer_and_is_removed(home: Path) -> None:
    warehouse = warehouse_at(home)
    left = warehouse.studies / f"{PREFIX}left"
    left.mkdir(mode=0o700)
    (left / HANDED_OVER).write_text("somebody else", encoding="utf-8")
    with handing_over(warehouse, "4417749"):
        assert handed_over(warehouse) == "4417749" and not left.exists()
    with pytest.raises(QlogError, match="nobody was named"):
        handed_over(warehouse)
