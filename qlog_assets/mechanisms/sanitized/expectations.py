"""What is known in public of a sanitized log before it is drawn: how many users a pair needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qlog_assets.mechanisms.expectations import Expectation, expect_thresholds
from qlog_assets.mechanisms.sanitized import noise
from qlog_assets.mechanisms.sanitized.guarantee import pair_budget, sound
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.mechanisms.steered_words import expect_steered
from qlog_assets.privacy.steered import plan_part


def expects_sound(chosen: SanitizedParameters, list_rows: Mapping[str, int]) -> Sequence[Expectation]:
    """The thresholds of counts; where weights are tested, how many users' weights reach it, the noise being zero."""
    known = expect_thresholds(sound(chosen))
    if noise.is_steered(chosen):
        return [expect_steered("pairs", plan_part(pair_budget(chosen))), *known]
    if not noise.takes_rows(chosen):
        return known
    (step,) = noise.plan_rows(chosen).rounds
    alone, full = (-(-step.threshold // step.weights[pairs]) for pairs in (0, -1))
    note = f"who hold nothing else; {full:,} who hold {chosen.pairs_per_user:,} each"
    return [Expectation("pairs", alone, "derived", note=note), *known]
