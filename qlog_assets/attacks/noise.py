"""A8 to A11: the stability histogram at its limits, float noise's low bits, averaged re-runs, steered selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from qlog_assets.attacks.auditor import AuditResult, Claim, Mechanism, audit_ratio, audit_structural_zero
from qlog_assets.attacks.case import Cases, printed, rows_of, side_by_side, without_x
from qlog_assets.attacks.steered import (
    Target,
    attack_known_item,
    attack_left_out_items,
    attack_new_items,
    attack_shared_item,
)
from qlog_assets.attacks.steered_steps import attack_step
from qlog_assets.privacy.gaussian import gaussian_budget
from qlog_assets.privacy.histogram import Released, public_histogram, stability_histogram, stability_threshold
from qlog_assets.privacy.limits import count_users, first_distinct
from qlog_assets.privacy.noise import discrete_laplace
from qlog_assets.privacy.paper_noise import continuous_laplace
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.steered import CERTAIN_SHARE, PublicItems, SteeredPlan, draw_steered, plan_steered
from qlog_assets.privacy.weighted import Contributions

CASES = Cases("noise")
RUNS = 1_000_000

ItemLog = Mapping[str, tuple[int, ...]]

# A8. The stability histogram with m items per user: new ones use up δ, shared ones use up ε.

ITEMS = 3


def count(log: ItemLog) -> np.ndarray:
    return count_users(*first_distinct(*rows_of(log, range(ITEMS)), ITEMS), ITEMS)


def any_printed(scale: Fraction, delta: Fraction, lower_by: int = 0) -> Mechanism:
    """The event: at least one item is released. `lower_by` is what an off-by-one error takes from the threshold."""

    def mechanism(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
        users = side_by_side(count(log), runs)
        if lower_by:
            threshold = stability_threshold(ITEMS, scale, delta) - lower_by
            support = np.flatnonzero(users)
            draw = public_histogram(source, users[support], scale, threshold)
            draw = Released(support[draw.indices], draw.users)
        else:
            draw = stability_histogram(source, users, ITEMS, scale, delta)
        return np.asarray((printed(draw.indices, draw.users, runs, ITEMS) > 0).any(axis=1))

    return mechanism


NEW_ITEMS: ItemLog = {"X": (0, 1, 2)}
NEW_DELTA = Fraction(1, 100)


@CASES.add("A8", "stability histogram, m new items", "pass")
def new_items(source: RandomSource) -> AuditResult:
    """About 0.95 % of 1 %: with b = 30 the whole-number threshold wastes at most 3 % of δ, sampling hides the rest."""
    return audit_structural_zero(
        any_printed(Fraction(30), NEW_DELTA), NEW_ITEMS, without_x(NEW_ITEMS), Claim(0.1, 0.01), source, RUNS
    )


@CASES.add("A8", "stability histogram, threshold one too low", "fail")
def threshold_too_low(source: RandomSource) -> AuditResult:
    """Shows that the audit would see an off-by-one error: with b = 3/2 one step is a factor of 1.9."""
    scale = Fraction(3, 2)
    mechanism = any_printed(scale, NEW_DELTA, lower_by=1)
    return audit_structural_zero(mechanism, NEW_ITEMS, without_x(NEW_ITEMS), Claim(2, 0.01), source, RUNS // 4)


def all_printed(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
    """ε = 1 with m = 3; the event: every item is released."""
    draw = stability_histogram(source, side_by_side(count(log), runs), ITEMS, Fraction(ITEMS), Fraction(1, 10**6))
    return np.asarray((printed(draw.indices, draw.users, runs, ITEMS) > 0).all(axis=1))


@CASES.add("A8", "stability histogram, m shared items", "pass")
def shared_items(source: RandomSource) -> AuditResult:
    """About 0.98 of 1: all counts sit at the threshold, where the ratio is exactly e^(m/b); the rest is sampling."""
    users = stability_threshold(ITEMS, Fraction(ITEMS), Fraction(1, 10**6)) - 1
    log = {**{f"user {number}": (0, 1, 2) for number in range(users)}, "X": (0, 1, 2)}
    return audit_ratio(all_printed, log, without_x(log), Claim(1, 1e-6), source, RUNS)


# A9. One count, 1 with X and 0 without, noise of scale 1.

ONE_USER: ItemLog = {"X": (0,)}


def fine_bits(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
    """Float Laplace; the event: the value is within 1/2 of 0 and not a multiple of 2^-53.

    A double near 0 has finer bits than that. Noise z is added to 1 only after it was rounded as a number between -3/2
    and -1/2, whose last bit is worth 2^-53 or more; the sum is exact, so with X the event is impossible.
    """
    values = len(log) + continuous_laplace(source, 1.0, runs)
    return (np.abs(values) < 0.5) & (np.fmod(values, 2.0**-53) != 0)


def at_least_one(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
    """Integer noise; the event: the value is 1 or more."""
    return len(log) + discrete_laplace(source, Fraction(1), runs) >= 1


def is_odd(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
    """Integer noise; the event: the lowest bit is set."""
    return (len(log) + discrete_laplace(source, Fraction(1), runs)) % 2 == 1


@CASES.add("A9", "float Laplace", "fail", floats=True)
def float_bits(source: RandomSource) -> AuditResult:
    """As much as the runs can show for an event of one run in four (9.1), where ε = 1 is claimed: one sample tells."""
    return audit_ratio(fine_bits, ONE_USER, without_x(ONE_USER), Claim(1), source, RUNS // 2)


@CASES.add("A9", "two-sided geometric, the value", "pass")
def integer_value(source: RandomSource) -> AuditResult:
    """About 0.99 of 1: the ratio of the tails is exactly e; the rest is sampling error."""
    return audit_ratio(at_least_one, ONE_USER, without_x(ONE_USER), Claim(1), source, RUNS)


@CASES.add("A9", "two-sided geometric, the lowest bit", "pass")
def integer_bit(source: RandomSource) -> AuditResult:
    """0.43 of 1: an integer's low bits carry less than its value does (P[odd] is 0.61 or 0.39)."""
    return audit_ratio(is_odd, ONE_USER, without_x(ONE_USER), Claim(1), source, RUNS)


# A10. The same count released 25 times, ε = 1/5 each.

RERUNS = 25
RERUN_SCALE = Fraction(5)


def mean_high(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
    """25 independent draws; the event: their mean is at least 3/2."""
    values = len(log) + discrete_laplace(source, RERUN_SCALE, runs * RERUNS).reshape(runs, RERUNS)
    return values.mean(axis=1) >= 1.5


def cached_mean_high(log: ItemLog, source: RandomSource, runs: int) -> np.ndarray:
    """One draw that is handed out 25 times; the event: the mean is at least 1."""
    values = len(log) + discrete_laplace(source, RERUN_SCALE, runs)
    return np.repeat(values[:, None], RERUNS, axis=1).mean(axis=1) >= 1


@CASES.add("A10", "25 re-runs claimed as one", "fail")
def reruns_as_one(source: RandomSource) -> AuditResult:
    """About 0.88 where 0.2 is claimed."""
    return audit_ratio(mean_high, ONE_USER, without_x(ONE_USER), Claim(0.2), source, RUNS // 5, batch=20_000)


@CASES.add("A10", "25 re-runs claimed as 25", "pass")
def reruns_as_many(source: RandomSource) -> AuditResult:
    """About 0.88 of 5: the worst outcome, all 25 draws at 1 or more, has probability 3e-7 and is never seen."""
    return audit_ratio(mean_high, ONE_USER, without_x(ONE_USER), Claim(5), source, RUNS // 5, batch=20_000)


@CASES.add("A10", "one cached release", "pass")
def cached(source: RandomSource) -> AuditResult:
    """About 0.19 of 0.2: the ratio is exactly e^(1/5); the rest is sampling error."""
    return audit_ratio(cached_mean_high, ONE_USER, without_x(ONE_USER), Claim(0.2), source, RUNS)


# A11. Steered selection. At ε = 500 an item of one user passes the first look, so that new items use up their δ.

NEVER = 1 << 61
"""A threshold that no noisy sum reaches."""


def steered(
    epsilon: int,
    delta: str,
    weighed_items: int = 3,
    *,
    threshold_part: Fraction = Fraction(1),
    new_items_only: bool = False,
    second_look_only: bool = False,
    held_only: bool = False,
) -> Target:
    """The primitive under a budget. `new_items_only`: the claim is the part of δ that hides new items.

    `second_look_only`: the first look names nothing, and the claim is what the second may spend of that part: items
    that others push up in the first look would often be certain, with X and without. `threshold_part` is what an error
    leaves of the threshold; with `held_only` only known items that somebody holds get noise.
    """
    budget = gaussian_budget(Fraction(epsilon), Fraction(delta))

    def plan(public: PublicItems) -> SteeredPlan:
        made = plan_steered(
            budget.squared, budget.new_item_delta, with_known=len(public.known) > 0, weighed_items=weighed_items
        )
        made = replace(made, threshold=int(made.threshold * threshold_part))
        return replace(made, certain_threshold=NEVER) if second_look_only else made

    def draw(
        source: RandomSource, user_ids: np.ndarray, item_ids: np.ndarray, items: int, public: PublicItems
    ) -> np.ndarray:
        drawn = draw_steered(source, Contributions.among(user_ids, item_ids, items), public, plan(public)).items
        return drawn[np.isin(drawn, item_ids)] if held_only else drawn

    claimed = budget.new_item_delta if new_items_only else budget.delta
    if second_look_only:
        claimed = budget.new_item_delta * (1 - CERTAIN_SHARE)
    return Target(draw, plan(PublicItems()), Claim(epsilon, float(claimed)))


@CASES.add("A11", "steered selection, a new item", "pass")
def steered_new(source: RandomSource) -> AuditResult:
    """About 4.7 % of 5 %: X's one item passes the first look and has all of X's weight; the rest is sampling error."""
    return attack_new_items(steered(500, "0.1", new_items_only=True), source, RUNS // 10)


@CASES.add("A11", "steered selection, an item that others leave out", "pass")
def steered_left_out(source: RandomSource) -> AuditResult:
    """About 4.1 % of 4.5 %: Y of others lifts the item over the first look, X alone gives it weight in the second."""
    return attack_left_out_items(steered(500, "0.1", second_look_only=True), source, RUNS // 40)


@CASES.add("A11", "steered selection, several items that others leave out", "pass")
def steered_several_left_out(source: RandomSource) -> AuditResult:
    """About 3.1 % of 4.5 %: at ε = 2 even weights of as many items as may have some are worst; 5,000 runs."""
    return attack_left_out_items(steered(2, "0.1", 2, second_look_only=True), source, RUNS // 200)


@CASES.add("A11", "steered selection, several new items", "pass")
def steered_several_new(source: RandomSource) -> AuditResult:
    """About 1.2 % of 5 %: at ε = 2 few of X's items pass the first look, on which the threshold does not count."""
    return attack_new_items(steered(2, "0.1", new_items_only=True), source, RUNS // 10)


@CASES.add("A11", "steered selection, threshold one percent too low", "fail")
def steered_threshold_too_low(source: RandomSource) -> AuditResult:
    """About 8 % where 5 % is claimed: one percent of the threshold is a quarter of a deviation."""
    target = steered(500, "0.1", threshold_part=Fraction(99, 100), new_items_only=True)
    return attack_new_items(target, source, RUNS // 10)


@CASES.add("A11", "steered selection, a new item that the first look names", "pass")
def steered_certain(source: RandomSource) -> AuditResult:
    """About 0.45 % of 0.5 %: what the first look may spend; nothing passes the second."""
    return attack_new_items(first_look_target(), source, RUNS // 2)


@CASES.add("A11", "steered selection, threshold of the first look one percent too low", "fail")
def steered_certain_too_low(source: RandomSource) -> AuditResult:
    """About 0.76 % where 0.5 % is claimed."""
    return attack_new_items(first_look_target(Fraction(99, 100)), source, RUNS // 2)


def first_look_target(threshold_part: Fraction = Fraction(1)) -> Target:
    """A second look that names nothing: all that is named was certain in the first."""
    target = steered(500, "0.1", new_items_only=True)
    certain = int(target.plan.certain_threshold * threshold_part)
    plan = replace(target.plan, certain_threshold=certain)
    silent = replace(plan, threshold=NEVER)

    def draw(
        source: RandomSource, user_ids: np.ndarray, item_ids: np.ndarray, items: int, public: PublicItems
    ) -> np.ndarray:
        return draw_steered(source, Contributions.among(user_ids, item_ids, items), public, silent).items

    return Target(draw, plan, Claim(target.claim.epsilon, target.claim.delta * float(CERTAIN_SHARE)))


@CASES.add("A11", "steered selection, a shared item", "pass")
def steered_shared(source: RandomSource) -> AuditResult:
    """About 1.1 of 2: one threshold shows less than the values would, and a tenth of μ² is in the counts."""
    return attack_shared_item(steered(2, "0.001"), source, RUNS // 10)


@CASES.add("A11", "steered selection, a known item", "pass")
def steered_known(source: RandomSource) -> AuditResult:
    """About 0.5 of 3: the counts have a third of μ², of which one item moves half, seen three deviations out."""
    return attack_known_item(steered(3, "0.00001"), source, RUNS // 2)


@CASES.add("A11", "steered selection, known items noised only where held", "fail")
def steered_held_only(source: RandomSource) -> AuditResult:
    """About 4.5 where 3 is claimed: without X the item is never printed."""
    return attack_known_item(steered(3, "0.00001", held_only=True), source, RUNS // 2)


@CASES.add("A11", "steered selection, the first look alone", "pass")
def steered_first_look(source: RandomSource) -> AuditResult:
    """About 0.97 of 1: the telling event of a Gaussian mechanism; the rest is sampling error."""
    return attack_step("first look", source, RUNS)


@CASES.add("A11", "steered selection, the second look alone", "pass")
def steered_second_look(source: RandomSource) -> AuditResult:
    """About 0.97 of 1: as the first look."""
    return attack_step("second look", source, RUNS)


@CASES.add("A11", "steered selection, the counts alone", "pass")
def steered_counts(source: RandomSource) -> AuditResult:
    """About 0.96 of 1: as the looks, on half as many runs."""
    return attack_step("counts", source, RUNS // 2)


@CASES.add("A11", "steered selection, the total alone", "pass")
def steered_total(source: RandomSource) -> AuditResult:
    """About 0.96 of 1: as the looks."""
    return attack_step("total", source, RUNS)
