"""CrowdLogging's four policies as printed, after aggregation: who sent which artifact. Encryption is elsewhere.

FT_a, FT_u, DP_a and DP_u are what analysts get as the paper prints it, leaks included: strings that were not decrypted
with their exact counts, raw spellings of what was, and (DP) noise that pays for the choice or the count but not both.
For studies alone, never published. The sound release is `noise.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from qlog_assets.privacy.limits import count_events, count_users, last_distinct, last_events
from qlog_assets.privacy.paper_selection import select_then_print
from qlog_assets.privacy.randomness import RandomSource


@dataclass(frozen=True)
class Artifacts:
    """What the clients sent, in the order of time: user, normalised artifact and raw spelling, as numbers."""

    users: np.ndarray
    artifacts: np.ndarray
    spellings: np.ndarray
    domain: int

    def keep(self, rows: np.ndarray) -> Artifacts:
        """The same with only these rows (a mask or indices)."""
        return Artifacts(self.users[rows], self.artifacts[rows], self.spellings[rows], self.domain)


@dataclass(frozen=True)
class CrowdRelease:
    """What analysts get under a policy of the paper. Never publishable."""

    artifacts: np.ndarray
    counts: np.ndarray
    spellings: np.ndarray
    """Rows of (artifact, spelling, events), exact, for every decrypted artifact."""
    undecrypted: np.ndarray
    """The exact event counts of the strings that stayed undecrypted, sorted."""


def _analysts_get(rows: Artifacts, decrypted: np.ndarray, counts: np.ndarray) -> CrowdRelease:
    """Everything the paper's third question releases besides the decrypted artifacts and their counts."""
    events = count_events(rows.artifacts, rows.domain)
    hidden = np.ones(rows.domain, bool)
    hidden[decrypted] = False
    open_rows = ~hidden[rows.artifacts]
    pairs = np.stack([rows.artifacts[open_rows], rows.spellings[open_rows]], axis=1)
    spelt, spelt_events = np.unique(pairs, axis=0, return_counts=True)
    undecrypted = np.sort(events[hidden & (events > 0)])
    return CrowdRelease(decrypted, counts, np.column_stack([spelt, spelt_events]), undecrypted)


def frequency_threshold(rows: Artifacts, least: int, count: Literal["events", "users"]) -> CrowdRelease:
    """FT_a (events) and FT_u (users): decrypt what has at least `least` of them. Neither claims any ε."""
    events = count_events(rows.artifacts, rows.domain)
    tested = events if count == "events" else count_users(rows.users, rows.artifacts, rows.domain)
    decrypted = np.flatnonzero(tested >= max(least, 1))
    return _analysts_get(rows, decrypted, events[decrypted])


def limit_artifacts(rows: Artifacts, per_user: int, limit: Literal["events", "distinct"]) -> Artifacts:
    """The most recent artifacts of each user.

    `events` keeps so many rows; `distinct` keeps so many different artifacts with all their rows, which lets one user
    move a count by as much as she likes (gap G4).
    """
    if limit == "events":
        return rows.keep(last_events(rows.users, np.arange(rows.users.size), per_user)[1])
    users, artifacts = last_distinct(rows.users, rows.artifacts, per_user)
    return rows.keep(np.isin(rows.users * rows.domain + rows.artifacts, users * rows.domain + artifacts))


def differential_paper(
    source: RandomSource,
    rows: Artifacts,
    per_user: int,
    threshold: float,
    selection_scale: float,
    printed_scale: float,
    count: Literal["events", "users"],
    limit: Literal["events", "distinct"] = "events",
) -> CrowdRelease:
    """DP_a (events) and DP_u (users) as printed: choose by a noisy count, print noisy events, leak the rest exactly."""
    rows = limit_artifacts(rows, per_user, limit)
    events = count_events(rows.artifacts, rows.domain)
    tested = events if count == "events" else count_users(rows.users, rows.artifacts, rows.domain)
    present = np.flatnonzero(events)
    chosen = select_then_print(source, tested[present], events[present], selection_scale, printed_scale, threshold)
    return _analysts_get(rows, present[chosen.indices], chosen.counts)
