"""Adding up: the ledger against a model of it, and its zCDP budget against another conversion."""

from __future__ import annotations

import os
import random
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.ledgers import DATASET, opened, published, request

from qlog_assets.ledger import Amount, Budget, BudgetError, Ledger, LedgerError, LiveReleaseError, WithdrawnError

MONTHS = [f"2006-{number:02d}" for number in range(1, 5)]
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where files are not on a disk: waiting for thousands of syncs would test the disk. None: the usual place."""
REASONS = st.sampled_from([None, None, "late rows", "another look"])


class LedgerMachine(RuleBasedStateMachine):
    """Any order of operations: the sum is what the model says, never above the budget, and the chain holds."""

    @initialize()
    def open_ledger(self) -> None:
        self.home = tempfile.TemporaryDirectory(dir=MEMORY)
        self.place = str(Path(self.home.name) / "ledger.db")
        self.ledger = opened(self.place)
        self.budget = Budget(Fraction(3), Fraction(1, 10**5))
        self.costs: dict[str, tuple[Fraction, Fraction]] = {}
        self.states: dict[str, str] = {}

    def totals(self) -> tuple[Fraction, Fraction]:
        counted = [cost for release, cost in self.costs.items() if self.states[release] != "abandoned"]
        return sum((e for e, _ in counted), Fraction(0)), sum((d for _, d in counted), Fraction(0))

    @rule(
        month=st.sampled_from(MONTHS),
        version=st.integers(1, 2),
        epsilon=st.fractions(0, 2, max_denominator=30),
        delta=st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 3 * 10**5)]),
        again=REASONS,
    )
    def reserve(self, month: str, version: int, epsilon: Fraction, delta: Fraction, again: str | None) -> None:
        asked = request(month=month, mechanism_version=version, epsilon=epsilon, delta=delta, again=again)
        spent_epsilon, spent_delta = self.totals()
        live = [r for r, state in self.states.items() if month in r and state in ("reserved", "drawn", "published")]
        try:
            charge, new = self.ledger.reserve(**asked)
        except BudgetError:
            assert spent_epsilon + epsilon > self.budget.epsilon or spent_delta + delta > self.budget.delta
        except LiveReleaseError as refusal:
            assert again is None
            assert refusal.live.release_id in live
        except WithdrawnError:
            assert any(month in r and state == "withdrawn" for r, state in self.states.items())
        else:
            if new:
                assert charge.release_id not in self.states
                assert again is not None or not live
                self.costs[charge.release_id] = (epsilon, delta)
                self.states[charge.release_id] = "reserved"
            else:
                assert charge.release_id in live

    @rule(data=st.data(), step=st.sampled_from(["drawn", "published", "abandoned", "withdrawn"]))
    def move(self, data: st.DataObject, step: str) -> None:
        if not self.states:
            return
        release = data.draw(st.sampled_from(sorted(self.states, key=list(self.states).index)))
        allowed = {"reserved": ("drawn", "abandoned"), "drawn": ("published", "withdrawn"), "published": ("withdrawn",)}
        fits = step in allowed.get(self.states[release], ())
        before = self.ledger.head()
        try:
            if step == "drawn":
                self.ledger.record_draw(release, "1" * 64)
            elif step == "published":
                self.ledger.record_publication(release, "2" * 64)
            else:
                (self.ledger.abandon if step == "abandoned" else self.ledger.withdraw)(release, "because")
        except LedgerError:
            assert not fits
        if fits:
            self.states[release] = step
        else:
            assert self.ledger.head() == before

    @rule(epsilon=st.fractions(Fraction(1, 10), 6, max_denominator=10))
    def set_budget(self, epsilon: Fraction) -> None:
        try:
            self.budget = self.ledger.set_budget(DATASET, epsilon, "1e-5", "a review").budget
        except BudgetError:
            assert self.totals()[0] > epsilon
        else:
            assert self.budget.epsilon == epsilon

    @invariant()
    def the_sum_is_the_models_and_within_the_budget(self) -> None:
        ledger = Ledger.open(self.place)
        balance = ledger.balance(DATASET)
        spent = balance.spent
        assert (spent.epsilon, spent.delta) == self.totals()
        assert spent.epsilon <= self.budget.epsilon
        assert spent.delta <= self.budget.delta
        assert balance.left.epsilon == self.budget.epsilon - spent.epsilon
        assert {charge.release_id: charge.state for charge in ledger.charges()} == self.states
        assert ledger.verify_chain() == []

    def teardown(self) -> None:
        self.home.cleanup()


QUICK = settings(
    max_examples=10,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestAnyOrderOfOperations = LedgerMachine.TestCase
TestAnyOrderOfOperations.settings = QUICK


class LongLedgerMachine(LedgerMachine):
    """The same, for longer."""


TestAnyOrderOfOperationsForLonger = pytest.mark.slow(LongLedgerMachine.TestCase)
TestAnyOrderOfOperationsForLonger.settings = settings(QUICK, max_examples=40, stateful_step_count=40)


def converted(rho: float, delta: float) -> float:
    """ε of ρ-zCDP at δ on a fine grid of orders (Canonne, Kamath, Steinke 2020), apart from the ledger's own search."""
    above = np.logspace(-4, 6, 200_001)
    order = 1 + above
    return float(np.min(order * rho + np.log(above / order) + (np.log(1 / delta) - np.log(order)) / above))


@pytest.mark.parametrize("seed", range(4))
def test_the_zcdp_budget_takes_a_release_exactly_if_the_sum_of_rho_still_converts_to_its_epsilon(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.ensure_dataset(DATASET, Budget(Fraction(8), Fraction(1, 10**5), "zcdp", Fraction(1, 10**6)))
    sum_rho, sum_delta = Fraction(0), Fraction(0)
    outcomes = set()
    for number in range(30):
        epsilon = Fraction(chance.randrange(1, 200), 100)
        delta = Fraction(chance.choice([0, 0, 0, 1]), 10**6)
        stated = chance.choice([None, epsilon / 10])
        rho = epsilon**2 / 2 if stated is None else min(stated, epsilon**2 / 2)
        total = converted(float(sum_rho + rho), 1e-6)
        assert abs(total - 8) > 1e-6, "too close to tell with floats: take another seed"
        fits = total < 8 and sum_delta + delta <= Fraction(9, 10**6)
        outcomes.add(fits)
        asked = request(month=f"20{number:02d}-01", epsilon=epsilon, delta=delta, rho=stated)
        if fits:
            assert ledger.reserve(**asked)[1]
            sum_rho, sum_delta = sum_rho + rho, sum_delta + delta
        else:
            with pytest.raises(BudgetError, match="ρ"):
                ledger.reserve(**asked)
    assert outcomes == {True, False}
    spent = ledger.spent(DATASET)
    assert (spent.rho, spent.delta) == (sum_rho, sum_delta)
    assert float(spent.epsilon) == pytest.approx(converted(float(sum_rho), 1e-6), rel=1e-7)
    assert ledger.left(DATASET).delta == Fraction(9, 10**6) - sum_delta
    assert ledger.verify_chain() == []


def test_zcdp_holds_more_small_releases_than_the_plain_sum(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.ensure_dataset(DATASET, Budget(Fraction(3), Fraction(1, 10**5), "zcdp"))
    for number in range(40):
        assert ledger.reserve(**request(month=f"20{number:02d}-01", epsilon="0.1", delta="0"))[1]
    assert ledger.spent(DATASET).epsilon < 3


def test_the_accountant_changes_only_if_everything_spent_still_fits(tmp_path: Path) -> None:
    ledger = opened(str(tmp_path / "ledger.db"))
    published(ledger, epsilon="2")
    with pytest.raises(BudgetError, match="ρ"):
        ledger.set_budget(DATASET, "3", "1e-5", "tighter sums", accountant="zcdp")
    changed = ledger.set_budget(
        DATASET, "12", "1e-5", "tighter sums", accountant="zcdp", conversion_delta="2e-6"
    ).budget
    assert changed == Budget(Fraction(12), Fraction(1, 10**5), "zcdp", Fraction(2, 10**6))
    kept = ledger.set_budget(DATASET, "13", "1e-5", "a little more").budget
    assert (kept.accountant, kept.conversion_delta) == ("zcdp", Fraction(2, 10**6))


def test_a_stated_rho_above_that_of_its_epsilon_costs_no_more() -> None:
    assert Amount.of(Fraction(1), Fraction(0), Fraction(3)).rho == Fraction(1, 2)
    assert Amount.of(Fraction(1), Fraction(0), Fraction(1, 10)).rho == Fraction(1, 10)
