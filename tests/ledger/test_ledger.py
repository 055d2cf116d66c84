"""What the ledger owes the door: one charge per request, one live release per month, never more than the budget."""

from __future__ import annotations

import getpass
import re
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.ledgers import DATASET, opened, published, request

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.ledger import (
    Budget,
    BudgetError,
    DrawConflictError,
    Ledger,
    LedgerError,
    LiveReleaseError,
    UnknownReleaseError,
    WithdrawnError,
)

pytest_plugins = ("support.ledger_fixtures",)


@pytest.fixture
def ledger(ledger_place: str) -> Ledger:
    """A new ledger with one data set that may spend ε = 3 and δ = 1e-5."""
    return opened(ledger_place)


def test_a_request_is_charged_once_however_often_it_is_made(ledger: Ledger) -> None:
    first, new = ledger.reserve(**request())
    assert new
    assert first.state == "reserved"
    for _ in range(3):
        again, new = ledger.reserve(**request())
        assert not new
        assert again == first
    ledger.record_draw(first.release_id, "1" * 64)
    ledger.record_publication(first.release_id, "2" * 64)
    served, new = ledger.reserve(**request())
    assert not new
    assert (served.state, served.release_id) == ("published", first.release_id)
    assert ledger.spent(DATASET).epsilon == 1


def test_another_process_finds_the_same_charge_with_everything_that_was_recorded(
    ledger: Ledger, ledger_place: str
) -> None:
    made = published(Ledger.open(ledger_place, run_id="run-7", code_version="3.1"))
    found = Ledger.open(ledger_place).charge(made.release_id)
    assert found == made == Ledger.open(ledger_place).charge(made.fingerprint)
    assert (found.dataset, found.month, found.mechanism, found.variant) == (DATASET, "2006-03", "safelog", "sound")
    assert (found.epsilon, found.delta, found.rho) == (1, Fraction(1, 10**6), None)
    assert found.parameters == {"threshold": 100, "selection_scale": "10"}
    assert found.inputs == {"capped_log": "c" * 64, "pool": "d" * 64}
    assert (found.draw_digest, found.manifest_digest) == ("1" * 64, "2" * 64)
    assert (found.who, found.run_id, found.code_version) == (getpass.getuser(), "run-7", "3.1")
    assert found.seq < found.drawn_seq < found.published_seq  # type: ignore[operator]


def test_release_ids_are_random_and_say_mechanism_and_month(ledger: Ledger, tmp_path: Path) -> None:
    here, _ = ledger.reserve(**request())
    there, _ = opened(str(tmp_path / "other.db")).reserve(**request())
    assert re.fullmatch(r"safelog-2006-03-[0-9a-f]{12}", here.release_id)
    assert here.release_id != there.release_id
    assert here.fingerprint == there.fingerprint


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"parameters": {"threshold": 50, "selection_scale": "10"}}, "parameter threshold (100, now 50)"),
        ({"parameters": {"threshold": 100}}, "parameter selection_scale (10, now None)"),
        ({"inputs": {"capped_log": "e" * 64, "pool": "d" * 64}}, "input data (capped_log)"),
        ({"mechanism_version": 2}, "mechanism version (1, now 2)"),
        ({"variant": "other"}, "variant (sound, now other)"),
    ],
)
@pytest.mark.parametrize("state", ["reserved", "drawn", "published"])
def test_a_different_request_for_a_month_with_a_live_release_is_refused_with_the_difference(
    ledger: Ledger, change: dict[str, Any], named: str, state: str
) -> None:
    live, _ = ledger.reserve(**request())
    if state != "reserved":
        ledger.record_draw(live.release_id, "1" * 64)
    if state == "published":
        ledger.record_publication(live.release_id, "2" * 64)
    with pytest.raises(LiveReleaseError) as refusal:
        ledger.reserve(**request(**change))
    assert refusal.value.differences == [named]
    assert refusal.value.live.release_id == live.release_id
    assert live.release_id in str(refusal.value)
    assert named in str(refusal.value)
    # The id is random and may have any digits in it; no part of an input's digest is told beside it.
    assert "eeee" not in str(refusal.value).replace(live.release_id, "")
    assert len(ledger.charges()) == 1


def test_a_different_request_is_drawn_again_for_a_reason_and_paid_again(ledger: Ledger) -> None:
    first = published(ledger)
    late = request(inputs={"capped_log": "e" * 64, "pool": "d" * 64})
    second, new = ledger.reserve(**late, again="late  rows\narrived")
    assert new
    assert (second.draw_number, second.reason) == (2, "late rows arrived")
    assert ledger.spent(DATASET).epsilon == 2
    assert ledger.charge(first.release_id).state == "published"
    assert [charge.release_id for charge in ledger.live(DATASET, "2006-03", "safelog")] == [
        first.release_id,
        second.release_id,
    ]
    # Both are known from now on: neither is charged a third time.
    assert ledger.reserve(**late) == (second, False)
    assert ledger.reserve(**request())[0].release_id == first.release_id


def test_a_retried_run_with_the_same_reason_is_the_same_draw(ledger: Ledger) -> None:
    published(ledger)
    first, _ = ledger.reserve(**request(), again="first noise was never read")
    retried, new = ledger.reserve(**request(), again="first noise was never read")
    assert (retried.release_id, new) == (first.release_id, False)
    third, new = ledger.reserve(**request(), again="another reason")
    assert new
    assert third.draw_number == 3
    assert len({charge.fingerprint for charge in ledger.charges()}) == 3


def test_months_mechanisms_and_data_sets_with_equal_inputs_are_different_requests(ledger: Ledger) -> None:
    ledger.ensure_dataset("other", Budget("1", "1e-6"))  # type: ignore[arg-type]
    changes: tuple[dict[str, Any], ...] = ({}, {"month": "2006-04"}, {"mechanism": "zealous"}, {"dataset": "other"})
    charges = [ledger.reserve(**request(**change)) for change in changes]
    assert all(new for _, new in charges)
    assert len({charge.fingerprint for charge, _ in charges}) == 4
    assert len(ledger.charges("other")) == 1


def test_over_budget_is_refused_naming_what_was_asked_what_is_left_and_who_spent_it(ledger: Ledger) -> None:
    spender = published(ledger, epsilon="2.5")
    with pytest.raises(BudgetError) as refusal:
        ledger.reserve(**request(month="2006-04"))
    message = str(refusal.value)
    assert "ε = 1, δ = 1e-06 asked" in message
    assert "ε = 0.5, δ = 9e-06 left" in message
    assert f"{spender.release_id} (ε = 2.5, δ = 1e-06)" in message
    assert "\n" not in message
    _, new = ledger.reserve(**request(month="2006-04", epsilon="0.5"))
    assert new
    assert ledger.left(DATASET).epsilon == 0


def test_delta_has_its_own_limit(ledger: Ledger) -> None:
    ledger.reserve(**request(epsilon="0.1", delta="1e-5"))
    with pytest.raises(BudgetError, match="δ = 0 left"):
        ledger.reserve(**request(month="2006-04", epsilon="0.1", delta="1e-20"))
    assert ledger.reserve(**request(month="2006-04", epsilon="0.1", delta="0"))[1]


def test_tenths_add_up_exactly_to_the_budget(ledger_place: str) -> None:
    ledger = opened(ledger_place, epsilon="1")
    for number in range(1, 11):
        assert ledger.reserve(**request(month=f"2006-{number:02d}", epsilon="0.1", delta="0"))[1]
    assert ledger.left(DATASET).epsilon == 0


def test_a_float_is_rounded_up_never_down(ledger: Ledger) -> None:
    charge, _ = ledger.reserve(**request(epsilon=2.302585092994046, delta=1e-7))
    assert charge.epsilon == Fraction("2.30258509300")
    assert Fraction(1e-7) <= charge.delta < Fraction(1e-7) * (1 + Fraction(1, 10**11))
    for bad in (float("nan"), float("inf"), -1.0, "minus one", "-1"):
        with pytest.raises(ParameterError, match="epsilon"):
            ledger.reserve(**request(month="2006-04", epsilon=bad))


def test_an_abandoned_reservation_gives_its_budget_back_and_may_be_made_again(ledger: Ledger) -> None:
    first, _ = ledger.reserve(**request(epsilon="3"))
    abandoned = ledger.abandon(first.release_id, "the run crashed")
    assert (abandoned.state, abandoned.closing_reason) == ("abandoned", "the run crashed")
    assert ledger.abandon(first.release_id, "twice").closing_reason == "the run crashed"
    assert ledger.left(DATASET).epsilon == 3
    # The month is free: another request needs no reason, and the same one gets a new release id.
    second, new = ledger.reserve(**request(epsilon="3"))
    assert new
    assert second.release_id != first.release_id
    assert (second.fingerprint, second.draw_number) == (first.fingerprint, 1)
    assert ledger.charge(second.fingerprint).release_id == second.release_id
    with pytest.raises(LedgerError, match="abandoned and cannot become drawn"):
        ledger.record_draw(first.release_id, "1" * 64)


@pytest.mark.parametrize("publish", [False, True])
def test_a_drawn_release_cannot_be_abandoned(ledger: Ledger, publish: bool) -> None:
    charge, _ = ledger.reserve(**request())
    ledger.record_draw(charge.release_id, "1" * 64)
    if publish:
        ledger.record_publication(charge.release_id, "2" * 64)
    with pytest.raises(LedgerError, match="its charge stays"):
        ledger.abandon(charge.release_id, "changed my mind")
    assert ledger.spent(DATASET).epsilon == 1


def test_a_withdrawn_release_keeps_its_charge_and_is_not_served(ledger: Ledger) -> None:
    charge = published(ledger)
    withdrawn = ledger.withdraw(charge.release_id, "wrong licence")
    assert (withdrawn.state, withdrawn.closing_reason) == ("withdrawn", "wrong licence")
    assert ledger.withdraw(charge.release_id, "twice") == withdrawn
    assert ledger.spent(DATASET).epsilon == 1
    assert ledger.live(DATASET, "2006-03", "safelog") == []
    with pytest.raises(WithdrawnError, match="wrong licence"):
        ledger.reserve(**request())
    with pytest.raises(WithdrawnError, match="needs --again"):
        ledger.reserve(**request(mechanism_version=2))
    with pytest.raises(WithdrawnError):
        ledger.record_publication(charge.release_id, "2" * 64)
    redrawn, new = ledger.reserve(**request(), again="licence settled")
    assert (new, redrawn.draw_number) == (True, 2)
    assert ledger.reserve(**request())[0].release_id == redrawn.release_id
    assert ledger.spent(DATASET).epsilon == 2


def test_withdrawing_the_second_draw_leaves_the_first_one_served(ledger: Ledger) -> None:
    first = published(ledger)
    second, _ = ledger.reserve(**request(), again="more")
    ledger.record_draw(second.release_id, "3" * 64)
    ledger.withdraw(second.release_id, "a mistake")
    assert ledger.reserve(**request())[0].release_id == first.release_id
    with pytest.raises(WithdrawnError, match="another reason"):
        ledger.reserve(**request(), again="more")


def test_a_reservation_is_abandoned_not_withdrawn(ledger: Ledger) -> None:
    charge, _ = ledger.reserve(**request())
    with pytest.raises(LedgerError, match="abandon gives its charge back"):
        ledger.withdraw(charge.release_id, "no longer wanted")


def test_nothing_is_published_that_was_not_drawn(ledger: Ledger) -> None:
    charge, _ = ledger.reserve(**request())
    with pytest.raises(LedgerError, match="nothing was drawn"):
        ledger.record_publication(charge.release_id, "2" * 64)


def test_recording_twice_is_harmless_and_recording_something_else_is_a_conflict(ledger: Ledger) -> None:
    charge = published(ledger)
    before = ledger.head()
    assert ledger.record_draw(charge.release_id, "1" * 64) == charge
    assert ledger.record_publication(charge.fingerprint, "2" * 64) == charge
    assert ledger.head() == before
    with pytest.raises(DrawConflictError, match="another draw"):
        ledger.record_draw(charge.release_id, "9" * 64)
    with pytest.raises(DrawConflictError, match="another manifest"):
        ledger.record_publication(charge.release_id, "9" * 64)


def test_an_unknown_release_is_an_error_that_prints_no_fingerprint(ledger: Ledger) -> None:
    with pytest.raises(UnknownReleaseError, match="safelog-2006-03-000000000000"):
        ledger.charge("safelog-2006-03-000000000000")
    with pytest.raises(UnknownReleaseError) as unknown:
        ledger.record_draw("a" * 64, "1" * 64)
    assert "aaaa" not in str(unknown.value)


def test_a_budget_changes_only_by_set_budget_with_a_reason(ledger: Ledger) -> None:
    kept = ledger.ensure_dataset(DATASET, Budget("100", "0.1"))  # type: ignore[arg-type]
    assert kept.budget == Budget(Fraction(3), Fraction(1, 10**5))
    published(ledger, epsilon="2")
    ledger.reserve(**request(month="2006-04", epsilon="0.5"))
    assert ledger.set_budget(DATASET, "5", "1e-5", "two more months").budget.epsilon == 5
    assert ledger.set_budget(DATASET, "2.5", "2e-6", "the last of it").budget.epsilon == Fraction(5, 2)
    for epsilon, delta in (("2.4", "1e-5"), ("2.5", "1e-6")):
        with pytest.raises(BudgetError, match="spent or reserved"):
            ledger.set_budget(DATASET, epsilon, delta, "less")
    with pytest.raises(LedgerError, match="reason"):
        ledger.set_budget(DATASET, "9", "1e-5", "  ")
    changes = [event.facts["reason"] for event in ledger.events() if event.kind == "budget"]
    assert changes == ["two more months", "the last of it"]


@pytest.mark.parametrize(("word", "value"), [("unit", "user-month"), ("relation", "replace-one-user")])
def test_a_data_set_keeps_its_privacy_unit_and_relation(ledger: Ledger, word: str, value: str) -> None:
    with pytest.raises(LedgerError, match=f"privacy {word}"):
        ledger.ensure_dataset(DATASET, Budget("3", "1e-5"), **{word: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": "0"},
        {"delta": "1"},
        {"delta": "-1"},
        {"epsilon": "nan"},
        {"accountant": "pld"},
        {"conversion_delta": "1e-6"},
        {"accountant": "zcdp", "delta": "0"},
        {"accountant": "zcdp", "conversion_delta": "1e-4"},
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="budget"):
        Budget(**{"epsilon": "3", "delta": "1e-5", **wrong})


def test_order_is_by_event_not_by_a_clock_that_goes_backwards(ledger_place: str) -> None:
    years = iter(range(2030, 2000, -1))
    ledger = opened(ledger_place, clock=lambda: datetime(next(years), 1, 1, tzinfo=UTC))
    first = published(ledger)
    second, _ = ledger.reserve(**request(), again="a new clock")
    assert second.at < first.at
    assert [charge.draw_number for charge in ledger.live(DATASET, "2006-03", "safelog")] == [1, 2]
    assert ledger.reserve(**request())[0].release_id == second.release_id
    assert ledger.verify_chain() == []


def test_notes_are_kept_in_the_history_and_change_nothing(ledger: Ledger) -> None:
    published(ledger)
    before = ledger.balance(DATASET)
    note = ledger.record("forgotten", DATASET, {"months": ["2006-03"]})
    assert ledger.events()[-1] == note
    assert note.facts == {"months": ["2006-03"]}
    assert ledger.balance(DATASET) == before
    assert ledger.verify_chain() == []
    for kind in ("published", "created", "Not a kind"):
        with pytest.raises(LedgerError, match="not a kind of note"):
            ledger.record(kind, DATASET, {})


def test_the_balance_tells_reserved_from_spent(ledger: Ledger) -> None:
    published(ledger)
    ledger.reserve(**request(month="2006-04", epsilon="0.5", delta="0"))
    balance = ledger.balance(DATASET)
    assert (balance.spent.epsilon, balance.reserved.epsilon, balance.left.epsilon) == (
        Fraction(3, 2),
        Fraction(1, 2),
        Fraction(3, 2),
    )
    assert balance.left.delta == Fraction(9, 10**6)


@pytest.mark.parametrize(
    "bad",
    [
        {"month": "2006-13"},
        {"mechanism": "../safelog"},
        {"dataset": "unknown"},
        {"again": " "},
        {"parameters": {"x": {1}}},
    ],
)
def test_a_malformed_request_is_one_clear_line_and_no_charge(ledger: Ledger, bad: dict[str, Any]) -> None:
    with pytest.raises(QlogError) as refusal:
        ledger.reserve(**request(**bad))
    assert "\n" not in str(refusal.value)
    assert ledger.charges() == []
