"""Several processes at the same door: one draw, one charge, and nobody sees a difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.cli import context, qlog
from support.door import (
    APRIL,
    MARCH,
    REFUSED,
    Child,
    charges,
    door_at,
    leftovers,
    public_files,
    release,
    released_id,
    warehouse_at,
)
from support.warehouses import build_chain

from qlog_assets.months import Month
from qlog_assets.storage import scratch
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)
pytestmark = pytest.mark.faults


def _together(start: Any, home: Path, again: str | None = None, locks: bool = True) -> str:
    if not locks:
        scratch._hold = lambda descriptor: None  # what a file system without locks answers
    start.wait()
    return released_id(home, again=again)


def test_processes_that_release_the_same_month_at_once_draw_and_charge_once(chained: Path) -> None:
    start = context().Barrier(3)
    ended = [child.end() for child in [Child(_together, start, chained) for _ in range(3)]]
    assert [each.code for each in ended] == [0, 0, 0], ended
    assert len({each.answer for each in ended}) == 1
    assert len(charges(chained)) == 1
    assert len(list((chained / "private" / "draws").iterdir())) == 1
    assert audit_warehouse(warehouse_at(chained)).ok and leftovers(chained) == []


def test_without_file_locks_the_ledger_and_renames_still_let_one_draw_and_one_charge_through(chained: Path) -> None:
    start = context().Barrier(3)
    ended = [child.end() for child in [Child(_together, start, chained, None, False) for _ in range(3)]]
    # A loser may be refused and told to run again; nobody may be charged again or see another release.
    assert {each.code for each in ended} <= {0, REFUSED} and 0 in {each.code for each in ended}, ended
    (charge,) = charges(chained)
    assert {each.answer for each in ended if each.code == 0} == {charge.release_id}
    assert release(chained).charge.release_id == charge.release_id
    assert len(list((chained / "private" / "draws").iterdir())) == 1
    assert audit_warehouse(warehouse_at(chained)).ok


def test_processes_that_race_for_the_last_of_the_budget_get_no_more_than_there_is(chained: Path) -> None:
    policy = (chained / "policy.toml").read_text(encoding="utf-8")
    (chained / "policy.toml").write_text(policy.replace("epsilon = 100", "epsilon = 50"), encoding="utf-8")
    start = context().Barrier(4)
    reasons = [None, "one more", "another", "yet another"]
    ended = [child.end() for child in [Child(_together, start, chained, reason) for reason in reasons]]
    # Each costs 20 of 50: two fit, whoever they are; the first without a reason may be served one of theirs.
    assert sum(charge.epsilon for charge in charges(chained)) == 40
    refused = [each.answer for each in ended if each.code == REFUSED]
    assert refused and all("over the budget" in answer or "came after it" in answer for answer in refused), refused
    assert audit_warehouse(warehouse_at(chained)).ok


def test_months_released_side_by_side_know_each_others_files(ingested: Path) -> None:
    answer = qlog(ingested, "release", "safelog", "--month", MARCH, "--month", APRIL, "--json").json
    assert [each["charged"] for each in answer["releases"]] == [True, True]
    assert qlog(ingested, "audit").code == 0


def _publish_often(start: Any, home: Path, times: int) -> None:
    start.wait()
    for _ in range(times):
        door_at(home).publish("safelog", MARCH)


def test_a_month_can_be_served_while_another_one_is_published(released: Path) -> None:
    """The door looks at all of `released/`: a release that appears meanwhile is in the ledger before it is seen."""
    build_chain(released, APRIL)
    start = context().Barrier(2)
    serving = Child(_publish_often, start, released, 10)
    start.wait()
    release(released, APRIL)
    ended = serving.end()
    assert ended.code == 0, ended.answer
    assert len(public_files(released)) > 10


def _publish(start: Any, home: Path, month: Month) -> None:
    door = door_at(home)
    start.wait()
    door.publish("safelog", month)


def test_the_index_knows_months_that_were_published_at_once(drawn: Path) -> None:
    """Each reads the ledger when its turn to write has come: whoever is second finds what the first one published."""
    build_chain(drawn, APRIL)
    door_at(drawn).draw("safelog", APRIL)
    start = context().Barrier(2)
    children = [Child(_publish, start, drawn, month) for month in (MARCH, APRIL)]
    assert [child.end().code for child in children] == [0, 0]
    index = public_files(drawn)["released/index.html"].decode()
    assert all(f"{charge.release_id}/manifest.json" in index for charge in charges(drawn))
    report = audit_warehouse(warehouse_at(drawn))
    assert report.ok and not [note for note in report.notes if "released/" in note], report
