"""What is known in public of a ZEALOUS release before it is drawn: how many users an item needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from qlog_assets.mechanisms.expectations import Expectation
from qlog_assets.mechanisms.steered_words import expect_steered
from qlog_assets.mechanisms.zealous import noise
from qlog_assets.mechanisms.zealous.guarantee import modern_budget
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.privacy.steered import plan_part


def expects_sound(chosen: ZealousParameters, list_rows: Mapping[str, int]) -> Sequence[Expectation]:
    return _each(chosen, _least("sound", chosen))


def expects_modern(chosen: ZealousParameters, list_rows: Mapping[str, int]) -> Sequence[Expectation]:
    """The threshold of counts; where weights are tested, how many users' weights reach it, the noise being zero."""
    if noise.is_steered("modern", chosen):
        plan = plan_part(modern_budget(chosen), noise.kind_part(chosen))
        return tuple(expect_steered(kind, plan) for kind in chosen.kinds)
    if not noise.takes_rows("modern", chosen):
        return _each(chosen, _least("modern", chosen))
    rounds = noise.plan_rows(chosen).rounds
    alone, full = (min(-(-each.threshold // each.weights[items]) for each in rounds) for items in (0, -1))
    return _each(chosen, alone, f"who hold nothing else; {full:,} who hold {chosen.items_per_user} items each")


def _least(variant: str, chosen: ZealousParameters) -> int:
    """The least printed count, told by a draw of no items: it takes no random bit."""
    return noise.draw_counts(SeededRandom(0), np.empty(0, dtype=np.int64), variant, chosen).threshold


def _each(chosen: ZealousParameters, least: int, note: str = "") -> Sequence[Expectation]:
    return tuple(Expectation(kind, least, "derived", note=note) for kind in chosen.kinds)
