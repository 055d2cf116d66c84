"""CrowdLogging through the door from a sealed epoch: what is released, what is refused, and what an audit finds."""

from __future__ import annotations

import itertools
import json
import secrets
from datetime import datetime
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.crowd_epochs import job_of, reports_of, seal, table_of
from support.door import MARCH, door_at, latest_folder, warehouse_at
from support.instances import copy_warehouse, edit_policy, make_home
from support.tampering import vouch_for

from qlog_assets.crowd.jobs import Job, default_window, encode
from qlog_assets.crowd.keys import derive, hashed, random_place
from qlog_assets.crowd.messages import make_report
from qlog_assets.crowd.sealing import Issued, epoch_directory, write_sealed
from qlog_assets.crowd.tokens import Token
from qlog_assets.door.asking import ask
from qlog_assets.door.due import find_due_month
from qlog_assets.door.inputs import DoorError
from qlog_assets.door.receipt import Receipt
from qlog_assets.errors import QlogError, RefusedError
from qlog_assets.ledger import Book, Charge, Ledger
from qlog_assets.mechanisms.crowd.asked_jobs import ask_jobs
from qlog_assets.mechanisms.crowd.parameters import CrowdPolicy
from qlog_assets.mechanisms.crowd.stages import CROWD_ARTIFACTS
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.months import Month
from qlog_assets.pipeline.public_material import PublicLists
from qlog_assets.pipeline.stage import Work
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine
from qlog_assets.verify.audit import audit_warehouse
from qlog_assets.verify.retention import forget_before

ACCOUNTS = 40
SHARED = ("weather", "train times", "news")
# Little noise, so that forty people have something to release; the test's budget is as large.
LOUD = 'epsilon = 40\ndelta = "1e-3"\nartifacts_per_user = 4\njobs = "queries,reformulations"'


def sent_by_all(job: Job) -> dict[str, list[tuple[str, ...]]]:
    """Forty people who share three searches, and have one of their own; four share another."""
    sent: dict[str, list[tuple[str, ...]]] = {}
    for number in range(ACCOUNTS):
        own = "four of us" if number < 4 else f"the private thoughts of {number}"
        searches = [*SHARED, own]
        pairs = list(itertools.pairwise(searches))
        sent[f"account {number}"] = [(each,) for each in searches] if job.application == "queries" else pairs
    return sent


def jobs(**settings: object) -> list[Job]:
    return [job_of("queries", MARCH, **settings), job_of("reformulations", MARCH, **settings)]


def crowd_home(home: Path) -> Path:
    """A warehouse without a log, whose policy is as loud as the test's."""
    edit_policy(make_home(home), crowd=LOUD)
    return home


def make_artifacts(home: Path) -> None:
    """The stage, as the release's first step makes it."""
    warehouse, policy = warehouse_at(home), Policy.load(home / "policy.toml")
    with Engine.open(warehouse) as engine:
        book = Book(Ledger.open(warehouse.ledger_url), policy.dataset)
        CROWD_ARTIFACTS.make(Work(warehouse, engine, MARCH, policy.section("crowd"), policy.lists, book=book), {})


def release(home: Path) -> Receipt:
    """The stage, the draw and its publication, as three assets do them."""
    make_artifacts(home)
    door_at(home).draw("crowd", MARCH)
    return door_at(home).publish("crowd", MARCH)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with a release of March; the tests that share it leave it as it is."""
    home = crowd_home(tmp_path_factory.mktemp("crowd") / "home")
    seal(home, MARCH, {job: sent_by_all(job) for job in jobs()})
    release(home)
    return home


@pytest.fixture
def released(whole: Path, tmp_path: Path) -> Path:
    """The same to work on."""
    return copy_warehouse(whole, tmp_path / "home")


def test_a_release_holds_what_enough_people_sent_with_noisy_counts(whole: Path) -> None:
    folder = latest_folder(whole, "crowd")
    rows = pq.read_table(folder / "queries.parquet").to_pylist()
    # Forty users each; the noise has a deviation of 0.7: ten of them are beyond any chance.
    assert {row["query"] for row in rows} == set(SHARED)
    assert all(abs(row["users"] - ACCOUNTS) < 8 for row in rows)
    pairs = pq.read_table(folder / "reformulations.parquet").to_pylist()
    assert {(row["query"], row["next_query"]) for row in pairs} == {SHARED[:2], SHARED[1:]}
    (charge,) = door_at(whole).ledger.charges()
    assert (charge.variant, float(charge.epsilon), float(charge.delta)) == ("gaussian", 40, 0.001)


def test_manifest_and_datasheet_say_whom_people_trusted_and_what_was_done(whole: Path) -> None:
    folder = latest_folder(whole, "crowd")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["parameters"]["jobs"] == "queries,reformulations"
    assert {table["noise"]["min_users"] for table in manifest["tables"].values()} == {5}
    said = (folder / "datasheet.html").read_text(encoding="utf-8")
    assert "computed from reports that people" in said and "computed from a query log" not in said
    for words in ("does not hold towards the collector", "how often each encrypted tag came", "all relays of a person"):
        assert words in said
    assert "private thoughts" not in said and "four of us" not in said


def test_the_audit_follows_a_release_back_to_the_sealed_reports(whole: Path) -> None:
    (verdict,) = audit_warehouse(warehouse_at(whole), deep=PublicLists()).releases
    assert verdict.findings == [] and "crowd_artifacts 2006-03, from what was collected" in verdict.recomputed


@pytest.mark.slow
def test_the_command_releases_a_sealed_epoch_once_and_serves_it_again(tmp_path: Path) -> None:
    home = crowd_home(tmp_path / "home")
    seal(home, MARCH, {job: sent_by_all(job) for job in jobs()})
    for charged in (True, False):
        answer = qlog(home, "release", "crowd", "--month", MARCH, "--json").json
        assert answer["charged"] is charged and set(answer["rows"]) == {"queries", "reformulations"}
    report = qlog(home, "audit", "--json").json
    assert report["ok"] is True, report


def test_the_artifacts_of_four_people_are_not_even_in_the_private_table(whole: Path) -> None:
    partition = warehouse_at(whole).current("crowd_artifacts", MARCH)
    assert set(partition.provenance.tables) == {"queries", "reformulations", "tokens", "jobs", "dropped"}
    (path,) = partition.files("queries")
    assert pq.read_table(path).sort_by("query").to_pylist() == [
        {"query": query, "users": ACCOUNTS} for query in sorted(SHARED)
    ]
    (path,) = partition.files("tokens")
    assert pq.read_table(path).num_rows == 2 * ACCOUNTS * 4, "everybody pads to d"


def test_a_month_that_nobody_sealed_is_refused_with_what_to_do(tmp_path: Path) -> None:
    home = crowd_home(tmp_path / "home")
    refused = qlog(home, "release", "crowd", "--month", MARCH, "--json").refusal
    assert "no reports of 2006-03 were sealed: run qlog crowd seal --epoch 2006-03" in refused
    assert door_at(home).ledger.charges() == []


@pytest.mark.parametrize(
    ("settings", "shown", "said"),
    [
        ({"artifacts_per_user": 5}, "artifacts_per_user = 5", "[crowd] says 4"),
        ({"share_threshold": 6}, "share_threshold = 6", "[crowd] says 5"),
        ({"policy": "sound"}, "policy = sound", "[crowd] says gaussian"),
        ({"policy": "ft_u"}, "policy = ft_u", "[crowd] says gaussian"),
        ({"epsilon": "39.5"}, "epsilon = 39.5", "[crowd] says 40"),
        ({"delta": "1e-4"}, "delta = 1e-4", "[crowd] says 0.001"),
    ],
)
def test_reports_of_another_job_than_the_policys_are_refused(
    tmp_path: Path, settings: dict[str, object], shown: str, said: str
) -> None:
    home = crowd_home(tmp_path / "home")
    seal(home, MARCH, {job: {} for job in jobs(**settings)})
    with pytest.raises(QlogError) as refused:
        make_artifacts(home)
    assert f"of 2006-03 was shown to people with {shown}" in str(refused.value) and said in str(refused.value)


def test_an_epoch_with_fewer_jobs_than_the_policy_is_refused(tmp_path: Path) -> None:
    home = crowd_home(tmp_path / "home")
    seal(home, MARCH, {jobs()[0]: {}})
    with pytest.raises(QlogError, match=r"are of the jobs queries, and .crowd. says jobs = queries,reformulations"):
        make_artifacts(home)


def test_a_release_that_promises_more_than_people_were_shown_is_made(tmp_path: Path) -> None:
    home = crowd_home(tmp_path / "home")
    seal(home, MARCH, {job: sent_by_all(job) for job in jobs(epsilon="41", delta="0.01")})
    assert release(home).charge.state == "published"


def sealed_home(home: Path, **shown: str) -> Path:
    """A warehouse with a sealed March whose jobs showed people this ε and δ, and the stage made of it."""
    crowd_home(home)
    seal(home, MARCH, {job: sent_by_all(job) for job in jobs(**shown)})
    make_artifacts(home)
    return home


def asked(home: Path, again: str | None = None) -> None:
    """What every request is asked before any work is done for it."""
    door = door_at(home)
    ask(door.warehouse, door.policy, door.ledger, mechanism("crowd"), MARCH, again)


def drawn(home: Path, again: str | None = None) -> Charge:
    return door_at(home).draw("crowd", MARCH, again=again).charge


def draw(home: Path, again: str | None = None) -> Charge:
    asked(home, again)
    return drawn(home, again)


PROMISED = r"2006-03 were promised ε = 40 and δ = 0.001 .* ε = 40 and δ = 0.001 are spent"


def test_all_draws_of_a_month_together_stay_within_what_people_were_promised(tmp_path: Path) -> None:
    home = sealed_home(tmp_path / "home", epsilon="40", delta="0.001")
    first = draw(home)
    for asking in (asked, drawn):
        with pytest.raises(RefusedError, match=PROMISED) as refusal:
            asking(home, "another look")
        assert "\n" not in str(refusal.value)
    door_at(home).publish("crowd", MARCH)
    assert draw(home).release_id == first.release_id, "what was drawn is served"
    door_at(home).withdraw(first.release_id, "by mistake")
    with pytest.raises(RefusedError, match=PROMISED):  # what was seen cannot be unseen
        draw(home, again="without the mistake")
    assert len(door_at(home).ledger.charges()) == 1


def test_a_promise_that_holds_two_draws_allows_a_second_and_no_third(tmp_path: Path) -> None:
    home = sealed_home(tmp_path / "home", epsilon="80", delta="0.0025")
    draw(home)
    second = draw(home, again="another look")
    assert draw(home, again="another look").release_id == second.release_id
    with pytest.raises(RefusedError, match=r"promised ε = 80 and δ = 0\.0025"):
        draw(home, again="a third look")
    assert len(door_at(home).ledger.charges()) == 2


def test_a_draw_is_refused_where_nobody_knows_any_more_what_people_were_promised(released: Path) -> None:
    first, *_ = door_at(released).ledger.charges()
    (released / "crowd" / MARCH).rename(released / "elsewhere")
    with pytest.raises(QlogError, match="no reports of 2006-03 were sealed"):
        drawn(released, again="another look")
    assert drawn(released).release_id == first.release_id, "what was drawn is served"


def test_where_people_were_promised_no_number_the_budget_alone_decides(tmp_path: Path) -> None:
    home = sealed_home(tmp_path / "home")
    draw(home)
    assert draw(home, again="another look").state == "drawn"


@pytest.mark.parametrize("variant", ["gaussian", "sound"])
@pytest.mark.parametrize(("epsilon", "delta"), [("2", "1e-6"), ("0.7", "3e-7")])
def test_a_release_costs_no_more_than_the_jobs_of_its_policy_promise(variant: str, epsilon: str, delta: str) -> None:
    """Otherwise the first draw of a month would break the promise."""
    section = CrowdPolicy(variant=variant, epsilon=epsilon, delta=delta, jobs="queries,clicks,urls")
    shown = ask_jobs(section, MARCH, *default_window(MARCH))
    cost = mechanism("crowd").guarantee(variant, mechanism("crowd").plain_parameters(section)).proven
    assert cost is not None
    assert all(cost.epsilon <= Fraction(job.epsilon or 0) and cost.delta <= Fraction(job.delta or 0) for job in shown)


def test_an_epoch_that_nobody_took_part_in_is_released_empty(tmp_path: Path) -> None:
    home = crowd_home(tmp_path / "home")
    seal(home, MARCH, {job: {} for job in jobs()})
    assert release(home).rows == {"queries": 0, "reformulations": 0}


@pytest.mark.parametrize("people", [0, 1])
def test_a_job_that_nobody_took_part_in_is_released_empty_beside_one_with_reports(tmp_path: Path, people: int) -> None:
    """Whether there is a release must not tell whether one person took part in a job."""
    home, (queries, pairs) = crowd_home(tmp_path / "home"), jobs()
    some = {f"account {number}": [("weather", "news")] for number in range(people)}
    seal(home, MARCH, {queries: sent_by_all(queries), pairs: some})
    assert release(home).charge.state == "published"


def changed_table(home: Path, table: str, rows: pa.Table) -> None:
    """Put other rows into the private table, as code that is wrong would have written them."""
    partition = warehouse_at(home).current("crowd_artifacts", MARCH)
    (path,) = partition.files(table)
    pq.write_table(rows.cast(pq.read_schema(path)), path)
    vouch_for(home, partition, entered=True)


def rows_of(home: Path, table: str) -> pa.Table:
    (path,) = warehouse_at(home).current("crowd_artifacts", MARCH).files(table)
    return pq.read_table(path)


def refused_limit(home: Path) -> str:
    with pytest.raises(DoorError, match="crowd_artifacts breaks the contribution limits") as refused:
        door_at(home).draw("crowd", MARCH, again="with other rows")
    return str(refused.value)


def test_the_door_refuses_a_token_that_was_spent_twice(released: Path) -> None:
    tokens = rows_of(released, "tokens")
    changed_table(released, "tokens", pa.concat_tables([tokens.slice(1), tokens.slice(1, 1)]))
    assert "repeated_tokens" in refused_limit(released)


def test_the_door_refuses_more_reports_than_tokens_were_issued(released: Path) -> None:
    tokens = rows_of(released, "tokens")
    more = pa.table({"application": ["queries"], "serial": ["00" * 32]})
    changed_table(released, "tokens", pa.concat_tables([tokens, more]))
    assert "reports_beyond_tokens" in refused_limit(released)


@pytest.mark.parametrize(("users", "broken"), [(4, "least_users"), (200, "users_beyond_reports")])
def test_the_door_refuses_counts_that_no_reports_could_have_made(released: Path, users: int, broken: str) -> None:
    rows = rows_of(released, "queries").to_pylist()
    rows[0]["users"] = users
    changed_table(released, "queries", pa.Table.from_pylist(rows))
    assert broken in refused_limit(released)


@pytest.mark.parametrize("honest", [30, 29])
def test_accounts_that_spend_all_tokens_on_one_text_stop_no_release_whoever_else_takes_part(
    tmp_path: Path, honest: int
) -> None:
    """Ten accounts have one text counted forty times. With thirty others there are forty accounts, with one fewer there
    are not: a refusal that looked at that would tell of the one."""
    home, (queries, reformulations) = crowd_home(tmp_path / "home"), jobs()
    reports = reports_of(queries, {f"honest {number}": [("weather",)] for number in range(honest)})
    spam = encode(("spam",))
    material = derive(hashed(queries, spam), queries, spam)
    reports += [
        make_report(queries, spam, material, random_place(), Token(secrets.token_bytes(32), bytes(64)))
        for _ in range(10 * queries.artifacts_per_user)
    ]
    issued = {job.digest.hex(): Issued(honest + 10, job.artifacts_per_user) for job in (queries, reformulations)}
    target, table = epoch_directory(home, MARCH), table_of(reports)
    write_sealed(target, MARCH, (queries, reformulations), table, len(table), {}, issued, "2006-04-08T00:00:00Z")
    assert release(home).charge.state == "published"
    assert {row["query"]: row["users"] for row in rows_of(home, "queries").to_pylist()} == {
        "spam": 40,
        "weather": honest,
    }


def test_an_issuer_that_gave_out_more_tokens_than_the_limit_is_refused(tmp_path: Path) -> None:
    home = crowd_home(tmp_path / "home")
    seal(home, MARCH, {job: sent_by_all(job) for job in jobs()}, tokens_per_account=5)
    make_artifacts(home)
    with pytest.raises(DoorError, match=r"breaks the contribution limits .*tokens_per_account"):
        door_at(home).draw("crowd", MARCH)
    assert door_at(home).ledger.charges() == []


def test_what_was_shown_as_one_policy_is_not_drawn_by_another(released: Path) -> None:
    """A hand that asks the door directly: the stage was made for `gaussian`, and people were shown that."""
    with pytest.raises(QlogError, match="people were shown have another policy"):
        door_at(released).draw("crowd", MARCH, variant="sound", again="by the other noise")


@pytest.mark.parametrize("variant", ["ft_a", "ft_u", "dp_a", "dp_u"])
def test_a_policy_of_the_paper_never_passes_the_door(released: Path, variant: str) -> None:
    with pytest.raises(DoorError, match="for studies alone"):
        door_at(released).draw("crowd", MARCH, variant=variant, again="as printed")


def test_the_audit_says_when_the_sealed_reports_are_gone(released: Path) -> None:
    for path in (released / "crowd" / MARCH).iterdir():
        path.unlink()
    (released / "crowd" / MARCH).rmdir()
    (verdict,) = audit_warehouse(warehouse_at(released), deep=PublicLists()).releases
    assert "the sealed epoch of 2006-03 is no longer there as it was read" in verdict.notes
    assert verdict.findings == []


def test_a_month_is_due_once_its_reports_are_sealed_whatever_was_ingested(tmp_path: Path) -> None:
    home, asked, april = crowd_home(tmp_path / "home"), mechanism("crowd"), datetime(2006, 4, 9)
    policy = Policy.load(home / "policy.toml")
    assert find_due_month(warehouse_at(home), policy, None, asked, april).reason == (
        "nothing of 2006-03 was collected yet"
    )
    seal(home, MARCH, {job: {} for job in jobs()})
    assert find_due_month(warehouse_at(home), policy, None, asked, april).month == MARCH


def test_forgetting_a_released_month_takes_its_sealed_reports_along(released: Path) -> None:
    assert (released / "crowd" / MARCH / "reports.parquet").exists()
    policy = Policy.load(released / "policy.toml")
    told = forget_before(warehouse_at(released), policy, door_at(released).ledger, Month("2006-04"), False)
    assert told["months"] == [MARCH]
    assert not (released / "crowd" / MARCH).exists() and not list((released / "private").glob(f"*/{MARCH}"))
    report = audit_warehouse(warehouse_at(released))
    assert report.ok, report.all_findings


def test_sealed_reports_that_were_never_released_are_kept_and_said_to_be(tmp_path: Path) -> None:
    home = crowd_home(tmp_path / "home")
    seal(home, MARCH, {job: {} for job in jobs()})
    policy, ledger = Policy.load(home / "policy.toml"), door_at(home).ledger
    told = forget_before(warehouse_at(home), policy, ledger, Month("2006-04"), False)
    assert told["kept"] == {MARCH: "nothing of it was released"}
