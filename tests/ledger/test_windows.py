"""Budgets for windows of months: the ledger against the rule read by brute force, races, and changes of unit."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.ledgers import DATASET, published, request
from support.racing import race

from qlog_assets.ledger import Budget, BudgetError, Ledger, LedgerError, LiveReleaseError, WithdrawnError
from qlog_assets.ledger.chain import FIRST_PREVIOUS
from qlog_assets.ledger.state import fold
from qlog_assets.months import Month, months_between
from qlog_assets.storage.digests import canonical_line

pytest_plugins = ("support.ledger_fixtures",)

MONTHS = months_between(Month("2005-11"), Month("2007-02"))
CALENDAR = months_between(Month("2000-01"), Month("2012-12"))
"""Every month that a window of the tests can hold."""
WINDOWS = [None, 1, 2, 3, 5, 12]
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
DELTA = Fraction(1, 10**5)


def opened(place: str, window: int | None, epsilon: str = "3", **options: Any) -> Ledger:
    ledger = Ledger.open(place, **options)
    ledger.ensure_dataset(DATASET, Budget(Fraction(epsilon), DELTA), window_months=window)
    return ledger


@dataclass
class Spent:
    """One charge as the reading by brute force sees it."""

    months: list[Month]
    epsilon: Fraction
    state: str = "reserved"


@dataclass
class Promise:
    """One promise: any so many consecutive months that begin before a month, or all months before it."""

    window: int | None
    before: Month | None = None

    def month_sets(self) -> list[set[Month]]:
        """Every set of months whose charges must stay within the budget together, written out."""
        before = self.before or Month("9999-12")
        if self.window is None:
            return [{month for month in CALENDAR if month < before}]
        starts = range(len(CALENDAR) - self.window + 1)
        return [set(CALENDAR[start : start + self.window]) for start in starts if CALENDAR[start] < before]


def most(promises: list[Promise], charges: list[Spent], month: Month | None = None) -> Fraction:
    """The largest sum in any set of months that must stay within the budget (and holds a month)."""
    sets = [months for promise in promises for months in promise.month_sets() if month is None or month in months]
    counted = [charge for charge in charges if charge.state != "abandoned"]
    sums = (sum((c.epsilon for c in counted if set(c.months) & months), Fraction(0)) for months in sets)
    return max(sums, default=Fraction(0))


class WindowMachine(RuleBasedStateMachine):
    """Any history of charges, redraws, withdrawals, budgets and units: admitted exactly where the rule admits it."""

    @initialize(window=st.sampled_from(WINDOWS))
    def open_ledger(self, window: int | None) -> None:
        self.home = tempfile.TemporaryDirectory(dir=MEMORY)
        self.ledger = opened(str(Path(self.home.name) / "ledger.db"), window)
        self.budget = Fraction(3)
        self.promises = [Promise(window)]
        self.charges: dict[str, Spent] = {}

    @rule(
        month=st.sampled_from(MONTHS),
        version=st.integers(1, 2),
        epsilon=st.fractions(0, 2, max_denominator=12),
        further=st.sampled_from([0, 0, 0, 1, 2]),
        again=st.sampled_from([None, "late rows", "another look"]),
    )
    def reserve(self, month: Month, version: int, epsilon: Fraction, further: int, again: str | None) -> None:
        months = CALENDAR[CALENDAR.index(month) : CALENDAR.index(month) + further + 1]
        asked = request(month=month, mechanism_version=version, epsilon=epsilon, delta="0", again=again, months=months)
        before = [*self.charges.values()]
        fits = all(most(self.promises, before, each) + epsilon <= self.budget for each in months)
        try:
            charge, new = self.ledger.reserve(**asked)
        except BudgetError as refusal:
            assert not fits
            self._check_next_month(str(refusal), epsilon, months[-1])
        except LiveReleaseError:
            assert again is None
        except WithdrawnError:
            assert any(charge.state == "withdrawn" for charge in before)
        else:
            if new:
                assert fits
                self.charges[charge.release_id] = Spent(months, epsilon)

    def _check_next_month(self, refusal: str, epsilon: Fraction, after: Month) -> None:
        """The month that a refusal names is the first later one that fits."""
        if self.promises[-1].window is None:
            return
        later = [month for month in CALENDAR if month > after]
        charges = [*self.charges.values()]
        fitting = [month for month in later if most(self.promises, charges, month) + epsilon <= self.budget]
        assert ("no month fits" in refusal) is (epsilon > self.budget)
        if fitting:
            assert f"the next month that fits is {fitting[0]}" in refusal

    @rule(data=st.data(), step=st.sampled_from(["drawn", "published", "abandoned", "withdrawn"]))
    def move(self, data: st.DataObject, step: str) -> None:
        allowed = {"reserved": ("drawn", "abandoned"), "drawn": ("published", "withdrawn"), "published": ("withdrawn",)}
        movable = [name for name, charge in self.charges.items() if step in allowed.get(charge.state, ())]
        if not movable:
            return
        release = data.draw(st.sampled_from(movable))
        if step == "drawn":
            self.ledger.record_draw(release, "1" * 64)
        elif step == "published":
            self.ledger.record_publication(release, "2" * 64)
        else:
            (self.ledger.abandon if step == "abandoned" else self.ledger.withdraw)(release, "because")
        self.charges[release].state = step

    @rule(epsilon=st.fractions(Fraction(1, 2), 6, max_denominator=4))
    def set_budget(self, epsilon: Fraction) -> None:
        fits = most(self.promises, [*self.charges.values()]) <= epsilon
        try:
            self.ledger.set_budget(DATASET, epsilon, DELTA, "a review")
        except BudgetError:
            assert not fits
        else:
            assert fits
            self.budget = epsilon

    @rule(window=st.sampled_from(WINDOWS), later=st.integers(0, 3), named=st.booleans())
    def set_unit(self, window: int | None, later: int, named: bool) -> None:
        old = self.promises[-1].window
        counted = [charge for charge in self.charges.values() if charge.state != "abandoned"]
        last = max((charge.months[-1] for charge in counted), default=None)
        stronger = old is not None and (window is None or window > old)
        since = CALENDAR[CALENDAR.index(last) + 1 + later] if last is not None and named else None
        if stronger or last is None:
            expected = [*self.promises[:-1], Promise(window)]
        else:
            begins = since or last.next()
            expected = [*self.promises[:-1], Promise(old, begins), Promise(window)]
        allowed = (
            window != old
            and (since is None or not stronger)
            and most(expected, [*self.charges.values()]) <= self.budget
        )
        try:
            self.ledger.set_unit(DATASET, window, "a review", since=since)
        except LedgerError:
            assert not allowed
        else:
            assert allowed
            self.promises = expected

    @invariant()
    def the_ledger_says_what_the_rule_says(self) -> None:
        charges = [*self.charges.values()]
        assert most(self.promises, charges) <= self.budget
        assert self.ledger.verify_chain() == []
        for month in MONTHS[::3]:
            assert self.ledger.left(DATASET, month).epsilon == self.budget - most(self.promises, charges, month)
        if self.promises[-1].window is not None:
            for span, spent in self.ledger.windows(DATASET):
                inside = set(months_between(span.first, span.last))
                counted = [c for c in charges if c.state != "abandoned" and set(c.months) & inside]
                assert spent.epsilon == sum((c.epsilon for c in counted), Fraction(0))

    def teardown(self) -> None:
        self.home.cleanup()


QUICK = settings(
    max_examples=6,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestAnyHistory = WindowMachine.TestCase
TestAnyHistory.settings = QUICK


@pytest.mark.slow
class TestManyHistories(WindowMachine.TestCase):
    settings = settings(QUICK, max_examples=30, derandomize=False)


# One case each, readable ----------------------------------------------------------------------------------------------


def test_a_year_at_one_per_month_fits_a_window_of_twelve_for_ever(ledger_place: str) -> None:
    ledger = opened(ledger_place, 12, epsilon="12")
    for month in months_between(Month("2006-01"), Month("2008-12")):
        ledger.reserve(**request(month=month, delta="0"))
    assert ledger.balance(DATASET).total.epsilon == 36
    assert ledger.left(DATASET).epsilon == 0
    with pytest.raises(BudgetError, match=r"in any 12 consecutive months: the next month that fits is 2009-01"):
        ledger.reserve(**request(month="2008-12", delta="0", again="late rows"))


def test_a_dear_month_is_followed_by_months_that_do_not_fit_and_by_one_that_does(ledger_place: str) -> None:
    ledger = opened(ledger_place, 3, epsilon="3")
    ledger.reserve(**request(month="2006-03", epsilon="3", delta="0"))
    for month in ("2006-01", "2006-02", "2006-04", "2006-05"):
        with pytest.raises(BudgetError, match="over the budget"):
            ledger.reserve(**request(month=month, delta="0"))
    for month in ("2005-12", "2006-06"):
        assert ledger.reserve(**request(month=month, delta="0"))[1]


def test_withdrawn_and_redrawn_releases_count_in_their_windows(ledger_place: str) -> None:
    ledger = opened(ledger_place, 2, epsilon="3")
    ledger.withdraw(published(ledger).release_id, "a mistake")
    published(ledger, again="mended")
    assert ledger.left(DATASET, "2006-04").epsilon == 1
    assert ledger.left(DATASET, "2006-05").epsilon == 3


def test_mechanisms_share_a_window(ledger_place: str) -> None:
    ledger = opened(ledger_place, 2, epsilon="3")
    published(ledger)
    published(ledger, mechanism="zealous", epsilon="2", month="2006-04")
    with pytest.raises(BudgetError):
        ledger.reserve(**request(mechanism="zealous", epsilon="1/2"))


def test_a_zcdp_filter_is_kept_per_window(ledger_place: str) -> None:
    ledger = Ledger.open(ledger_place)
    ledger.ensure_dataset(DATASET, Budget(Fraction(2), Fraction(1, 10**5), "zcdp"), window_months=2)
    limit = ledger.balance(DATASET).budget.limit.rho
    charged = 0
    for month in months_between(Month("2006-01"), Month("2006-12")):
        ledger.reserve(**request(month=month, epsilon="1.5", delta="0", rho=limit / 2))
        charged += 1
    assert charged == 12
    assert ledger.left(DATASET, "2006-12").rho == 0


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_thirty_two_processes_at_the_edge_of_a_window_take_exactly_what_fits(ledger_place: str) -> None:
    """Six months of a window of seven have one each: of 32 requests for the seventh, 7 - 6 = 1 and no more fit."""
    ledger = opened(ledger_place, 7, epsilon="9")
    for month in months_between(Month("2006-01"), Month("2006-06")):
        ledger.reserve(**request(month=month, delta="0"))

    def work(number: int) -> str:
        mine = opened(ledger_place, 7, epsilon="9")
        try:
            mine.reserve(**request(month="2006-07", delta="0", again=f"racer {number}"))
        except BudgetError:
            return "refused"
        return "charged"

    assert Counter(race(work, 32)) == {"charged": 3, "refused": 29}
    assert ledger.left(DATASET, "2006-07").epsilon == 0
    # The next window has room again: January is no longer in it.
    assert ledger.reserve(**request(month="2006-08", delta="0"))[1]
    assert ledger.verify_chain() == []


def test_a_window_that_differs_from_the_accounts_is_refused_with_the_way_to_change_it(ledger_place: str) -> None:
    opened(ledger_place, 12)
    with pytest.raises(LedgerError, match=r"in any 12 consecutive months and the policy says for ever .*set-unit"):
        opened(ledger_place, None)


def test_a_weaker_unit_begins_after_what_was_charged_and_leaves_the_old_promise_for_the_months_before(
    ledger_place: str,
) -> None:
    ledger = opened(ledger_place, None, epsilon="3")
    for month in ("2006-01", "2006-02"):
        published(ledger, month=month, delta="0")
    with pytest.raises(LedgerError, match="a weaker one can begin with 2006-03"):
        ledger.set_unit(DATASET, 1, "releases for years", since="2006-02")
    dataset = ledger.set_unit(DATASET, 1, "releases for years")
    assert [(rule.window, rule.before) for rule in dataset.rules] == [(None, "2006-03"), (1, None)]
    for month in months_between(Month("2006-03"), Month("2006-09")):
        published(ledger, month=month, epsilon="3", delta="0")
    # January and February may spend one more together, for ever: that is what was promised when they were published.
    published(ledger, month="2006-01", delta="0", again="late rows")
    with pytest.raises(BudgetError):
        ledger.reserve(**request(month="2006-02", delta="0", again="late rows"))


def test_a_shorter_window_leaves_every_window_that_holds_a_charge_as_it_was_promised(ledger_place: str) -> None:
    ledger = opened(ledger_place, 12, epsilon="3")
    published(ledger, month="2006-01", epsilon="2", delta="0")
    ledger.set_unit(DATASET, 1, "releases for years")
    assert ledger.reserve(**request(month="2006-02", delta="0"))[1]
    # From January 2006 to December any window of twelve months that holds January is full.
    for month in ("2006-03", "2006-12"):
        with pytest.raises(BudgetError, match="the next month that fits is 2007-01"):
            ledger.reserve(**request(month=month, delta="0"))
    assert ledger.reserve(**request(month="2007-01", epsilon="3", delta="0"))[1]


def test_terms_remember_what_they_were(ledger_place: str) -> None:
    ledger = opened(ledger_place, 12, epsilon="3")
    published(ledger, delta="0")
    ledger.set_budget(DATASET, "5", DELTA, "a review")
    terms = ledger.set_unit(DATASET, None, "a stricter board").public_terms()
    assert terms is not None and (terms["epsilon"], terms["window_months"]) == ("5", None)
    assert [(past["epsilon"], past["window_months"]) for past in terms["past"]] == [("3", 12), ("5", 12)]


def test_an_event_that_weakens_the_unit_of_charged_months_is_a_contradiction(tmp_path: Path) -> None:
    ledger = opened(str(tmp_path / "ledger.db"), None)
    published(ledger, delta="0")
    facts = {"window_months": 1, "was": None, "from": None, "reason": "forged"}
    last = ledger.events()[-1]
    forged = replace(
        last, seq=last.seq + 1, kind="unit", payload=canonical_line(facts), previous_hash=last.hash
    ).sealed()
    assert "weakened for months that were charged" in fold([*ledger.events(), forged])[1][0]


def test_a_stronger_unit_must_fit_what_was_charged(ledger_place: str) -> None:
    ledger = opened(ledger_place, 1, epsilon="3")
    for month in ("2006-01", "2006-02"):
        published(ledger, month=month, epsilon="2", delta="0")
    with pytest.raises(BudgetError, match="does not fit a budget for ever"):
        ledger.set_unit(DATASET, None, "a stricter board")
    ledger.set_budget(DATASET, "4", DELTA, "a stricter board")
    assert ledger.set_unit(DATASET, None, "a stricter board").window_months is None
    assert ledger.left(DATASET).epsilon == 0


def test_an_account_for_ever_is_written_as_it_was_before_there_were_windows(tmp_path: Path) -> None:
    ledger = opened(str(tmp_path / "ledger.db"), None)
    published(ledger)
    _, opening, reserved, *_ = ledger.events()
    assert set(opening.facts) == {"budget", "unit", "relation"}
    assert "months" not in reserved.facts and "window_months" not in opening.facts
    assert opening.previous_hash != FIRST_PREVIOUS


@pytest.mark.parametrize("window", [0, -1, 601, 1.5, "12", True])
def test_an_event_with_a_window_that_is_none_is_found(tmp_path: Path, window: Any) -> None:
    ledger = opened(str(tmp_path / "ledger.db"), 12)
    events = ledger.events()
    forged = replace(events[1], payload=events[1].payload.replace(":12}", f":{json.dumps(window)}}}"))
    assert forged.payload != events[1].payload
    assert fold([events[0], forged])[1] == ["event 2 (dataset): its payload cannot be read"]
