"""What the ledger keeps account of: requests, charges, data sets and entries of what was made. Values only.

They are folded from events in `state.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from qlog_assets.ledger.budget import Amount, Budget
from qlog_assets.ledger.windows import Rule, Span
from qlog_assets.privacy.parameters import decimal_text
from qlog_assets.storage.digests import line_digest

ChargeState = Literal["reserved", "drawn", "published", "abandoned", "withdrawn"]
LIVE: tuple[ChargeState, ...] = ("reserved", "drawn", "published")
"""States in which a release stands for its month: asking for a different one needs a reason."""
NEXT_STATES: dict[ChargeState, tuple[ChargeState, ...]] = {
    "reserved": ("drawn", "abandoned"),
    "drawn": ("published", "withdrawn"),
    "published": ("withdrawn",),
    "abandoned": (),
    "withdrawn": (),
}


STEERING = "steering"
"""How a request's inputs mark the release that steers it: `steering:<id>`, with the digest of its manifest."""


@dataclass(frozen=True)
class Request:
    """Everything that decides what a release is, short of the draw number."""

    dataset: str
    month: str
    mechanism: str
    variant: str
    mechanism_version: int
    parameters: Mapping[str, Any]
    inputs: Mapping[str, str] = field(repr=False)
    """Digests of what the mechanism reads, by name. Private: they are stored here and never printed."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What there is one live release of."""
        return self.dataset, self.month, self.mechanism

    @property
    def pins(self) -> dict[str, str]:
        """The releases that steer it, by id, with the digests of their manifests: one at most, unless it was forged."""
        return {
            name.partition(":")[2]: digest for name, digest in self.inputs.items() if name.startswith(f"{STEERING}:")
        }

    @property
    def steered_by(self) -> str | None:
        """The id of the release that steers it; None: none does."""
        return next(iter(self.pins), None)

    @property
    def unpinned(self) -> Request:
        """The same without what steers it: what somebody asks for who has not looked that up."""
        kept = {name: digest for name, digest in self.inputs.items() if not name.startswith(f"{STEERING}:")}
        return replace(self, inputs=kept)

    def fingerprint(self, draw_number: int) -> str:
        """The name of one draw. Months and data sets are part of it: two empty months have equal inputs."""
        return line_digest(
            {
                "dataset": self.dataset,
                "month": self.month,
                "mechanism": self.mechanism,
                "variant": self.variant,
                "mechanism_version": self.mechanism_version,
                "parameters": dict(self.parameters),
                "inputs": dict(self.inputs),
                "draw_number": draw_number,
            }
        )

    def differences(self, live: Request) -> list[str]:
        """In what this request differs from the live one, in words. Names inputs, never their digests."""
        found = []
        if self.variant != live.variant:
            found.append(f"variant ({live.variant}, now {self.variant})")
        for name in sorted({*self.parameters, *live.parameters}):
            old, new = live.parameters.get(name), self.parameters.get(name)
            if old != new or (name in self.parameters) != (name in live.parameters):
                found.append(f"parameter {name} ({_shortened(old)}, now {_shortened(new)})")
        changed = [
            name for name in sorted({*self.inputs, *live.inputs}) if self.inputs.get(name) != live.inputs.get(name)
        ]
        if changed:
            found.append(f"input data ({', '.join(changed)})")
        if self.mechanism_version != live.mechanism_version:
            found.append(f"mechanism version ({live.mechanism_version}, now {self.mechanism_version})")
        return found


@dataclass(frozen=True)
class Charge:
    """One release's cost and its life: reserved, then drawn and published, or given back, or withdrawn."""

    release_id: str
    fingerprint: str = field(repr=False)
    """Private: whoever guesses the input can confirm the guess with it."""
    request: Request
    draw_number: int
    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None
    reason: str | None
    """Why it was drawn although the month had a release; None for a month's first."""
    span: Span
    """The months whose rows it read: its own, unless its mechanism read several."""
    state: ChargeState
    seq: int
    at: str
    who: str
    run_id: str | None
    code_version: str | None
    draw_digest: str | None = field(default=None, repr=False)
    drawn_seq: int | None = None
    drawn_at: str | None = None
    manifest_digest: str | None = None
    published_seq: int | None = None
    published_at: str | None = None
    closed_at: str | None = None
    closing_reason: str | None = None
    """Why it was abandoned or withdrawn. Private: what the public is told is another text."""
    public_text: str | None = None
    """What the public is told of its withdrawal; None: no more than that it was withdrawn."""
    reason_was_public: bool = False
    """Whether it was withdrawn by a version up to 0.4.0, whose tombstones printed the reason."""
    lost: bool = False
    """Whether the ledger lost it and charged for it again: see `recovery.py`. It counts as withdrawn."""

    @property
    def dataset(self) -> str:
        return self.request.dataset

    @property
    def month(self) -> str:
        return self.request.month

    @property
    def mechanism(self) -> str:
        return self.request.mechanism

    @property
    def variant(self) -> str:
        return self.request.variant

    @property
    def mechanism_version(self) -> int:
        return self.request.mechanism_version

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.request.parameters

    @property
    def inputs(self) -> Mapping[str, str]:
        return self.request.inputs

    @property
    def live(self) -> bool:
        return self.state in LIVE

    @property
    def amount(self) -> Amount:
        return Amount.of(self.epsilon, self.delta, self.rho)

    def further_months(self) -> dict[str, list[str]]:
        """What an event says of the months it read, where that is not its own alone."""
        read = sorted({self.span.first, self.span.last, self.month})
        return {"months": [str(month) for month in read]} if len(read) > 1 else {}

    @property
    def counted(self) -> bool:
        """Whether it takes budget. A withdrawn release does: what was seen cannot be unseen."""
        return self.state != "abandoned"


@dataclass(frozen=True)
class Dataset:
    """What one budget protects."""

    name: str
    budget: Budget
    unit: str
    relation: str
    rules: tuple[Rule, ...] = (Rule(),)
    """Which charges the budget adds up. The last is in force for every month; those before it go on for windows that
    began before they were replaced by a weaker one."""
    past: tuple[dict[str, Any], ...] = ()
    """Budgets and windows that were in force before, each with the day it ended."""

    @property
    def window_months(self) -> int | None:
        """How many consecutive months the budget is for; None: for ever."""
        return self.rules[-1].window

    def public_terms(self) -> dict[str, Any] | None:
        """What a manifest says of the budget: nothing where it is for ever and always was."""
        if self.rules == (Rule(),) and all(terms["window_months"] is None for terms in self.past):
            return None
        return {
            **self.terms(),
            "earlier": [{"window_months": rule.window, "before": rule.before} for rule in self.rules[:-1]],
            "past": [dict(terms) for terms in self.past],
        }

    def terms(self) -> dict[str, Any]:
        """The budget and its window."""
        return {
            "epsilon": decimal_text(self.budget.epsilon),
            "delta": decimal_text(self.budget.delta),
            "accountant": self.budget.accountant,
            "window_months": self.window_months,
        }

    def changed(self, day: str, **changes: Any) -> Dataset:
        """This data set under other terms, which remembers those it had up to that day."""
        return replace(self, past=(*self.past, {**self.terms(), "until": day}), **changes)


@dataclass(frozen=True)
class Made:
    """What the ledger says was written: a private partition, with a digest of each of its tables."""

    asset: str
    month: str
    shape: str
    tables: Mapping[str, str] = field(repr=False)
    measured: str = field(repr=False)
    """The digest of the counts that were taken while it was made."""
    forgotten: frozenset[str] = frozenset()
    """Months that were forgotten since: a batch of several months lost their tables."""

    def as_facts(self) -> dict[str, Any]:
        return {
            "asset": self.asset,
            "month": self.month,
            "shape": self.shape,
            "tables": dict(self.tables),
            "measured": self.measured,
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Made:
        tables = {str(name): str(digest) for name, digest in facts["tables"].items()}
        return cls(facts["asset"], facts["month"], facts["shape"], tables, facts["measured"])


@dataclass(frozen=True)
class BatchWithdrawal:
    """A landing batch that was taken out of use: its rows enter no raw log from then on."""

    batch: str
    landing: str = field(repr=False)
    """The checksum of the landing file."""
    reading: str = field(repr=False)
    """The digest of how the file was read: withdrawn is one reading of one content, under whatever name."""
    reason: str
    seq: int
    at: str
    who: str
    run_id: str | None
    restored_seq: int | None = None
    """The event that took it back into use, if one did."""

    @property
    def identity(self) -> tuple[str, str]:
        return self.landing, self.reading

    @property
    def in_force(self) -> bool:
        return self.restored_seq is None

    def held_at(self, seq: int) -> bool:
        """Whether it was in force when an event was written."""
        return self.seq < seq and (self.restored_seq is None or seq < self.restored_seq)

    @property
    def words(self) -> str:
        return f"was withdrawn on {self.at[:10]} by {self.who}: {self.reason}"


def _shortened(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
