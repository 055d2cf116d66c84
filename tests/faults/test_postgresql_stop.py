"""PostgreSQL stopped in the middle of a charge and started again: one line, nothing public, no second charge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import postgresql
from support.cli import Running, qlog
from support.door import MARCH, public_files
from support.ledgers import held_lock
from support.postgresql import Server

from qlog_assets.ledger import Ledger

pytestmark = [pytest.mark.faults, pytest.mark.postgresql]
RELEASE = ("release", "safelog", "--month", MARCH, "--json")


@pytest.fixture
def server() -> Iterator[Server]:
    """A PostgreSQL server of the test's own, which it may stop."""
    pytest.importorskip("psycopg", reason="PostgreSQL's driver is not installed")
    try:
        with postgresql.running_server() as server:
            yield server
    except postgresql.UnavailableError as error:
        pytest.skip(f"no PostgreSQL server: {error}")


def test_a_server_that_stops_under_a_release_costs_one_line_and_no_second_charge(
    ingested: Path, server: Server
) -> None:
    environment = {"QLOG_LEDGER_URL": server.url}
    assert qlog(ingested, "ledger", environment=environment).code == 0
    with held_lock(server.url, broken=True):
        # The release waits for the lock at what it writes first, the entry of a table: that is where the server dies.
        command = Running(ingested, *RELEASE, environment=environment)
        server.wait_for_waiting()
        server.stop()
    refusal = command.end().refusal
    assert "the ledger at" in refusal
    assert public_files(ingested) == {}
    assert "cannot be used" in qlog(ingested, "ledger", environment=environment).refusal
    server.start()
    assert Ledger.open(server.url).charges() == []
    assert qlog(ingested, *RELEASE, environment=environment).json["charged"] is True
    assert qlog(ingested, *RELEASE, environment=environment).json["charged"] is False
    assert len(Ledger.open(server.url).charges()) == 1 and Ledger.open(server.url).verify_chain() == []
    assert qlog(ingested, "audit", environment=environment).code == 0
