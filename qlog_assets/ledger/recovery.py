"""Bringing back what a ledger lost, from its witness: `qlog ledger recover`. The budget that is left may only shrink.

A ledger that was set back and has not gone on gets the missing events as they were: the chain is whole again. One that
did go on keeps its own chain. What the witness knows beyond is then charged once more, as drawn and lost: somebody may
hold that noise, and nobody knows which of two draws of a month a reader has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qlog_assets.ledger.budget import Budget
from qlog_assets.ledger.chain import BATCH_WITHDRAWN, Event, broken_links
from qlog_assets.ledger.ledger import check_history
from qlog_assets.ledger.records import Charge
from qlog_assets.ledger.rules import as_reason
from qlog_assets.ledger.skips import SKIPPED, told_facts
from qlog_assets.ledger.state import State, fold
from qlog_assets.ledger.store import Author, LedgerError, Store, Writer
from qlog_assets.ledger.witness import Comparison, Witness, WitnessError, compare, is_known
from qlog_assets.processes import user_name

Append = Callable[[str, str, dict[str, Any]], Event]


@dataclass(frozen=True)
class Recovery:
    """What a recovery did."""

    restored: int = 0
    """Events that were brought back as they were."""
    charged_as_lost: tuple[str, ...] = ()
    """Releases that were charged once more, because the ledger had gone on without them."""
    diverged: bool = False
    """Whether it had. The witness then holds another history for ever, and a new one must be named."""

    def as_json(self) -> dict[str, Any]:
        return {
            "restored": self.restored,
            "charged_as_lost": list(self.charged_as_lost),
            "diverged": self.diverged,
        }


def recover(
    place: str | Path, witness: Witness, reason: str, *, who: str | None = None, wait_seconds: float = 30
) -> Recovery:
    """Bring back what the witness has and the ledger lacks; nothing is written where it lacks nothing."""
    reason = as_reason(reason)
    kept = witness.read()
    if not kept:
        raise WitnessError(f"the witness at {witness.where} is empty or gone: there is nothing to recover from")
    remembered, contradictions = fold(kept)
    if wrong := broken_links(kept) + contradictions:
        raise WitnessError(f"the witness at {witness.where} does not verify ({wrong[0]}): nothing was recovered")
    author = Author(who or user_name())
    store = Store.open(place, author, create=True, wait_seconds=wait_seconds, first=kept[0])
    with store.writing(author) as writer:
        state, findings = check_history(writer)
        if findings:
            raise LedgerError(
                f"the history of the ledger at {store.where} does not verify ({findings[0]}); nothing was recovered: "
                "run qlog audit"
            )
        found = compare(writer.events, kept)
        if found.foreign:
            raise witness.refusal(writer.events, store.where)
        if found.agrees:
            return Recovery()
        if found.diverges:
            return _charge_as_lost(writer, state, remembered, found, reason)
        for event in kept[found.shared :]:
            writer.copy(event)
        writer.append("recovered", "", {"events": found.lost, "after": found.shared, "reason": reason})
    witness.catch_up(writer.events)
    return Recovery(restored=found.lost)


def reset_witness(
    place: str | Path, witness: Witness | None, reason: str, *, who: str | None = None, wait_seconds: float = 30
) -> None:
    """Record, with a reason, that the ledger's witness is gone for good. A new one starts with the next write.

    Refused while the witness is there: one that knows more than the ledger is recovered from, never given up.
    """
    reason = as_reason(reason)
    author = Author(who or user_name())
    store = Store.open(place, author, create=False, wait_seconds=wait_seconds)
    with store.writing(author) as writer:
        state, findings = check_history(writer)
        if findings:
            raise LedgerError(f"the history of the ledger at {store.where} does not verify ({findings[0]})")
        last = None if witness is None else witness.last()
        if witness is not None and last is not None:
            if not is_known(last, writer.events):
                raise witness.refusal(writer.events, store.where)
            raise WitnessError(f"the witness at {witness.where} is there and agrees with the ledger: nothing to reset")
        if not state.witnessed:
            raise WitnessError(f"the ledger at {store.where} has no witness: there is nothing to reset")
        writer.append("unwitnessed", "", {"reason": reason})


def _charge_as_lost(writer: Writer, state: State, remembered: State, found: Comparison, reason: str) -> Recovery:
    """Charge for everything that the witness knows and the ledger does not; lower budgets where they were lower, and
    keep out of use what was withdrawn."""

    def append(kind: str, dataset: str, facts: dict[str, Any]) -> Event:
        event = writer.append(kind, dataset, facts)
        state.apply(event)
        return event

    before = len(writer.events)
    _shrink_budgets(state, remembered, append)
    lost = tuple(
        _record_lost(charge, state, append, reason)
        for charge in remembered.charges.values()
        if charge.counted and not _is_accounted_for(charge, state)
    )
    for charge in remembered.charges.values():
        own = state.charges.get(charge.release_id)
        if charge.state == "withdrawn" and own is not None and own.state in ("drawn", "published"):
            append("withdrawn", own.dataset, {"release_id": own.release_id, **_withdrawal_facts(charge)})
    for key, skip in remembered.skips.items():
        if key not in state.skips and not any(c.request.key == key and c.counted for c in state.charges.values()):
            append(SKIPPED, skip.dataset, skip.as_facts())
    for name, withdrawals in remembered.batch_withdrawals.items():
        for record in withdrawals:
            if record.in_force and state.withdrawal_in_force(name, *record.identity) is None:
                what = {"batch": record.batch, "landing": record.landing, "reading": record.reading}
                append(BATCH_WITHDRAWN, name, {**what, "reason": record.reason})
    if state.witnessed:
        append("unwitnessed", "", {"reason": f"its witness has another history after event {found.shared}: {reason}"})
    if len(writer.events) > before:
        facts = {"events": found.lost, "after": found.shared, "reason": reason, "charged_as_lost": list(lost)}
        append("recovered", "", facts)
    return Recovery(charged_as_lost=lost, diverged=True)


def _shrink_budgets(state: State, remembered: State, append: Append) -> None:
    for name, dataset in remembered.datasets.items():
        known = state.datasets.get(name)
        if known is None:
            opened: dict[str, Any] = {
                "budget": dataset.budget.as_json(),
                "unit": dataset.unit,
                "relation": dataset.relation,
            }
            if dataset.window_months is not None:
                opened["window_months"] = dataset.window_months
            append("dataset", name, opened)
            known = state.datasets[name]
        if known.rules != dataset.rules:
            # Which of two promises about months was made to whom, nobody can tell afterwards: for ever keeps both.
            unit = {"window_months": None, "was": known.window_months, "from": None, "recovered": True}
            append("unit", name, {**unit, "reason": "ledger and witness counted by other windows of months"})
        own = state.datasets[name].budget
        smaller = _smaller(own, dataset.budget)
        if smaller != own:
            facts: dict[str, Any] = {
                "budget": smaller.as_json(),
                "was": own.as_json(),
                "reason": "it was lower",
                "recovered": True,
            }
            append("budget", name, facts)


def _smaller(own: Budget, other: Budget) -> Budget:
    """The lower budget; the ledger's own where they are not of a kind, or neither is lower in all its numbers."""
    if own.accountant != other.accountant:
        return own
    if own.accountant == "basic":
        return Budget(min(own.epsilon, other.epsilon), min(own.delta, other.delta))
    mine, theirs = own.limit, other.limit
    lower = theirs.epsilon <= mine.epsilon and theirs.delta <= mine.delta and theirs.rho <= mine.rho
    return other if lower else own


def _is_accounted_for(charge: Charge, state: State) -> bool:
    """Whether the ledger charges for this already: the same release with the same draw, if there was one."""
    own = [state.charges[name] for name in _names_of(charge.release_id, state)]
    return any(each.counted and charge.draw_digest in (None, each.draw_digest) for each in own)


def _record_lost(charge: Charge, state: State, append: Append, reason: str) -> str:
    """Charge for a release that the ledger lost; returns the name it is charged under."""
    taken = len(_names_of(charge.release_id, state))
    release_id = _name(charge.release_id, taken)
    append(
        "lost",
        charge.dataset,
        {
            "release_id": release_id,
            "fingerprint": charge.fingerprint,
            "draw_number": charge.draw_number,
            "month": charge.month,
            "mechanism": charge.mechanism,
            "variant": charge.variant,
            "mechanism_version": charge.mechanism_version,
            "parameters": dict(charge.parameters),
            "inputs": dict(charge.inputs),
            "epsilon": charge.epsilon,
            "delta": charge.delta,
            "rho": charge.rho,
            "reason": charge.reason,
            "draw_digest": charge.draw_digest,
            "manifest_digest": charge.manifest_digest,
            "closing_reason": f"the ledger lost it and its witness knew it: {reason}",
            **told_facts(charge.public_text),
            **charge.further_months(),
        },
    )
    return release_id


def _withdrawal_facts(charge: Charge) -> dict[str, Any]:
    """What is said of a withdrawal that comes back. Its tombstone is public already: day and text are those of then."""
    told = {} if charge.reason_was_public else {"public_text": charge.public_text}
    return {"reason": charge.closing_reason, "closed_at": charge.closed_at, **told}


def _names_of(release_id: str, state: State) -> list[str]:
    """The names under which the ledger charges for draws of a release: its own, and those of draws that were lost."""
    names: list[str] = []
    while (name := _name(release_id, len(names))) in state.charges:
        names.append(name)
    return names


def _name(release_id: str, taken: int) -> str:
    """A lost draw has its release's own name, unless the ledger has that one, with another draw or none."""
    return release_id if taken == 0 else f"{release_id}-lost-{taken}"
