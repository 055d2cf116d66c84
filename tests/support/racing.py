"""Real processes that start at once, forked from this one so that imports are paid once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from typing import Any

from qlog_assets.ledger import LedgerError

FORK = multiprocessing.get_context("fork")


def race(work: Callable[[int], Any], racers: int) -> list[Any]:
    """What each racer's work returned, or the error that the ledger gave it. Each runs in a process of its own."""
    barrier, answers = FORK.Barrier(racers), FORK.SimpleQueue()

    def run(number: int, start: Barrier) -> None:
        start.wait(60)
        try:
            answers.put(work(number))
        except LedgerError as error:
            answers.put(str(error))

    processes = [FORK.Process(target=run, args=(number, barrier), daemon=True) for number in range(racers)]
    for process in processes:
        process.start()
    results = [answers.get() for _ in processes]
    for process in processes:
        process.join(60)
    return results
