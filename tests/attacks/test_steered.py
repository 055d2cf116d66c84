"""The attacks on steered selection look at what they say, whatever a mechanism draws."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from qlog_assets.attacks.auditor import AuditResult, Claim
from qlog_assets.attacks.steered import (
    Target,
    attack_known_item,
    attack_left_out_items,
    attack_new_items,
    attack_shared_item,
)
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.privacy.steered import PublicItems, plan_steered

PLAN = plan_steered(Fraction(40), Fraction(1, 20), weighed_items=3)
CLAIM = Claim(1, 0.05)
NEW_ITEM_ATTACKS = [attack_new_items, attack_left_out_items]


def name_held(
    source: RandomSource, user_ids: np.ndarray, item_ids: np.ndarray, items: int, public: PublicItems
) -> np.ndarray:
    """Names everything that one user alone holds, and known items that somebody holds."""
    users = np.bincount(item_ids, minlength=items)
    return np.flatnonzero(users == 1) if not len(public.known) else public.known[users[public.known] > 0]


def name_nothing(
    source: RandomSource, user_ids: np.ndarray, item_ids: np.ndarray, items: int, public: PublicItems
) -> np.ndarray:
    return np.empty(0, dtype=np.int64)


def name_all(
    source: RandomSource, user_ids: np.ndarray, item_ids: np.ndarray, items: int, public: PublicItems
) -> np.ndarray:
    return np.arange(items)


def name_crowds(
    source: RandomSource, user_ids: np.ndarray, item_ids: np.ndarray, items: int, public: PublicItems
) -> np.ndarray:
    """Names what most users of the log hold: of the shared item it says exactly whether X is there."""
    users = np.bincount(item_ids, minlength=items)
    return np.flatnonzero(users == users.max()) if users.max() % 2 else np.empty(0, dtype=np.int64)


@pytest.mark.parametrize("attack", [attack_new_items, attack_known_item])
def test_a_mechanism_that_names_what_one_user_holds_is_caught(attack: Callable[..., AuditResult]) -> None:
    assert attack(Target(name_held, PLAN, CLAIM), SeededRandom(1), 1000).verdict == "fail"


@pytest.mark.parametrize("attack", [*NEW_ITEM_ATTACKS, attack_shared_item, attack_known_item])
def test_a_mechanism_that_names_nothing_passes(attack: Callable[..., AuditResult]) -> None:
    found = attack(Target(name_nothing, PLAN, CLAIM), SeededRandom(1), 1000)
    assert found.verdict == "pass" and found.figures["hits_with"] == found.figures["hits_without"] == 0


@pytest.mark.parametrize("attack", NEW_ITEM_ATTACKS)
def test_an_item_that_is_named_without_the_user_is_no_structural_zero(attack: Callable[..., AuditResult]) -> None:
    with pytest.raises(ValueError, match="no structural zero"):
        attack(Target(name_all, PLAN, CLAIM), SeededRandom(1), 1000)


def test_a_mechanism_that_tells_whether_one_more_user_is_there_is_caught() -> None:
    found = attack_shared_item(Target(name_crowds, PLAN, CLAIM), SeededRandom(1), 1000)
    assert found.verdict == "fail" and {found.figures["hits_with"], found.figures["hits_without"]} == {0, 1000}


def test_a_log_too_large_to_be_drawn_often_is_refused() -> None:
    small = plan_steered(Fraction(1, 10), Fraction(1, 10**6))
    with pytest.raises(ValueError, match="attack a larger budget"):
        attack_left_out_items(Target(name_nothing, small, CLAIM), SeededRandom(1), 1000)
