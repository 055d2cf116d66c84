"""What the ledger refuses, and how it says so: a known, live or withdrawn release, an empty budget, an impossible step.

Decisions on a folded state; they write nothing. Taking the lock, re-reading and recording is in `ledger.py`.
"""

from __future__ import annotations

import re

from qlog_assets.ledger.budget import Amount, Budget, readable
from qlog_assets.ledger.state import NEXT_STATES, Charge, Dataset, Request, State
from qlog_assets.ledger.store import LedgerError

SHOWN_RELEASES = 8
"""How many releases an over-budget error names; an error is one line."""


class BudgetError(LedgerError):
    """The request costs more than is left."""


class LiveReleaseError(LedgerError):
    """The month has a live release of this mechanism, made from something else."""

    def __init__(self, message: str, live: Charge, differences: list[str]) -> None:
        super().__init__(message)
        self.live = live
        self.differences = differences


class WithdrawnError(LedgerError):
    """The release was withdrawn: it is neither served nor drawn again without a reason."""


class DrawConflictError(LedgerError):
    """Another process recorded another draw or manifest of the same release: use that one."""


class UnknownReleaseError(LedgerError):
    """The ledger knows no such release."""


def known_charge(history: list[Charge], request: Request, reason: str | None) -> Charge | None:
    """The charge this request already has; None if it needs a new one; an error if it may not have one."""
    same = [c for c in history if c.fingerprint == request.fingerprint(c.draw_number) and reason in (None, c.reason)]
    live = [charge for charge in same if charge.live]
    if live:
        return live[-1]
    if same:
        raise WithdrawnError(
            f"{same[-1].release_id} was withdrawn: {same[-1].closing_reason}. "
            f"Another draw needs --again with {'a' if reason is None else 'another'} reason"
        )
    if reason is not None or not history:
        return None
    current = next((charge for charge in reversed(history) if charge.live), None)
    if current is None:
        raise WithdrawnError(
            f"{request.month} had the {request.mechanism} release {history[-1].release_id}, which was withdrawn. "
            "Another draw needs --again with a reason"
        )
    differences = request.differences(current.request)
    advice = "Another draw costs again: say --again REASON"
    if current.state == "reserved":
        advice = f"Nothing was drawn for it yet: qlog ledger abandon {current.release_id} gives its charge back"
    raise LiveReleaseError(
        f"{request.month} has a live {request.mechanism} release, {current.release_id} ({current.state}); "
        f"this request differs in {'; '.join(differences)}. {advice}",
        current,
        differences,
    )


def over_budget(state: State, dataset: str, budget: Budget, asked: Amount) -> str:
    """The refusal: what was asked, what is left, and which releases took the rest, dearest first."""
    total = state.totals[dataset]
    spenders = sorted(
        (c for c in state.charges.values() if c.dataset == dataset and c.counted), key=lambda c: (-c.epsilon, c.seq)
    )
    names = ", ".join(f"{c.release_id} ({in_words(budget, c.amount)})" for c in spenders[:SHOWN_RELEASES])
    more = f" and {len(spenders) - SHOWN_RELEASES} more" if len(spenders) > SHOWN_RELEASES else ""
    left = in_words(budget, budget.left(total))
    return (
        f"over the budget of {dataset}: {in_words(budget, asked)} asked, {left} left of "
        f"{in_words(budget, budget.limit)}; spent by {names + more if names else 'no release'}"
    )


def in_words(budget: Budget, amount: Amount) -> str:
    """The numbers that this budget's accountant adds up."""
    first = f"epsilon {readable(amount.epsilon)}" if budget.accountant == "basic" else f"rho {readable(amount.rho)}"
    return f"{first}, delta {readable(amount.delta)}"


def dataset_of(state: State, name: str) -> Dataset:
    if name not in state.datasets:
        raise LedgerError(f"the ledger has no data set {name}")
    return state.datasets[name]


def charge_of(state: State, release: str) -> Charge:
    charge = state.find(release)
    if charge is None:
        # A fingerprint stays out of messages: it is made from input digests.
        fingerprint = re.fullmatch(r"[0-9a-f]{64}", release)
        raise UnknownReleaseError(f"the ledger knows no release {'of this fingerprint' if fingerprint else release}")
    return charge


def allow(charge: Charge, to: str) -> None:
    """Refuse a step that a charge in this state cannot take."""
    if to in NEXT_STATES[charge.state]:
        return
    hint = ""
    if to == "abandoned":
        hint = ": its noise was drawn, so its charge stays (withdraw keeps the charge and removes the release)"
    elif charge.state == "reserved":
        hint = ": nothing was drawn yet" + (" (abandon gives its charge back)" if to == "withdrawn" else "")
    raise LedgerError(f"{charge.release_id} is {charge.state} and cannot become {to}{hint}")


def as_reason(text: str) -> str:
    """A reason on one line; an error where there is none."""
    if not text.strip():
        raise LedgerError("a reason is needed: it is what an auditor will read")
    return " ".join(text.split())
