"""Counts the items that users contribute and puts the texts of drawn ones back: shared by mechanisms that choose items.

A partition's table of contributions has one row per user and item: a column "user", and the item's own columns. What
one user may hold is decided by the stage that wrote it. One table is counted at a time, as `counted_items`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition


def count_items(engine: Engine, items: Partition, table: str) -> None:
    """Make the table `counted_items` of a table of contributions: every item some user holds, numbered."""
    engine.view("contributions", items.files(table))
    engine.statement_table("contributions/counted_items")


def view_items(engine: Engine, table: str) -> None:
    """Name a table that the engine has `contributions`."""
    engine.view_as("contributions", table)


def count_items_of(engine: Engine, table: str) -> None:
    """The same of a table that the engine has."""
    view_items(engine, table)
    engine.statement_table("contributions/counted_items")


def item_counts(engine: Engine) -> np.ndarray:
    """How many users hold each item of `counted_items`, by number."""
    return engine.arrays("contributions/item_counts")["held_by"].astype(np.int64)


def item_holders(engine: Engine) -> tuple[np.ndarray, np.ndarray]:
    """Who holds which item of `counted_items`, as numbers: users, items."""
    rows = engine.arrays("contributions/numbered_contributions")
    return rows["user_id"], rows["item_id"]


def name_items(engine: Engine, items: np.ndarray, users: np.ndarray, **drawn: np.ndarray) -> pa.Table:
    """The texts of some items of `counted_items` beside new counts, and whatever else was drawn of each."""
    with engine.table("drawn_items", pa.table({"item_id": items, "users": users, **drawn})):
        return engine.arrow("contributions/named_items")
