"""Chooses a mechanism's settings from public information only, and says what a month would then hold.

The policy, and what the owner says of the log in public, are all that is read: settings are tried on made-up users
(`population`), with the mechanism's own noise, seeded. The log itself is never read and nothing is charged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.pipeline.public_material import PublicLists
from qlog_assets.privacy.guarantee import printed
from qlog_assets.privacy.parameters import Parameters, decimal_text
from qlog_assets.studies.planning.population import Pool, Population
from qlog_assets.studies.planning.settings import Settings, with_pool
from qlog_assets.studies.planning.trials import Outcome, Outcomes, average
from qlog_assets.studies.planning.tried import planned, planned_names

EPSILONS = tuple(map(Fraction, ("0.5", "1", "2", "4", "8")))
"""What a plan shows beside the ε that it is made for: from what few would call useful to what few would sign."""
DRAWS = 5
"""Draws of the settings that are shown; a setting that is only tried gets one."""
MANY_SEARCHES = 200_000
"""From so many searches on one draw tells enough: tables are larger, and what is luck in them is less."""
FINALISTS = 3
WORST_ERROR = 0.25
"""The median relative error of counts, in the worst table, up to which a setting counts as good."""
WORST_NOISE = 0.2
"""The share of rows that nobody made, in the worst table, up to which a setting counts as good."""
WORTHWHILE = 10
"""A table that holds so many rows is kept if the policy has it; for fewer, its share of ε goes to the other tables."""
CLEARLY_MORE = 1.5
"""How many times as many rows fewer tables must hold to be spoken of."""
NOTHING = 1
"""A table of which fewer rows than this are expected is said to hold nothing."""

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Request:
    """What is planned: a mechanism under a section of the policy, at one (ε, δ)."""

    mechanism: Mechanism
    section: Parameters
    lists: PublicLists
    epsilon: Fraction
    delta: Fraction
    off: tuple[str, ...] = ()
    """What the policy switches off, and why."""

    def at(self, epsilon: Fraction) -> Request:
        return replace(self, epsilon=epsilon)

    @property
    def own(self) -> Parameters:
        """The section as it stands, at this cost."""
        return self.scaled({})

    def scaled(self, changes: Settings) -> Parameters:
        """Changed settings, at this cost."""
        return self.mechanism.at_cost(self.section.with_changes(**changes), self.epsilon, self.delta)

    def parameters(self, section: Parameters) -> tuple[str, Parameters]:
        """The variant and the parameters of a release under a section."""
        return self.mechanism.chosen_variant(section), self.mechanism.chosen_parameters(section, self.lists)


def request_for(mechanism: Mechanism, section: Parameters, lists: PublicLists, epsilon: Fraction | None) -> Request:
    """A plan of a mechanism at an ε, or at what the section costs."""
    if mechanism.name not in planned_names():
        raise QlogError(
            f"{mechanism.name} has no draw that can be planned yet: "
            f"qlog guarantee {mechanism.name} says what it would promise; choose one of {', '.join(planned_names())}"
        )
    # How many of a list's urls are clicked is nothing that a description tells: clicks are planned as without a list.
    lists = replace(lists, url_list=None)
    variant, chosen = mechanism.chosen_variant(section), mechanism.chosen_parameters(section, lists)
    proven = mechanism.guarantee(variant, chosen).proven
    assert proven is not None  # only publishable variants can be chosen in a policy
    # A release without the parts that are off: what they would cost is not spread over the others behind one's back.
    resolved = mechanism.resolve(section, lists)
    off = tuple(mechanism.switched_off(section, lists))
    return Request(mechanism, resolved, lists, epsilon or Fraction(proven.epsilon), Fraction(proven.delta), off)


def plan(asked: Request, people: Population, seed: int, progress: Progress = lambda *told: None) -> dict[str, Any]:
    """Every setting with what it would release, the best first; and the month over ε, as it is and as recommended."""
    pools = {"pool": people.pool} | ({} if people.titles is None else {"titles": people.titles})
    trial = Trials(asked, people, seed)
    candidates = [
        (name, changes)
        for name, pool in pools.items()
        if name == "pool" or asked.mechanism.name == "safelog"
        for changes in planned(asked.mechanism.name).settings(asked.section, asked.epsilon, asked.delta, pool.size)
    ]
    grid = sorted({*EPSILONS, asked.epsilon})
    steps = len(candidates) + len(pools) * FINALISTS + 2 * len(grid)
    ranked: dict[str, list[tuple[Settings, Outcomes]]] = {name: [] for name in pools}
    for done, (name, changes) in enumerate(candidates):
        progress(done, steps, f"trying settings with {asked.mechanism.name}")
        found = trial.changed(asked, changes, pools[name], draws=1)
        if found is not None:
            ranked[name].append((changes, found))
    best: dict[str, tuple[Settings, Outcomes]] = {}
    for number, (name, tried) in enumerate(ranked.items()):
        # One draw is luck: those that came out first are drawn again.
        finalists = []
        for place, (changes, _) in enumerate(sorted(tried, key=lambda each: goodness(each[1]))[:FINALISTS]):
            progress(len(candidates) + number * FINALISTS + place, steps, "drawing the best again")
            again = trial.changed(asked, changes, pools[name], draws=trial.draws)
            assert again is not None  # it was drawn before
            finalists.append((changes, again))
        if finalists:
            best[name] = min(finalists, key=lambda each: goodness(each[1]))
    if "pool" not in best:
        raise QlogError(f"no setting of {asked.mechanism.name} can be drawn at ε = {decimal_text(asked.epsilon)}")
    standing = {"pool": trial.drawn(asked, asked.own, people.pool, trial.draws)}
    if "titles" in best and people.titles is not None:
        pooled = with_pool(asked.own, people.titles.size)
        standing["titles"] = trial.drawn(asked, pooled, people.titles, trial.draws)
    curve = []
    for place, epsilon in enumerate(grid):
        progress(steps - 2 * (len(grid) - place), steps, "drawing over ε")
        there = asked.at(epsilon)
        drawn = {
            how: trial.changed(there, scaled.said, people.pool, trial.draws)
            for how, scaled in (("policy", there.own), ("recommended", there.scaled(best["pool"][0])))
        }
        # A table that cannot be drawn at so small an ε is left out of the picture.
        curve.append({"epsilon": printed(epsilon)} | {how: as_json(told or {}) for how, told in drawn.items()})
    progress(steps, steps, "done")
    return {
        "mechanism": asked.mechanism.name,
        "releasable": asked.mechanism.is_releasable,
        "users": people.users,
        "switched_off": list(asked.off),
        "epsilon": printed(asked.epsilon),
        "delta": printed(asked.delta),
        "curve": curve,
        "recommended": {
            name: {**as_values(changes), "tables": as_json(told)} for name, (changes, told) in best.items()
        },
        "settings": [
            {**as_values(changes), "tables": as_json(told)}
            for changes, told in sorted(ranked["pool"], key=lambda each: goodness(each[1]))
        ],
        "policy": policy_lines(asked.mechanism, best["pool"][0]),
        "words": [
            *words(asked, people, standing, {name: told for name, (_, told) in best.items()}),
            *fewer_tables(best["pool"][1], [told for _, told in ranked["pool"]]),
        ],
    }


@dataclass(frozen=True)
class Trials:
    """Draws of one mechanism on one population."""

    asked: Request
    people: Population
    seed: int

    @property
    def draws(self) -> int:
        """How many draws are averaged where one would be luck."""
        return DRAWS if len(self.people.rows["queries"][0]) < MANY_SEARCHES else 1

    def changed(self, asked: Request, changes: Settings, pool: Pool, draws: int) -> Outcomes | None:
        """What changed settings would release; None where they cannot be drawn."""
        try:
            return self.drawn(asked, asked.section.with_changes(**changes), pool, draws)
        except ParameterError:
            return None

    def drawn(self, asked: Request, section: Parameters, pool: Pool, draws: int) -> Outcomes:
        variant, chosen = asked.parameters(section)
        asked.mechanism.refuse_unusable(variant, chosen, {"pool": pool.size})
        trial = planned(asked.mechanism.name).trial
        return average([trial(self.people, variant, chosen, self.seed + number, pool) for number in range(draws)])


def goodness(told: Outcomes) -> tuple[bool, int, float, float]:
    """What settings are ranked by: good counts and few fakes, then most tables worth having, then most real rows.

    Rows of several tables are multiplied: added up, a table of words would outvote all others.
    """
    worst_error = max((each.error for each in told.values() if each.error is not None), default=0.0)
    worst_noise = max((each.noise_rows / each.rows for each in told.values() if each.rows >= NOTHING), default=0.0)
    worthwhile = [each.real_rows for each in told.values() if each.real_rows >= WORTHWHILE]
    bad = worst_error > WORST_ERROR or worst_noise > WORST_NOISE
    return bad, -len(worthwhile), -math.prod(worthwhile), -real_rows(told)


def words(asked: Request, people: Population, standing: dict[str, Outcomes], best: dict[str, Outcomes]) -> list[str]:
    """What a month would hold, in plain words: as the policy stands, as recommended, and with a better pool."""
    lines = [f"{people.users:,} users at ε = {decimal_text(asked.epsilon)}"]
    for told, how in ((standing, "as the policy stands"), (best, "as recommended")):
        line = f"{how}: {held(told['pool'])}"
        if "titles" in told and people.titles is not None:
            line += f"; with a public pool of your catalogue's {people.titles.size:,} titles: {held(told['titles'])}"
        lines.append(line)
    if not asked.mechanism.is_releasable:
        lines.append(f"{asked.mechanism.name} cannot be released yet: this is what it would hold")
    if all(each.real_rows < NOTHING for told in best.values() for each in told.values()):
        lines.append("a month will hold nothing: it takes more users, more ε, or a public pool of what they search for")
    return lines


def fewer_tables(best: Outcomes, tried: list[Outcomes]) -> list[str]:
    """What could be had instead by leaving tables out, where that is clearly more."""
    fewer = [told for told in tried if set(told) < set(best) and not goodness(told)[0]]
    most = max(fewer, key=real_rows, default=None)
    if most is None or real_rows(most) < CLEARLY_MORE * real_rows(best):
        return []
    return [f"without {' and '.join(table for table in best if table not in most)}: {held(most)}"]


def real_rows(told: Outcomes) -> float:
    """The rows of all tables that somebody made."""
    return sum(each.real_rows for each in told.values())


def held(told: Outcomes) -> str:
    """The tables of a month in words, without the rows that noise makes."""
    return ", ".join(f"{about(each)} {table}" for table, each in told.items())


def about(table: Outcome) -> str:
    return "no" if table.real_rows < NOTHING else f"about {round(table.real_rows):,}"


def policy_lines(mechanism: Mechanism, changes: Settings) -> str:
    """Settings as the policy file has them."""
    values = {key: "none" if value is None else value for key, value in as_values(changes).items()}
    return "\n".join([f"[{mechanism.name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())])


def as_values(changes: Settings) -> dict[str, Any]:
    return {key: decimal_text(value) if isinstance(value, Fraction) else value for key, value in changes.items()}


def as_json(told: Outcomes) -> dict[str, Any]:
    return {table: each.as_json() for table, each in told.items()}
