"""Counts the items that users contribute and puts the texts of drawn ones back: shared by mechanisms that choose items.

A partition's table of contributions has one row per user and item: a column "user", and the item's own columns. What
one user may hold is decided by the stage that wrote it. One table is counted at a time, as `counted_items`: an item's
weight there is the number of its users, or for steered selection the sum of what they give to it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from qlog_assets.privacy.histogram import Released
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition


def view_partition(engine: Engine, items: Partition, table: str) -> None:
    """Name a partition's table of contributions `contributions`."""
    engine.view("contributions", items.files(table))


def view_items(engine: Engine, table: str) -> None:
    """The same of a table that the engine has."""
    engine.view_as("contributions", table)


def count_items(engine: Engine) -> None:
    """Make the table `counted_items` of the view `contributions`: every item some user holds, numbered.

    Steered selection makes its own (`steered_tables`).
    """
    engine.statement_table("contributions/counted_items")


def item_counts(engine: Engine) -> np.ndarray:
    """How many users hold each item of `counted_items`, by number."""
    return engine.arrays("contributions/item_weights")["weight"].astype(np.int64)


def draw_counted(engine: Engine, draw: Callable[[np.ndarray], Released]) -> Released:
    """What a draw prints of how many users hold each item: numbers of `counted_items` with noisy users.

    Counts are given in parts, as all of them need not fit into memory. Parts tell nothing: noise is drawn item by item.
    """
    first, items, users = 0, [], []
    with engine.parts("contributions/item_weights") as parts:
        for rows in parts:
            drawn = draw(rows["weight"].astype(np.int64))
            items.append(first + drawn.indices)
            users.append(drawn.users)
            first += len(rows["weight"])
    return Released(np.concatenate(items), np.concatenate(users))


def item_holders(engine: Engine) -> tuple[np.ndarray, np.ndarray]:
    """Who holds which item of `counted_items`, as numbers: users, items."""
    rows = engine.arrays("contributions/numbered_contributions")
    return rows["user_id"], rows["item_id"]


def name_items(engine: Engine, items: np.ndarray, users: np.ndarray, **drawn: np.ndarray) -> pa.Table:
    """The texts of some items of `counted_items` beside new counts, and whatever else was drawn of each."""
    with engine.table("drawn_items", pa.table({"item_id": items, "users": users, **drawn})):
        return engine.arrow("contributions/named_items")
