"""What steered selection hides, and that the checks here would see each mistake that shows it.

A check is a function that says whether all is well: true for the code as it is, false for a mutant of it. Checks that
draw state their false-alarm rate; seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

from qlog_assets.attacks.auditor import AuditResult, Claim
from qlog_assets.attacks.steered import Draw, Target, attack_known_item, attack_left_out_items, attack_new_items
from qlog_assets.privacy import scaled_counts, steered
from qlog_assets.privacy.gaussian import WEIGHT_UNIT, gaussian_budget
from qlog_assets.privacy.holdings import even_sums
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.scaled_counts import ScaledCounts
from qlog_assets.privacy.steered import PublicItems, SteeredPlan
from qlog_assets.privacy.weighted import Contributions

EMPTY = np.empty(0, dtype=np.int64)
FALSE_ALARM = 1e-6
Check = Callable[[], bool]
Mutation = Callable[[pytest.MonkeyPatch], None]


NEVER = 1 << 61


def second_look_of(epsilon: int, delta: str) -> Target:
    """A release whose first look names nothing; the claim is what the second may spend of what hides new items."""
    budget = gaussian_budget(Fraction(epsilon), Fraction(delta))
    plan = replace(steered.plan_part(budget), certain_threshold=NEVER)
    claim = Claim(epsilon, float(budget.new_item_delta * (1 - steered.CERTAIN_SHARE)))
    return Target(draw_by(plan), plan, claim)


def draw_by(plan: SteeredPlan) -> Draw:
    def draw(
        source: RandomSource, user_ids: np.ndarray, item_ids: np.ndarray, items: int, public: PublicItems
    ) -> np.ndarray:
        return steered.draw_steered(source, Contributions.among(user_ids, item_ids, items), public, plan).items

    return draw


def release_of(epsilon: int, delta: str) -> Target:
    """A whole release; the claim on δ is the part that hides new items."""
    budget = gaussian_budget(Fraction(epsilon), Fraction(delta))

    def draw(
        source: RandomSource, user_ids: np.ndarray, item_ids: np.ndarray, items: int, public: PublicItems
    ) -> np.ndarray:
        return steered.release_steered(source, user_ids, item_ids, items, public, budget).items

    return Target(draw, steered.plan_part(budget), Claim(epsilon, float(budget.new_item_delta)))


@pytest.mark.slow
def test_an_item_that_all_others_leave_out_is_named_as_often_as_promised_and_nearly_that_often() -> None:
    """With d = 20, of which each other user holds 20 items nearer to c. False-alarm rate 1e-6."""
    found = attack_left_out_items(second_look_of(2000, "0.1"), SeededRandom(1), 6000)
    assert found.verdict == "pass" and found.measured > 0.6 * 0.05, found.sentence


def new_items_stay_hidden() -> bool:
    """False-alarm rate 1e-6; sees 0.0463 of 0.05."""
    return attack_new_items(release_of(500, "0.1"), SeededRandom(2), 60_000).verdict == "pass"


def few_plan() -> SteeredPlan:
    budget = gaussian_budget(Fraction(4), Fraction(1, 10))
    plan = steered.plan_steered(budget.squared, budget.new_item_delta, weighed_items=3)
    return replace(plan, certain_threshold=NEVER)


def attack_plan(plan: SteeredPlan, attack: Callable[..., AuditResult]) -> AuditResult:
    return attack(Target(draw_by(plan), plan, Claim(4, 0.045)), SeededRandom(3), 8000)


def test_a_threshold_that_counts_on_the_first_look_hides_what_nobody_holds_and_not_what_others_leave_out() -> None:
    """A mistake that needs an attack of its own: few of X's items pass the first look unless others help."""
    plan = few_plan()
    hopeful = replace(plan, threshold=int(plan.threshold * 0.92))
    assert attack_plan(plan, attack_left_out_items).verdict == "pass"
    assert attack_plan(hopeful, attack_new_items).verdict == "pass"
    assert attack_plan(hopeful, attack_left_out_items).verdict == "fail"


def own_items_are_never_certain() -> bool:
    """60,000 users of one item each, at ε = 500, where one item with all weight is worst. False-alarm rate 1e-6; sees
    0.005 of 0.005."""
    budget = gaussian_budget(Fraction(500), Fraction(1, 10))
    plan, numbers = steered.plan_part(budget), np.arange(60_000)
    sums = even_sums(Contributions.among(numbers, numbers, 60_000))
    first = steered.look_first(SeededRandom(9), sums, np.zeros(60_000, dtype=bool), plan)
    named = int((first >= plan.certain_threshold).sum())
    return bool(named <= binom.isf(FALSE_ALARM, 60_000, float(budget.new_item_delta * steered.CERTAIN_SHARE)))


def weights_stay_within_their_bound() -> bool:
    """The second look after a first that says of some items that they are larger than all the world."""
    plan = steered.plan_steered(Fraction(1, 4), Fraction(1, 10**6), weighed_items=5)
    hopeful = plan.least_hopeful(plan.threshold)
    first = hopeful * np.r_[np.arange(1, 11), 1 << np.arange(14, 24)]
    pairs = Contributions.among(np.repeat(np.arange(11), 10), (np.arange(11)[:, None] + np.arange(10)).ravel(), 20 + 1)
    pairs = pairs.where(pairs.items < 20)
    pairs, weights = steered.steer_weights(pairs, first, first < 0, plan)
    squares = np.bincount(pairs.owners, weights.astype(np.float64) ** 2)  # below 2**53: exact
    return bool(squares.max() <= WEIGHT_UNIT**2 and np.bincount(pairs.owners).max() <= 5)


def noise_of_the_second_look_is_fresh() -> bool:
    """20,000 items of one user, each named with probability 1/2: not more often where the first look was high.

    Under independence the correlation times √n is nearly normal: five deviations, false-alarm rate 6e-7.
    """
    plan = replace(release_of(500, "0.1").plan, threshold=WEIGHT_UNIT)
    numbers, listed = np.arange(20_000), np.zeros(20_000, dtype=bool)
    pairs, source = Contributions.among(numbers, numbers, 20_000), SeededRandom(4)
    first = steered.look_first(source, even_sums(pairs), listed, plan)
    named = np.zeros(20_000, dtype=bool)
    named[steered.look_again(source, [pairs], first, listed, plan)] = True
    return bool(abs(np.corrcoef(first, named)[0, 1]) * np.sqrt(20_000) < 5)


def within_binomial(found: int, tries: int, chance: float) -> bool:
    low, high = binom.interval(1 - FALSE_ALARM, tries, chance)
    return bool(low <= found <= high)


def known_items_have_noise_though_nobody_holds_them() -> bool:
    """100,000 known items, of which noise alone prints one in 740. False-alarm rate 1e-6."""
    budget = gaussian_budget(Fraction(2), Fraction(1, 1000))
    public = PublicItems(known=np.arange(100_000), known_users=np.full(100_000, 20))
    drawn = steered.release_steered(SeededRandom(5), EMPTY, EMPTY, 100_000, public, budget)
    return within_binomial(len(drawn.items), 100_000, norm.sf(steered.KNOWN_DEVIATIONS))


def listed_items_have_noise_though_nobody_holds_them() -> bool:
    """20,000 listed items and a threshold made for 200 of them: as many fakes as expected. False-alarm rate 1e-6."""
    budget = gaussian_budget(Fraction(2), Fraction(1, 1000))
    plan = steered.plan_part(budget, listed_items=200)
    none = Contributions.among(EMPTY, EMPTY, 20_000)
    drawn = steered.draw_steered(SeededRandom(6), none, PublicItems(listed=np.arange(20_000)), plan)
    return within_binomial(len(drawn.items), 20_000, steered.LISTED_FAKES / 200)


def noise_is_what_the_budget_pays_for() -> bool:
    """Noise of four variances is drawn, on the items it must be on, and their μ² add up to no more than the budget."""
    budget = gaussian_budget(Fraction(50), Fraction(1, 10))
    drawn: list[tuple[int, int]] = []
    original = steered.discrete_gaussian

    def recording(source: RandomSource, variance: Fraction, size: int) -> np.ndarray:
        drawn.append((int(variance), size))
        return original(source, variance, size)

    public = PublicItems(known=np.array([8]), known_users=np.array([9]), listed=np.array([9]))
    user_ids, item_ids = np.repeat(np.arange(50), 2), np.tile(np.array([0, 1]), 50)
    with pytest.MonkeyPatch.context() as patch:
        for module in (steered, scaled_counts):
            patch.setattr(module, "discrete_gaussian", recording)
        plan = steered.plan_part(budget, listed_items=1, with_known=True)
        # Certain items get no further noise: here none is.
        plan = replace(plan, certain_threshold=NEVER, certain_listed_threshold=NEVER)
        named = len(
            steered.draw_steered(SeededRandom(7), Contributions.among(user_ids, item_ids, 10), public, plan).items
        )
    if len(drawn) != 4 or [size for _, size in drawn[:2]] != [3, 3] or drawn[2][1] < named or drawn[3][1] != 1:
        return False
    counts = plan.counting
    moved = (WEIGHT_UNIT**2, WEIGHT_UNIT**2, counts.squared_limit, counts.most_items**2)
    spent = sum(Fraction(squares, variance - 64) for squares, (variance, _) in zip(moved, drawn, strict=True))
    return bool(spent <= budget.squared)


def lower_threshold(patch: pytest.MonkeyPatch) -> None:
    original = steered.hiding_threshold
    patch.setattr(steered, "hiding_threshold", lambda *settings: int(original(*settings) * 0.99))


def lower_certain_threshold(patch: pytest.MonkeyPatch) -> None:
    original = steered.hiding_threshold

    def lowered(variance: int, weight: int, items: int, delta: Fraction) -> int:
        found = original(variance, weight, items, delta)
        return int(found * 0.99) if items == steered.MOST_ITEMS else found

    patch.setattr(steered, "hiding_threshold", lowered)


def round_norms_down(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steered, "ceil_roots", lambda squares: np.sqrt(squares).astype(np.int64))


def weigh_all_items(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steered, "nearest_first", lambda pairs, first, most: pairs)


def reuse_noise(patch: pytest.MonkeyPatch) -> None:
    """The second look gets the noise of the first, made as small as the plan says."""
    original, drawn = steered.discrete_gaussian, []

    def remembered(source: RandomSource, variance: Fraction, size: int) -> np.ndarray:
        if drawn and len(drawn[0][1]) == size:
            return np.rint(drawn[0][1] * float(variance / drawn[0][0]) ** 0.5).astype(np.int64)
        drawn.append((variance, original(source, variance, size)))
        return drawn[-1][1]

    patch.setattr(steered, "discrete_gaussian", remembered)


def spare_unheld_known(patch: pytest.MonkeyPatch) -> None:
    original = steered.draw_scaled_counts

    def spared(
        source: RandomSource, parts: Iterable[Contributions], scales: np.ndarray, plan: scaled_counts.ScaledCountPlan
    ) -> ScaledCounts:
        (pairs,) = parts
        counted = original(source, [pairs], scales, plan)
        held = np.isin(np.arange(len(scales)), pairs.items)
        return replace(counted, signals=np.where(held, counted.signals, 0))

    patch.setattr(steered, "draw_scaled_counts", spared)


def spare_unheld_listed(patch: pytest.MonkeyPatch) -> None:
    original = steered.look_again

    def spared(
        source: RandomSource, parts: Iterable[Contributions], first: np.ndarray, listed: np.ndarray, plan: SteeredPlan
    ) -> np.ndarray:
        (pairs,) = parts
        named = original(source, [pairs], first, listed, plan)
        return named[np.isin(named, pairs.items)]

    patch.setattr(steered, "look_again", spared)


def leave_total_unpaid(patch: pytest.MonkeyPatch) -> None:
    """The sums get all that the counts may spend, and the total is drawn on top."""
    original = steered.plan_scaled_counts

    def unpaid(counted: Fraction, most: int, squared: Fraction) -> scaled_counts.ScaledCountPlan:
        generous = original(counted, most, squared / (1 - scaled_counts.TOTAL_SHARE))
        return replace(original(counted, most, squared), variance=generous.variance)

    patch.setattr(steered, "plan_scaled_counts", unpaid)


def quiet_total(patch: pytest.MonkeyPatch) -> None:
    original = steered.plan_scaled_counts
    patch.setattr(steered, "plan_scaled_counts", lambda *settings: replace(original(*settings), total_variance=65))


def keep_first_look_noiseless(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steered, "look_first", lambda source, sums, listed, plan: sums)


CHECKS: list[Check] = [
    new_items_stay_hidden,
    own_items_are_never_certain,
    weights_stay_within_their_bound,
    noise_of_the_second_look_is_fresh,
    known_items_have_noise_though_nobody_holds_them,
    listed_items_have_noise_though_nobody_holds_them,
    noise_is_what_the_budget_pays_for,
]
MUTANTS: list[tuple[Mutation, Check]] = [
    (lower_threshold, new_items_stay_hidden),
    (lower_certain_threshold, own_items_are_never_certain),
    (round_norms_down, weights_stay_within_their_bound),
    (weigh_all_items, weights_stay_within_their_bound),
    (reuse_noise, noise_of_the_second_look_is_fresh),
    (spare_unheld_known, known_items_have_noise_though_nobody_holds_them),
    (spare_unheld_listed, listed_items_have_noise_though_nobody_holds_them),
    (leave_total_unpaid, noise_is_what_the_budget_pays_for),
    (quiet_total, noise_is_what_the_budget_pays_for),
    (keep_first_look_noiseless, noise_is_what_the_budget_pays_for),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_code_as_it_is_passes_every_check(check: Check) -> None:
    assert check()


@pytest.mark.parametrize(("mutate", "check"), MUTANTS, ids=lambda function: function.__name__)
def test_a_check_sees_the_mutant_it_is_for(mutate: Mutation, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    assert not check()


def test_a_known_item_that_has_noise_only_where_held_breaks_its_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the ratio audit: without X it is never printed. False-alarm rate 1e-6."""
    target = replace(release_of(3, "0.00002"), claim=Claim(3, 0.00002))
    assert attack_known_item(target, SeededRandom(8), 200_000).verdict == "pass"
    spare_unheld_known(monkeypatch)
    assert attack_known_item(target, SeededRandom(8), 200_000).verdict == "fail"
