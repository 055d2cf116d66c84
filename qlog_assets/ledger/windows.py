"""Which charges add up against one budget: all of them for ever, or those of any so many consecutive months.

**Why a budget per window protects what one person searched in any W consecutive months.** Two logs are neighbours if
they differ in one user's records dated inside one window of W consecutive months. Look at everything that is ever
published, in the order in which it was asked for.

- A release of a month outside the window reads rows of its own month only, and those are the same in both logs. Given
  what was public before, it has the same law in both.
- A release of a month inside the window is (ε, δ)-indistinguishable on the two logs, given what was public before. Its
  ε and δ may depend on that (somebody chose them after looking), and so may whether it is asked for at all.
- The ledger admits a release only if in every window that contains its month the charges stay within the budget. It
  decides from charges, which are public, and never from rows. So for the one window in question it is a filter: the
  losses inside it add up to no more than the budget, whatever was chosen on the way. Plain sums of (ε, δ) and sums of ρ
  both allow adaptively chosen terms.

The window is any window, so all of them are protected at once. Nothing may read rows of another month except through
what is published: `tests/pipeline/test_months_apart.py` holds the stages to that. Withdrawn releases count, because
what was seen cannot be unseen, and so does every draw of one month.

A person who searched for longer than W months is protected by the sum over the windows that cover their searches:
`activity_loss` in `privacy/activity.py`.

**Changing the window.** What was published stays true. A longer window (or none) is a stronger promise: it must hold
for all charges there are. A shorter window is a weaker one: it is for months after all those charged so far. The old
promise goes on, as a rule of its own, for every window that begins before the change, so for every one that holds what
was charged by then; one for ever goes on for the months before. What is promised of months to come can be changed, and
a raised budget changes it, too: datasheets say so, and name what was promised before.

Pure arithmetic on months and amounts; the events are in `state.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qlog_assets.ledger.budget import Amount
from qlog_assets.months import Month

LONGEST_WINDOW = 600
"""Months. Fifty years: whoever means more means for ever."""
LAST_MONTH = Month("9999-12")
"""The calendar ends here; nobody's log does."""


@dataclass(frozen=True)
class Span:
    """The months whose rows a release read, first and last included."""

    first: Month
    last: Month


@dataclass(frozen=True)
class Rule:
    """One promise about sums: whatever `window` consecutive months are charged stays within the budget."""

    window: int | None = None
    """How many months; None: all months, for ever."""
    before: Month | None = None
    """Only windows that begin before this month; of a rule for ever, only months before it. Set where a weaker rule has
    taken over: whatever window holds something that was charged before the change goes on as promised."""

    def clipped(self, span: Span) -> tuple[int, int] | None:
        """The months of a span that this rule is about, by number; None where it is about none of them."""
        first, last = span.first.number, span.last.number
        if self.before is not None and self.window is None:
            last = min(last, self.before.number - 1)
        return (first, last) if first <= last else None


class RuleSums:
    """What charges add up to in every window of one rule."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._sums: dict[int, Amount] = {}
        """By the first month of a window; under one key where the rule is for ever."""

    def add(self, span: Span, amount: Amount) -> None:
        for start in self._starts(span):
            self._sums[start] = self._sums.get(start, Amount()) + amount

    def remove(self, span: Span, amount: Amount) -> None:
        for start in self._starts(span):
            self._sums[start] -= amount

    def most(self, span: Span | None = None) -> Amount:
        """The largest ε, δ and ρ in any window, or in any that holds a month of the span.

        Each is the largest by itself: a further charge fits all these windows exactly if it fits beside this amount.
        """
        starts = self._sums if span is None else self._starts(span)
        return most_of(self._sums.get(start, Amount()) for start in starts)

    def by_window(self) -> list[tuple[Span, Amount]]:
        """Every window that anything was charged in, in the order of time. Empty where the rule is for ever."""
        if self.rule.window is None:
            return []
        return [
            (Span(Month.numbered(start), Month.numbered(min(start + self.rule.window - 1, LAST_MONTH.number))), amount)
            for start, amount in sorted(self._sums.items())
        ]

    def _starts(self, span: Span) -> Iterable[int]:
        """The first months of all windows that a charge of these months counts in."""
        clipped = self.rule.clipped(span)
        if clipped is None:
            return ()
        if self.rule.window is None:
            return (0,)
        # Windows that would begin before the calendar does hold the same charges as the first one that does not.
        end = clipped[1] + 1 if self.rule.before is None else min(clipped[1] + 1, self.rule.before.number)
        return range(max(0, clipped[0] - self.rule.window + 1), end)


def most_of(amounts: Iterable[Amount]) -> Amount:
    """The largest ε, the largest δ and the largest ρ of some amounts."""
    most = Amount()
    for amount in amounts:
        most = Amount(max(most.epsilon, amount.epsilon), max(most.delta, amount.delta), max(most.rho, amount.rho))
    return most


def is_stronger(new: int | None, old: int | None) -> bool:
    """Whether a window promises more than another: it is longer, or for ever."""
    return old is not None and (new is None or new > old)


def window_words(window: int | None) -> str:
    """A unit's window for a message."""
    if window is None:
        return "for ever"
    return "per month" if window == 1 else f"in any {window} consecutive months"
