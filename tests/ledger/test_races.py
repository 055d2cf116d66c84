"""Real processes racing for one ledger. Forked from this one, so that imports are paid once."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest
from support.ledgers import DATASET, opened, request
from support.races import FORK, RACERS, race

from qlog_assets.ledger import BudgetError, DrawConflictError, Ledger
from qlog_assets.ledger.store import Author, Store

pytest_plugins = ("support.ledger_fixtures",)


@pytest.mark.timeout(120)
def test_sixteen_processes_racing_for_the_last_of_a_budget_take_exactly_what_fits(ledger_place: str) -> None:
    def work(number: int) -> str:
        # Making the ledger and its data set is part of the race.
        ledger = opened(ledger_place, epsilon="5")
        try:
            ledger.reserve(**request(month=f"20{number:02d}-01", epsilon="1", delta="0"))
        except BudgetError:
            return "refused"
        return "charged"

    assert Counter(race(work)) == {"charged": 5, "refused": RACERS - 5}
    ledger = Ledger.open(ledger_place)
    assert ledger.left(DATASET).epsilon == 0
    assert ledger.verify_chain() == []
    assert Counter(event.kind for event in ledger.events()) == {"created": 1, "dataset": 1, "reserved": 5}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("again", [None, "late rows"])
def test_sixteen_processes_with_one_request_pay_once_and_record_one_draw(ledger_place: str, again: str | None) -> None:
    ledger = opened(ledger_place)
    if again:
        ledger.reserve(**request())

    def work(number: int) -> tuple[str, bool, bool]:
        mine = Ledger.open(ledger_place)
        charge, new = mine.reserve(**request(mechanism_version=2 if again else 1), again=again)
        try:
            mine.record_draw(charge.release_id, f"{number:064d}")
        except DrawConflictError:
            return charge.release_id, new, False
        return charge.release_id, new, True

    results = race(work)
    assert len({release_id for release_id, _, _ in results}) == 1
    assert sum(new for _, new, _ in results) == 1
    assert sum(won for _, _, won in results) == 1
    assert ledger.spent(DATASET).epsilon == (2 if again else 1)
    assert ledger.verify_chain() == []


@pytest.mark.timeout(60)
def test_a_process_killed_inside_its_transaction_leaves_no_event_and_no_lock(ledger_place: str) -> None:
    ledger = opened(ledger_place, wait_seconds=20)
    before = ledger.events()
    reading, writing = os.pipe()

    def work() -> None:
        author = Author("nobody")
        store = Store.open(ledger_place, author, create=False, wait_seconds=20)
        with store.writing(author) as writer:
            writer.append("note", DATASET, {"text": "x" * 100_000})  # more than SQLite's page cache would hide
            os.write(writing, b"!")
            signal.pause()

    victim = FORK.Process(target=work, daemon=True)
    victim.start()
    assert os.read(reading, 1) == b"!"
    victim.kill()
    victim.join()
    assert ledger.events() == before
    assert ledger.reserve(**request())[1]
    assert ledger.verify_chain() == []
    os.close(reading)
    os.close(writing)
