"""The privacy ledger: which release cost what, and whether another may be made. The only authority on the budget.

The history is append-only and the state is folded from it. Every write is one transaction that takes the database's
write lock, re-reads the whole history, checks it and decides: two processes can never both take the last of a budget.
Drawing noise and writing files is the door's; this module knows nothing about either. With a witness, a write returns
only after the witness has its events, and is refused where the witness knows more than the ledger: see `witness.py`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from qlog_assets.ledger.budget import Accountant, Amount, Budget, Number, cost, readable_left
from qlog_assets.ledger.chain import BATCH_RESTORED, BATCH_WITHDRAWN, MADE, Event, broken_links
from qlog_assets.ledger.history import History
from qlog_assets.ledger.records import NEXT_STATES, Charge, Dataset, Made, Request
from qlog_assets.ledger.rules import (
    BudgetError,
    DrawConflictError,
    WithdrawnError,
    allow,
    answer,
    as_public_text,
    as_reason,
    charge_of,
    dataset_of,
    in_words,
    plain,
    refuse_other_terms,
    request_of,
    unit_change,
)
from qlog_assets.ledger.skips import SKIPPED, Skip, skips_to_record
from qlog_assets.ledger.state import State, fold
from qlog_assets.ledger.store import Author, LedgerError, MissingLedgerError, Store, Writer
from qlog_assets.ledger.windows import LONGEST_WINDOW, Span
from qlog_assets.ledger.witness import Witness, meet_witness, tell_witness
from qlog_assets.months import Month
from qlog_assets.processes import user_name

OWN_KINDS = (
    "created", "dataset", "budget", "unit", MADE, "witnessed", "unwitnessed", "lost", "recovered", SKIPPED,
    BATCH_WITHDRAWN, BATCH_RESTORED, *NEXT_STATES,
)  # fmt: skip
"""Events that change the state. Anything else that is recorded is a note: kept, chained, and without effect."""


class Ledger(History):
    """One privacy ledger, open for questions and for charges. Made by `Ledger.open`, or for questions by `read`."""

    def __init__(self, store: Store, author: Author | None, witness: Witness | None = None) -> None:
        super().__init__(store)
        self._author = author
        """Who writes; None where the ledger is open for questions only."""
        self._witness = witness

    @classmethod
    def open(
        cls,
        place: str | Path,
        *,
        who: str | None = None,
        run_id: str | None = None,
        code_version: str | None = None,
        create: bool = True,
        wait_seconds: float = 30,
        clock: Callable[[], datetime] | None = None,
        witness: Witness | None = None,
    ) -> Ledger:
        """The ledger at a file path or an SQLAlchemy URL; made if it is not there, unless `create` is False.

        `wait_seconds` bounds how long it waits for another process's transaction, which takes milliseconds. Whoever
        writes for a warehouse opens it by `door.ledgers.open_ledger`, which knows the policy's witness.
        """
        author = Author(who or user_name(), run_id, code_version)
        if clock is not None:
            author = replace(author, clock=clock)
        try:
            store = Store.open(place, author, create=create and witness is None, wait_seconds=wait_seconds)
        except MissingLedgerError:
            if not create or witness is None:
                raise
            store = _make_unless_lost(place, author, witness, wait_seconds)
        return cls(store, author, witness)

    @classmethod
    def read(cls, place: str | Path, *, wait_seconds: float = 30) -> Ledger:
        """The ledger at a place, open for questions only. It is never made by looking at it."""
        return cls(Store.open(place, None, create=False, wait_seconds=wait_seconds), None)

    @property
    def witnessed(self) -> bool:
        """Whether each event goes to a witness before the caller that wrote it goes on."""
        return self._witness is not None

    # Writing: each method is one transaction.

    def ensure_dataset(
        self,
        name: str,
        budget: Budget,
        *,
        unit: str = "user",
        relation: str = "add-or-remove-one-user",
        window_months: int | None = None,
    ) -> Dataset:
        """The data set, opened with this budget on first use. A budget the ledger has wins over the one given here.

        The unit and its window do not: charges were made for one promise and cannot be read as another.
        """
        known = self._state().datasets.get(name)
        if known is None:
            _refuse_name(name)
            with self._transaction() as (state, append):
                if name not in state.datasets:
                    facts: dict[str, Any] = {"budget": budget.as_json(), "unit": unit, "relation": relation}
                    # Accounts for ever are written as they always were.
                    if window_months is not None:
                        facts["window_months"] = window_months
                    append("dataset", name, facts)
                known = state.datasets[name]
        refuse_other_terms(known, unit, relation, window_months)
        return known

    def set_unit(self, dataset: str, window_months: int | None, reason: str, *, since: str | None = None) -> Dataset:
        """Change the window of months that the budget is for.

        A longer one, or none, must fit all charges there are. A shorter one is for months after all of those: from
        `since` on, or from the month after the newest charged one; the old promise stays for the months before.
        """
        reason = as_reason(reason)
        if window_months is not None and not 1 <= window_months <= LONGEST_WINDOW:
            raise LedgerError(f"a window is 1 to {LONGEST_WINDOW} months, or none for ever")
        with self._transaction() as (state, append):
            known = dataset_of(state, dataset)
            facts = unit_change(state, known, window_months, None if since is None else Month(since))
            append("unit", dataset, {**facts, "reason": reason})
            return state.datasets[dataset]

    def set_budget(
        self,
        dataset: str,
        epsilon: Number,
        delta: Number,
        reason: str,
        *,
        accountant: Accountant | None = None,
        conversion_delta: Number | None = None,
    ) -> Dataset:
        """Raise or lower a budget, never below what is spent and reserved."""
        reason = as_reason(reason)
        with self._transaction() as (state, append):
            old = dataset_of(state, dataset).budget
            kind = accountant or old.accountant
            if conversion_delta is None and kind == old.accountant:
                conversion_delta = old.conversion_delta
            budget = Budget(
                cost("epsilon", epsilon),
                cost("delta", delta),
                kind,
                None if conversion_delta is None else cost("conversion_delta", conversion_delta),
            )
            total = state.most(dataset)
            if not budget.holds(total):
                raise BudgetError(
                    f"the budget of {dataset} cannot be {in_words(budget, budget.limit, readable_left)}: "
                    f"{in_words(budget, budget.spent(total))} is spent or reserved"
                )
            append("budget", dataset, {"budget": budget.as_json(), "was": old.as_json(), "reason": reason})
            return state.datasets[dataset]

    def reserve(
        self,
        *,
        dataset: str,
        month: str,
        mechanism: str,
        variant: str,
        mechanism_version: int,
        parameters: Mapping[str, Any],
        inputs: Mapping[str, str],
        epsilon: Number,
        delta: Number,
        rho: Number | None = None,
        again: str | None = None,
        months: Sequence[str] = (),
        steerable: bool = False,
    ) -> tuple[Charge, bool]:
        """The charge of this request, and whether it is new. A request the ledger knows is not charged again.

        `inputs` are digests by name. `months` are those whose rows were read, where that is not the release's month
        alone. `again` is the reason for one more draw where the month has a release already;
        the same request with the same reason is the same draw, so a retried or doubly clicked run pays once.
        `steerable`: an earlier release has to steer it, if there is one by now.
        """
        if not re.fullmatch(r"[a-z][a-z0-9_]*", mechanism):
            raise LedgerError(f"{mechanism!r} is not a mechanism's name: small letters, digits and _")
        request = request_of(dataset, month, mechanism, variant, mechanism_version, parameters, inputs)
        costs = {"epsilon": cost("epsilon", epsilon), "delta": cost("delta", delta)}
        exact_rho = None if rho is None else cost("rho", rho)
        reason = None if again is None else as_reason(again)
        read = sorted({str(Month(each)) for each in (*months, month)})
        span = Span(Month(read[0]), Month(read[-1]))
        with self._transaction() as (state, append):
            known = answer(state, request, Amount.of(**costs, rho=exact_rho), span, reason, steerable=steerable)
            if known is not None:
                return known, False
            draw_number = 1 + max((charge.draw_number for charge in state.history(request)), default=0)
            release_id = _new_release_id(state, request)
            facts = {
                "release_id": release_id,
                "fingerprint": request.fingerprint(draw_number),
                "draw_number": draw_number,
                "month": request.month,
                "mechanism": mechanism,
                "variant": variant,
                "mechanism_version": mechanism_version,
                "parameters": request.parameters,
                "inputs": request.inputs,
                **costs,
                "rho": exact_rho,
                "reason": reason,
                **({"months": read} if len(read) > 1 else {}),
            }
            append("reserved", dataset, facts)
            return state.charges[release_id], True

    def record_draw(self, release: str, draw_digest: str) -> Charge:
        """Say that the release's draw is stored. From here on its charge cannot be given back."""
        return self._advance(release, "drawn", "draw_digest", draw_digest)

    def record_publication(self, release: str, manifest_digest: str) -> Charge:
        """Say that the release is public, with this manifest."""
        return self._advance(release, "published", "manifest_digest", manifest_digest)

    def abandon(self, release: str, reason: str) -> Charge:
        """Give a reservation back, before its draw is recorded. Whether a draw lies on disk is the door's to check."""
        return self._close(release, "abandoned", reason)

    def withdraw(self, release: str, reason: str, public_text: str | None = None) -> Charge:
        """Take a drawn or published release back. Its charge stays: what was seen cannot be unseen.

        The reason is for auditors; `public_text` is what everybody is told.
        """
        text = as_public_text(public_text)
        charge = self._close(release, "withdrawn", reason, public_text=text)
        if text is not None and charge.public_text != text:
            raise LedgerError(
                f"{charge.release_id} was withdrawn before, and what the public is told of it stays as it is: run it "
                "without a public text"
            )
        return charge

    def skip(
        self, dataset: str, month: str, mechanisms: Sequence[str], reason: str, public_text: str | None = None
    ) -> list[Skip]:
        """Say that a month is left out on purpose, by these mechanisms. It can still be released by hand.

        The reason is for auditors; `public_text` is what everybody is told.
        """
        reason, text, skipped = as_reason(reason), as_public_text(public_text), Month(month)
        with self._transaction() as (state, append):
            dataset_of(state, dataset)
            for facts in skips_to_record(state, dataset, skipped, mechanisms, reason, text):
                append(SKIPPED, dataset, facts)
            keys = [(dataset, str(skipped), name) for name in mechanisms]
            return [state.skips[key] for key in keys if key in state.skips]

    def record(self, kind: str, dataset: str, facts: Mapping[str, Any]) -> Event:
        """Keep a note in the history, such as `forgotten` with the months whose raw data was deleted."""
        if kind in OWN_KINDS or not re.fullmatch(r"[a-z][a-z_]*", kind):
            raise LedgerError(f"{kind!r} is not a kind of note")
        with self._transaction() as (state, append):
            dataset_of(state, dataset)
            return append(kind, dataset, plain(facts))

    def record_made(self, dataset: str, made: Made) -> None:
        """Say what a private table holds, when it is written. It needs no account: tables come before charges."""
        _refuse_name(dataset)
        with self._transaction() as (_, append):
            append(MADE, dataset, made.as_facts())

    def record_batch(self, kind: str, dataset: str, batch: str, identity: tuple[str, str], reason: str) -> bool:
        """Say that a batch is withdrawn, or restored; whether it was not so before. It needs no account."""
        _refuse_name(dataset)
        facts = {"batch": batch, "landing": identity[0], "reading": identity[1], "reason": as_reason(reason)}
        with self._transaction() as (state, append):
            is_withdrawn = state.withdrawal_in_force(dataset, *identity) is not None
            if is_withdrawn is (kind == BATCH_WITHDRAWN):
                return False
            append(kind, dataset, facts)
            return True

    @contextmanager
    def _transaction(self) -> Iterator[tuple[State, Callable[[str, str, dict[str, Any]], Event]]]:
        """The state under the write lock, and the function that adds an event to both the table and the state."""
        if self._author is None:
            raise LedgerError(f"the ledger at {self.where} was opened for reading")
        with self._store.writing(self._author) as writer:
            state, findings = check_history(writer)
            if findings:
                raise LedgerError(
                    f"the history of the ledger at {self.where} does not verify ({findings[0]}); "
                    "nothing was written: run qlog audit"
                )

            def append(kind: str, dataset: str, facts: dict[str, Any]) -> Event:
                event = writer.append(kind, dataset, facts)
                state.apply(event)
                return event

            if meet_witness(self._witness, writer.events, state.witnessed, self.where):
                append("witnessed", "", {})
            yield state, append
        tell_witness(self._witness, writer.events)

    def _advance(self, release: str, to: str, field: str, digest: str) -> Charge:
        with self._transaction() as (state, append):
            charge = charge_of(state, release)
            has = getattr(charge, field)
            if charge.state == "withdrawn":
                raise WithdrawnError(f"{charge.release_id} was withdrawn: {charge.closing_reason}")
            if has is None:
                allow(charge, to)
                append(to, charge.dataset, {"release_id": charge.release_id, field: digest})
            elif has != digest:
                word = field.removesuffix("_digest")
                raise DrawConflictError(f"{charge.release_id} is {charge.state} already, with another {word}")
            return state.charges[charge.release_id]

    def _close(self, release: str, to: str, reason: str, **told: str | None) -> Charge:
        reason = as_reason(reason)
        with self._transaction() as (state, append):
            charge = charge_of(state, release)
            if charge.state != to:
                allow(charge, to)
                append(to, charge.dataset, {"release_id": charge.release_id, "reason": reason, **told})
            return state.charges[charge.release_id]


def _make_unless_lost(place: str | Path, author: Author, witness: Witness, wait_seconds: float) -> Store:
    """A new ledger, unless a witness knows that there was one: then it was lost, and is not made anew."""
    # In this order: what the witness knows by now was in the ledger before, so one that another process is just making
    # is found by the second look.
    remembered = witness.last() is not None
    try:
        return Store.open(place, author, create=not remembered, wait_seconds=wait_seconds)
    except MissingLedgerError as missing:
        raise witness.refusal([], missing.where) from None


def check_history(writer: Writer) -> tuple[State, list[str]]:
    """The state under the lock, and what is wrong with the history that it comes from."""
    state, contradictions = fold(writer.events)
    return state, broken_links(writer.events) + contradictions


def _new_release_id(state: State, request: Request) -> str:
    """Random, so that a public name tells nothing about the private data it came from."""
    while True:
        release_id = f"{request.mechanism}-{request.month}-{secrets.token_hex(6)}"
        if release_id not in state.charges:
            return release_id


def _refuse_name(dataset: str) -> None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", dataset):
        raise LedgerError(f"{dataset!r} is not a data set's name: small letters, digits, - and _")
