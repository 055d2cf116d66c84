"""Asked before any work: what a request would get is what the door then gives, told from ledger, policy and files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import MARCH, charges, warehouse_at
from support.instances import AOL_HEADER, edit_policy

from qlog_assets.door.asking import ask
from qlog_assets.errors import RefusedError
from qlog_assets.ledger import BudgetError, Charge, Ledger, LiveReleaseError, MissingLedgerError, WithdrawnError
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.policy import Policy


def asked(home: Path, again: str | None = None, name: str = "safelog", **settings: str) -> Charge | None:
    warehouse = warehouse_at(home)
    policy = Policy.load(home / "policy.toml").with_run_changes({f"{name}.{key}": to for key, to in settings.items()})
    try:
        ledger = Ledger.read(warehouse.ledger_url)
    except MissingLedgerError:
        ledger = None
    return ask(warehouse, policy, ledger, mechanism(name), MARCH, again)


def test_a_month_without_a_release_needs_work(ingested: Path) -> None:
    assert asked(ingested) is None


def test_a_month_without_rows_is_named(ingested: Path) -> None:
    edit_policy(ingested, top='first = "2006-01"')
    answer = qlog(ingested, "release", "safelog", "--month", "2006-01")
    assert answer.refusal.startswith("no rows of 2006-01 were ingested")


@pytest.mark.parametrize("mechanism", ["safelog", "zealous"])
def test_under_zcdp_too_a_first_release_over_the_whole_budget_is_refused_with_the_choices(
    ingested: Path, mechanism: str
) -> None:
    # Few items: zCDP prices the noise of `sound` by its variance, and a thousand items at ε = 20 cost little of it.
    sound = 'variant = "sound"\nitems_per_user = 10\nepsilon = 20'
    edit_policy(ingested, budget='epsilon = "0.5"\naccountant = "zcdp"', zealous=sound)
    with pytest.raises(BudgetError, match="nothing is spent yet") as refusal:
        asked(ingested, name=mechanism)
    said, in_run = str(refusal.value), refusal.value.in_run
    assert f"Choices: (1) the whole budget buys {mechanism} at ε = " in said and said.count("(2) raise [budget]") == 1
    assert "--set" not in in_run and f"config: {{{mechanism}: " in in_run
    settings = dict(each.split("=", 1) for each in re.findall(r"--set (\S+)", said))
    assert settings and asked(ingested, name=mechanism, **settings) is None, "what is offered fits"


def test_a_first_release_over_the_whole_budget_is_refused(ingested: Path) -> None:
    edit_policy(ingested, budget='epsilon = "1"')
    with pytest.raises(BudgetError, match="nothing is spent yet") as refusal:
        asked(ingested)
    said, in_run = str(refusal.value), refusal.value.in_run
    assert "(2) raise [budget] in the policy file" in said and "(2) raise [budget] in the policy file" in in_run
    assert "--set" not in in_run and "config: {safelog: " in in_run
    settings = dict(each.split("=", 1) for each in re.findall(r"--set (\S+)", said))
    assert settings and asked(ingested, **settings) is None, "what is offered fits"
    epsilon, delta = re.findall(r'(?:epsilon|delta) = "(\S+)"', said)
    edit_policy(ingested, budget=f'epsilon = "{epsilon}"\ndelta = "{delta}"')
    assert asked(ingested) is None, "the budget that is offered holds what was asked"


def test_a_release_is_known_and_served_without_a_run(released: Path) -> None:
    (charge,) = charges(released)
    assert asked(released) == charge
    runs = sorted((released / "dagster" / "history").rglob("*"))
    answer = qlog(released, "release", "safelog", "--month", MARCH, "--json").json
    assert (answer["release_id"], answer["charged"]) == (charge.release_id, False)
    assert sorted((released / "dagster" / "history").rglob("*")) == runs


def test_other_parameters_are_refused(released: Path) -> None:
    with pytest.raises(LiveReleaseError, match=r"parameter threshold \(10, now 12\)"):
        asked(released, threshold="12")
    assert asked(released, again="a reason", threshold="12") is None


@pytest.mark.slow
def test_late_files_are_refused_and_files_of_other_months_are_not(released: Path, tmp_path: Path) -> None:
    (charge,) = charges(released)
    other, late = tmp_path / "april.txt", tmp_path / "late.txt"
    other.write_text(AOL_HEADER + "41\tnews\t2006-04-05 10:00:00\t\t\n", encoding="utf-8")
    late.write_text(AOL_HEADER + "41\tnews\t2006-03-05 10:00:00\t\t\n", encoding="utf-8")
    qlog(released, "ingest", other, "--format", "aol", "--json").json  # noqa: B018  it must succeed
    assert asked(released) == charge
    qlog(released, "ingest", late, "--format", "aol", "--json").json  # noqa: B018
    with pytest.raises(LiveReleaseError, match=r"input data \(files of the month\)"):
        asked(released)


def test_another_pool_is_refused(released: Path) -> None:
    (released / "pool.txt").write_text("weather\n", encoding="utf-8")
    with pytest.raises(LiveReleaseError, match=r"input data \(pool\)"):
        asked(released)


@pytest.mark.slow
def test_a_forgotten_month_is_served_as_long_as_nothing_else_is_asked(released: Path) -> None:
    (charge,) = charges(released)
    assert MARCH in qlog(released, "forget", "--before", "2006-04", "--json").json["months"]
    assert asked(released) == charge
    assert qlog(released, "release", "safelog", "--month", MARCH, "--json").json["charged"] is False
    with pytest.raises(LiveReleaseError):
        asked(released, threshold="12")


def test_a_withdrawn_release_is_refused_in_the_words_of_the_interface(released: Path) -> None:
    (charge,) = charges(released)
    qlog(released, "withdraw", charge.release_id, "--reason", "a name was in it", "--json").json  # noqa: B018
    with pytest.raises(WithdrawnError, match="--again REASON") as refusal:
        asked(released)
    assert isinstance(refusal.value, RefusedError) and "--again" not in refusal.value.in_run
    assert asked(released, again="without the name") is None


def test_where_what_lies_there_cannot_tell_the_work_does(released: Path) -> None:
    """A stage that a hand removed is made again by the run; the request is not refused for it."""
    for path in (released / "private" / "capped_log" / MARCH).glob("*/provenance.json"):
        path.unlink()
    assert asked(released) is None
    with pytest.raises(LiveReleaseError):
        asked(released, threshold="12")
