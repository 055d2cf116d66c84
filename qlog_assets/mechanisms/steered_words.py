"""What is said in public of tables that steered selection draws: before the draw, in the guarantee, on the datasheet.

The same for every mechanism that uses it. Parameters and manifests in, words and numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from qlog_assets.ledger.records import STEERING
from qlog_assets.mechanisms.expectations import KNOWN_FAKES, Expectation
from qlog_assets.privacy.gaussian import WEIGHT_UNIT
from qlog_assets.privacy.steered import KNOWN_DEVIATIONS, LISTED_FAKES, SteeredPlan


def expect_steered(table: str, plan: SteeredPlan) -> Expectation:
    """How many users name an item, the noise being zero: those who give it all their weight, and those who share it."""
    alone = -(-plan.threshold // WEIGHT_UNIT)
    shared = math.ceil(plan.threshold * math.sqrt(plan.weighed_items) / WEIGHT_UNIT)
    note = f"who hope for nothing else; {shared:,} who hope for {plan.weighed_items} items each, all as common"
    return Expectation(table, alone, "derived", note=note)


def steered_steps(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """What was done, in sentences for somebody who does not read formulas."""
    steps = [
        "In a first look each user's items were given weights that together are the same for every user, and random "
        "noise was added to the weight of each item. Items above a high threshold were chosen; nobody sees the rest.",
        "In a second look each user's weight went to the items that the first one found neither hopeless nor certain. "
        "Fresh noise was added, and the items above a threshold were chosen, too.",
        "Noisy numbers of users were then made for the chosen items. A user who holds many of them counts for less in "
        "each, and for less in common ones than in rare ones; the numbers were scaled up for that.",
    ]
    before = steering_in(manifest)
    if before is not None:
        steps.append(
            f"What the release {before} printed was public already: its rows were counted without being chosen again, "
            f"and are printed where the noisy number is at least {KNOWN_DEVIATIONS} standard deviations of its noise."
        )
    return tuple(steps)


def steered_cautions(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    cautions = [
        "Users who hold many of the printed items count for less than one in each of them: numbers of what active "
        "users do and others do not are too low.",
    ]
    if steering_in(manifest) is not None:
        cautions.append(
            "A row that an earlier release printed may be here although nobody holds it any more: noise alone prints "
            f"{KNOWN_FAKES} of those."
        )
    return tuple(cautions)


def expected_inventions(manifest: Mapping[str, Any], tables: Iterable[str], listed: str = "") -> dict[str, float]:
    """At most about how many rows of each table noise alone made: known ones that passed, and of the table `listed` the
    listed ones. Every known row is taken for one that nobody holds any more, and for one of this table."""
    known = sum(pool["rows"] for pool in manifest["pools"] if pool["kind"] == STEERING)
    passing = known * math.erfc(KNOWN_DEVIATIONS / math.sqrt(2)) / 2
    return {table: passing + (LISTED_FAKES if table == listed else 0) for table in tables}


def steering_in(manifest: Mapping[str, Any]) -> str | None:
    """The id of the release that steered this one."""
    return next((pool["name"] for pool in manifest["pools"] if pool["kind"] == STEERING), None)
