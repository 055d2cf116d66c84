"""One mechanism with and without a person: the logs that are compared, their draws, and the rows of the tables."""

from __future__ import annotations

import math
from contextlib import ExitStack
from functools import cache
from statistics import NormalDist

from pydantic import Field

from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import simulated
from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.studies.parts import Part, change_people
from qlog_assets.studies.person.attackers import Examined, attack_rows, is_exact, promise_row
from qlog_assets.studies.person.person import Person, find_person
from qlog_assets.studies.person.seen import Seen
from qlog_assets.studies.person.who import PLANTED, Who
from qlog_assets.studies.repeated_draws import RepeatingEngine
from qlog_assets.studies.study import Row, StudyWork, Tables

PERSON, SYSTEMS, PRINTED, ATTACKERS, ITEMS = "person", "systems", "printed", "attackers", "items"
TABLES = (PERSON, SYSTEMS, PRINTED, ATTACKERS, ITEMS)


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


def describe(work: StudyWork) -> Tables:
    """How much the person did in the month, if anything."""
    person = find_person(work)
    if person is None:
        return {PERSON: [{"in_the_log": False}]}
    counts = {kind: rows.num_rows for kind, rows in person.items.items()}
    return {PERSON: [{"in_the_log": True, **counts, "queries_of_nobody_else": len(person.own)}]}


def examine(work: StudyWork, each: Mechanism) -> Tables:
    """The rows of one mechanism's variants in every table."""
    tables: Tables = {name: [] for name in (SYSTEMS, PRINTED, ATTACKERS, ITEMS)}
    person = find_person(work)
    if person is None:
        return tables
    with ExitStack() as stack:
        logs = Logs(work, person, stack)
        for variant in variants(each):
            examined = _examine_variant(work.settings, logs, each.name, variant)
            system = {"system": each.name, "variant": variant}
            tables[SYSTEMS].append({**system, **promise_row(examined)})
            tables[PRINTED] += [{**system, **row} for row in printed_rows(examined)]
            tables[ATTACKERS] += [{**system, **row} for row in attack_rows(examined)]
            tables[ITEMS] += [{**system, **row} for row in item_rows(examined)]
    return tables


def _examine_variant(settings: PersonSettings, logs: Logs, mechanism: str, variant: str) -> Examined:
    def look(number: int, present: bool, accounts: int = 0, everything: bool = False) -> tuple[Guarantee, Seen]:
        part = logs.make(present, accounts, everything)
        # Other noise for every log: what is the same in both must not be so by the same seed.
        first_seed = (settings.seed * 4 + number) * settings.draws
        return draw_often(part, mechanism, variant, logs.person, settings.draws, first_seed)

    guarantee, present = look(0, True)
    _, absent = look(1, False)
    needed = accounts_needed(guarantee, present, settings)
    accounts = max(1, min(needed, settings.most_accounts))
    _, attacked_present = look(2, True, accounts, present.links_users)
    _, attacked_absent = look(3, False, accounts, present.links_users)
    return Examined(logs.person, guarantee, present, absent, attacked_present, attacked_absent, accounts, needed)


def accounts_needed(guarantee: Guarantee, seen: Seen, settings: PersonSettings) -> int:
    """One account fewer than the threshold; where none is stated, than the least count that a reader finds printed."""
    stated = guarantee.thresholds.values() or [count for count in (seen.least_count,) if count is not None]
    return min(stated, default=settings.accounts + 1) - 1


def draw_often(
    part: Part, mechanism: str, variant: str, person: Person, draws: int, first_seed: int
) -> tuple[Guarantee, Seen]:
    """What a variant prints of a person in several draws; in one, where it draws no noise."""
    seen = Seen(person)
    with RepeatingEngine.open(part.warehouse) as engine:
        prepared = part.prepare(engine, mechanism, variant)
        for number in range(1 if is_exact(prepared.guarantee) else draws):
            engine.start_draw()
            seen.add(prepared.draw(first_seed + number).tables)
    return prepared.guarantee, seen


def printed_rows(examined: Examined) -> list[Row]:
    """How many of the person's items of each kind are printed, and how much any one of them depends on the person."""
    present, absent = examined.present, examined.absent
    rows = []
    for kind in examined.person.items:
        if kind in present.kinds:
            differences = [abs(one - other) for _, one, other in probabilities(examined, kind)]
            rows.append(
                {
                    "kind": kind,
                    "theirs": examined.person.items[kind].num_rows,
                    "with": present.average(kind),
                    "without": absent.average(kind),
                    "most": max(differences, default=0.0),
                    "by_chance": 0.0 if examined.is_exact else by_chance(len(differences), present.draws),
                    "allowed": None if examined.allowed is None else 2 * examined.allowed - 1,
                }
            )
    return rows


def by_chance(items: int, draws: int) -> float:
    """How far the shares of some items differ between two times so many draws of the same law, in 19 of 20 cases."""
    return 0.0 if items == 0 else min(1.0, NormalDist().inv_cdf(1 - 0.025 / items) * math.sqrt(0.5 / draws))


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
