"""Which month is due for a release: complete, allowed by the policy, undecided, with rows, and within the budget.

Which months are thought of at all follows from the calendar, the policy and what was charged, all public: one person's
row with a wrong date must not put a month on the list. That a month has no row at all keeps it off, as the door does
(docs/checks.md, An empty month). It decides nothing for the door; it spares runs that the door would refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from qlog_assets.ledger import Book, Ledger
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import releasable
from qlog_assets.months import Month, months_between
from qlog_assets.pipeline.batches import in_use, months_of, readable_batches
from qlog_assets.policy import Policy
from qlog_assets.privacy.guarantee import PrivacyLoss
from qlog_assets.storage.warehouse import Warehouse


@dataclass(frozen=True)
class Due:
    """The month to ask for, or why there is none."""

    month: Month | None
    reason: str


def find_due_month(
    warehouse: Warehouse, policy: Policy, ledger: Ledger | None, mechanism: Mechanism, now: datetime
) -> Due:
    """The newest complete month that is neither released nor withdrawn nor skipped and that the budget admits."""
    newest = Month.numbered(Month.containing(now).number - 1)
    if policy.last is not None:
        newest = min(newest, policy.last)
    if newest < policy.first:
        return Due(None, f"no month of the policy is complete yet: its first is {policy.first}")
    charges = [] if ledger is None else [each for each in ledger.charges(policy.dataset) if each.counted]
    earliest = max(policy.first, min((Month(charge.month) for charge in charges), default=newest))
    decided = {charge.month for charge in charges if charge.mechanism == mechanism.name}
    skips = [] if ledger is None else ledger.skips(policy.dataset)
    skipped = {skip.month for skip in skips if skip.mechanism == mechanism.name} - decided
    decided |= skipped
    undecided = [month for month in reversed(months_between(earliest, newest)) if month not in decided]
    if not undecided:
        or_skipped = f" or was skipped ({', '.join(sorted(skipped))})" if skipped else ""
        return Due(
            None, f"every month from {earliest} to {newest} has a {mechanism.name} release or had one{or_skipped}"
        )
    if mechanism.reads_log:
        withdrawals = {} if ledger is None else Book(ledger, policy.dataset).withdrawals()
        ingested = {name for batch in in_use(readable_batches(warehouse), withdrawals) for name in months_of(batch)}
        open_months = [month for month in undecided if month in ingested]
    else:
        open_months = [month for month in undecided if mechanism.was_collected(warehouse, month)]
    if not open_months:
        missing = "no rows of {} were ingested yet" if mechanism.reads_log else "nothing of {} was collected yet"
        return Due(None, missing.format(undecided[0]))
    loss = release_cost(policy, mechanism)
    for month in open_months:
        if first_fitting(ledger, policy, loss, month) == month:
            return Due(month, f"{month} is due")
    later = first_fitting(ledger, policy, loss, open_months[0].next())
    goes_on = (
        f"the next month that fits is {later}"
        if later
        else "no later month fits: qlog ledger set-budget needs a reason"
    )
    return Due(None, f"{open_months[0]} does not fit the budget beside what was spent: {goes_on}")


def first_fitting(ledger: Ledger | None, policy: Policy, loss: PrivacyLoss, month: Month) -> Month | None:
    """The first month from this one on that the budget admits at this cost; the month itself before any account."""
    if ledger is None or not any(dataset.name == policy.dataset for dataset in ledger.datasets()):
        return month
    return ledger.first_fitting(policy.dataset, loss.epsilon, loss.delta, loss.rho, month)


def release_cost(policy: Policy, mechanism: Mechanism) -> PrivacyLoss:
    """What one release of a mechanism costs under a policy."""
    loss = mechanism.guarantee(policy.variant(mechanism), policy.parameters(mechanism)).proven
    assert loss is not None  # only publishable variants can be chosen in a policy
    return loss


def next_months(ledger: Ledger, policy: Policy, after: str) -> dict[str, str | None]:
    """For each mechanism, at its cost: the first month after this one that the budget admits; None if none ever is."""
    found = {
        each.name: first_fitting(ledger, policy, release_cost(policy, each), Month(after).next())
        for each in releasable()
    }
    return {name: None if month is None else str(month) for name, month in found.items()}
