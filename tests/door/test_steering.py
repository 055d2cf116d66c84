"""A month is steered by the release of the month before: found once, pinned, and never by what was taken back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import APRIL, MARCH, door_at, latest_folder, warehouse_at
from support.instances import Prepared, copy_warehouse, edit_policy

from qlog_assets.door.inputs import DoorError
from qlog_assets.errors import RefusedError
from qlog_assets.ledger import Charge, Ledger, LedgerError
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.months import Month
from qlog_assets.pipeline.steering import find_steering
from qlog_assets.verify.steering import steering_findings

pytestmark = pytest.mark.slow

# Little noise, so that forty users have something to release; the test's budget is as large.
DATASET = "small"
LOUD = 'epsilon = 60\ndelta = "1e-3"\nkinds = "queries"'


@pytest.fixture(scope="module")
def both(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """March and April by one command; the tests that share it leave it as it is."""
    home = copy_warehouse(prepared("ingested"), tmp_path_factory.mktemp("steering") / "home")
    edit_policy(home, top="", zealous=LOUD, budget="epsilon = 1000\ndelta = 0.1")
    answers = qlog(home, "release", "zealous", "--month", MARCH, "--month", APRIL, "--json").json
    assert [answer["charged"] for answer in answers["releases"]] == [True, True]
    return home


def ids(home: Path) -> list[str]:
    return [charge.release_id for charge in Ledger.read(warehouse_at(home).ledger_url).charges()]


def manifest_of(home: Path, month: Month) -> dict[str, object]:
    path = latest_folder(home, "zealous", month) / "manifest.json"
    manifest: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return manifest


def pin_of(home: Path, number: int) -> str | None:
    return Ledger.read(warehouse_at(home).ledger_url).charges()[number].request.steered_by


def test_the_second_month_is_steered_by_the_first_in_ledger_manifest_and_datasheet(both: Path) -> None:
    march, april = Ledger.read(warehouse_at(both).ledger_url).charges()
    assert (march.request.steered_by, april.request.steered_by) == (None, march.release_id)
    assert april.inputs[f"steering:{march.release_id}"] == march.manifest_digest
    (named,) = [pool for pool in manifest_of(both, APRIL)["pools"] if pool["kind"] == "steering"]  # type: ignore[attr-defined]
    assert (named["name"], named["sha256"]) == (march.release_id, march.manifest_digest)
    assert manifest_of(both, MARCH)["pools"] == []
    page = (latest_folder(both, "zealous", APRIL) / "datasheet.html").read_text(encoding="utf-8")
    assert f"What the release {march.release_id} printed was public already" in page


def test_an_audit_says_that_the_right_release_steered(both: Path) -> None:
    report = qlog(both, "audit", "--json").json
    assert report["ok"] is True
    (april,) = [each for each in report["releases"] if APRIL in each["release_id"]]
    assert f"that {ids(both)[0]} was the one to steer it, by the ledger's order" in april["recomputed"]


def test_a_month_is_served_after_the_one_that_steered_it_was_withdrawn(both: Path, tmp_path: Path) -> None:
    home = copy_warehouse(both, tmp_path / "home")
    march, april = ids(home)
    assert qlog(home, "withdraw", march, "--reason", "a wrong file").success
    answer = qlog(home, "release", "zealous", "--month", APRIL, "--json").json
    assert (answer["charged"], answer["release_id"]) == (False, april)
    # Its public files can be made again from the draw, too.
    assert door_at(home).publish("zealous", APRIL).charge.release_id == april
    report = qlog(home, "audit", "--json").json
    assert report["ok"] is True
    assert f"{march}, which steered it, is withdrawn since" in report["releases"][1]["notes"]


def test_a_withdrawn_release_steers_no_new_draw(both: Path, tmp_path: Path) -> None:
    home = copy_warehouse(both, tmp_path / "home")
    assert qlog(home, "withdraw", ids(home)[0], "--reason", "a wrong file").success
    assert qlog(home, "release", "zealous", "--month", APRIL, "--again", "without it", "--json").json["charged"] is True
    assert pin_of(home, 2) is None
    assert qlog(home, "audit", "--json").json["ok"] is True


def test_a_second_draw_of_the_first_month_steers_what_comes_later_and_nothing_that_is_there(
    both: Path, tmp_path: Path
) -> None:
    home = copy_warehouse(both, tmp_path / "home")
    first, april = ids(home)
    assert qlog(home, "release", "zealous", "--month", MARCH, "--again", "late rows", "--json").json["charged"] is True
    served = qlog(home, "release", "zealous", "--month", APRIL, "--json").json
    assert (served["charged"], served["release_id"]) == (False, april)
    assert qlog(home, "release", "zealous", "--month", APRIL, "--again", "after it", "--json").json["charged"] is True
    again = ids(home)[2]
    assert (pin_of(home, 1), pin_of(home, 3)) == (first, again)
    repeated = qlog(home, "release", "zealous", "--month", APRIL, "--again", "after it", "--json").json
    assert repeated["charged"] is False
    assert qlog(home, "audit", "--json").json["ok"] is True


def test_a_month_waits_until_the_one_before_is_published(prepared: Prepared, tmp_path: Path) -> None:
    home = copy_warehouse(prepared("ingested"), tmp_path / "home")
    edit_policy(home, zealous=LOUD, budget="epsilon = 1000\ndelta = 0.1")
    assert qlog(home, "release", "zealous", "--month", MARCH).success
    door = door_at(home)
    drawn = door.draw("zealous", MARCH, again="drawn and not published").charge.release_id
    refusal = qlog(home, "release", "zealous", "--month", APRIL).refusal
    assert f"{drawn} is drawn" in refusal and f"release {MARCH} first" in refusal
    assert len(ids(home)) == 2
    assert qlog(home, "release", "zealous", "--month", MARCH, "--again", "drawn and not published").success
    assert qlog(home, "release", "zealous", "--month", APRIL).success
    assert pin_of(home, 2) == drawn


def test_a_reserved_draw_whose_steering_release_is_gone_is_refused_with_what_to_do(
    both: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = copy_warehouse(both, tmp_path / "home")
    door = door_at(home)

    def die(point: str) -> None:
        if point == "charge_reserved":
            raise KeyboardInterrupt

    monkeypatch.setattr("qlog_assets.door.door.on_point", die)
    with pytest.raises(KeyboardInterrupt):
        door.draw("zealous", APRIL, again="once more")
    monkeypatch.undo()
    march, _, reserved = ids(home)
    assert qlog(home, "withdraw", march, "--reason", "a wrong file").success
    with pytest.raises(DoorError, match=f"steered by {march}, and it is withdrawn.*abandon {reserved}"):
        door_at(home).draw("zealous", APRIL, again="once more")


def reserve(
    ledger: Ledger, like: Charge, reason: str, inputs: Mapping[str, str] | None = None, month: Month = APRIL
) -> Charge:
    """Charge for a request like another one's, straight at the ledger."""
    charge, _ = ledger.reserve(
        dataset=DATASET,
        month=month,
        mechanism="zealous",
        variant="modern",
        mechanism_version=1,
        parameters=like.parameters,
        inputs=like.inputs if inputs is None else inputs,
        epsilon=1,
        delta=0,
        again=reason,
        steerable=True,
    )
    return charge


def test_the_ledger_itself_refuses_a_charge_that_a_withdrawn_release_steers(both: Path, tmp_path: Path) -> None:
    """What was published when it was looked up may be withdrawn before the charge: the transaction looks again."""
    home = copy_warehouse(both, tmp_path / "home")
    ledger = Ledger.open(warehouse_at(home).ledger_url)
    march, april = ledger.charges()
    ledger.withdraw(march.release_id, "meanwhile")
    with pytest.raises(LedgerError, match=f"{march.release_id} can no longer steer {APRIL}: ask again"):
        reserve(ledger, april, "another")


def test_the_ledger_itself_refuses_a_charge_that_an_overtaken_release_steers(both: Path, tmp_path: Path) -> None:
    home = copy_warehouse(both, tmp_path / "home")
    assert qlog(home, "release", "zealous", "--month", MARCH, "--again", "newer", "--json").json["charged"] is True
    ledger = Ledger.open(warehouse_at(home).ledger_url)
    with pytest.raises(LedgerError, match=f"can no longer steer {APRIL}: ask again"):
        reserve(ledger, ledger.charges()[1], "another")


@pytest.mark.parametrize("march", ["reserved", "published"])
def test_the_ledger_itself_refuses_a_charge_that_nothing_steers_where_a_month_came_in_between(
    both: Path, tmp_path: Path, march: str
) -> None:
    """April was looked up while there was no March: whoever charged March meanwhile has to steer it."""
    home = copy_warehouse(both, tmp_path / "home")
    ledger = Ledger.open(warehouse_at(home).ledger_url)
    first, april = ledger.charges()
    unpinned = april.request.unpinned.inputs
    if march == "reserved":
        ledger.withdraw(first.release_id, "not there yet")
        assert reserve(ledger, april, "without March", unpinned).request.steered_by is None
        reserve(ledger, first, "meanwhile", first.inputs, month=MARCH)
    with pytest.raises(LedgerError, match=f"came in between, and has to steer {APRIL}: ask again"):
        reserve(ledger, april, "another", unpinned)


def test_a_reason_that_was_given_before_is_another_draw_where_the_request_is(both: Path, tmp_path: Path) -> None:
    """Operators write `late rows` more than once: the second time what steers is looked up anew."""
    home = copy_warehouse(both, tmp_path / "home")
    late = ("--again", "late rows", "--json")
    for month in (APRIL, MARCH):
        assert qlog(home, "release", "zealous", "--month", month, *late).json["charged"] is True
    changed = ("--month", APRIL, "--set", "epsilon=50", *late)
    assert qlog(home, "release", "zealous", *changed).json["charged"] is True
    assert (pin_of(home, 2), pin_of(home, 4)) == (ids(home)[0], ids(home)[3])
    assert qlog(home, "audit", "--json").json["ok"] is True
    # The same once more is the same draw.
    assert qlog(home, "release", "zealous", *changed).json["charged"] is False


def test_months_that_a_crash_left_half_done_are_asked_for_together_again(prepared: Prepared, tmp_path: Path) -> None:
    home = copy_warehouse(prepared("ingested"), tmp_path / "home")
    edit_policy(home, zealous=LOUD, budget="epsilon = 1000\ndelta = 0.1")
    assert qlog(home, "release", "zealous", "--month", MARCH).success
    reason = "killed before it was published"
    drawn = door_at(home).draw("zealous", MARCH, again=reason).charge.release_id
    months = ("--month", MARCH, "--month", APRIL, "--again", reason, "--json")
    answers = qlog(home, "release", "zealous", *months).json["releases"]
    assert answers[0]["release_id"] == drawn
    assert pin_of(home, 2) == drawn


def test_a_damaged_release_steers_nothing(both: Path, tmp_path: Path) -> None:
    home = copy_warehouse(both, tmp_path / "home")
    warehouse = warehouse_at(home)
    ledger = Ledger.open(warehouse.ledger_url)
    path = home / "released" / "zealous" / MARCH / ids(home)[0] / "queries.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(RefusedError, match=r"would steer 2006-04 and cannot: queries\.parquet is not the file"):
        find_steering(warehouse, ledger, ledger.charges()[1].request.unpinned, "another")


@pytest.mark.parametrize("wrong", ["nothing", "an older draw", "another digest", "two"])
def test_an_audit_finds_a_pin_that_is_not_the_one_the_ledgers_order_demands(
    both: Path, tmp_path: Path, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = copy_warehouse(both, tmp_path / "home")
    ledger = Ledger.open(warehouse_at(home).ledger_url)
    march, april = ledger.charges()
    pin = f"steering:{march.release_id}"
    forged = {
        "nothing": {name: digest for name, digest in april.inputs.items() if name != pin},
        "an older draw": dict(april.inputs),
        "another digest": {**april.inputs, pin: "0" * 64},
        "two": {**april.inputs, f"steering:{april.release_id}": "0" * 64},
    }[wrong]
    if wrong == "an older draw":
        assert qlog(home, "release", "zealous", "--month", MARCH, "--again", "newer", "--json").json["charged"] is True
    told = {
        "nothing": f"{march.release_id} had to steer it, and nothing did",
        "an older draw": f"{march.release_id} steered it, and {ids(home)[-1]} had to",
        "another digest": "published with another manifest than the one that is pinned",
        "two": "it names more than one release that steered it",
    }[wrong]
    # A ledger that did not look: whoever forges a charge writes past our own code.
    monkeypatch.setattr("qlog_assets.ledger.rules.refuse_taken_back", lambda state, request, steerable: None)
    charge = reserve(ledger, april, "forged", forged)
    zealous = mechanism("zealous")
    (finding,) = steering_findings(ledger, zealous, charge, zealous.parameters(**charge.parameters))
    assert told in finding


def test_another_method_is_steered_by_nothing(both: Path, tmp_path: Path) -> None:
    home = copy_warehouse(both, tmp_path / "home")
    settings = ("--set", "method=weighted_gaussian", "--again", "by one look")
    assert qlog(home, "release", "zealous", "--month", APRIL, *settings, "--json").json["charged"] is True
    assert pin_of(home, 2) is None
    assert qlog(home, "audit", "--json").json["ok"] is True
