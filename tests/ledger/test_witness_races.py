"""32 processes racing for one ledger with a witness: none is refused for another's sake, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.ledgers import DATASET, opened, request
from support.racing import race

from qlog_assets.ledger import BudgetError, Ledger, Witness
from qlog_assets.ledger.store import url_of
from qlog_assets.ledger.witness import DatabaseWitness
from qlog_assets.ledger.witness_file import FileWitness

pytest_plugins = ("support.ledger_fixtures",)
RACERS = 32
AFFORDABLE = 7


@pytest.mark.faults
@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", ["file", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def test_32_processes_racing_with_a_witness_take_exactly_what_fits_and_all_of_it_is_witnessed(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "ledger.db")
    url = request.getfixturevalue("postgresql_schema") if kind == "postgresql" else tmp_path / "witness.db"

    def witness() -> Witness:
        path = tmp_path / "witness.jsonl"
        return FileWitness(path, 120) if kind == "file" else DatabaseWitness(url_of(url, "witness"), 120)

    assert Counter(race(lambda number: take(place, witness(), number), RACERS)) == {
        "charged": AFFORDABLE,
        "refused": RACERS - AFFORDABLE,
    }
    ledger = Ledger.read(place)
    assert ledger.left(DATASET).epsilon == 0 and ledger.verify_chain() == []
    assert witness().read() == ledger.events()
    assert [event.kind for event in ledger.events()].count("witnessed") == 1


def take(place: str, witness: Witness, number: int) -> str:
    """One racer: making the ledger, its data set and the witness is part of the race."""
    ledger = opened(place, epsilon=str(AFFORDABLE), witness=witness, wait_seconds=120)
    try:
        charge, _ = ledger.reserve(**request(month=f"20{number:02d}-01", delta="0"))
    except BudgetError:
        return "refused"
    # Noise may be drawn from here on: the witness must have the charge by now.
    known = [event.facts.get("release_id") for event in witness.read()]
    return "charged" if charge.release_id in known else "charged before the witness knew it"
