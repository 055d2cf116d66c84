"""Z1 to Z3 of specification 3.3: the second threshold, popular items, fake accounts. Z4: modern selection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from qlog_assets.attacks.auditor import (
    AuditResult,
    Bounds,
    Claim,
    Mechanism,
    audit_ratio,
    audit_sensitivity,
    audit_structural_zero,
)
from qlog_assets.attacks.case import Cases, claim_of, printed, rows_of, side_by_side, without_x
from qlog_assets.attacks.steered import attack_new_items, table_target
from qlog_assets.mechanisms.zealous import guarantee, paper
from qlog_assets.mechanisms.zealous import noise as zealous
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.limits import count_events, count_users, first_distinct
from qlog_assets.privacy.randomness import RandomSource

CASES = Cases("zealous")
RUNS = 1_000_000

ItemLog = Mapping[str, tuple[int, ...]]


def sharing(users: int) -> dict[str, tuple[int, ...]]:
    """So many users, X among them, who all hold item 0."""
    return {**{f"user {number}": (0,) for number in range(users - 1)}, "X": (0,)}


# Z1. One item a user; X makes the item's count τ. τ′ by the paper's formula for as many users as hold the item, which
# makes its union bound over U·m/τ items a bound over one item: nothing is lost, and δ is reached exactly.

MINIMUM = 4
ONE_ITEM: dict[str, Any] = {"items_per_user": 1, "kinds": ("queries",)}
PAPER = guarantee.paper(
    ZealousParameters(**ONE_ITEM, epsilon="0.5", delta="0.01", user_bound=MINIMUM, threshold=MINIMUM)
)


def printed_paper(threshold: float | None) -> Mechanism:
    def mechanism(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
        users = side_by_side(count_users(*rows_of(log, range(1)), 1), runs)
        draw = paper.release_paper(source, users, MINIMUM, PAPER.figures["noise_scale"], threshold)
        return printed(draw.indices, np.ones(draw.indices.size, np.int64), runs, 1)[:, 0] > 0

    return mechanism


def sound_printed(**settings: Any) -> tuple[Mechanism, Claim, int]:
    """The event: item 0 is released. With it what the variant claims and its threshold."""
    chosen = ZealousParameters(**{**ONE_ITEM, **settings})
    promised = guarantee.sound(chosen)

    def mechanism(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
        users = side_by_side(count_users(*rows_of(log, range(1)), 1), runs)
        draw = zealous.release(source, users, 1, chosen.noise_scale, chosen.kind_delta, chosen.min_users)
        return printed(draw.indices, draw.users, runs, 1)[:, 0] > 0

    return mechanism, claim_of(promised.claimed), promised.thresholds["queries"]


@CASES.add("Z1", "as printed, without the second threshold", "fail", floats=True)
def no_second_threshold(source: RandomSource) -> AuditResult:
    """Certain with τ users, impossible with τ - 1: δ = 1."""
    log = sharing(MINIMUM)
    return audit_structural_zero(printed_paper(None), log, without_x(log), claim_of(PAPER.claimed), source, 2000)


@CASES.add("Z1", "with the second threshold", "pass", floats=True)
def second_threshold(source: RandomSource) -> AuditResult:
    """About 0.95 % of 1 %: P[printed] is exactly δ, the rest is sampling error."""
    log = sharing(MINIMUM)
    mechanism = printed_paper(PAPER.figures["noisy_threshold"])
    return audit_structural_zero(mechanism, log, without_x(log), claim_of(PAPER.claimed), source, RUNS)


@CASES.add("Z1", "sound, X brings the least number of users", "pass")
def sound_minimum(source: RandomSource) -> AuditResult:
    """About 0.92 % of 1 %: with b = 20 the whole-number threshold wastes at most 5 % of δ."""
    log = sharing(MINIMUM)
    mechanism, claim, _ = sound_printed(epsilon="0.05", delta="0.01", min_users=MINIMUM)
    return audit_structural_zero(mechanism, log, without_x(log), claim, source, RUNS // 2)


@CASES.add("Z1", "sound, a frequent item", "pass")
def sound_frequent(source: RandomSource) -> AuditResult:
    """About 0.99 of 1: the count sits at the threshold, where the ratio is exactly e."""
    mechanism, claim, threshold = sound_printed(epsilon=1, delta="1e-6")
    log = sharing(threshold)
    return audit_ratio(mechanism, log, without_x(log), claim, source, RUNS)


# Z2. Twenty users hold items 0 and 1 and may contribute one; nineteen hold item 0 alone. X decides which is popular.

POPULAR: ItemLog = {
    **{f"both {number}": (0, 1) for number in range(20)},
    **{f"first {number}": (0,) for number in range(20)},
    **{f"second {number}": (1,) for number in range(20)},
    "X": (1,),
}


def chosen(popular: bool) -> AuditResult:
    """One item a user: her first one, or the one that most events of the whole log have."""

    def counter(log: ItemLog) -> dict[int, int]:
        users, items = rows_of(log, range(2))
        if popular:
            order = np.lexsort((items, -count_events(items, 2)[items]))
            users, items = users[order], items[order]
        return dict(enumerate(count_users(*first_distinct(users, items, 1), 2).tolist()))

    return audit_sensitivity(counter, POPULAR, Bounds(l1=1, linf=1))


@CASES.add("Z2", "the globally most popular item of each user", "fail")
def most_popular(source: RandomSource) -> AuditResult:
    """Exact: removing one user re-routes twenty others."""
    return chosen(popular=True)


@CASES.add("Z2", "the first item of each user", "pass")
def first(source: RandomSource) -> AuditResult:
    """Exact: L1 = 1 of 1."""
    return chosen(popular=False)


# Z3. An attacker's accounts hold a guessed query; X is the victim. The same against k-anonymity is in `baselines`.


@CASES.add("Z3", "fake accounts against ZEALOUS, sound", "pass")
def sybils_against_sound(source: RandomSource) -> AuditResult:
    """About 0.99 of 1, the attacker's best number of accounts: she gains e^ε and no more."""
    return sound_frequent(source)


# Z4. Modern selection: three items only X holds, and one that others hold too.

NEW_ITEMS: ItemLog = {"other": (0,), "X": (1, 2, 3)}


def modern_printed(item: int, cells: int, **settings: Any) -> tuple[Mechanism, Claim]:
    """The event: this item, or one after it, is released. Runs are disjoint users with disjoint items of one log."""
    chosen = ZealousParameters(**{"kinds": ("queries",), **settings})

    def mechanism(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
        users, items = rows_of(log, range(cells))
        run = np.repeat(np.arange(runs), users.size)
        copies = side_by_side(users, runs) + run * len(log), side_by_side(items, runs) + run * cells
        draw = zealous.release_modern(source, *copies, runs * cells, chosen)
        table = printed(draw.items, np.ones(draw.items.size, np.int64), runs, cells)
        return np.asarray((table[:, item:] > 0).any(axis=1))

    return mechanism, claim_of(guarantee.modern(chosen).claimed)


def modern_new_items(method: str, source: RandomSource) -> AuditResult:
    mechanism, claim = modern_printed(1, 4, items_per_user=3, epsilon=1, delta="0.01", method=method)
    return audit_structural_zero(mechanism, NEW_ITEMS, without_x(NEW_ITEMS), claim, source, RUNS // 10)


@CASES.add("Z4", "truncated geometric, new items", "pass")
def truncated_new(source: RandomSource) -> AuditResult:
    """About 0.81 % of 1 %: the noise is cut off at a whole number, where its mass is up to e^(-1/3) below δ/3."""
    return modern_new_items("truncated_geometric", source)


@CASES.add("Z4", "truncated geometric, a frequent item", "pass")
def truncated_frequent(source: RandomSource) -> AuditResult:
    """About 0.88 of 1: (P - δ)/P' is e^ε but for the whole-number cut-off; the rest is sampling error."""
    settings = {"items_per_user": 1, "epsilon": 1, "delta": "0.001", "method": "truncated_geometric"}
    mechanism, claim = modern_printed(0, 1, **settings)
    log = sharing(6)
    return audit_ratio(mechanism, log, without_x(log), claim, source, RUNS // 4, batch=50_000)


@CASES.add("Z4", "Gaussian counts, new items", "pass")
def gaussian_new(source: RandomSource) -> AuditResult:
    """About 0.37 % of 1 %: new items get half of δ, its own tail the other half; the cut is a whole number."""
    return modern_new_items("gaussian_counts", source)


@CASES.add("Z4", "weighted Gaussian, new items", "pass")
def weighted_new(source: RandomSource) -> AuditResult:
    """About 0.45 % of 1 %: new items get half of δ, and three is near the number the threshold is made for."""
    return modern_new_items("weighted_gaussian", source)


@CASES.add("Z4", "SIPS, new items", "pass")
def sips_new(source: RandomSource) -> AuditResult:
    """About 0.42 % of 1 %: as the weighted Gaussian, δ shared by three rounds."""
    return modern_new_items("sips", source)


STEERED = ZealousParameters(kinds=("queries", "clicks"), method="steered", epsilon=500, delta="0.2")


@CASES.add("Z4", "steered, a new item", "pass")
def steered_new(source: RandomSource) -> AuditResult:
    """About 4.6 % of 5 %: at so large an ε an item of X alone passes the first look; the rest is sampling error."""
    target = table_target(guarantee.modern_budget(STEERED), zealous.kind_part(STEERED))
    return attack_new_items(target, source, RUNS // 10)
