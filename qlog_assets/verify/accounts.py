"""What an audit says of the ledger's accounts as a whole: budgets that are passed, what windows hold, recoveries.

Of single charges and the releases they paid for, `audit.py` speaks.
"""

from __future__ import annotations

from qlog_assets.ledger import Ledger
from qlog_assets.ledger.budget import readable, readable_left
from qlog_assets.ledger.windows import window_words


def over_budget_findings(ledger: Ledger, dataset: str | None) -> list[str]:
    """Accounts that hold more than their budget: only charges that were recovered can do that to them."""
    return [
        f"budget of {known.name}: what was charged passes it since charges were recovered: what datasheets say of the "
        "budget is not kept; qlog ledger set-budget records how much it is"
        for known in ledger.datasets()
        if dataset in (None, known.name) and ledger.is_over_budget(known.name)
    ]


def recovery_notes(ledger: Ledger) -> list[str]:
    """Every time that a witness was given up or charges were brought back: an auditor asks why."""
    words = {"unwitnessed": "the witness was given up", "recovered": "lost events were brought back"}
    return [
        f"ledger: on {event.at[:10]} {words[event.kind]} by {event.who}: {event.facts.get('reason', 'no reason')}"
        for event in ledger.events()
        if event.kind in words
    ]


def window_notes(ledger: Ledger, dataset: str | None) -> list[str]:
    """What the windows of months hold, added up from the ledger's events. Nothing where budgets are for ever."""
    notes = []
    for known in ledger.datasets():
        windows = ledger.windows(known.name)
        if dataset in (None, known.name) and windows:
            span, spent = max(windows, key=lambda window: window[1].epsilon)
            notes.append(
                f"budget of {known.name}, {window_words(known.window_months)}: {len(windows)} windows added up from "
                f"the events; the dearest, {span.first} to {span.last}, holds ε = {readable(spent.epsilon)} of "
                f"{readable_left(known.budget.epsilon)} and δ = {readable(spent.delta)} of "
                f"{readable_left(known.budget.delta)}"
            )
    return notes
