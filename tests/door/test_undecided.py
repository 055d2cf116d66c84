"""Which months are lost: complete, of a mechanism in use, and with neither a release, a withdrawal nor a skip."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.door import warehouse_at
from support.ledgers import published, request

from qlog_assets.door.door import Door
from qlog_assets.door.undecided import Skipped, find_undecided, skip_months
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Budget, Ledger
from qlog_assets.months import Month
from qlog_assets.policy import Policy


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.ensure_dataset("small", Budget("100", "0.1"))  # type: ignore[arg-type]
    return ledger


def policy(**values: Any) -> Policy:
    return Policy(dataset="small", **values)


def owed(policy: Policy, ledger: Ledger | None, at: str, scheduled: set[str] = frozenset()) -> dict[str, list[str]]:  # type: ignore[assignment]
    found = find_undecided(policy, ledger, datetime.fromisoformat(at).replace(tzinfo=UTC), scheduled)
    return {each.mechanism: [str(month) for month in each.months] for each in found}


def skipped(
    ledger: Ledger, policy: Policy, mechanism: str | None, months: list[Month], reason: str, at: str = "2030-01-01"
) -> list[Skipped]:
    home = Path(ledger.where).parent
    now = datetime.fromisoformat(at).replace(tzinfo=UTC)
    return skip_months(Door(warehouse_at(home), policy, ledger), mechanism, months, reason, now)


def test_a_month_is_missed_the_day_after_its_release_was_due_and_not_before(ledger: Ledger) -> None:
    chosen = policy(first="2006-03", last="2006-06")
    assert owed(chosen, ledger, "2030-01-01") == {}, "a mechanism that was never used is not missed"
    published(ledger, dataset="small", month="2006-03")
    assert owed(chosen, ledger, "2006-05-01T23:00") == {}
    assert owed(chosen, ledger, "2006-05-02T07:00") == {"safelog": ["2006-04"]}
    published(ledger, dataset="small", month="2006-05")
    assert owed(chosen, ledger, "2006-06-02T07:00") == {"safelog": ["2006-04"]}, "a hole is seen behind a later release"
    assert owed(chosen, ledger, "2030-01-01") == {"safelog": ["2006-04", "2006-06"]}, "the policy's last month is last"


def test_a_withdrawal_and_a_recorded_skip_decide_a_month(ledger: Ledger) -> None:
    chosen = policy(first="2006-03", last="2006-05")
    ledger.withdraw(published(ledger, dataset="small", month="2006-03").release_id, "a mistake")
    skipped(ledger, chosen, "safelog", [Month("2006-04")], "nothing was logged")
    assert owed(chosen, ledger, "2030-01-01") == {"safelog": ["2006-05"]}
    skips = skipped(ledger, chosen, None, [Month("2006-05")], "nothing was logged")
    assert {"safelog", "zealous"} <= {each.skip.mechanism for each in skips}
    assert owed(chosen, ledger, "2030-01-01") == {}, "a skip by all does not make a mechanism one that is in use"


def test_a_switched_on_schedule_is_missed_from_its_first_month_on(ledger: Ledger) -> None:
    assert owed(policy(first="2006-03"), None, "2006-05-02T07:00", {"zealous"}) == {"zealous": ["2006-03", "2006-04"]}
    # No policy names its first month by default, and nobody wants ten years of findings.
    assert owed(policy(), ledger, "2006-05-02T07:00", {"zealous"}) == {"zealous": ["2006-04"]}
    published(ledger, dataset="small", month="2006-02")
    assert owed(policy(), ledger, "2006-05-02T07:00") == {"safelog": ["2006-03", "2006-04"]}


def test_a_release_that_was_begun_and_never_published_is_named_with_its_state(ledger: Ledger) -> None:
    chosen = policy(first="2006-03", last="2006-03")
    charge, _ = ledger.reserve(**request(dataset="small"))
    (found,) = find_undecided(chosen, ledger, datetime(2006, 4, 10, tzinfo=UTC))
    assert found.sentence == f"safelog: 2006-03: {charge.release_id} is reserved and not published"
    ledger.abandon(charge.release_id, "its run was killed")
    assert owed(chosen, ledger, "2006-04-10", {"safelog"}) == {"safelog": ["2006-03"]}, (
        "given back: nothing was decided"
    )


def test_several_months_are_skipped_together_or_none_of_them(ledger: Ledger) -> None:
    chosen = policy(first="2006-03", last="2006-05")
    published(ledger, dataset="small", month="2006-05")
    for wrong, reason in (("2006-06", "outside the policy's months"), ("2006-05", "needs no skip")):
        with pytest.raises(QlogError, match=reason):
            skipped(ledger, chosen, "safelog", [Month("2006-04"), Month(wrong)], "why")
    with pytest.raises(QlogError, match="nosuch"):
        skipped(ledger, chosen, "nosuch", [Month("2006-04")], "why")
    assert ledger.skips("small") == []


def test_a_month_that_is_not_over_is_not_skipped_because_a_skip_stays_for_good(tmp_path: Path) -> None:
    ledger, chosen = Ledger.open(tmp_path / "ledger.db"), policy(first="2006-03")
    for month in ("2006-05", "2031-01"):
        with pytest.raises(QlogError, match=f"{month} is not over yet"):
            skipped(ledger, chosen, "safelog", [Month("2006-04"), Month(month)], "why", at="2006-05-31T23:59")
    assert ledger.datasets() == [], "what is refused opens no account"
    (first,) = skipped(ledger, chosen, "safelog", [Month("2006-05")], "why", at="2006-06-01")
    (again,) = skipped(ledger, chosen, "safelog", [Month("2006-05")], " why ", at="2006-06-01")
    assert (first.already, again.already, again.skip) == (False, True, first.skip)
    (other,) = skipped(ledger, chosen, "safelog", [Month("2006-05")], "another reason", at="2006-06-01")
    assert not other.already
