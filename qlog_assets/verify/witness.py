"""Holds the ledger of a warehouse against its witness, event by event. Reads both and changes neither."""

from __future__ import annotations

from typing import Any

from qlog_assets.door.ledgers import named_witness
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Event, Ledger, LedgerError, MissingLedgerError, Witness
from qlog_assets.ledger.chain import broken_links
from qlog_assets.ledger.state import fold
from qlog_assets.ledger.witness import compare
from qlog_assets.policy import Policy
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.verify.audit import AuditReport

NONE_NAMED = (
    "witness: the policy names none under [ledger] witness: if an old copy of the ledger was put in its place, this "
    "audit cannot tell"
)


def audit_witness(warehouse: Warehouse, policy: Policy, report: AuditReport, *, asked: bool) -> None:
    """Add to a report what the witness says, if that was asked for, or that nobody asked it."""
    witness = named_witness(warehouse, policy)
    if witness is None:
        if asked:
            raise QlogError("--witness: the policy names no witness under [ledger] witness")
        report.notes.append(NONE_NAMED)
    elif asked:
        findings, notes = compare_with_witness(warehouse, witness)
        report.findings += [f"witness: {finding}" for finding in findings]
        report.notes += [f"witness: {note}" for note in notes]
    else:
        report.notes.append(f"witness: the one at {witness.where} was not asked: qlog audit --witness asks it")


def describe_witness(warehouse: Warehouse, policy: Policy) -> dict[str, Any]:
    """What the witness says, as the answer of `qlog ledger witness --json`."""
    witness = named_witness(warehouse, policy)
    if witness is None:
        return {"witness": None, "agrees": None, "findings": [], "notes": [NONE_NAMED]}
    findings, notes = compare_with_witness(warehouse, witness)
    return {"witness": witness.where, "agrees": not findings, "findings": findings, "notes": notes}


def compare_with_witness(warehouse: Warehouse, witness: Witness) -> tuple[list[str], list[str]]:
    """What is wrong between a ledger and its witness, and what is merely so."""
    try:
        # In this order: what the witness has by now was committed before, so the ledger read afterwards has it.
        kept = witness.read()
        events, ledger = _history(warehouse)
    except LedgerError as error:
        return [str(error)], []
    if not kept:
        if fold(events)[0].witnessed:
            return [f"the one at {witness.where} is empty or gone, and the ledger has one"], []
        return [], [f"the one at {witness.where} is empty: the next charge fills it"]
    if broken := broken_links(kept):
        return [f"the one at {witness.where} does not verify: {finding}" for finding in broken], []
    found = compare(events, kept)
    if not found.agrees:
        return [str(witness.refusal(events, ledger)).removeprefix("the witness at ")], []
    notes = [f"{found.shared} events compared, all the same"]
    if found.behind:
        notes.append(f"it lacks the last {found.behind} events of the ledger: the next write brings it up to date")
    return [], notes


def _history(warehouse: Warehouse) -> tuple[list[Event], str]:
    """The ledger's events, none where it is gone, and where it is or should be."""
    try:
        ledger = Ledger.read(warehouse.ledger_url)
    except MissingLedgerError as missing:
        return [], missing.where
    return ledger.events(), ledger.where
