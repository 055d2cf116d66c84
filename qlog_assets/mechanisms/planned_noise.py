"""From the plan of a draw to what is said of its noise in public. Shared by mechanisms; draws nothing.

A plan follows from parameters alone, and how far counts were stretched from noisy numbers alone: all of it may be said.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from qlog_assets.privacy.gaussian import COUNT_UNIT, WEIGHT_UNIT, CountPlan, SelectionPlan, ThresholdPlan
from qlog_assets.privacy.steered import SteeredPlan
from qlog_assets.report.table_noise import GAUSSIAN, GEOMETRIC, Look, Reach, TableNoise, six


def geometric_noise(scale: Fraction, *, min_users: int = 1, largest: int | None = None, among: str = "") -> TableNoise:
    """Two-sided geometric noise on counts that are tested and printed."""
    return TableNoise(GEOMETRIC, six(float(scale)), min_users=min_users, largest=largest, among=among)


def count_noise(plan: CountPlan, *, min_users: int = 1) -> TableNoise:
    """Gaussian noise on counts that are tested and printed."""
    deviation, least = math.sqrt(plan.variance) / COUNT_UNIT, plan.fine_threshold / COUNT_UNIT + min_users - 1
    return TableNoise(GAUSSIAN, six(deviation), tested_from=six(least), min_users=min_users)


def chosen_noise(deviation: float, *reaches: Reach, by_row: bool = False) -> TableNoise:
    """Gaussian noise on the counts of items that were chosen before; `by_row`: `deviation` is the least of all rows."""
    return TableNoise(GAUSSIAN, six(deviation), by_row=by_row, tested=False, reaches=reaches)


def weighted_noise(plan: SelectionPlan, deviation: float) -> TableNoise:
    """The same where weights chose them by a plan: what users of nothing else, and of most items, reach."""
    most = len(plan.rounds[0].weights)
    return chosen_noise(deviation, *(reach(plan, items) for items in sorted({1, most})))


def steered_noise(plan: SteeredPlan, deviations: np.ndarray, *, with_list: bool = False) -> TableNoise:
    """The same where a first look steered the second: what users of nothing else reach, who give it all their weight.

    Of users of many items nothing can be said: they may give an item no weight, for the sake of their others. The least
    noise is that of a count that is not stretched, of an item that has a whole share.
    """
    least = math.sqrt(plan.counting.variance) / plan.counting.unit
    reaches = [steered_reach(plan, plan.threshold)]
    if with_list:
        reaches.insert(0, steered_reach(plan, plan.listed_threshold, listed=True))
    return chosen_noise(float(min(deviations, default=least)), *reaches, by_row=True)


def steered_reach(plan: SteeredPlan, threshold: int, *, listed: bool = False) -> Reach:
    """Both looks of a steered selection, for users who hold nothing else."""
    steps = ((plan.least_hopeful(threshold), plan.first_variance), (threshold, plan.second_variance))
    looks = tuple(Look(six(at / WEIGHT_UNIT), six(math.sqrt(variance) / WEIGHT_UNIT)) for at, variance in steps)
    return Reach(1, looks, every=True, listed=listed)


def reach(plan: SelectionPlan, items: int) -> Reach:
    """What users of so many items reach, round by round; in a later round they hold as many at most, so weigh more."""
    return Reach(items, tuple(look(step, step.weights[items - 1]) for step in plan.rounds))


def look(step: ThresholdPlan, weight: int) -> Look:
    """One round, in users who add this weight each."""
    return Look(six(step.threshold / weight), six(math.sqrt(step.variance) / weight))
