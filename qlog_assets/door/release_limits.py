"""The most that one release may cost: what the policy file sets, or else what its own parameters cost. And the most
that all releases of a month may cost together, where people were promised that.

A run may ask for other parameters of the mechanism. It never gets more ε or δ than the file's owner allowed, and
nothing but parameters: data set, budget, months, files and pools are those of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from qlog_assets.door.inputs import DoorError, RefusedByDoorError
from qlog_assets.ledger import Ledger
from qlog_assets.ledger.budget import cost
from qlog_assets.ledger.records import Request
from qlog_assets.ledger.rules import as_reason, known_charge
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.months import Month
from qlog_assets.policy import FILE_ALONE, Policy
from qlog_assets.privacy.composition import pure_rho
from qlog_assets.privacy.guarantee import Guarantee, Number, PrivacyLoss, printed
from qlog_assets.privacy.parameters import decimal_text
from qlog_assets.storage.warehouse import Warehouse

SYMBOLS = {"epsilon": "ε", "delta": "δ"}


def refuse_changed_policy(policy: Policy) -> None:
    """Refuse a request that changes more of the policy file than parameters."""
    owners = policy.in_file
    if policy.with_changes(mechanisms=owners.mechanisms).as_public() != owners.as_public():
        raise DoorError(f"the door refuses a policy that was changed outside the mechanisms' sections: {FILE_ALONE}")


def refuse_beyond_limits(policy: Policy, mechanism: Mechanism, asked: Guarantee) -> None:
    """Refuse a request that costs more than the policy file allows."""
    owners = policy.in_file
    assert asked.proven is not None
    own = own_cost(owners, mechanism)
    for name, symbol in SYMBOLS.items():
        limit, usual, wanted = (getattr(each, name) for each in (owners.limits, own, asked.proven))
        if limit is not None and usual > limit:
            raise DoorError(
                f"{owners.source}: [{mechanism.name}] costs {symbol} = {amount(usual)}, and [limits] allows {symbol} = "
                f"{amount(limit)} per release: make the two agree"
            )
        most = usual if limit is None else limit
        if wanted > most:
            own_words = f"what its own [{mechanism.name}] costs, because [limits] sets no {name}"
            where = own_words if limit is None else f"[limits] {name}"
            raise RefusedByDoorError(
                f"the door refuses {mechanism.name} at {symbol} = {amount(wanted)}: one release may cost {symbol} = "
                f"{amount(most)} at most, by {owners.source} ({where}); nothing was drawn or charged"
            )
    refuse_dearer_in_rho(owners, mechanism, own, asked.proven)


def refuse_dearer_in_rho(owners: Policy, mechanism: Mechanism, own: PrivacyLoss, asked: PrivacyLoss) -> None:
    """Where a zCDP filter adds up ρ: refuse more ρ than the file's own parameters cost, whatever ε and δ say."""
    if owners.budget.accountant != "zcdp" or owners.limits.epsilon is not None:
        return
    wanted, most = rho_of(asked), rho_of(own)
    if wanted > most:
        raise RefusedByDoorError(
            f"the door refuses {mechanism.name} at ρ = {amount(wanted)}: the budget adds up ρ, and one release may "
            f"cost ρ = {amount(most)} at most, by {owners.source} (what its own [{mechanism.name}] costs); nothing was "
            "drawn or charged"
        )


def refuse_beyond_promise(
    warehouse: Warehouse, ledger: Ledger, mechanism: Mechanism, request: Request, asked: PrivacyLoss, again: str | None
) -> None:
    """Refuse a new draw of a month that would cost, with those before it, more than people were promised of it.

    Sums of ε and of δ, whatever the budget adds up: that is how a person reads them. Withdrawn releases count.
    """
    charges = [each for each in ledger.charges(request.dataset) if each.request.key == request.key and each.counted]
    if known_charge(charges, request, None if again is None else as_reason(again)) is not None:
        return
    promise = mechanism.promised(warehouse, Month(request.month))
    promised = {name: most for name in SYMBOLS if (most := getattr(promise, name)) is not None}
    spent = {name: sum((getattr(each, name) for each in charges), Fraction(0)) for name in promised}
    wanted = {name: cost(name, getattr(asked, name)) for name in promised}
    if any(spent[name] + wanted[name] > promised[name] for name in promised):
        raise RefusedByDoorError(
            f"the door refuses one more draw of {mechanism.name}: those who took part in {request.month} were promised "
            f"{in_symbols(promised)} in all, {in_symbols(spent)} are spent, and it costs {in_symbols(wanted)}; nothing "
            "was drawn or charged"
        )


def in_symbols(costs: Mapping[str, Fraction]) -> str:
    return " and ".join(f"{SYMBOLS[name]} = {amount(value)}" for name, value in costs.items())


def rho_of(loss: PrivacyLoss) -> Fraction:
    """What a release costs a zCDP filter: what it states, or what its ε comes to."""
    pure = pure_rho(Fraction(loss.epsilon))
    return pure if loss.rho is None else min(pure, Fraction(loss.rho))


def own_cost(owners: Policy, mechanism: Mechanism) -> PrivacyLoss:
    """What a release by the policy file's own parameters costs."""
    own = mechanism.guarantee(owners.variant(mechanism), owners.parameters(mechanism)).proven
    assert own is not None, "a policy's section can only choose among variants that may be published"
    return own


def amount(value: Number) -> str:
    """A cost in digits, never below what it is: as it was written where that is short."""
    exact = decimal_text(Fraction(value))
    return exact if len(exact) <= 12 and "/" not in exact else repr(printed(value))
