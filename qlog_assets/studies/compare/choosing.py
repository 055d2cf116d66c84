"""Chooses the settings of each system on a synthetic twin, as `qlog plan` does: never on the month that is compared.

Of the month only the number of rows is read, rounded to one digit. The twin's seed is far from those that people give
their synthetic logs: a twin with the month's own seed would be the month.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.privacy.guarantee import PrivacyLoss
from qlog_assets.studies.compare.systems import PURE, SAME, CompareSettings, compared_section
from qlog_assets.studies.planning.planner import Request, Trials, as_values, goodness, held
from qlog_assets.studies.planning.population import Population
from qlog_assets.studies.planning.settings import Settings
from qlog_assets.studies.planning.trials import Outcomes
from qlog_assets.studies.planning.tried import planned, planned_names
from qlog_assets.studies.planning.twin import population_of_twin
from qlog_assets.studies.study import Row, StudyWork

TWIN_SEED = 1_000_003
LARGEST_TWIN = 1_000_000
"""A plan on so many rows takes minutes, and what suits a million rows suits more."""


def twin_rows(settings: CompareSettings, rows: int) -> int:
    """How many rows the twin of a month of so many has: one digit of the number, a million at most."""
    if settings.twin_rows is not None:
        return settings.twin_rows
    return max(min(one_digit(rows), LARGEST_TWIN), 1_000)


def one_digit(rows: int) -> int:
    """A number of rows as people tell it in public."""
    digit = 10 ** int(math.log10(max(rows, 1)))
    return round(rows / digit) * digit


def make_twin(settings: CompareSettings, rows: int) -> Population:
    return population_of_twin(twin_rows(settings, rows), TWIN_SEED + settings.seed)


def choose(work: StudyWork, drawn: Mechanism, people: Population, users: int) -> list[Row]:
    """The best settings of each variant of a mechanism that may be published, at (ε, δ) and at (ε, 0).

    `users` is about how many users the month has. A mechanism that no plan knows is taken at the cost, as the policy
    has it.
    """
    settings: CompareSettings = work.settings
    section = compared_section(drawn, work.policy.section(drawn.name), users)
    rows = []
    for kind, delta in ((SAME, settings.delta), (PURE, Fraction(0))):
        asked = Request(drawn, section, work.policy.lists, settings.epsilon, delta)
        best: dict[str, tuple[Settings, Outcomes]] = {}
        tried = 0
        for changes, variant, told in candidates(asked, people, settings.seed):
            tried += 1
            if variant not in best or goodness(told) < goodness(best[variant][1]):
                best[variant] = changes, told
        rows += [
            {
                "mechanism": drawn.name,
                "variant": variant,
                "kind": kind,
                "users": users,
                "tried": tried,
                "twin_holds": held(told),
                "settings": json.dumps(as_values(changes)),
            }
            for variant, (changes, told) in best.items()
        ]
    return rows


def candidates(asked: Request, people: Population, seed: int) -> Iterator[tuple[Settings, str, Outcomes]]:
    """Settings that can be drawn and cost no more than was asked for, each with what it holds of the twin's users."""
    name = asked.mechanism.name
    if name not in planned_names():
        with_cost = at_cost(asked)
        if with_cost is not None:
            yield with_cost, asked.parameters(asked.section.with_changes(**with_cost))[0], {}
        return
    trials = Trials(asked, people, seed)
    for changes in planned(name).settings(asked.section, asked.epsilon, asked.delta, people.pool.size):
        told = trials.changed(asked, changes, people.pool, draws=1)
        if told is None:
            continue
        variant, chosen = asked.parameters(asked.section.with_changes(**changes))
        if is_within(asked, asked.mechanism.guarantee(variant, chosen).proven):
            yield changes, variant, told


def at_cost(asked: Request) -> Settings | None:
    """The policy's own settings at the cost; None where they cannot be had for it."""
    try:
        scaled = asked.own
        variant, chosen = asked.parameters(scaled)
        asked.mechanism.refuse_unusable(variant, chosen)
    except ParameterError:
        return None
    return dict(scaled.said) if is_within(asked, asked.mechanism.guarantee(variant, chosen).proven) else None


def is_within(asked: Request, proven: PrivacyLoss | None) -> bool:
    """Whether a promise is at least the one that was asked for: δ = 0 where it was to be."""
    return proven is not None and proven.epsilon <= asked.epsilon and proven.delta <= asked.delta
