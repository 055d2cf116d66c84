"""How session logs are drawn by steered selection: sequences as numbers, and those that an earlier release printed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from qlog_assets.mechanisms.contributions import view_items
from qlog_assets.mechanisms.mechanism import DrawnTable
from qlog_assets.mechanisms.sessions.guarantee import modern_budget
from qlog_assets.mechanisms.sessions.noise import NO_QUERY
from qlog_assets.mechanisms.sessions.numbering import ITEM_COLUMNS, item_matrix, name_sessions
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.mechanisms.sessions.tables import CLICKS, SESSIONS
from qlog_assets.mechanisms.steered_tables import (
    DEVIATION,
    UNHELD,
    KnownRows,
    draw_steered_rows,
    draw_steered_table,
    numbers_or_unheld,
    tell_errors,
)
from qlog_assets.pipeline.steering import Steering
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.storage.engine import Engine

FIRST_UNHELD = -2
"""A known sequence with a query that no kept session has: -2 - its place in the earlier release stands for its queries.
Nobody holds it, and no number of a query is below -1."""


def draw_steered_sequences(
    engine: Engine, source: RandomSource, part: Fraction, chosen: SessionParameters, steering: Steering | None
) -> DrawnTable:
    """The sequences of `subsequences`, with those that an earlier release printed."""
    engine.statement_table("sessions/held_subsequences")
    view_items(engine, "held_subsequences")
    earlier = None if steering is None else sequences_of(steering.rows(SESSIONS.name), chosen)
    known = (
        None
        if earlier is None
        else KnownRows(number_sequences(engine, earlier["queries"]), earlier["users"].to_numpy())
    )
    drawn, plan = draw_steered_rows(
        engine, source, modern_budget(chosen), part, known, weighed="sessions/weighed_sequences"
    )
    items = item_matrix(drawn)
    is_lost = items[:, 0] <= FIRST_UNHELD
    kept, lost = (drawn.filter(pa.array(mask)) for mask in (~is_lost, is_lost))
    rows = name_sessions(engine, items[~is_lost], kept["users"].to_numpy())
    rows = rows.append_column(DEVIATION, kept[DEVIATION])
    if earlier is not None and lost.num_rows:
        texts = earlier["queries"].combine_chunks().take(pa.array(FIRST_UNHELD - items[is_lost, 0]))
        unheld = pa.table({"queries": texts, "users": lost["users"], DEVIATION: lost[DEVIATION]})
        rows = pa.concat_tables([rows, unheld.cast(rows.schema)])
    return tell_errors(rows, SESSIONS, plan)


def draw_steered_clicks(
    engine: Engine, source: RandomSource, part: Fraction, chosen: SessionParameters, steering: Steering | None
) -> DrawnTable:
    """The kept clicks, with those that an earlier release printed."""
    view_items(engine, "kept_clicks")
    known = None if steering is None else KnownRows.of(steering.rows(CLICKS.name), CLICKS.keys)
    return draw_steered_table(engine, source, CLICKS, modern_budget(chosen), part, known)


def sequences_of(rows: pa.Table | None, chosen: SessionParameters) -> pa.Table | None:
    """The rows of an earlier release that this one could print: not longer than its sequences are."""
    if rows is None:
        return None
    longest = 2 if chosen.items == "pairs" else chosen.queries_per_session
    lengths = np.array([len(queries) for queries in rows["queries"]], dtype=np.int64)
    kept = rows.filter(pa.array(lengths <= longest))
    return kept if kept.num_rows else None


def number_sequences(engine: Engine, sequences: pa.ChunkedArray) -> pa.Table:
    """Sequences of texts by numbers of queries; one with a query that no kept session has is told by its own place."""
    lists = sequences.combine_chunks()
    texts, lengths = lists.flatten(), np.diff(lists.offsets.to_numpy())
    with engine.table("wanted_texts", pa.table({"place": np.arange(len(texts)), "query": texts})):
        numbers = numbers_or_unheld(engine.arrays("sessions/text_numbers")["query_id"])
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(texts)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    matrix = np.full((len(lengths), len(ITEM_COLUMNS)), NO_QUERY, dtype=np.int64)
    matrix[rows, places] = numbers
    lost = np.unique(rows[numbers == UNHELD])
    matrix[lost] = NO_QUERY
    matrix[lost, 0] = FIRST_UNHELD - lost
    return pa.table({name: matrix[:, column].astype(np.int32) for column, name in enumerate(ITEM_COLUMNS)})
