"""Which months nobody decided: complete, and with neither a release, a withdrawal nor a skip. And the skips themselves.

The list follows from the calendar, the policy and the ledger, all public; whether a month has rows is not asked. That
is the point: a month whose rows never came is the one that is lost without a word.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from qlog_assets.door.door import Door
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Charge, Ledger, Skip
from qlog_assets.ledger.rules import as_public_text, as_reason
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import releasable, releasable_mechanism
from qlog_assets.months import Month, months_between
from qlog_assets.policy import Policy

GRACE = timedelta(hours=30)
"""How long after a month's end its release may take: the schedules run on the second at three."""

REMEDY = (
    "release such a month, or record why not: qlog skip MECHANISM --month YYYY-MM --reason … (in the UI the job "
    "skip_month); where the log has ended, set last in the policy"
)


@dataclass(frozen=True)
class Undecided:
    """What one mechanism owes: months that nobody decided, and releases that were begun and not published."""

    mechanism: str
    months: tuple[Month, ...]
    unfinished: tuple[Charge, ...]

    def as_json(self) -> dict[str, Any]:
        begun = [{"month": c.month, "release_id": c.release_id, "state": c.state} for c in self.unfinished]
        return {"months": [str(month) for month in self.months], "unfinished": begun}

    @property
    def sentence(self) -> str:
        parts = []
        if self.months:
            parts.append(f"{spans_in_words(self.months)}: neither a release nor a recorded reason")
        parts += [f"{c.month}: {c.release_id} is {c.state} and not published" for c in self.unfinished]
        return f"{self.mechanism}: {'; '.join(parts)}"


def find_undecided(
    policy: Policy, ledger: Ledger | None, now: datetime, scheduled: Collection[str] = ()
) -> list[Undecided]:
    """What every mechanism in use owes by now; empty if nothing. In use is what was charged before, or is scheduled."""
    charges = [] if ledger is None else [each for each in ledger.charges(policy.dataset) if each.counted]
    skips = [] if ledger is None else ledger.skips(policy.dataset)
    in_use = {charge.mechanism for charge in charges} | set(scheduled)
    found = [mechanism_owes(policy, charges, skips, each, now) for each in releasable() if each.name in in_use]
    return [each for each in found if each.months or each.unfinished]


def mechanism_owes(
    policy: Policy, charges: Sequence[Charge], skips: Sequence[Skip], mechanism: Mechanism, now: datetime
) -> Undecided:
    """What one mechanism owes, from the policy's first month on; where the file names none, from the first charged."""
    own = [charge for charge in charges if charge.mechanism == mechanism.name]
    unfinished = tuple(charge for charge in own if charge.state in ("reserved", "drawn"))
    newest = newest_expected(policy, now)
    earliest = policy.first
    if "first" not in policy.in_file.model_fields_set:
        earliest = max(earliest, min((Month(charge.month) for charge in own), default=newest))
    decided = {c.month for c in own} | {skip.month for skip in skips if skip.mechanism == mechanism.name}
    months = months_between(earliest, newest) if earliest <= newest else []
    return Undecided(mechanism.name, tuple(month for month in months if month not in decided), unfinished)


def newest_expected(policy: Policy, now: datetime) -> Month:
    """The newest month that is complete and should be decided by now."""
    newest = Month.numbered(Month.containing(now - GRACE).number - 1)
    return newest if policy.last is None else min(newest, policy.last)


def spans_in_words(months: Sequence[Month]) -> str:
    """Months in order, runs of them as first to last."""
    runs: list[list[Month]] = []
    for month in months:
        if runs and runs[-1][-1].next() == month:
            runs[-1].append(month)
        else:
            runs.append([month])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


@dataclass(frozen=True)
class Skipped:
    """A skip that was asked for, and whether it was recorded before, for the same reason."""

    skip: Skip
    already: bool


def skip_months(
    door: Door,
    mechanism: str | None,
    months: Sequence[Month],
    reason: str,
    now: datetime,
    public_text: str | None = None,
) -> list[Skipped]:
    """Record that months are left out on purpose, by one mechanism or by all that can release.

    All months are looked at before the account is opened and the first is recorded; the ledger looks again.
    """
    policy, ledger, reason, text = door.policy, door.ledger, as_reason(reason), as_public_text(public_text)
    names = [each.name for each in releasable()] if mechanism is None else [releasable_mechanism(mechanism).name]
    wanted = sorted(set(months))
    for month in wanted:
        if month < policy.first or (policy.last is not None and policy.last < month):
            raise QlogError(
                f"{month} is outside the policy's months ({policy.first} to {policy.last or 'now'}): nothing is "
                "released of it, and nothing was recorded"
            )
        if month >= Month.containing(now):
            raise QlogError(
                f"{month} is not over yet: a skip stays in the ledger for good, so it is for complete months, and "
                "nothing was recorded"
            )
        ledger.refuse_needless_skip(policy.dataset, month, names)
    door.open_account()
    before = ledger.skips(policy.dataset)
    recorded = [skip for month in wanted for skip in ledger.skip(policy.dataset, month, names, reason, text)]
    door.write_catalogue()
    return [Skipped(skip, already=skip in before) for skip in recorded]
