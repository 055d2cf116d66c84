"""The ledger's history as a chain: what an event is, how it is hashed, how a broken or replaced history is found.

Pure functions on events. What events mean is in `state.py`; where they are kept is in `store.py`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from qlog_assets.storage.digests import canonical_line, line_digest

FIRST_PREVIOUS = "0" * 64
"""What the first event has in place of a previous hash."""
MADE = "made"
"""The kind of an event that says what a private table holds. How many there are is private: one row of a user can make
the raw log of one more month."""
BATCH_WITHDRAWN, BATCH_RESTORED = "batch_withdrawn", "batch_restored"
"""The kinds of events that take a landing batch out of use and back into it. Private, too: an operator may have decided
by rows that were rejected."""
UNCOUNTED = (MADE, BATCH_WITHDRAWN, BATCH_RESTORED)


@dataclass(frozen=True)
class Event:
    """One row of the ledger. Rows are ordered by `seq` alone: `at` is what a clock said, and clocks go backwards."""

    seq: int
    dataset: str
    kind: str
    at: str
    who: str
    run_id: str | None
    code_version: str | None
    payload: str
    previous_hash: str
    hash: str

    @property
    def facts(self) -> dict[str, Any]:
        """The payload as values. Raises ValueError where it is not the JSON object it was written as."""
        values = json.loads(self.payload)
        if not isinstance(values, dict):
            raise ValueError("not a JSON object")
        return values

    def sealed(self) -> Event:
        """This event with the hash its other fields give."""
        return replace(self, hash=hash_of(self))


def hash_of(event: Event) -> str:
    """The hash over every field of the event, the previous hash among them."""
    return line_digest({field.name: getattr(event, field.name) for field in fields(event) if field.name != "hash"})


def broken_links(events: Sequence[Event]) -> list[str]:
    """Where the chain does not hold: an edited, removed, inserted or moved row. Empty if it holds."""
    if not events:
        return ["the history is empty: its first event is gone"]
    findings = []
    expected, previous_hash = 1, FIRST_PREVIOUS
    for event in events:
        if event.seq != expected:
            findings.append(f"event {expected} is missing: event {event.seq} follows event {expected - 1}")
        elif event.previous_hash != previous_hash:
            findings.append(f"event {event.seq} does not follow from the event before it")
        if hash_of(event) != event.hash:
            findings.append(f"event {event.seq} was altered: its hash does not fit its fields")
        expected, previous_hash = event.seq + 1, event.hash
    return findings


@dataclass(frozen=True)
class SaltedHead:
    """A commitment to the history up to an event, fit for a public manifest: it can be checked only with the ledger.

    `seq` is public, so it counts the events without those of private tables and batches; the hash under it follows
    from all of them. That hash cannot be guessed from public facts, because the chain starts from the ledger's random
    secret; the salt keeps two manifests of one head from being linked.
    """

    seq: int
    salt: str
    digest: str

    @classmethod
    def of(cls, event: Event, number: int, salt: bytes) -> SaltedHead:
        """The commitment to the history that ends with an event, which is the public one of that number."""
        message = canonical_line({"seq": number, "hash": event.hash}).encode("ascii")
        return cls(number, salt.hex(), hmac.new(salt, message, hashlib.sha256).hexdigest())

    def matches(self, events: Sequence[Event]) -> bool:
        """Whether this history, hashed anew, is the one that was committed to. A malformed head matches nothing."""
        try:
            salt = bytes.fromhex(self.salt)
        except ValueError:
            return False
        counted = publicly_counted(events)
        if not 1 <= self.seq <= len(counted):
            return False
        expected = SaltedHead.of(counted[self.seq - 1].sealed(), self.seq, salt)
        return hmac.compare_digest(expected.digest.encode(), self.digest.encode("utf-8", "replace"))


def publicly_counted(events: Sequence[Event]) -> list[Event]:
    """The events that a public number counts. A history of an earlier version is counted as it was."""
    return [event for event in events if event.kind not in UNCOUNTED]


def heads_missing(heads: Iterable[SaltedHead], events: Sequence[Event]) -> list[SaltedHead]:
    """The heads this history does not contain: it was cut, rewritten, or belongs to another ledger."""
    return [head for head in heads if not head.matches(events)]
