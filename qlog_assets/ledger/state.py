"""What the ledger's events mean: data sets, budgets and charges, folded from the history in the order of its rows.

Pure: it reads events and says what they add up to, and where they contradict one another. Deciding whether a new
event may be written is in `ledger.py`; adding charges up is in `budget.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from qlog_assets.ledger.budget import Amount, Budget
from qlog_assets.ledger.chain import BATCH_RESTORED, BATCH_WITHDRAWN, MADE, Event
from qlog_assets.ledger.records import NEXT_STATES, BatchWithdrawal, Charge, Dataset, Made, Request
from qlog_assets.ledger.skips import SKIPPED, Skip
from qlog_assets.ledger.windows import LONGEST_WINDOW, Rule, RuleSums, Span, is_stronger, most_of
from qlog_assets.months import Month


class ContradictionError(Exception):
    """An event that cannot follow from the ones before it."""


class State:
    """The ledger after some events."""

    def __init__(self) -> None:
        self.datasets: dict[str, Dataset] = {}
        self.charges: dict[str, Charge] = {}
        """By release id, in the order of reservation."""
        self.totals: dict[str, Amount] = {}
        """What the counted charges of each data set add up to, for ever."""
        self._sums: dict[str, list[RuleSums]] = {}
        """The same per window, for each rule of each data set."""
        self.witnessed = False
        """Whether a witness has copies of the events: then it must not vanish without a word."""
        self.made: dict[tuple[str, str, str, str], Made] = {}
        """The newest entry of each partition, by data set, asset, month and shape."""
        self.skips: dict[tuple[str, str, str], Skip] = {}
        """The newest skip of each month, by data set, month and mechanism."""
        self.batch_withdrawals: dict[str, list[BatchWithdrawal]] = {}
        """Each data set's, oldest first; those that were taken back, too."""

    def most(self, dataset: str, span: Span | None = None) -> Amount:
        """What the budget has to hold: the largest sums in any window, or in any that holds a month of the span.

        A further charge of these months is within the budget exactly if this amount and the charge together are.
        """
        return most_of(sums.most(span) for sums in self._sums[dataset])

    def by_window(self, dataset: str) -> list[tuple[Span, Amount]]:
        """What was charged in each window of the rule in force; empty where that is for ever."""
        return self._sums[dataset][-1].by_window()

    def last_month(self, dataset: str) -> Month | None:
        """The newest month that a counted charge read."""
        counted = [c.span.last for c in self.charges.values() if c.dataset == dataset and c.counted]
        return max(counted, default=None)

    def history(self, request: Request) -> list[Charge]:
        """The charges of the request's month and mechanism that were not given back, oldest first."""
        return [c for c in self.charges.values() if c.request.key == request.key and c.counted]

    def find(self, release: str) -> Charge | None:
        """The charge of a release id, or the newest of a fingerprint (a given-back one may have been reserved anew)."""
        if release in self.charges:
            return self.charges[release]
        same = [charge for charge in self.charges.values() if charge.fingerprint == release]
        # A lost draw of the same request is recorded after the one that the ledger knows, and is nobody's.
        return next(reversed([charge for charge in same if not charge.lost] or same), None)

    def apply(self, event: Event) -> None:
        """Take one more event into account. Raises ContradictionError where it cannot be; ValueError or KeyError or
        TypeError where its payload is not what this ledger writes."""
        facts = event.facts
        if event.kind in ("dataset", "budget"):
            self._apply_budget(event, facts)
        elif event.kind == "unit":
            self._apply_unit(event, facts)
        elif event.kind in ("reserved", "lost"):
            self._apply_reservation(event, facts)
        elif event.kind in NEXT_STATES:
            self._apply_transition(event, facts)
        elif event.kind in ("witnessed", "unwitnessed"):
            self.witnessed = event.kind == "witnessed"
        elif event.kind == MADE:
            made = Made.from_facts(facts)
            self.made[event.dataset, made.asset, made.month, made.shape] = made
        elif event.kind == "forgotten":
            for key, made in self.made.items():
                if key[0] == event.dataset:
                    self.made[key] = replace(made, forgotten=made.forgotten | {*facts.get("months", [])})
        elif event.kind == SKIPPED:
            self._apply_skip(Skip.of(event, facts))
        elif event.kind in (BATCH_WITHDRAWN, BATCH_RESTORED):
            self._apply_batch(event, facts)
        elif event.kind == "created" and event.seq != 1:
            raise ContradictionError("a ledger is created once, by its first event")

    def _apply_budget(self, event: Event, facts: dict[str, Any]) -> None:
        known = self.datasets.get(event.dataset)
        budget = Budget.from_json(facts["budget"])
        if event.kind == "dataset":
            if known is not None:
                raise ContradictionError(f"the data set {event.dataset} exists already")
            rules = (Rule(_window(facts.get("window_months"))),)
            self.datasets[event.dataset] = Dataset(
                event.dataset, budget, str(facts["unit"]), str(facts["relation"]), rules
            )
            self.totals[event.dataset] = Amount()
            self._add_up(event.dataset)
            return
        if known is None:
            raise ContradictionError(f"there is no data set {event.dataset}")
        self.datasets[event.dataset] = known.changed(event.at[:10], budget=budget)
        # One that was brought back may be below what was charged meanwhile: then nothing is left.
        if not facts.get("recovered") and not budget.holds(self.most(event.dataset)):
            raise ContradictionError("the budget was set below what was spent")

    def _apply_unit(self, event: Event, facts: dict[str, Any]) -> None:
        known = self.datasets.get(event.dataset)
        if known is None:
            raise ContradictionError(f"there is no data set {event.dataset}")
        window, last = _window(facts["window_months"]), self.last_month(event.dataset)
        since = None if facts["from"] is None else Month(facts["from"])
        if since is None and last is not None and not is_stronger(window, known.window_months):
            raise ContradictionError("the unit was weakened for months that were charged by then")
        self.datasets[event.dataset] = known.changed(event.at[:10], rules=rules_after(known.rules, window, since))
        self._add_up(event.dataset)
        if since is not None and last is not None and last >= since:
            raise ContradictionError(f"the unit was changed from {since} on, and {last} was charged by then")
        if not facts.get("recovered") and not known.budget.holds(self.most(event.dataset)):
            raise ContradictionError("the unit was changed to one that what was spent does not fit")

    def _apply_skip(self, skip: Skip) -> None:
        if skip.dataset not in self.datasets:
            raise ContradictionError(f"there is no data set {skip.dataset}")
        self.skips[skip.key] = skip
        released = [c for c in self.charges.values() if c.request.key == skip.key and c.counted]
        if released:
            raise ContradictionError(f"{skip.month} was skipped although {released[-1].release_id} was charged by then")

    def _add_up(self, dataset: str) -> None:
        """Add up by the rules that a data set has now."""
        self._sums[dataset] = added_up(self, dataset, self.datasets[dataset].rules)

    def _apply_reservation(self, event: Event, facts: dict[str, Any]) -> None:
        request = Request(
            dataset=event.dataset,
            month=facts["month"],
            mechanism=facts["mechanism"],
            variant=facts["variant"],
            mechanism_version=facts["mechanism_version"],
            parameters=facts["parameters"],
            inputs=facts["inputs"],
        )
        charge = Charge(
            release_id=facts["release_id"],
            fingerprint=facts["fingerprint"],
            request=request,
            draw_number=facts["draw_number"],
            epsilon=Fraction(facts["epsilon"]),
            delta=Fraction(facts["delta"]),
            rho=None if facts["rho"] is None else Fraction(facts["rho"]),
            reason=facts["reason"],
            span=_span(facts.get("months") or [facts["month"]]),
            state="reserved",
            seq=event.seq,
            at=event.at,
            who=event.who,
            run_id=event.run_id,
            code_version=event.code_version,
        )
        if charge.dataset not in self.datasets:
            raise ContradictionError(f"there is no data set {charge.dataset}")
        if charge.release_id in self.charges:
            raise ContradictionError(f"{charge.release_id} exists already")
        twin = self.find(charge.fingerprint)
        if event.kind == "lost":
            charge = replace(
                charge,
                state="withdrawn",
                lost=True,
                draw_digest=facts["draw_digest"],
                manifest_digest=facts["manifest_digest"],
                closed_at=event.at,
                closing_reason=facts["closing_reason"],
                public_text=facts.get("public_text"),
            )
        self.charges[charge.release_id] = charge
        self.totals[charge.dataset] += charge.amount
        for sums in self._sums[charge.dataset]:
            sums.add(charge.span, charge.amount)
        if charge.fingerprint != request.fingerprint(charge.draw_number):
            raise ContradictionError(f"{charge.release_id} has a fingerprint that is not its own")
        if charge.lost:
            return  # its noise was drawn, whatever else was charged and whatever the budget is
        if twin is not None and twin.counted:
            raise ContradictionError(f"{charge.release_id} was reserved although {twin.release_id} is the same request")
        if not self.datasets[charge.dataset].budget.holds(self.most(charge.dataset, charge.span)):
            raise ContradictionError(f"{charge.release_id} was reserved over the budget")

    def withdrawal_in_force(self, dataset: str, landing: str, reading: str) -> BatchWithdrawal | None:
        """The withdrawal that keeps a reading of a landing file out of use now."""
        own = self.batch_withdrawals.get(dataset, [])
        return next((each for each in own if each.in_force and each.identity == (landing, reading)), None)

    def _apply_batch(self, event: Event, facts: dict[str, Any]) -> None:
        own = self.batch_withdrawals.setdefault(event.dataset, [])
        known = self.withdrawal_in_force(event.dataset, facts["landing"], facts["reading"])
        if event.kind == BATCH_RESTORED:
            if known is None:
                raise ContradictionError("it is about a batch that was not withdrawn")
            own[own.index(known)] = replace(known, restored_seq=event.seq)
            return
        if known is not None:
            raise ContradictionError(f"the batch {known.batch} was withdrawn already")
        own.append(
            BatchWithdrawal(
                batch=str(facts["batch"]),
                landing=str(facts["landing"]),
                reading=str(facts["reading"]),
                reason=str(facts["reason"]),
                seq=event.seq,
                at=event.at,
                who=event.who,
                run_id=event.run_id,
            )
        )

    def _apply_transition(self, event: Event, facts: dict[str, Any]) -> None:
        charge = self.charges.get(facts["release_id"])
        if charge is None:
            raise ContradictionError("it is about a release that was never reserved")
        if event.kind not in NEXT_STATES[charge.state]:
            raise ContradictionError(f"{charge.release_id} was {charge.state} and cannot become {event.kind}")
        changes: dict[str, Any] = {"state": event.kind}
        if event.kind == "drawn":
            changes |= {"draw_digest": facts["draw_digest"], "drawn_seq": event.seq, "drawn_at": event.at}
        elif event.kind == "published":
            changes |= {
                "manifest_digest": facts["manifest_digest"],
                "published_seq": event.seq,
                "published_at": event.at,
            }
        else:
            # A withdrawal that was recovered says when it was made: its tombstone has that day.
            changes |= {"closing_reason": facts["reason"], "closed_at": facts.get("closed_at", event.at)}
            changes |= {"public_text": facts.get("public_text"), "reason_was_public": "public_text" not in facts}
        if event.kind == "abandoned":
            self.totals[charge.dataset] -= charge.amount
            for sums in self._sums[charge.dataset]:
                sums.remove(charge.span, charge.amount)
        self.charges[charge.release_id] = replace(charge, **changes)


def fold(events: Iterable[Event]) -> tuple[State, list[str]]:
    """The state after these events, and a sentence for each event that contradicts the ones before it.

    An event that cannot be read is left out of the state; whoever writes refuses to go on from a contradiction.
    """
    state = State()
    return state, [finding for event in events if (finding := apply_event(state, event))]


def apply_event(state: State, event: Event) -> str | None:
    """Take one more event into account; a sentence where it contradicts the ones before it."""
    try:
        state.apply(event)
    except ContradictionError as contradiction:
        return f"event {event.seq} ({event.kind}): {contradiction}"
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
        return f"event {event.seq} ({event.kind}): its payload cannot be read"
    return None


def added_up(state: State, dataset: str, rules: Iterable[Rule]) -> list[RuleSums]:
    """What the counted charges of a data set add up to by some rules."""
    by_rule = [RuleSums(rule) for rule in rules]
    for charge in state.charges.values():
        if charge.dataset == dataset and charge.counted:
            for sums in by_rule:
                sums.add(charge.span, charge.amount)
    return by_rule


def rules_after(rules: tuple[Rule, ...], window: int | None, since: Month | None) -> tuple[Rule, ...]:
    """The rules after a change of the window, from a month on where the new one is weaker."""
    *earlier, current = rules
    if is_stronger(window, current.window) or since is None:
        return (*earlier, Rule(window))
    return (*earlier, replace(current, before=since), Rule(window))


def _window(value: Any) -> int | None:
    """A window as an event has it. Raises ValueError where it is none."""
    if value is None:
        return None
    if type(value) is not int or not 1 <= value <= LONGEST_WINDOW:
        raise ValueError("not a number of months")
    return value


def _span(months: list[str]) -> Span:
    return Span(Month(min(months)), Month(max(months)))
