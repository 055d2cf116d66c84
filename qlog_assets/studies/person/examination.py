"""One mechanism with and without a person: the logs that are compared, their draws, and the rows of the tables."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import Any

from pydantic import Field

from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import simulated
from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.parts import Part, change_people
from qlog_assets.studies.person.attackers import Examined, attack_rows, is_exact, promise_row
from qlog_assets.studies.person.person import Person, find_person
from qlog_assets.studies.person.seen import Seen
from qlog_assets.studies.person.who import PLANTED, Who
from qlog_assets.studies.study import Row, StudyWork, Tables

SYSTEMS, PRINTED, ATTACKERS, ITEMS = "systems", "printed", "attackers", "items"
TABLES = (SYSTEMS, PRINTED, ATTACKERS, ITEMS)


class PersonSettings(Parameters):
    """Who is looked at, and how closely."""

    who: Who = PLANTED
    """The planted person of a synthetic log, or somebody whom a command named in a private file."""
    draws: int = Field(10, ge=2, le=10_000)
    """Draws of every system from each log. With n of them a probability is known to about 1/√n."""
    accounts: int = Field(49, ge=1, le=10_000)
    """An attacker's accounts where a system states no threshold: one fewer than k of the k-anonymity baselines."""
    most_accounts: int = Field(500, ge=1, le=100_000)
    """More accounts than that nobody opens: in a small log they would be most of it."""
    seed: int = Field(1, ge=0)
    """Seed of the noise."""


class Logs:
    """The month with and without a person, and with an attacker's accounts: each is made once, where it is read."""

    def __init__(self, work: StudyWork, person: Person, stack: ExitStack) -> None:
        self.work, self.person, self.stack = work, person, stack
        self.make = cache(self._make)

    def _make(self, present: bool, accounts: int = 0, everything: bool = False) -> Part:
        copied = self.person.all_rows if everything else self.person.session_rows
        left_out = None if present else self.person.users
        return self.stack.enter_context(change_people(self.work, left_out, copied if accounts else None, accounts))


def drawable() -> list[Mechanism]:
    """The mechanisms that can be drawn, found by the register."""
    return [each for each in simulated() if variants(each)]


def variants(each: Mechanism) -> list[str]:
    return [name for name, variant in each.variants.items() if variant.in_study.draw is not None]


def examine(work: StudyWork, each: Mechanism) -> Tables:
    """The rows of one mechanism's variants in every table."""
    tables: Tables = {name: [] for name in TABLES}
    person = find_person(work)
    if person is None:
        return tables
    for variant in variants(each):
        with ExitStack() as stack:
            examined = _examine_variant(work.settings, Logs(work, person, stack), each.name, variant)
        system = {"system": each.name, "variant": variant}
        tables[SYSTEMS].append({**system, **promise_row(examined)})
        tables[PRINTED] += [{**system, **row} for row in printed_rows(examined)]
        tables[ATTACKERS] += [{**system, **row} for row in attack_rows(examined)]
        tables[ITEMS] += [{**system, **row} for row in item_rows(examined)]
    return tables


def _examine_variant(settings: PersonSettings, logs: Logs, mechanism: str, variant: str) -> Examined:
    looked: dict[tuple[Any, ...], tuple[Guarantee, Seen]] = {}

    def look(present: bool, accounts: int = 0, everything: bool = False) -> Seen:
        number = len(looked)
        part = logs.make(present, accounts, everything)
        # Other noise for every log: what is the same in both must not be so by the same seed.
        first_seed = (settings.seed * 10 + number) * settings.draws
        looked[present, accounts] = draw_often(part, mechanism, variant, logs.person, settings.draws, first_seed)
        return looked[present, accounts][1]

    present, absent = look(True), look(False)
    guarantee = looked[True, 0][0]
    needed = min(guarantee.thresholds.values(), default=settings.accounts + 1) - 1
    accounts = max(1, min(needed, settings.most_accounts))
    attacked = [look(there, accounts, present.links_users) for there in (True, False)]
    return Examined(logs.person, guarantee, present, absent, attacked[0], attacked[1], accounts, needed)


def draw_often(
    part: Part, mechanism: str, variant: str, person: Person, draws: int, first_seed: int
) -> tuple[Guarantee, Seen]:
    """What a variant prints of a person in several draws; in one, where it draws no noise."""
    seen = Seen(person)
    with Engine.open(part.warehouse) as engine:
        prepared = part.prepare(engine, mechanism, variant)
        for number in range(1 if is_exact(prepared.guarantee) else draws):
            seen.add(prepared.draw(first_seed + number).tables)
    return prepared.guarantee, seen


def printed_rows(examined: Examined) -> list[Row]:
    """How many of the person's items of each kind are printed, and how much any one of them depends on the person."""
    present, absent = examined.present, examined.absent
    return [
        {
            "kind": kind,
            "theirs": examined.person.items[kind].num_rows,
            "with": present.average(kind),
            "without": absent.average(kind),
            "most": max((abs(one - other) for _, one, other in probabilities(examined, kind)), default=0.0),
            "allowed": None if examined.allowed is None else 2 * examined.allowed - 1,
        }
        for kind in examined.person.items
        if kind in present.kinds
    ]


def item_rows(examined: Examined) -> list[Row]:
    """Each item of the person's that any draw printed, with its probabilities."""
    return [
        {"kind": kind, "item": " → ".join(item), "with": one, "without": other}
        for kind in examined.person.items
        for item, one, other in probabilities(examined, kind)
    ]


def probabilities(examined: Examined, kind: str) -> list[tuple[tuple[str, ...], float, float]]:
    """The printed items of a kind with their probabilities with and without the person."""
    present, absent = examined.present, examined.absent
    printed = sorted({*present.counts[kind], *absent.counts[kind]})
    return [(item, present.probability(kind, item), absent.probability(kind, item)) for item in printed]
