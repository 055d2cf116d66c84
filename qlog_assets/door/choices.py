"""What can be done where the budget says no: parameters that would fit, a reservation to give back, a larger budget.

Functions of ledger and policy alone, which are public to whoever may ask: no row of the log decides what is offered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Any, Literal

from qlog_assets.door.release_limits import amount, rho_of
from qlog_assets.errors import ParameterError
from qlog_assets.ledger import Amount, Budget, BudgetError, Charge, Ledger, Skip
from qlog_assets.ledger.budget import cost, readable_left
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.privacy.bounds import at_most
from qlog_assets.privacy.guarantee import PrivacyLoss
from qlog_assets.privacy.parameters import Parameters, decimal_text

Interface = Literal["command", "run"]
"""Where a person reads the refusal: of a command, or of a run in the UI."""
INTERFACES: tuple[Interface, Interface] = ("command", "run")
SHARES = tuple(Fraction(each, 100) for each in (80, 64, 50, 40, 32, 25, 20, 16, 10, 8, 5, 4, 2, 1))
"""Parts of what was asked whose inverse is a short decimal: scales that people can write down."""
LONGEST_VALUE = 14
LOGGER = logging.getLogger(__name__)


@contextmanager
def offering_choices(ledger: Ledger, policy: Policy, mechanism: Mechanism, month: Month) -> Iterator[None]:
    """Where the budget says no to what a block asks, say what can be had instead, in the words of each interface."""
    try:
        yield
    except BudgetError as refusal:
        by_command, in_run = (budget_choices(ledger, policy, mechanism, month, each) for each in INTERFACES)
        raise BudgetError(f"{refusal}. {by_command}", f"{refusal}. {in_run}") from None


def warn_of_skip(skips: Sequence[Skip], charge: Charge) -> None:
    """Say that a month which was skipped is charged all the same."""
    for skip in skips:
        if (skip.month, skip.mechanism) == (charge.month, charge.mechanism):
            words = f"{skip.month} was skipped by {skip.mechanism} ({skip.reason})"
            LOGGER.warning("%s and is released all the same: the ledger keeps both", words)


def budget_choices(ledger: Ledger, policy: Policy, mechanism: Mechanism, month: Month, interface: Interface) -> str:
    """The choices after a refusal, in one line, in the words of one interface."""
    asked = _cost(policy, mechanism, policy.section(mechanism.name))
    left = ledger.left(policy.dataset, month)
    choices = []

    def fits(loss: PrivacyLoss) -> bool:
        return ledger.first_fitting(policy.dataset, loss.epsilon, loss.delta, loss.rho, month) == month

    fitting = fitting_section(policy, mechanism, asked, left, fits)
    choices.append(bought_words(policy, mechanism, month, fitting, "what is left", interface))
    waiting = [c for c in ledger.charges(policy.dataset) if c.state == "reserved"]
    if waiting:
        choices.append(f"nothing was drawn of {waiting[0].release_id}: qlog ledger abandon gives its charge back")
    budget = ledger.dataset(policy.dataset).budget
    place = " on the machine" if interface == "run" else ""
    if budget.accountant == "basic" and min(left.epsilon, left.delta) >= 0:
        totals = [
            at_most(total + max(Fraction(0), Fraction(wanted) - has), 12)
            for total, wanted, has in (
                (budget.epsilon, asked.epsilon, left.epsilon),
                (budget.delta, asked.delta, left.delta),
            )
        ]
        choices.append(
            f"a larger budget needs a reason: qlog ledger set-budget --epsilon {totals[0]} --delta {totals[1]} "
            f"--reason REASON{place}"
        )
    else:
        choices.append(f"a larger budget needs a reason: qlog ledger set-budget{place}")
    return numbered(choices)


def opening_choices(policy: Policy, mechanism: Mechanism, month: Month, budget: Budget, interface: Interface) -> str:
    """The choices where a first release costs more than the budget that it would open the account with."""
    asked = _cost(policy, mechanism, policy.section(mechanism.name))
    fitting = fitting_section(
        policy, mechanism, asked, budget.left(Amount()), lambda loss: budget.holds(charged_amount(loss))
    )
    larger = "raise [budget] in the policy file"
    if budget.accountant == "basic":
        totals = [
            at_most(max(total, Fraction(wanted)), 12)
            for total, wanted in ((budget.epsilon, asked.epsilon), (budget.delta, asked.delta))
        ]
        larger += f': epsilon = "{totals[0]}" and delta = "{totals[1]}" hold what was asked'
    return numbered([bought_words(policy, mechanism, month, fitting, "the whole budget", interface), larger])


def charged_amount(loss: PrivacyLoss) -> Amount:
    """What a release would be charged."""
    rho = None if loss.rho is None else cost("rho", loss.rho)
    return Amount.of(cost("epsilon", loss.epsilon), cost("delta", loss.delta), rho)


def numbered(choices: Sequence[str]) -> str:
    return "Choices: " + " ".join(f"({number}) {each}" for number, each in enumerate(choices, start=1))


def bought_words(
    policy: Policy,
    mechanism: Mechanism,
    month: Month,
    fitting: tuple[Parameters, PrivacyLoss] | None,
    means: str,
    interface: Interface,
) -> str:
    """What the means buy of a month, and how to ask for it."""
    if fitting is None:
        return f"{means} buys no {mechanism.name} release of {month}"
    section, loss = fitting
    written = change_words(mechanism, changes(policy.section(mechanism.name), section), interface)
    price = f"ε = {amount(loss.epsilon)}, δ = {amount(loss.delta)}"
    return f"{means} buys {mechanism.name} at {price}, with {written}"


def fitting_section(
    policy: Policy, mechanism: Mechanism, asked: PrivacyLoss, left: Amount, fits: Callable[[PrivacyLoss], bool]
) -> tuple[Parameters, PrivacyLoss] | None:
    """The dearest parameters in easy numbers that what is left admits, and their cost; None if there are none.

    They are in the proportions of what was asked and never cost more than that, so the policy's limits allow them.
    """
    section = policy.section(mechanism.name)
    for epsilon, delta in _targets(asked, left):
        for candidate, loss in _candidates(policy, mechanism, epsilon, delta):
            if any(not is_short(value) for value in changes(section, candidate).values()):
                continue
            dearer = loss.epsilon > asked.epsilon or loss.delta > asked.delta or rho_of(loss) > rho_of(asked)
            if not dearer and fits(loss):
                return candidate, loss
    return None


def _targets(asked: PrivacyLoss, left: Amount) -> Iterator[tuple[Fraction, Fraction]]:
    """Costs to try, dearest first: all that is left, then round parts of what was asked that are below it."""
    full = Fraction(asked.epsilon)
    delta = Fraction(readable_left(min(Fraction(asked.delta), left.delta)))
    if left.epsilon <= 0 or left.delta < 0:
        return
    whole = min(full, Fraction(readable_left(left.epsilon)))
    yield whole, delta
    yield from ((share * full, delta) for share in SHARES if share * full < whole)


def _candidates(
    policy: Policy, mechanism: Mechanism, epsilon: Fraction, delta: Fraction
) -> Iterator[tuple[Parameters, PrivacyLoss]]:
    """Sections that a cost buys, dearest first, each with what its release costs.

    A section is scaled as it stands, and a release pays for no part that is off, such as clicks without δ: what such a
    part does not take buys more of the others.
    """
    try:
        plain = _usable(policy, mechanism, epsilon, delta)
    except ParameterError:
        return
    spared = Fraction(plain[1].epsilon)
    if 0 < spared < epsilon:
        with suppress(ParameterError):
            yield _usable(policy, mechanism, epsilon * epsilon / spared, delta)
    yield plain


def _usable(policy: Policy, mechanism: Mechanism, epsilon: Fraction, delta: Fraction) -> tuple[Parameters, PrivacyLoss]:
    """The policy's section at a cost, and what a release by it costs; an error where it cannot be drawn."""
    section = policy.section(mechanism.name)
    scaled = mechanism.at_cost(section, epsilon, delta)
    released = mechanism.resolve(scaled, policy.lists)
    # What says nothing, because its part is off, stays as the policy has it: nobody need write it.
    unread = [key for key in changes(section, scaled) if getattr(released, key, None) != getattr(scaled, key)]
    candidate = scaled.with_changes(**{key: getattr(section, key) for key in unread})
    parameters = mechanism.chosen_parameters(candidate, policy.lists)
    mechanism.refuse_unusable(mechanism.chosen_variant(candidate), parameters)
    return candidate, _cost(policy, mechanism, candidate)


def changes(before: Parameters, after: Parameters) -> dict[str, Any]:
    """What differs between two sections, as the policy writes it."""
    old, new = before.as_public(), after.as_public()
    return {key: value for key, value in new.items() if value != old[key]}


def is_short(value: Any) -> bool:
    """Whether a value can be written down: a fraction without end cannot."""
    text = decimal_text(value) if isinstance(value, Fraction) else str(value)
    return "/" not in text and len(text) <= LONGEST_VALUE


def change_words(mechanism: Mechanism, changed: Mapping[str, Any], interface: Interface) -> str:
    """How to ask for other parameters."""
    command = " ".join(f"--set {key}={value}" for key, value in changed.items())
    inner = ", ".join(f"{key}: {value}" for key, value in changed.items())
    config = f"resources: {{policy: {{config: {{{mechanism.name}: {{{inner}}}}}}}}}"
    return command if interface == "command" else f"{config} in the run's config"


def _cost(policy: Policy, mechanism: Mechanism, section: Parameters) -> PrivacyLoss:
    """What a release by a section of the policy costs."""
    parameters = mechanism.chosen_parameters(section, policy.lists)
    loss = mechanism.guarantee(mechanism.chosen_variant(section), parameters).proven
    assert loss is not None, "only publishable variants can be chosen in a policy"
    return loss
