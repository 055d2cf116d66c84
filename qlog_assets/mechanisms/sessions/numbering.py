"""Sequences as rows of query numbers, and back to texts: how the noise and the tables see the same items."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from qlog_assets.mechanisms.sessions.noise import NO_QUERY
from qlog_assets.mechanisms.sessions.parameters import LONGEST_SESSION
from qlog_assets.storage.engine import Engine

ITEM_COLUMNS = [f"q{place}" for place in range(1, LONGEST_SESSION + 1)]


def item_matrix(items: pa.Table) -> np.ndarray:
    """The query numbers of a table of items, one row each."""
    return np.column_stack([items[name].to_numpy() for name in ITEM_COLUMNS])


def name_sessions(engine: Engine, items: np.ndarray, users: np.ndarray) -> pa.Table:
    """Items as lists of texts, beside their counts."""
    present = items != NO_QUERY
    wanted, places = np.unique(items[present], return_inverse=True)
    with engine.table("wanted_queries", pa.table({"query_id": wanted})):
        texts = engine.arrow("sessions/query_texts")["query"].combine_chunks()
    offsets = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int32)
    queries = pa.ListArray.from_arrays(pa.array(offsets), texts.take(pa.array(places)))
    return pa.table({"queries": queries, "users": users})
