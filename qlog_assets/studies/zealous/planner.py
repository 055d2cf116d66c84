"""Chooses how `modern` selects, from public information only: the synthetic twin of a log, never the log.

The operator says about how many rows a month has, which is public or made so by saying it; the twin is drawn with that
many, every setting is tried on it, and the best is named. Nothing here opens a warehouse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from qlog_assets.mechanisms.zealous import noise as zealous
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.months import Month
from qlog_assets.pipeline.cleaned_log import view_searches
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.scratch import system_scratch
from qlog_assets.studies.measures import frequent
from qlog_assets.studies.zealous.comparison import METHODS, chosen_rows, read_items
from qlog_assets.synthetic import write_log

ITEMS_PER_USER = (5, 20, 50, 200)
SET_SHARES = ("0.8", "0.9")
WORST_ERROR = 0.25
"""The median relative error of printed counts that a setting may have, in its worst kind of items."""
MONTH = Month("2006-03")


def plan_modern(
    chosen: ZealousParameters, rows: int, seed: int, tell: Callable[[str], None] = lambda step: None
) -> list[dict[str, Any]]:
    """Every setting with what it releases of the twin, the best first: most items among those with good counts."""
    tried: dict[tuple[tuple[str, Any], ...], list[frequent.FrequentItems]] = {}
    with system_scratch() as folder:
        engine = twin(folder / "twin.txt", rows, seed)
        for kind in chosen.kinds:
            tell(f"trying settings on the twin's {kind}")
            items = read_items(engine, kind)
            for per_user in ITEMS_PER_USER:
                users, numbers = chosen_rows(engine, per_user)
                counts = np.bincount(numbers, minlength=len(items.truth.users))
                for settings in settings_of(per_user):
                    parameters = chosen.with_changes(**settings)
                    if zealous.takes_rows("modern", parameters):
                        drawn = zealous.draw_rows(SeededRandom(seed), users, numbers, parameters)
                    else:
                        drawn = zealous.draw_counts(SeededRandom(seed), counts, "modern", parameters)
                    measured = frequent.compare(items.truth, drawn.items, drawn.users, 1, 0)
                    tried.setdefault(tuple(settings.items()), []).append(measured)
    answers = [
        {
            **dict(settings),
            "released": sum(kind.released for kind in measured),
            "relative_error": max(
                (kind.relative_error for kind in measured if kind.relative_error is not None), default=1.0
            ),
        }
        for settings, measured in tried.items()
    ]
    return sorted(answers, key=lambda answer: (answer["relative_error"] > WORST_ERROR, -answer["released"]))


def settings_of(per_user: int) -> Iterator[dict[str, Any]]:
    for method in METHODS:
        if method in ("weighted_gaussian", "sips"):
            for share in SET_SHARES:
                yield {"method": method, "items_per_user": per_user, "set_share": share}
        else:
            yield {"method": method, "items_per_user": per_user}


def twin(path: Path, rows: int, seed: int) -> Engine:
    """An engine over one month of the synthetic log, as the statements read a cleaned log."""
    write_log(path, rows, seed, MONTH, MONTH)
    # What it spills lies beside the twin: DuckDB's own choice is the working directory.
    engine = Engine(duckdb.connect(config={"temp_directory": str(path.parent / "spill")}))
    escaped = str(path).replace("'", "''")
    engine.connection.execute(
        'CREATE TEMP TABLE cleaned_log AS SELECT AnonID AS "user", lower(trim(Query)) AS query, QueryTime AS "time", '
        f"ItemRank AS rank, nullif(ClickURL, '') AS url FROM read_csv('{escaped}', delim = '\\t', quote = '', types = "
        "{'AnonID': 'VARCHAR', 'QueryTime': 'TIMESTAMP', 'Query': 'VARCHAR', 'ItemRank': 'INTEGER', "
        "'ClickURL': 'VARCHAR'}) WHERE lower(trim(Query)) NOT IN ('', '-')"
    )
    view_searches(engine)
    return engine
