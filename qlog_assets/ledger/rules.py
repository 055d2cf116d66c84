"""What the ledger refuses, and how it says so: a known, live or withdrawn release, an empty budget, an impossible step.

Decisions on a folded state; they write nothing. Taking the lock, re-reading and recording is in `ledger.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from qlog_assets.errors import RefusedError
from qlog_assets.ledger.budget import Amount, Budget, readable, readable_left
from qlog_assets.ledger.records import NEXT_STATES, Charge, Dataset, Request
from qlog_assets.ledger.state import State, added_up, rules_after
from qlog_assets.ledger.store import LedgerError
from qlog_assets.ledger.windows import LAST_MONTH, Span, is_stronger, window_words
from qlog_assets.months import Month
from qlog_assets.storage.digests import canonical_line

SHOWN_RELEASES = 8
"""How many releases an over-budget error names; an error is one line."""

LONGEST_PUBLIC_TEXT = 500
"""A sentence or two: it stands in a list of all releases."""

AGAIN = "--again REASON"
AGAIN_IN_RUN = "`again: REASON` in the run's config, at the op that draws"


class BudgetError(LedgerError, RefusedError):
    """The request costs more than is left."""


class LiveReleaseError(LedgerError, RefusedError):
    """The month has a live release of this mechanism, made from something else."""

    def __init__(self, request: Request, live: Charge, differences: list[str]) -> None:
        what = (
            f"{request.month} has a live {request.mechanism} release, {live.release_id} ({live.state}); "
            f"this request differs in {'; '.join(differences)}."
        )
        if live.state == "reserved":
            way = f"Nothing was drawn for it yet: qlog ledger abandon {live.release_id} gives its charge back"
            super().__init__(f"{what} {way}")
        else:
            way = f"{what} Another draw costs again: say "
            super().__init__(way + AGAIN, way + AGAIN_IN_RUN)
        self.live = live
        self.differences = differences


class WithdrawnError(LedgerError, RefusedError):
    """The release was withdrawn: it is neither served nor drawn again without a reason."""


class DrawConflictError(LedgerError):
    """Another process recorded another draw or manifest of the same release: use that one."""


class UnknownReleaseError(LedgerError):
    """The ledger knows no such release."""


def request_of(
    dataset: str,
    month: str,
    mechanism: str,
    variant: str,
    mechanism_version: int,
    parameters: Mapping[str, Any],
    inputs: Mapping[str, str],
) -> Request:
    """A request as it is stored and compared."""
    return Request(dataset, str(Month(month)), mechanism, variant, mechanism_version, plain(parameters), plain(inputs))


def withdrawn(charge: Charge, *, another: bool = False) -> WithdrawnError:
    """The refusal to serve or draw what was taken back."""
    what = f"{charge.release_id} was withdrawn: {charge.closing_reason}. Another draw needs "
    why = " with another reason" if another else ""
    return WithdrawnError(what + AGAIN + why, what + AGAIN_IN_RUN + why)


def answer(
    state: State, request: Request, asked: Amount, span: Span, reason: str | None, *, steerable: bool = False
) -> Charge | None:
    """What a request gets: the charge it already has, or None where a new one may be made; an error otherwise.

    `steerable`: whether an earlier release has to steer it, if there is one.
    """
    known = known_charge(state.history(request), request, reason)
    if known is None:
        refuse_taken_back(state, request, steerable=steerable)
        refuse_over_budget(state, request.dataset, asked, span)
    return known


def refuse_taken_back(state: State, request: Request, *, steerable: bool) -> None:
    """Refuse a new draw that another release steers than the latest live one: what was looked up before the charge may
    have been withdrawn, or a month before it charged or published, in between."""
    if request.steered_by is None and not steerable:
        return
    own = [charge for charge in state.charges.values() if charge.request.key[::2] == request.key[::2]]
    latest = latest_before(own, request.month)
    if request.steered_by is None:
        if latest is not None:
            raise LedgerError(f"{latest.release_id} came in between, and has to steer {request.month}: ask again")
        return
    if latest is None or latest.release_id != request.steered_by or latest.state != "published":
        raise LedgerError(f"{request.steered_by} can no longer steer {request.month}: ask again")


def latest_before(charges: Iterable[Charge], month: str) -> Charge | None:
    """The newest live charge of the latest month before this one that has a live charge."""
    live = [charge for charge in charges if charge.live and charge.month < month]
    return max(live, key=lambda charge: (charge.month, charge.draw_number), default=None)


def refuse_over_budget(state: State, dataset: str, asked: Amount, span: Span) -> None:
    """Refuse what does not fit beside what was spent."""
    budget = dataset_of(state, dataset).budget
    if not budget.holds(state.most(dataset)):
        raise BudgetError(
            f"what was charged for {dataset} passes its budget since charges were recovered: nothing more is "
            "released until qlog ledger set-budget says how much that is"
        )
    if not budget.holds(state.most(dataset, span) + asked):
        raise BudgetError(over_budget(state, dataset, asked, span))


def known_charge(history: list[Charge], request: Request, reason: str | None) -> Charge | None:
    """The charge this request already has; None if it needs a new one; an error if it may not have one."""
    same = [c for c in history if c.fingerprint == request.fingerprint(c.draw_number) and reason in (None, c.reason)]
    live = [charge for charge in same if charge.live]
    if live:
        return live[-1]
    if same:
        raise withdrawn(same[-1], another=reason is not None)
    if reason is not None or not history:
        return None
    current = next((charge for charge in reversed(history) if charge.live), None)
    if current is None:
        raise withdrawn(history[-1])
    raise LiveReleaseError(request, current, request.differences(current.request))


def over_budget(state: State, dataset: str, asked: Amount, span: Span) -> str:
    """The refusal: what was asked, what is left, and which releases took the rest, dearest first.

    Where the budget is for a window of months: of the windows in question, and the month whose release fits next.
    """
    known = state.datasets[dataset]
    budget, window = known.budget, known.window_months
    near = months_around(known, span)
    spenders = sorted(
        (
            c
            for c in state.charges.values()
            if c.dataset == dataset and c.counted and near.first <= c.span.last and c.span.first <= near.last
        ),
        key=lambda c: (-c.epsilon, c.seq),
    )
    names = ", ".join(f"{c.release_id} ({in_words(budget, c.amount)})" for c in spenders[:SHOWN_RELEASES])
    more = f" and {len(spenders) - SHOWN_RELEASES} more" if len(spenders) > SHOWN_RELEASES else ""
    left = in_words(budget, budget.left(state.most(dataset, span)), readable_left)
    refusal = (
        f"over the budget of {dataset}: {in_words(budget, asked)} asked, {left} left of "
        f"{in_words(budget, budget.limit, readable_left)}; spent by {names + more if names else 'no release'}"
    )
    if window is None:
        return refusal
    fits = first_fitting(state, dataset, asked, span.last.next())
    later = f"the next month that fits is {fits}" if fits else "at this cost no month fits"
    return f"{refusal}; the budget is {window_words(window)}: {later}"


def refuse_other_terms(known: Dataset, unit: str, relation: str, window_months: int | None) -> None:
    """Refuse to charge an account for another promise than it was opened for."""
    for word, asked, has in (("unit", unit, known.unit), ("relation", relation, known.relation)):
        if asked != has:
            raise LedgerError(
                f"the data set {known.name} has the privacy {word} {has}; its charges cannot be read as {asked}"
            )
    if window_months != known.window_months:
        raise LedgerError(
            f"the budget of {known.name} is {window_words(known.window_months)} and the policy says "
            f"{window_words(window_months)} (unit.window_months): change the policy back, or record the change "
            "with qlog ledger set-unit"
        )


def months_around(known: Dataset, span: Span) -> Span:
    """The months whose charges can count together with one of these: all of them where a rule is for ever."""
    widths = [rule.window for rule in known.rules if rule.clipped(span) is not None]
    if None in widths:
        return Span(Month.numbered(0), LAST_MONTH)
    width = max(each for each in widths if each is not None)
    first, last = max(0, span.first.number - width + 1), min(span.last.number + width - 1, LAST_MONTH.number)
    return Span(Month.numbered(first), Month.numbered(last))


def first_fitting(state: State, dataset: str, asked: Amount, month: Month) -> Month | None:
    """The first month from this one on whose release at this cost stays within the budget; None if none ever does."""
    known, last = state.datasets[dataset], state.last_month(dataset)
    # A whole window past everything charged, and past rules that end, nothing else changes any more: the longest one,
    # because windows of a rule that has ended reach past its end.
    ends = [last.number if last else month.number, *(rule.before.number for rule in known.rules if rule.before)]
    until = min(max(month.number, *ends) + max(rule.window or 1 for rule in known.rules), LAST_MONTH.number)
    for number in range(month.number, until + 1):
        candidate = Month.numbered(number)
        if known.budget.holds(state.most(dataset, Span(candidate, candidate)) + asked):
            return candidate
    return None


def fit_together(state: State, dataset: str, asked: Amount, months: Sequence[Month]) -> bool:
    """Whether a release of each of these months, all at this cost, stays within the budget."""
    known = dataset_of(state, dataset)
    by_rule = added_up(state, dataset, known.rules)
    for sums in by_rule:
        for month in months:
            sums.add(Span(month, month), asked)
    return all(known.budget.holds(sums.most(Span(month, month))) for sums in by_rule for month in months)


def unit_change(state: State, known: Dataset, window: int | None, since: Month | None) -> dict[str, Any]:
    """What is recorded of a change of the window, or the reason why it may not be made."""
    old, last = known.window_months, state.last_month(known.name)
    if window == old:
        raise LedgerError(f"the budget of {known.name} is {window_words(window)} already")
    if is_stronger(window, old) or last is None:
        if since is not None:
            raise LedgerError(f"a change to {window_words(window)} holds for all months: leave the month out")
    elif since is None:
        since = last.next()
    elif since <= last:
        raise LedgerError(
            f"{last} is charged under a budget {window_words(old)}: a weaker one can begin with {last.next()}"
        )
    rules = rules_after(known.rules, window, since)
    if not all(known.budget.holds(added.most()) for added in added_up(state, known.name, rules)):
        raise BudgetError(
            f"what was charged for {known.name} does not fit a budget {window_words(window)} of "
            f"{in_words(known.budget, known.budget.limit, readable_left)}: raise the budget first, or leave the unit"
        )
    return {"window_months": window, "was": old, "from": since}


def in_words(budget: Budget, amount: Amount, text: Callable[[Fraction], str] = readable) -> str:
    """The numbers that this budget's accountant adds up; `text` rounds what is spent up, what is left down."""
    first = f"ε = {text(amount.epsilon)}" if budget.accountant == "basic" else f"ρ = {text(amount.rho)}"
    return f"{first}, δ = {text(amount.delta)}"


def dataset_of(state: State, name: str) -> Dataset:
    if name not in state.datasets:
        raise LedgerError(f"the ledger has no data set {name}")
    return state.datasets[name]


def charge_of(state: State, release: str) -> Charge:
    charge = state.find(release)
    if charge is None:
        # A fingerprint stays out of messages: it is made from input digests.
        fingerprint = re.fullmatch(r"[0-9a-f]{64}", release)
        named = "of this fingerprint" if fingerprint else release
        raise UnknownReleaseError(f"the ledger knows no release {named}: qlog ledger shows those there are")
    return charge


def allow(charge: Charge, to: str) -> None:
    """Refuse a step that a charge in this state cannot take."""
    if to in NEXT_STATES[charge.state]:
        return
    hint = ""
    if to == "abandoned":
        hint = ": its noise was drawn, so its charge stays (withdraw keeps the charge and removes the release)"
    elif charge.state == "reserved":
        hint = ": nothing was drawn yet" + (" (abandon gives its charge back)" if to == "withdrawn" else "")
    raise LedgerError(f"{charge.release_id} is {charge.state} and cannot become {to}{hint}")


def as_reason(text: str) -> str:
    """A reason on one line; an error where there is none."""
    if not text.strip():
        raise LedgerError("a reason is needed: it is what an auditor will read")
    return " ".join(text.split())


def as_public_text(text: str | None) -> str | None:
    """A text for the public on one line; None where nothing is said."""
    if text is None:
        return None
    line = " ".join(text.split())
    if not line or len(line) > LONGEST_PUBLIC_TEXT or not line.isprintable():
        raise LedgerError(
            f"the public text has {len(line)} characters: it is one line of 1 to {LONGEST_PUBLIC_TEXT} printable "
            "characters; nothing was recorded"
        )
    return line


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as JSON gives them back, so that what is compared now is what is compared after a restart."""
    try:
        return dict(json.loads(canonical_line(dict(values))))
    except (TypeError, ValueError) as error:
        raise LedgerError(f"the ledger cannot store this: {error}") from None
