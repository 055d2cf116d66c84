"""What a ledger answers: data sets, charges, balances and the history itself. Reading only; nothing here charges.

Every question folds the history as it is now. Writing is `ledger.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from qlog_assets.ledger.budget import Amount, Budget, Number, cost
from qlog_assets.ledger.chain import Event, SaltedHead, broken_links, heads_missing, publicly_counted
from qlog_assets.ledger.guards import missing_guards
from qlog_assets.ledger.records import BatchWithdrawal, Charge, Dataset, Made, Request
from qlog_assets.ledger.rules import answer, as_reason, charge_of, dataset_of, first_fitting, fit_together
from qlog_assets.ledger.skips import Skip, unreleased
from qlog_assets.ledger.state import State, apply_event, fold
from qlog_assets.ledger.store import LedgerError, Store
from qlog_assets.ledger.windows import Span
from qlog_assets.months import Month


@dataclass(frozen=True)
class Balance:
    """A data set's account. With the zcdp accountant, ε of spent and left comes from Σρ and does not add up."""

    budget: Budget
    spent: Amount
    """Everything counted: reserved, drawn, published and withdrawn. Where the budget is for a window of months, the
    most in any window that holds the month asked for."""
    reserved: Amount
    """The part of it that no draw was recorded for: it can still be given back."""
    left: Amount
    """What a release of that month may still take."""
    month: Month | None = None
    """The month asked for, where the budget is for a window of months."""
    total: Amount = field(default_factory=Amount)
    """Everything counted, of all months."""

    @classmethod
    def untouched(cls, budget: Budget) -> Balance:
        """The account that will be opened with a budget, before anything is charged."""
        nothing = budget.spent(Amount())
        return cls(budget, nothing, nothing, budget.left(Amount()), total=nothing)


class History:
    """A ledger's history, open for questions."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def where(self) -> str:
        """The file, or the URL without its password: fit for messages."""
        return self._store.where

    def made(self, dataset: str) -> dict[tuple[str, str, str], Made]:
        """What was written of a data set's private tables, by asset, month and shape: the newest entry of each."""
        return {key[1:]: made for key, made in self._state().made.items() if key[0] == dataset}

    def batch_withdrawals(self, dataset: str) -> list[BatchWithdrawal]:
        """The landing batches that were taken out of use, oldest first; those that were taken back, too."""
        return self._state().batch_withdrawals.get(dataset, [])

    def datasets(self) -> list[Dataset]:
        return list(self._state().datasets.values())

    def dataset(self, name: str) -> Dataset:
        return dataset_of(self._state(), name)

    def charges(self, dataset: str | None = None) -> list[Charge]:
        """All charges in the order they were reserved, given-back ones included."""
        return [charge for charge in self._state().charges.values() if dataset in (None, charge.dataset)]

    def skips(self, dataset: str) -> list[Skip]:
        """The months that were left out on purpose, by month and mechanism; the newest reason of each."""
        found = [skip for skip in self._state().skips.values() if skip.dataset == dataset]
        return sorted(found, key=lambda skip: (skip.month, skip.mechanism))

    def refuse_needless_skip(self, dataset: str, month: str, mechanisms: Iterable[str]) -> None:
        """Refuse to skip a month of which each of these mechanisms has or had a release."""
        unreleased(self._state(), dataset, Month(month), mechanisms)

    def charge(self, release: str) -> Charge:
        """The charge of a release id or of a fingerprint."""
        return charge_of(self._state(), release)

    def live(self, dataset: str, month: str, mechanism: str) -> list[Charge]:
        """The live releases of a month, by draw number: the last one is the month's current release."""
        key = (dataset, month, mechanism)
        return [charge for charge in self.charges(dataset) if charge.request.key == key and charge.live]

    def answer(
        self, request: Request, epsilon: Number, delta: Number, rho: Number | None = None, again: str | None = None
    ) -> Charge | None:
        """What reserving this would give now, without reserving it: see `rules.answer`."""
        month = Month(request.month)
        asked = Amount.of(cost("epsilon", epsilon), cost("delta", delta), None if rho is None else cost("rho", rho))
        return answer(self._state(), request, asked, Span(month, month), None if again is None else as_reason(again))

    def fit_together(
        self, dataset: str, epsilon: Number, delta: Number, rho: Number | None, months: Sequence[str]
    ) -> bool:
        """Whether a release of each of these months, all at this cost, stays within the budget."""
        asked = Amount.of(cost("epsilon", epsilon), cost("delta", delta), None if rho is None else cost("rho", rho))
        return fit_together(self._state(), dataset, asked, [Month(month) for month in months])

    def balance(self, dataset: str, month: str | None = None) -> Balance:
        """What a data set may spend, has spent and has left: for ever, or in the windows that hold a month.

        Without a month, the newest that was charged.
        """
        return self.balances(dataset, [month])[0]

    def balances(self, dataset: str, months: Sequence[str | None]) -> list[Balance]:
        """The same for several months, from one reading of the history."""
        state = self._state()
        return [self._balance(state, dataset, None if month is None else Month(month)) for month in months]

    def _balance(self, state: State, dataset: str, asked: Month | None) -> Balance:
        known = dataset_of(state, dataset)
        budget = known.budget
        if known.window_months is not None and asked is None:
            asked = state.last_month(dataset)
        most = state.most(dataset, None if asked is None else Span(asked, asked))
        waiting = [c.amount for c in state.charges.values() if c.dataset == dataset and c.state == "reserved"]
        reserved = budget.spent(sum(waiting, start=Amount()))
        return Balance(
            budget,
            budget.spent(most),
            reserved,
            budget.left(most),
            asked if known.window_months is not None else None,
            budget.spent(state.totals[dataset]),
        )

    def spent(self, dataset: str, month: str | None = None) -> Amount:
        return self.balance(dataset, month).spent

    def left(self, dataset: str, month: str | None = None) -> Amount:
        return self.balance(dataset, month).left

    def is_over_budget(self, dataset: str) -> bool:
        """Whether more is charged than the budget holds, for ever or in any window."""
        state = self._state()
        return not dataset_of(state, dataset).budget.holds(state.most(dataset))

    def windows(self, dataset: str) -> list[tuple[Span, Amount]]:
        """What was charged in each window of months, as the budget counts it; empty where the budget is for ever."""
        state = self._state()
        budget = dataset_of(state, dataset).budget
        return [(span, budget.spent(amount)) for span, amount in state.by_window(dataset)]

    def first_fitting(
        self, dataset: str, epsilon: Number, delta: Number, rho: Number | None, month: str
    ) -> Month | None:
        """The first month from this one on whose release at this cost the budget would admit; None if none ever is."""
        asked = Amount.of(cost("epsilon", epsilon), cost("delta", delta), None if rho is None else cost("rho", rho))
        return first_fitting(self._state(), dataset, asked, Month(month))

    def terms_between(self, dataset: str, first_seq: int, last_seq: int) -> list[dict[str, Any] | None]:
        """What manifests say of the budget, as it stood from one event to another: it may have changed in between."""
        state, found = State(), []
        for event in self.events()[:last_seq]:
            apply_event(state, event)
            if event.seq >= first_seq and (terms := dataset_of(state, dataset).public_terms()) not in found:
                found.append(terms)
        return found

    def witnessed_at(self, seq: int) -> bool:
        """Whether a witness was in use when an event was written."""
        return fold(self.events()[:seq])[0].witnessed

    def events(self) -> list[Event]:
        """The whole history. Private: payloads hold input digests."""
        return self._store.read()

    def head(self) -> tuple[int, str]:
        """The last event's number and hash. Private: a manifest gets the salted head."""
        last = self._events()[-1]
        return last.seq, last.hash

    def salted_head(self, salt: bytes, seq: int | None = None) -> SaltedHead:
        """A public commitment to the history up to now, or up to event `seq` so that a manifest can be made again."""
        events = self._events()
        if seq is not None and not 1 <= seq <= len(events):
            raise LedgerError(f"the ledger at {self.where} has no event {seq}")
        counted = publicly_counted(events if seq is None else events[:seq])
        return SaltedHead.of(counted[-1], len(counted), salt)

    def heads_missing(self, heads: Iterable[SaltedHead]) -> list[SaltedHead]:
        """The commitments of manifests that this history does not contain: it was cut, rewritten or swapped."""
        return heads_missing(heads, self.events())

    def verify_chain(self) -> list[str]:
        """What is wrong with the history by itself: altered, missing or moved events, and contradictions among them.

        A tail that was cut off, or a history rewritten with fitting hashes, shows only against the manifests: see
        `heads_missing`.
        """
        events = self.events()
        return broken_links(events) + fold(events)[1]

    def missing_guards(self) -> list[str]:
        """The triggers against changed rows that the database no longer has."""
        return missing_guards(self._store)

    def _events(self) -> list[Event]:
        events = self.events()
        if not events:
            raise LedgerError(f"the ledger at {self.where} is empty: its history was removed")
        return events

    def _state(self) -> State:
        return fold(self.events())[0]
