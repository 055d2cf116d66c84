"""The numbers of one steered draw apart from the engine that counts for it: what numpy holds of items, and its time.

A release holds its engine's memory at the same time, so from outside the two cannot be told apart. Here the queries of
a month that was released are drawn again, from a seed, and thrown away. Queries are the largest table of Safelog, and
clicks and transitions are drawn for released queries alone. The public pool is left out: its size does not grow with
the log. Counts and pairs of users and items come in parts, whose size does not grow either: memory is measured with
parts so small that only items are left.

Usage, from the root of the checkout: python -m benchmarks.draw_alone MONTH (QLOG_HOME names the warehouse)
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from qlog_assets.mechanisms.steered_tables import CountedHoldings
from qlog_assets.privacy.weighted import Contributions
from qlog_assets.storage import engine as duckdb_engine
from qlog_assets.storage.engine import Engine

SMALL_PART = 1 << 12
"""Rows: less than a megabyte with what is computed of them."""

Part = TypeVar("Part")


@dataclass
class WatchedHoldings:
    """Hands on what an engine answers, and remembers how long this thread worked for it."""

    held: CountedHoldings
    engine_seconds: float = 0.0

    @property
    def size(self) -> int:
        return self.held.size

    def even_sums(self) -> Generator[np.ndarray, None, None]:
        yield from self.timed(self.held.even_sums())

    def holders(self, items: np.ndarray) -> Generator[Contributions, None, None]:
        yield from self.timed(self.held.holders(items))

    def timed(self, parts: Iterator[Part]) -> Iterator[Part]:
        while True:
            started = time.thread_time()
            part = next(parts, None)
            self.engine_seconds += time.thread_time() - started
            if part is None:
                return
            yield part


def draw_once(held: WatchedHoldings) -> float:
    """A draw of the queries by the default policy, from a seed; returns numpy's processor seconds."""
    from qlog_assets.mechanisms.safelog.guarantee import modern_budget
    from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
    from qlog_assets.privacy.randomness import SeededRandom
    from qlog_assets.privacy.steered import PublicItems, release_held

    chosen = SafelogParameters()
    started, asked = time.thread_time(), held.engine_seconds
    release_held(SeededRandom(1), held, PublicItems(), modern_budget(chosen), chosen.parts["queries"])
    return time.thread_time() - started - (held.engine_seconds - asked)


def weighed(engine: Engine, month: str) -> CountedHoldings:
    """The queries of a month's capped log, weighed and numbered."""
    from qlog_assets.mechanisms.contributions import view_items
    from qlog_assets.mechanisms.safelog.draw_modern import CONTRIBUTIONS
    from qlog_assets.mechanisms.safelog.stages import view_capped
    from qlog_assets.mechanisms.steered_tables import WEIGHED_ITEMS, no_known_rows, weigh_items
    from qlog_assets.settings import Settings
    from qlog_assets.storage.warehouse import Warehouse

    view_capped(engine, Warehouse(Settings.from_environment()).current("capped_log", month))
    engine.statement_table(CONTRIBUTIONS["queries"], "contributed")
    view_items(engine, "contributed")
    weigh_items(engine, no_known_rows(engine), WEIGHED_ITEMS)
    return CountedHoldings(engine, int(engine.row("contributions/count_counted_items")["items"]))


def main() -> None:
    from qlog_assets.settings import Settings
    from qlog_assets.storage.engine import open_duckdb
    from qlog_assets.storage.warehouse import Warehouse

    with open_duckdb(Warehouse(Settings.from_environment())) as engine:
        held = WatchedHoldings(weighed(engine, sys.argv[1]))
        draw_once(held)  # everything that a draw imports and plans is there before it is measured
        used = draw_once(held)
        # Once more for memory: numpy tells tracemalloc of every array, and DuckDB's own memory is not counted.
        duckdb_engine.ROWS_AT_ONCE = SMALL_PART
        tracemalloc.start()
        draw_once(held)
        print(json.dumps({"bytes": tracemalloc.get_traced_memory()[1], "cpu": used}))


if __name__ == "__main__":
    main()
