"""What the k-anonymity baselines print of a month: exact counts, for studies alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from qlog_assets.mechanisms.baselines.paper import print_baseline
from qlog_assets.mechanisms.baselines.parameters import BaselineParameters
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.pipeline.stage import Inputs
from qlog_assets.privacy.limits import SESSION_GAP_MINUTES
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.storage.engine import Engine


class NumberedSearches(NamedTuple):
    """A month's searches as numbers: who typed which query, and the texts of the queries."""

    users: np.ndarray
    queries: np.ndarray
    texts: pa.Array

    @classmethod
    def read(cls, engine: Engine) -> NumberedSearches:
        """Those of the table cleaned_queries."""
        rows = engine.arrays("baselines/numbered_searches")
        texts = engine.arrow("baselines/queries")["query"].combine_chunks()
        return cls(rows["user_id"], rows["item_id"], texts)


def draw(engine: Engine, inputs: Inputs, variant: str, chosen: BaselineParameters, source: RandomSource) -> Drawn:
    """The queries that a baseline prints, and by the same rule the clicks and transitions. No noise is drawn."""
    view_cleaned(engine, inputs["cleaned_log"])
    rule = {"k": chosen.k, "count_events": variant == "frequency", "print_events": variant != "users"}
    counted = "events" if rule["print_events"] else "users"
    tables = {
        "queries": print_queries(NumberedSearches.read(engine), variant, chosen.k),
        "clicks": engine.arrow("baselines/clicks", **rule),
        "transitions": engine.arrow("baselines/transitions", session_gap_minutes=SESSION_GAP_MINUTES, **rule),
    }
    return Drawn({name: DrawnTable(table.rename_columns({"printed": counted})) for name, table in tables.items()})


def print_queries(searches: NumberedSearches, variant: str, k: int) -> pa.Table:
    """The single queries that a baseline prints of a month."""
    printed = print_baseline(variant, searches.users, searches.queries, len(searches.texts), k)
    return pa.table({"query": searches.texts.take(pa.array(printed.indices)), "printed": printed.counts})


def draw_histories(
    engine: Engine, inputs: Inputs, variant: str, chosen: BaselineParameters, source: RandomSource
) -> Drawn:
    """The whole histories that k users share. No noise is drawn."""
    view_cleaned(engine, inputs["cleaned_log"])
    return Drawn({"histories": DrawnTable(print_histories(engine, chosen.k))})


def draw_sessions(
    engine: Engine, inputs: Inputs, variant: str, chosen: BaselineParameters, source: RandomSource
) -> Drawn:
    """The whole sessions that k users made. No noise is drawn."""
    view_cleaned(engine, inputs["cleaned_log"])
    return Drawn({"sessions": DrawnTable(print_sessions(engine, chosen.k))})


def print_histories(engine: Engine, k: int) -> pa.Table:
    """The sets of queries that are all that k users typed, of the table cleaned_queries."""
    engine.statement_table("baselines/whole_histories")
    return engine.arrow("baselines/histories", k=k)


def print_sessions(engine: Engine, k: int) -> pa.Table:
    """The sequences of queries that k users typed in one session, of the table cleaned_queries."""
    engine.statement_table("baselines/whole_sessions", session_gap_minutes=SESSION_GAP_MINUTES)
    return engine.arrow("baselines/sessions", k=k)
