"""A budget spread over months: what each release costs adds up to no more than the budget, and to nearly all of it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from support.cli import qlog
from support.instances import make_home

from qlog_assets.door.ledgers import opening_budget
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Amount
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import releasable
from qlog_assets.policy import Policy
from qlog_assets.studies.spread import amount_of, months_paid_for, within_budget

EVERY = list(releasable())


@pytest.mark.slow
@pytest.mark.parametrize("accountant", ["basic", "zcdp"])
@pytest.mark.parametrize("months", [1, 12])
def test_equal_shares_of_every_month_and_mechanism_fit_the_budget_and_hardly_more_would(
    accountant: str, months: int
) -> None:
    policy = Policy(budget={"epsilon": "12", "delta": "1e-5", "accountant": accountant}, unit={"window_months": months})
    budget = opening_budget(policy)
    shared = within_budget(policy, budget, EVERY, months)
    month = sum((amount_of(shared, each) for each in EVERY), start=Amount())
    total = Amount(months * month.epsilon, months * month.delta, months * month.rho)
    assert budget.holds(total)
    more = Fraction(21, 20)
    assert not budget.holds(Amount(more * total.epsilon, total.delta, more * more * total.rho))
    if accountant == "basic":
        assert [amount_of(shared, each).epsilon for each in EVERY] == [Fraction(12, months * len(EVERY))] * len(EVERY)


def test_a_budget_for_ever_says_for_how_many_months_it_pays() -> None:
    policy = Policy(budget={"epsilon": "12", "delta": "1e-4"})
    assert months_paid_for(policy, opening_budget(policy), EVERY[:2]) == 3
    assert months_paid_for(policy, opening_budget(policy), EVERY[:1]) == 6


@pytest.mark.parametrize("mechanism", [*EVERY, None], ids=lambda each: "all" if each is None else each.name)
@pytest.mark.parametrize("safelog", ["modern", "sound"])
def test_a_budget_that_no_release_fits_is_refused(mechanism: Mechanism | None, safelog: str) -> None:
    policy = Policy(
        budget={"epsilon": "1e-4", "delta": "1e-5"}, unit={"window_months": 120}, safelog={"variant": safelog}
    )
    chosen = EVERY if mechanism is None else [mechanism]
    with pytest.raises(QlogError, match="too small for 120 months"):
        within_budget(policy, opening_budget(policy), chosen, 120)


@pytest.mark.study
def test_the_command_shows_what_each_month_then_holds_and_reads_no_log(tmp_path: Path) -> None:
    home = make_home(tmp_path / "warehouse", "[budget]\nepsilon = 400\ndelta = 0.01\n[unit]\nwindow_months = 2\n")
    facts = json.loads(qlog(home, "plan", "budget", "--rows", "5000", "--json").success)
    assert (facts["window_months"], facts["months"], facts["sum"]) == (2, 2, 400.0)
    assert {each["mechanism"] for each in facts["releases"]} == {each.name for each in EVERY}
    assert all(each["epsilon"] == 200 / len(EVERY) and sum(each["rows"].values()) > 0 for each in facts["releases"])
    assert not (home / "private").exists() and not (home / "ledger.db").exists()
