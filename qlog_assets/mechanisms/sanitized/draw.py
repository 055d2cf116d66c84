"""How a sanitized log is drawn: clicks counted by SQL, the paper's algorithm on numbers, texts put back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.pipeline.stage import Inputs
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.storage.engine import Engine


def draw_paper(
    engine: Engine, inputs: Inputs, variant: str, chosen: SanitizedParameters, source: RandomSource
) -> Drawn:
    """The paper's log, with real users in it: for studies alone. Only the sampling of users has an (ε, δ)."""
    from qlog_assets.mechanisms.sanitized.paper import sanitize  # SciPy's solvers take most of a second to load

    view_cleaned(engine, inputs["cleaned_log"], transitions=False)
    rows, queries = count_shared_pairs(engine)
    output = sanitize(source, rows, queries, chosen)
    sampled = pa.table({"user_id": output.users, "pair_id": output.pairs, "events": output.events})
    with engine.table("sampled", sampled):
        return Drawn({"log": DrawnTable(engine.arrow("sanitized/paper_log"))})


def count_shared_pairs(engine: Engine) -> tuple[PairCounts, np.ndarray]:
    """The clicks of cleaned_clicks on pairs that two users or more hold, and the query of each pair, all as numbers."""
    engine.statement_table("sanitized/paper_pair_counts")
    found = {name: np.asarray(column, np.int64) for name, column in engine.arrays("sanitized/paper_numbered").items()}
    queries = np.zeros(int(found["pair_id"].max(initial=-1)) + 1, np.int64)
    queries[found["pair_id"]] = found["query_id"]
    return PairCounts(found["user_id"], found["pair_id"], found["events"]), queries
