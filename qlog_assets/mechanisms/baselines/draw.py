"""What the k-anonymity baselines print of a month's queries: exact counts, for studies alone."""

from __future__ import annotations

import pyarrow as pa

from qlog_assets.mechanisms.baselines.paper import print_baseline
from qlog_assets.mechanisms.baselines.parameters import BaselineParameters
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.pipeline.stage import Inputs
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.storage.engine import Engine


def draw(engine: Engine, inputs: Inputs, variant: str, chosen: BaselineParameters, source: RandomSource) -> Drawn:
    """The queries that a baseline prints. No noise is drawn."""
    view_cleaned(engine, inputs["cleaned_log"])
    texts = engine.arrow("baselines/queries")["query"].combine_chunks()
    rows = engine.arrays("baselines/numbered_searches")
    printed = print_baseline(variant, rows["user_id"], rows["item_id"], len(texts), chosen.k)
    return Drawn(
        {"queries": DrawnTable(pa.table({"query": texts.take(pa.array(printed.indices)), "printed": printed.counts}))}
    )
