"""How many users something may have that a table does not print: from its noise and threshold, which are public.

A query that is missing was not counted as zero. The words here are about chances; nothing is decided by them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from qlog_assets.report.table_noise import TableNoise, least_users


@dataclass(frozen=True)
class Unprinted:
    """What a missing row tells: from so many users on it is at least as likely as not that a row is printed."""

    users: int
    condition: str = ""
    """Of what this is said alone, where it does not hold of everything."""


def tell_unprinted(facts: Mapping[str, Any], noise: TableNoise | None) -> Unprinted | None:
    """What a missing row of a table tells, by what the manifest says of the table; None where nothing is known.

    Whether an item is on a public list is not looked up: where two thresholds were used, the higher one is told.
    """
    if facts["threshold"] is None:
        return None
    threshold = facts["threshold"] if facts["threshold_outside_pool"] is None else facts["threshold_outside_pool"]
    if noise is None:
        return Unprinted(threshold)
    if noise.tested:
        return Unprinted(even_users(noise, threshold), f"said of {noise.among} alone" if noise.among else "")
    reaches = [reach for reach in noise.reaches if not reach.listed] or list(noise.reaches)
    if not reaches:
        return None
    widest = max(reaches, key=lambda reach: reach.items)
    # Users of nothing else weigh most: of others only the one who holds as many items as anybody may bounds the chance.
    return Unprinted(
        widest.even_users,
        "" if widest.items > 1 else "said of users who did nothing else that month; of others it takes more",
    )


def even_users(noise: TableNoise, threshold: int) -> int:
    """The fewest users from which on a tested count is at least as likely as not to be printed."""
    start = max(noise.min_users, math.ceil(threshold if noise.tested_from is None else noise.tested_from), 1)
    chance = partial(noise.chance_missing, threshold=threshold, only_if_held=not noise.among)
    return least_users(chance, 0.5, start=start)
