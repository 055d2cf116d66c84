"""What a refusal for budget offers: parameters that really fit and may be asked for, and the budget that would hold."""

from __future__ import annotations

import re
import shlex
from fractions import Fraction
from pathlib import Path

import pytest
from support.cli import qlog
from support.instances import POLICY_EPSILON
from support.ledgers import request

from qlog_assets.door.choices import budget_choices
from qlog_assets.ledger import Budget, Ledger
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import releasable
from qlog_assets.months import Month
from qlog_assets.policy import Policy

MARCH, APRIL = Month("2006-03"), Month("2006-04")


def account(tmp_path: Path, budget: Budget, spent: str, delta: str = "0") -> Ledger:
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.ensure_dataset("small", budget)
    ledger.reserve(**request(dataset="small", epsilon=spent, delta=delta))
    ledger.record_draw(ledger.charges()[0].release_id, "1" * 64)
    return ledger


def offered(policy: Policy, mechanism: Mechanism, words: str) -> Policy:
    """The policy with what a refusal offers, as the command line would take it."""
    changes = dict(each.split("=", 1) for each in re.findall(r"--set (\S+)", words))
    assert changes, words
    return policy.with_run_changes(changes, mechanism.name)


@pytest.mark.parametrize("accountant", ["basic", "zcdp"])
@pytest.mark.parametrize("mechanism", releasable(), ids=lambda each: each.name)
def test_what_is_offered_is_within_the_budget_and_never_dearer_than_what_was_asked(
    tmp_path: Path, mechanism: Mechanism, accountant: str
) -> None:
    policy = Policy(dataset="small")
    asked = mechanism.guarantee(policy.variant(mechanism), policy.parameters(mechanism)).proven
    assert asked is not None
    costs = {"epsilon": asked.epsilon, "delta": asked.delta, "rho": asked.rho}
    ledger = Ledger.open(tmp_path / "ledger.db")
    budget = Budget(Fraction("1.57") * Fraction(asked.epsilon), Fraction("0.1"), accountant)  # type: ignore[arg-type]
    ledger.ensure_dataset("small", budget)
    for number in range(100):
        if ledger.first_fitting("small", *costs.values(), APRIL) is None:
            break
        ledger.reserve(**request(dataset="small", month=Month.numbered(MARCH.number - number), **costs))
    assert number in range(1, 99)
    words = budget_choices(ledger, policy, mechanism, APRIL, "command")
    chosen = offered(policy, mechanism, words)
    loss = mechanism.guarantee(chosen.variant(mechanism), chosen.parameters(mechanism)).proven
    assert loss is not None and 0 < loss.epsilon <= asked.epsilon and loss.delta <= asked.delta
    assert ledger.first_fitting("small", loss.epsilon, loss.delta, loss.rho, APRIL) == APRIL
    assert "set-budget" in words and "config" not in words
    run = budget_choices(ledger, policy, mechanism, APRIL, "run")
    assert "--set" not in run and f"config: {{{mechanism.name}: " in run


@pytest.mark.parametrize(
    "variant, delta_left, has_urls",
    [("sound", "0", True), ("sound", "1e-6", False), ("modern", "1e-6", True), ("modern", "1e-6", False)],
)
def test_what_a_part_that_is_off_does_not_take_buys_the_others_and_its_keys_are_not_offered(
    tmp_path: Path, variant: str, delta_left: str, has_urls: bool
) -> None:
    (mechanism,) = (each for each in releasable() if each.name == "safelog")
    policy = Policy(dataset="small", has_urls=has_urls, safelog={"variant": variant})
    assert policy.section("safelog").click_scale is not None  # type: ignore[attr-defined]
    assert policy.section("safelog").click_share is not None  # type: ignore[attr-defined]
    ledger = account(tmp_path, Budget(Fraction(2), Fraction(delta_left)), "1.25")
    words = budget_choices(ledger, policy, mechanism, APRIL, "command")
    chosen = offered(policy, mechanism, words)
    loss = mechanism.guarantee(chosen.variant(mechanism), chosen.parameters(mechanism)).proven
    assert loss is not None and loss.epsilon == Fraction("0.75"), "all that is left"
    key = {"sound": "selection_scale", "modern": "epsilon"}[variant]
    assert f"--set {key}=" in words and "click" not in words


def test_without_delta_modern_safelog_cannot_be_had_and_is_not_offered(tmp_path: Path) -> None:
    (mechanism,) = (each for each in releasable() if each.name == "safelog")
    ledger = account(tmp_path, Budget(Fraction(2), Fraction(0)), "1.25")
    words = budget_choices(ledger, Policy(dataset="small"), mechanism, APRIL, "command")
    assert f"what is left buys no safelog release of {APRIL}" in words and "--set " not in words


def test_where_nothing_is_left_only_a_budget_is_offered_and_it_holds_what_was_asked(tmp_path: Path) -> None:
    (mechanism,) = (each for each in releasable() if each.name == "safelog")
    policy = Policy(dataset="small")
    asked = mechanism.guarantee(policy.variant(mechanism), policy.parameters(mechanism)).proven
    assert asked is not None
    ledger = account(tmp_path, Budget(Fraction(1), Fraction("1e-6")), "1", "1e-6")
    words = budget_choices(ledger, policy, mechanism, APRIL, "command")
    assert f"what is left buys no safelog release of {APRIL}" in words
    found = re.search(r"set-budget --epsilon (\S+) --delta (\S+) --reason", words)
    assert found is not None
    ledger.set_budget("small", *found.groups(), "as it was offered")
    assert ledger.first_fitting("small", asked.epsilon, asked.delta, asked.rho, APRIL) == APRIL


def test_a_reservation_that_was_never_drawn_is_offered_to_be_given_back(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.ensure_dataset("small", Budget(Fraction(1), Fraction("0.1")))
    charge, _ = ledger.reserve(**request(dataset="small"))
    words = budget_choices(ledger, Policy(dataset="small"), releasable()[0], APRIL, "command")
    assert f"nothing was drawn of {charge.release_id}: qlog ledger abandon" in words


@pytest.mark.slow
def test_a_refused_release_goes_through_with_the_words_of_its_refusal(released: Path) -> None:
    assert qlog(released, "ledger", "set-budget", "--epsilon", "30", "--delta", "0.1", "--reason", "a test").success
    refusal = qlog(released, "release", "safelog", "--month", APRIL).refusal
    assert "over the budget of small" in refusal
    settings = shlex.split(" ".join(re.findall(r"--set \S+", refusal)))
    answer = qlog(released, "release", "safelog", "--month", APRIL, *settings, "--json").json
    assert answer["charged"] and answer["epsilon"] == 30 - POLICY_EPSILON
