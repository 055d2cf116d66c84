"""Which systems are compared, and with which parameters. The register knows them; no name is listed here.

A variant that may be published is drawn at the (ε, δ) that was asked for, with the settings that were chosen for it on
the twin (`choosing`); once more at δ = 0, where it can be: that is pure ε. All others are drawn as printed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field

from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import simulated
from qlog_assets.policy import Policy
from qlog_assets.privacy.parameters import Epsilon, Parameters, Share
from qlog_assets.studies.parts import PARTS, SplitSettings
from qlog_assets.studies.planning.tried import planned, planned_names

Kind = Literal["the log itself", "same (ε, δ)", "pure ε", "as printed", "k-anonymity"]
ORIGINAL: Kind = "the log itself"
SAME: Kind = "same (ε, δ)"
PURE: Kind = "pure ε"
PRINTED: Kind = "as printed"
ANONYMITY: Kind = "k-anonymity"


class CompareSettings(SplitSettings):
    """What the comparison varies."""

    epsilon: Epsilon = Field(Fraction(2), validate_default=True)
    """ε of every release that may be published."""
    delta: Share = Field(Fraction(1, 10**6), validate_default=True)
    """δ of every release that may be published."""
    folds: int = Field(1, ge=1, le=PARTS)
    """How many of the five parts of the users are tested, one after the other; figures are means over them."""
    twin_rows: int | None = Field(None, ge=1_000, le=10**7)
    """Rows of the synthetic twin that settings are chosen on. None: about as many as the month, at most a million."""
    cached_queries: int = Field(1_000, ge=1, le=10**7)
    """How many queries fit into the cache of results."""
    test_sessions: int = Field(20_000, ge=1, le=10**7)
    """Sessions of held-out users that suggestions are tested on."""
    suggestion_weight: float = Field(0.5, ge=0, le=1)
    """λ of suggestions: how much clicks count beside sessions. The same for all, so that nobody is tuned."""


@dataclass(frozen=True)
class System:
    """One line of the comparison: a variant of a mechanism under a policy."""

    name: str
    kind: Kind
    mechanism: Mechanism
    variant: str
    policy: Policy


def compared_section(drawn: Mechanism, section: Parameters, users: int) -> Parameters:
    """A mechanism's section with all tables that searches can be measured on, and no others."""
    if drawn.name not in planned_names():
        return section
    return section.with_changes(**planned(drawn.name).compared(users))


def is_publishable(drawn: Mechanism, variant: str) -> bool:
    """Whether releases may be drawn by a variant: with the mechanism's own defaults, as every such promise is."""
    return drawn.is_releasable and drawn.guarantee(variant, drawn.parameters()).publishable


def kind_of(drawn: Mechanism, variant: str) -> Kind:
    if is_publishable(drawn, variant):
        return SAME
    return PRINTED if drawn.is_releasable else ANONYMITY


def systems_of(drawn: Mechanism, policy: Policy, chosen: Sequence[Mapping[str, Any]], users: int) -> Iterator[System]:
    """The systems of one mechanism; `chosen` are the rows that `choosing` wrote."""
    for row in chosen:
        if row["mechanism"] != drawn.name:
            continue
        section = compared_section(drawn, policy.section(drawn.name), users).with_changes(**json.loads(row["settings"]))
        pure = row["kind"] == PURE
        name = f"{drawn.name} {row['variant']}{', δ = 0' if pure else ''}"
        yield System(name, PURE if pure else SAME, drawn, row["variant"], with_section(policy, drawn, section))
    for variant, known in drawn.variants.items():
        kind = kind_of(drawn, variant)
        if kind != SAME and known.draw is not None:
            section = policy.section(drawn.name) if kind == ANONYMITY else printed_section(drawn, variant, users)
            yield System(f"{drawn.name} {variant}", kind, drawn, variant, with_section(policy, drawn, section))


def printed_section(drawn: Mechanism, variant: str, users: int) -> Parameters:
    """The section as the paper has it: the defaults of the mechanism's parameters, or what its experiments set."""
    plain, defaults = drawn.policy_section(), drawn.parameters()
    changes = {name: value for name, value in defaults if getattr(plain, name) != value}
    if drawn.name in planned_names():
        changes |= {**planned(drawn.name).compared(users), **planned(drawn.name).printed.get(variant, {})}
    return plain.with_changes(**changes)


def with_section(policy: Policy, drawn: Mechanism, section: Parameters) -> Policy:
    return policy.with_changes(mechanisms={**policy.mechanisms, drawn.name: section})


def compared_mechanisms() -> list[Mechanism]:
    """Those that can be drawn, releases first."""
    return sorted(simulated(), key=lambda each: (not each.is_releasable, each.name))
