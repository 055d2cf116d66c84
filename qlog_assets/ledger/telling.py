"""The ledger's history in words: each event with its reason, its author, its time and its run. Reads only.

Events of private tables are left out: there are many, they have no reason, and how many there are is private. Payloads
are never printed as they are: they hold input digests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from qlog_assets.ledger.budget import Budget, readable, readable_left
from qlog_assets.ledger.chain import MADE, Event
from qlog_assets.ledger.skips import SKIPPED
from qlog_assets.ledger.windows import window_words

Facts = dict[str, Any]


def told_events(events: Iterable[Event], dataset: str) -> list[dict[str, Any]]:
    """The events of a data set's account, and those of the ledger as a whole, in the order they were written."""
    return [told(event) for event in events if event.kind != MADE and event.dataset in ("", dataset)]


def told(event: Event) -> dict[str, Any]:
    """One event: what happened, why, who, when, and in which run."""
    try:
        facts = event.facts
        what = WORDS[event.kind](facts) if event.kind in WORDS else event.kind.replace("_", " ")
        reason = facts.get("closing_reason") or facts.get("reason")
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        what, reason = "its payload cannot be read: run qlog audit", None
    return {
        "at": event.at,
        "kind": event.kind,
        "what": what,
        "reason": None if reason is None else str(reason),
        "who": event.who,
        "run_id": event.run_id,
    }


def budget_words(values: Facts) -> str:
    budget = Budget.from_json(values)
    return f"ε = {readable_left(budget.epsilon)}, δ = {readable_left(budget.delta)}"


def opened_words(facts: Facts) -> str:
    return f"account opened: {budget_words(facts['budget'])}, {window_words(facts.get('window_months'))}"


def unit_words(facts: Facts) -> str:
    since = "" if facts["from"] is None else f" from {facts['from']} on"
    return f"budget {window_words(facts['window_months'])}{since}; was {window_words(facts['was'])}"


def charge_words(facts: Facts) -> str:
    cost = f"ε = {readable(Fraction(facts['epsilon']))}, δ = {readable(Fraction(facts['delta']))}"
    draw = f", draw {facts['draw_number']}" if facts["draw_number"] > 1 else ""
    return f"{facts['release_id']} charged: {cost}{draw}"


def forgotten_words(facts: Facts) -> str:
    return f"private data forgotten: {', '.join(map(str, facts.get('months', []))) or 'no month'}"


def of_release(word: str) -> Callable[[Facts], str]:
    return lambda facts: f"{facts['release_id']} {word}"


WORDS: dict[str, Callable[[Facts], str]] = {
    "created": lambda facts: "ledger made",
    "dataset": opened_words,
    "budget": lambda facts: f"budget set: {budget_words(facts['budget'])}; was {budget_words(facts['was'])}",
    "unit": unit_words,
    "reserved": charge_words,
    "lost": lambda facts: f"{charge_words(facts)}; the ledger had lost it",
    "drawn": of_release("drawn"),
    "published": of_release("published"),
    "abandoned": of_release("given back"),
    "withdrawn": of_release("withdrawn"),
    SKIPPED: lambda facts: f"{facts['month']} skipped by {facts['mechanism']}",
    "witnessed": lambda facts: "a witness keeps copies from here on",
    "unwitnessed": lambda facts: "the witness was given up",
    "recovered": lambda facts: f"{facts['events']} lost event(s) brought back or charged for",
    "forgotten": forgotten_words,
    "batch_withdrawn": lambda facts: f"the landing batch {facts['batch']} withdrawn",
    "batch_restored": lambda facts: f"the landing batch {facts['batch']} in use again",
}
"""What each kind of event says. A note of another kind is told by its kind and its reason."""
