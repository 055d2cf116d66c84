"""The ledger's database: who may read it, what happens when it is locked, full, unreachable, or not a ledger at all."""

from __future__ import annotations

import multiprocessing
import os
import re
import resource
import sqlite3
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.ledgers import DATASET, hand_in, held_lock, opened, published, request

from qlog_assets.ledger import DamagedLedgerError, Ledger, LedgerError

pytest_plugins = ("support.ledger_fixtures",)


@pytest.fixture
def ledger(ledger_place: str) -> Ledger:
    """A new ledger with one data set that may spend ε = 3 and δ = 1e-5."""
    return opened(ledger_place)


def test_the_ledger_file_is_for_its_owner_only(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        opened(str(tmp_path / "new" / "ledger.db")).reserve(**request())
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new" / "ledger.db").stat().st_mode) == 0o600


def test_a_reader_does_not_make_a_ledger(ledger_place: str) -> None:
    with pytest.raises(LedgerError, match="there is no ledger at"):
        Ledger.open(ledger_place, create=False)
    opened(ledger_place)
    assert Ledger.open(ledger_place, create=False).charges() == []


def test_a_locked_ledger_is_an_error_that_names_it_within_the_wait(ledger_place: str) -> None:
    ledger = opened(ledger_place, wait_seconds=0.2)
    before = ledger.head()
    with held_lock(ledger_place):
        started = time.monotonic()
        with pytest.raises(LedgerError, match="locked by another process") as refusal:
            ledger.reserve(**request())
        assert time.monotonic() - started < 10
        assert ledger.where in str(refusal.value)
        assert ledger.charges() == []  # reading goes on
    assert ledger.head() == before
    assert ledger.reserve(**request())[1]


def test_a_wholly_locked_file_cannot_even_be_opened(tmp_path: Path) -> None:
    opened(str(tmp_path / "ledger.db"))
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LedgerError, match="locked by another process"):
        Ledger.open(tmp_path / "ledger.db", wait_seconds=0.1)
    other.close()


def test_an_unreachable_server_is_one_line_without_the_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerError) as refusal:
        Ledger.open("postgresql://somebody:hunter2@127.0.0.1:1/ledger?password=hunter3", wait_seconds=1)
    message = str(refusal.value)
    assert "127.0.0.1:1/ledger" in message
    assert "hunter" not in message
    assert "\n" not in message


def _directory(path: Path) -> None:
    path.mkdir()


def _text(path: Path) -> None:
    path.write_text("not a database, but long enough to be read as the head of one" * 20)


def _stranger(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE events (name TEXT)")


@pytest.mark.parametrize("spoil", [_directory, _text, _stranger])
def test_something_else_in_the_ledgers_place_is_an_error_that_names_it(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(tmp_path / "ledger.db")
    with pytest.raises(LedgerError, match=re.escape(str(tmp_path / "ledger.db"))):
        opened(str(tmp_path / "ledger.db"))


@pytest.mark.parametrize("url", ["mysql://host/name", "sqlite://", "sqlite:///:memory:", "post gres://"])
def test_a_place_that_cannot_keep_a_ledger_is_refused(url: str) -> None:
    with pytest.raises(LedgerError):
        Ledger.open(url)


def test_a_mistaken_hand_at_the_database_cannot_change_rows(ledger: Ledger, ledger_place: str) -> None:
    ledger.reserve(**request())
    engine = sa.create_engine(ledger_place if "://" in ledger_place else f"sqlite:///{ledger_place}")
    statements = ["UPDATE events SET who = 'nobody'", "DELETE FROM events"]
    if engine.dialect.name == "sqlite":
        row = "2, '', '', '', '', '', '', '', '', ''"
        statements += [f"INSERT OR REPLACE INTO events VALUES ({row})", "INSERT INTO events SELECT * FROM events"]
    else:
        statements.append("TRUNCATE events")
    for statement in statements:
        with pytest.raises(sa.exc.DBAPIError, match="append-only"), engine.begin() as connection:
            connection.execute(sa.text(statement))
    engine.dispose()
    assert ledger.verify_chain() == []


def _reserve_on_a_full_disk(place: str, answer: multiprocessing.SimpleQueue[str]) -> None:
    ledger = Ledger.open(place)
    size = os.path.getsize(place)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        while True:  # the last page has room for a few events
            ledger.record("note", DATASET, {"text": "x" * 1000})
    except LedgerError as error:
        answer.put(str(error))


def test_a_full_disk_is_an_error_and_leaves_a_ledger_that_verifies(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.db")
    charge = published(opened(place))
    fork = multiprocessing.get_context("fork")
    answer = fork.SimpleQueue()
    child = fork.Process(target=_reserve_on_a_full_disk, args=(place, answer))
    child.start()
    assert place in answer.get()
    child.join()
    after = Ledger.open(place)
    assert after.verify_chain() == []
    assert after.charge(charge.release_id) == charge
    assert after.reserve(**request(month="2006-04"))[1]


def test_a_trigger_that_was_dropped_or_switched_off_is_told(ledger_place: str) -> None:
    ledger = Ledger.open(ledger_place)
    assert ledger.missing_guards() == []
    with hand_in(ledger_place):
        pass
    sqlite = "://" not in ledger_place
    expected = ["events_no_update", "events_no_delete", "events_next_only"] if sqlite else ["events_append_only"]
    assert ledger.missing_guards() == expected


def test_what_is_no_database_is_told_from_what_cannot_be_reached(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(DamagedLedgerError, match="file is not a database"):
        Ledger.open(tmp_path / "ledger.db")
    with pytest.raises(LedgerError) as unreachable:
        Ledger.open("postgresql://somebody@127.0.0.1:1/ledger", wait_seconds=1)
    assert not isinstance(unreachable.value, DamagedLedgerError)
