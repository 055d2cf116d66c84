"""Attacks on any use of steered selection (`privacy.steered`), given the function that draws it. No cases are here.

A mechanism says how it draws, by which plan, and what it claims; each attack builds the log on which that plan is
weakest and runs the auditor. Doubles choose the log and decide nothing.

**Many runs at once.** Runs are disjoint copies of all users and items of a log in one draw. Everything that names an
item is then independent between runs: weights depend on a user's own items and their Y, noise is drawn for each item.
Only two numbers look across runs, the typical size and the noisy total of the counts. They scale the counts and their
deviations alike, so they decide neither which items are named nor which known ones are printed: the attacks look at
nothing else. A pool that is listed inside the drawing function is not copied; attacks without one are sharper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qlog_assets.attacks.auditor import (
    AuditResult,
    Claim,
    Mechanism,
    audit_ratio,
    audit_structural_zero,
    epsilon_lower_bound,
)
from qlog_assets.attacks.case import rows_of, side_by_side, without_x
from qlog_assets.privacy.gaussian import WEIGHT_UNIT, GaussianBudget
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.steered import PublicItems, SteeredPlan, plan_part, release_steered

Draw = Callable[[RandomSource, np.ndarray, np.ndarray, int, PublicItems], np.ndarray]
"""(source, user ids, item ids, how many items there are, which are public) -> the numbers of the printed items."""
ItemLog = Mapping[str, tuple[int, ...]]

SURE_DEVIATIONS = 7
"""How far the first look of a crafted log is from any other outcome: one in 10**12 for each item."""
MOST_ROWS = 1000
"""Rows of one run, at most: a log that needs more is one for other parameters."""
MOST_SHARING_USERS, MOST_PRIVATE_ITEMS = 100, 5
ROWS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Target:
    """One use of steered selection.

    The plan is the one that `draw` makes where nothing is public. The attacks on new items compare with `claim.delta`:
    given the part of δ that hides new items instead of all of it, they see a threshold a few percent too low.
    """

    draw: Draw
    plan: SteeredPlan
    claim: Claim


def table_target(budget: GaussianBudget, part: Fraction) -> Target:
    """A table that a mechanism draws by a part of a budget; the claim is the part of δ that hides its new items."""

    def draw(
        source: RandomSource, user_ids: np.ndarray, item_ids: np.ndarray, items: int, public: PublicItems
    ) -> np.ndarray:
        return release_steered(source, user_ids, item_ids, items, public, budget, part).items

    claim = Claim(float(budget.epsilon), float(budget.new_item_delta * part))
    return Target(draw, plan_part(budget, part), claim)


def attack_new_items(target: Target, source: RandomSource, runs: int) -> AuditResult:
    """X alone holds some items. They must pass the first look too, so large budgets come nearer to the claim."""
    plan = target.plan
    items = _most_telling(plan, first_look=True)
    log: ItemLog = {"other": (items,), "X": tuple(range(items))}
    return _audit_new(target, log, items, source, runs)


def attack_left_out_items(target: Target, source: RandomSource, runs: int) -> AuditResult:
    """X's items pass the first look surely, as others hold them; those leave them out, as d others are nearer to c.

    Groups of users hold X's items and d items of their group. All of these pass the first look, those of X with more,
    as every group pushes them. Needs a budget so large that few users do that.
    """
    plan = target.plan
    items, filled = _most_telling(plan, first_look=False), plan.weighed_items
    weight = math.isqrt(WEIGHT_UNIT**2 // (items + filled))
    sure = SURE_DEVIATIONS * math.sqrt(plan.first_variance)
    users = math.ceil((plan.least_hopeful(plan.threshold) + sure) / weight)
    groups = 1 + math.ceil(math.sqrt(2) * sure / (users * weight))
    log: dict[str, tuple[int, ...]] = {}
    for group in range(groups):
        own = range(items + group * filled, items + (group + 1) * filled)
        log |= {f"user {number} of group {group}": (*range(items), *own) for number in range(users)}
    return _audit_new(target, {**log, "X": tuple(range(items))}, items, source, runs)


def attack_shared_item(target: Target, source: RandomSource, runs: int) -> AuditResult:
    """Others hold X's item too, and it is near c in the first look and near T in the second; the event: it is named.

    Others hold a few items of their own besides, which take weight in the first look and are hopeless in the second.
    """
    users, private = _most_telling_crowd(target.plan, target.claim.delta, runs)
    others = {
        f"user {number}": (0, *range(1 + number * private, 1 + (number + 1) * private)) for number in range(users)
    }
    log: ItemLog = {**others, "X": (0,)}
    mechanism = _mechanism(target, 1, 1 + users * private)
    return audit_ratio(mechanism, log, without_x(log), target.claim, source, runs, batch=_batch(log))


def attack_known_item(target: Target, source: RandomSource, runs: int) -> AuditResult:
    """X alone holds a known item; the event: it is printed. If it were noised only where held, this would be certain
    to show it."""
    log: ItemLog = {"X": (0,)}
    mechanism = _mechanism(target, 1, 1, known=True)
    return audit_ratio(mechanism, log, without_x(log), target.claim, source, runs, batch=_batch(log))


def _audit_new(target: Target, log: ItemLog, items: int, source: RandomSource, runs: int) -> AuditResult:
    cells = 1 + max(number for records in log.values() for number in records)
    mechanism = _mechanism(target, items, cells)
    return audit_structural_zero(mechanism, log, without_x(log), target.claim, source, runs, batch=_batch(log))


def _mechanism(target: Target, watched: int, cells: int, known: bool = False) -> Mechanism:
    """The event: one of the first `watched` items of a run is printed. With `known` item 0 of every run is known."""

    def mechanism(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
        users, items = rows_of(log, range(cells))
        run = np.repeat(np.arange(runs), users.size)
        public = PublicItems()
        if known:
            public = PublicItems(known=np.arange(runs) * cells, known_users=np.ones(runs, dtype=np.int64))
        drawn = target.draw(
            source,
            side_by_side(users, runs) + run * len(log),
            side_by_side(items, runs) + run * cells,
            runs * cells,
            public,
        )
        happened = np.zeros(runs, dtype=bool)
        happened[drawn[drawn % cells < watched] // cells] = True
        return happened

    return mechanism


def _batch(log: ItemLog) -> int:
    rows = sum(len(records) for records in log.values())
    if rows > MOST_ROWS:
        raise ValueError(f"a log of {rows} rows shows it: attack a larger budget")
    return ROWS_AT_ONCE // rows


def _most_telling(plan: SteeredPlan, first_look: bool) -> int:
    """Of how many new items of X, with even weights, one is named most often."""
    from scipy.special import ndtr  # every command loads this module, and few attack anything

    items = np.arange(1, plan.weighed_items + 1)
    weights = WEIGHT_UNIT / np.sqrt(items)
    named = items * ndtr((weights - plan.threshold) / math.sqrt(plan.second_variance))
    if first_look:
        named *= ndtr((weights - plan.least_hopeful(plan.threshold)) / math.sqrt(plan.first_variance))
    return int(items[np.argmax(named)])


def _most_telling_crowd(plan: SteeredPlan, delta: float, runs: int) -> tuple[int, int]:
    """How many others, with how many items of their own each, show most of ε by whether the shared item is named.

    For each the chances are computed as if nobody's own items passed the first look, and the auditor's bound from them.
    """
    from scipy.special import ndtr

    users, private = np.arange(1, MOST_SHARING_USERS + 1)[:, None], np.arange(MOST_PRIVATE_ITEMS + 1)[None, :]
    first = users * WEIGHT_UNIT / np.sqrt(1 + private) - plan.least_hopeful(plan.threshold)
    second = users * WEIGHT_UNIT - plan.threshold

    def hits(added: int) -> np.ndarray:
        passes = ndtr((first + added) / math.sqrt(plan.first_variance))
        return np.rint(runs * passes * ndtr((second + added) / math.sqrt(plan.second_variance))).astype(np.int64)

    shown = [
        epsilon_lower_bound(with_x, without, runs, delta)
        for with_x, without in zip(hits(WEIGHT_UNIT).flat, hits(0).flat, strict=True)
    ]
    best = int(np.argmax(shown))
    return 1 + best // private.size, best % private.size
