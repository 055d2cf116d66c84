"""Months that were left out on purpose: the record, and when one may be written. Values and decisions; writes nothing.

A skip costs nothing and promises nothing: it says that a month has no release because somebody decided so. It stays in
the history when the month is released by hand after all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qlog_assets.ledger.store import LedgerError
from qlog_assets.months import Month

if TYPE_CHECKING:
    from qlog_assets.ledger.chain import Event
    from qlog_assets.ledger.state import State

SKIPPED = "skipped"
"""The kind of the event."""


@dataclass(frozen=True)
class Skip:
    """One month that a mechanism was decided not to release."""

    dataset: str
    month: str
    mechanism: str
    reason: str
    """Private: what the public is told is another text."""
    at: str
    who: str
    run_id: str | None
    public_text: str | None = None
    """What the public is told; None: no more than that the month was left out."""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.dataset, self.month, self.mechanism

    def as_facts(self) -> dict[str, Any]:
        return {
            "month": self.month,
            "mechanism": self.mechanism,
            "reason": self.reason,
            **told_facts(self.public_text),
        }

    @classmethod
    def of(cls, event: Event, facts: dict[str, Any]) -> Skip:
        """The skip that an event records."""
        month, mechanism, reason = Month(facts["month"]), str(facts["mechanism"]), str(facts["reason"])
        return cls(
            event.dataset, str(month), mechanism, reason, event.at, event.who, event.run_id, facts.get("public_text")
        )


def told_facts(public_text: str | None) -> dict[str, str]:
    """What an event says of a public text; nothing where there is none."""
    return {} if public_text is None else {"public_text": public_text}


def skips_to_record(
    state: State, dataset: str, month: Month, mechanisms: Iterable[str], reason: str, public_text: str | None = None
) -> list[dict[str, Any]]:
    """What is recorded where a month is skipped by several mechanisms; empty where the same was recorded before.

    A month that has or had a release needs no skip. Where one mechanism alone is named that is an error; among several
    it is passed over. Without a public text, what the public was told before stays.
    """
    found = []
    for name in unreleased(state, dataset, month, mechanisms):
        known = state.skips.get((dataset, str(month), name))
        told = public_text if known is None or public_text is not None else known.public_text
        # A command that is run twice records once.
        if known is None or (known.reason, known.public_text) != (reason, told):
            found.append({"month": str(month), "mechanism": name, "reason": reason, **told_facts(told)})
    return found


def unreleased(state: State, dataset: str, month: Month, mechanisms: Iterable[str]) -> list[str]:
    """Those of the mechanisms that never released a month; an error where each of them did."""
    wanted = list(mechanisms)
    charged = {c.mechanism: c for c in state.charges.values() if (c.dataset, c.month) == (dataset, month) and c.counted}
    if all(name in charged for name in wanted):
        newest = charged[wanted[-1]]
        raise LedgerError(
            f"{month} has the {newest.mechanism} release {newest.release_id} ({newest.state}) and needs no skip: "
            "nothing was recorded"
        )
    return [name for name in wanted if name not in charged]
