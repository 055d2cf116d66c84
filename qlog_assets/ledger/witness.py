"""The witness: a copy of the ledger's events, outside, that tells when the ledger was set back to an older state.

A restored snapshot is a true history with its end cut off, and nothing inside it can tell. So every event is copied to
a witness after it was committed, and before the caller that made it goes on: no noise is drawn for a charge that the
witness does not know. A witness that is behind is brought up to date by whoever writes next; one that is ahead, or that
knows another history, stops every write until `recovery.py` has brought the missing events back.

Here are the comparison, what is refused, and the witness in a second database. The witness in a file is in
`witness_file.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL

from qlog_assets.ledger.chain import Event, broken_links
from qlog_assets.ledger.store import EVENTS, LedgerError, Store, ensure_file

RECOVER = "run qlog ledger recover"
RESET = "qlog ledger witness --reset REASON"


def _pass(point: str) -> None:
    """What happens at a named point of a write: nothing. Fault tests put a kill here."""


on_point: Callable[[str], None] = _pass


class WitnessError(LedgerError):
    """What the witness knows and what the ledger says do not go together, or there is no witness to ask."""


@dataclass(frozen=True)
class Comparison:
    """How a ledger and a witness compare: the events they share, and what each has beyond them."""

    shared: int
    """How many events, from the first one on, both have with every field the same."""
    behind: int
    """Events of the ledger that the witness lacks."""
    lost: int
    """Events of the witness that the ledger lacks."""

    @property
    def agrees(self) -> bool:
        """Whether the ledger has everything that the witness has."""
        return self.lost == 0

    @property
    def diverges(self) -> bool:
        """Whether each has events that the other lacks: the ledger went on after it was set back."""
        return self.lost > 0 and self.behind > 0

    @property
    def foreign(self) -> bool:
        """Whether they have nothing in common: the witness of another ledger."""
        return self.diverges and self.shared == 0


def compare(ledger: Sequence[Event], witness: Sequence[Event]) -> Comparison:
    """Hold two histories against each other, event by event."""
    shared = 0
    while shared < min(len(ledger), len(witness)) and ledger[shared] == witness[shared]:
        shared += 1
    return Comparison(shared, len(ledger) - shared, len(witness) - shared)


def is_known(last: Event, events: Sequence[Event]) -> bool:
    """Whether a history has everything that a witness with this last event has.

    The one event says so by itself: the hash in it is over everything before it.
    """
    return 1 <= last.seq <= len(events) and events[last.seq - 1] == last


class Witness(ABC):
    """A place outside that keeps a copy of a ledger's events."""

    where: str
    """The file, or the URL without its password: fit for messages."""

    @abstractmethod
    def last(self) -> Event | None:
        """The newest event the witness has; None where it is empty or not there yet."""

    @abstractmethod
    def read(self) -> list[Event]:
        """Everything it has, in order."""

    @abstractmethod
    def catch_up(self, events: Sequence[Event]) -> None:
        """Copy what the witness lacks of a committed history. Safe in any order: another process may be ahead."""

    def missing_of(self, last: Event | None, events: Sequence[Event]) -> Sequence[Event]:
        """The events that follow the witness's last one."""
        if last is None:
            return events
        if last.seq <= len(events) and not is_known(last, events):
            raise WitnessError(f"the witness at {self.where} knows another event {last.seq} than the ledger: {RECOVER}")
        return events[last.seq :]

    def refusal(self, events: Sequence[Event], ledger: str) -> WitnessError:
        """Why a ledger with this history may not go on, in one line that says what to do."""
        kept = self.read()
        found = compare(events, kept)
        count = f"{found.lost} event{'' if found.lost == 1 else 's'}"
        if broken := broken_links(kept):
            return WitnessError(
                f"the witness at {self.where} does not verify ({broken[0]}); nothing was charged: restore it, or name "
                f"another one in the policy and say {RESET}"
            )
        if found.foreign:
            return WitnessError(
                f"the witness at {self.where} belongs to another ledger than the one at {ledger}; nothing was charged: "
                "name this ledger's own witness; or, if the ledger was lost and made anew, move the new one away and "
                f"{RECOVER}"
            )
        if found.diverges:
            return WitnessError(
                f"the witness at {self.where} knows {count} that the ledger at {ledger} lost, and the ledger went on "
                f"without {'it' if found.lost == 1 else 'them'} after event {found.shared}; nothing was charged: "
                f"{RECOVER}, then name a new witness in the policy"
            )
        return WitnessError(
            f"the witness at {self.where} knows {count} that the ledger at {ledger} lost (it was restored from a "
            f"snapshot?); nothing was charged: {RECOVER}"
        )


def meet_witness(witness: Witness | None, events: Sequence[Event], witnessed: bool, ledger: str) -> bool:
    """Refuse to write where the witness knows more than this history, or is not there to be asked.

    Returns whether this is a witness's first use, which is to be recorded: from then on one that is empty or not named
    any more was lost. It gets the history before that: killed in between, nobody finds a witness that was emptied.
    """
    if witness is None:
        if witnessed:
            raise WitnessError(
                f"the ledger at {ledger} has a witness and the policy names none; nothing was charged: name it again "
                f"under [ledger] witness, or say {RESET}"
            )
        return False
    last = witness.last()
    if last is None:
        if witnessed:
            raise WitnessError(
                f"the witness at {witness.where} is empty or gone; nothing was charged: restore it, or say {RESET}"
            )
        witness.catch_up(events)
    elif not is_known(last, events):
        raise witness.refusal(events, ledger)
    return not witnessed


def tell_witness(witness: Witness | None, events: Sequence[Event]) -> None:
    """Bring the witness up to date with what was committed. The caller draws nothing before this returns."""
    on_point("committed")
    if witness is None:
        return
    try:
        witness.catch_up(events)
    except LedgerError as error:
        raise WitnessError(
            f"{error}; what the ledger has stays charged, and nothing is drawn or published before the witness has it, "
            "too: mend that and run again, at no new charge"
        ) from None
    on_point("witnessed")


class DatabaseWitness(Witness):
    """A witness in a second database: the same table by another name, filled with copies."""

    def __init__(self, url: URL, wait_seconds: float = 30) -> None:
        self._file = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
        self._store = Store(url, wait_seconds, "witness")
        self.where = self._store.where

    def last(self) -> Event | None:
        return self._store.last() if self._exists() else None

    def read(self) -> list[Event]:
        return self._store.read() if self._exists() else []

    def catch_up(self, events: Sequence[Event]) -> None:
        if not self._exists():
            if self._file is not None:
                ensure_file(self._file, "witness")
            if self._store.exists(EVENTS):
                # Two names of one database, or the ledger itself: whatever sets one back sets back the other.
                raise WitnessError(
                    f"the witness at {self.where} lies in the database of a ledger: name a database of its own"
                )
            self._store.create()
        self._store.copy(lambda last: self.missing_of(last, events))

    def _exists(self) -> bool:
        if self._file is not None:
            if not self._file.parent.is_dir():
                raise WitnessError(f"the witness at {self.where} cannot be reached: its directory is not there")
            if not self._file.exists():
                return False
        return self._store.exists()
