"""Processes that race: forked from the test's own, started at once, each with an answer."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from typing import Any

from qlog_assets.ledger import LedgerError

FORK = multiprocessing.get_context("fork")
RACERS = 16


def race(work: Callable[[int], Any], racers: int = RACERS) -> list[Any]:
    """What each racer's work returned. All start at once, each in a process of its own."""
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
