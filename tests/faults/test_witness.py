"""kill -9 between the ledger and its witness, and snapshots that are restored: no month is drawn twice unpaid."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import (
    APRIL,
    MARCH,
    REFUSED,
    charges,
    in_child,
    leftovers,
    public_files,
    release,
    released_id,
    warehouse_at,
)
from support.warehouses import build_chain
from support.witnesses import die_telling, die_writing, name_witness

from qlog_assets.ledger import Ledger
from qlog_assets.ledger.chain import broken_links
from qlog_assets.ledger.witness_file import FileWitness
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)
pytestmark = pytest.mark.faults
WRITES = ("dataset", "reserved", "drawn", "published")
"""What a first release writes to the ledger."""


def stored_draws(home: Path) -> list[bytes]:
    return [path.joinpath("draw.json").read_bytes() for path in (home / "private" / "draws").glob("[!.]*")]


def assert_drawn_only_for_what_the_witness_knew(home: Path, witness: FileWitness) -> None:
    known = {event.kind for event in witness.read()}
    assert not stored_draws(home) or "reserved" in known
    assert not public_files(home) or "published" in known


def assert_finished(home: Path, witness: FileWitness, known: list[str]) -> None:
    """One release, charged and drawn once, with nothing that the witness lacks or an auditor finds."""
    drawn = stored_draws(home)
    receipt = release(home)
    assert receipt.charged is (known == [])
    assert known in ([], [receipt.charge.release_id]) and len(charges(home)) == 1
    assert drawn in ([], stored_draws(home))
    events = Ledger.read(warehouse_at(home).ledger_url).events()
    assert witness.read() == events and broken_links(witness.read()) == []
    assert leftovers(home) == [] and audit_warehouse(warehouse_at(home)).ok


@pytest.mark.parametrize("write", range(1, 1 + len(WRITES)), ids=WRITES)
@pytest.mark.parametrize("point", ["committed", "witnessed"])
def test_killed_between_the_ledger_and_its_witness_the_next_run_goes_on(chained: Path, point: str, write: int) -> None:
    witness = name_witness(chained)
    assert in_child(die_telling, chained, point, write).killed
    assert_drawn_only_for_what_the_witness_knew(chained, witness)
    assert_finished(chained, witness, [charge.release_id for charge in charges(chained)])


@pytest.mark.parametrize("write", range(1, 2 + len(WRITES)))
def test_killed_in_mid_write_of_the_witness_the_torn_line_is_written_again(chained: Path, write: int) -> None:
    """The first write is the history so far, which the witness gets before anything says that there is one."""
    witness = name_witness(chained)
    assert in_child(die_writing, chained, write).killed
    assert not witness.path.read_bytes().endswith(b"\n")
    assert_drawn_only_for_what_the_witness_knew(chained, witness)
    assert_finished(chained, witness, [charge.release_id for charge in charges(chained)])


def test_a_restored_warehouse_releases_nothing_until_its_charges_are_back_and_then_draws_nothing_anew(
    chained: Path, tmp_path: Path
) -> None:
    """The issue's case: everything inside is as it was before the release, and March is public elsewhere already."""
    name_witness(chained)
    shutil.copytree(chained, tmp_path / "snapshot", symlinks=True)
    published = release(chained)
    shutil.rmtree(chained)
    (tmp_path / "snapshot").rename(chained)

    ended = in_child(released_id, chained)
    assert ended.code == REFUSED and re.search(r"knows \d+ events", ended.answer)
    assert "qlog ledger recover" in ended.answer
    assert "qlog ledger recover" in qlog(chained, "release", "safelog", "--month", MARCH).refusal
    assert stored_draws(chained) == [] and public_files(chained) == {}
    assert qlog(chained, "audit", "--witness").code == 1

    assert qlog(chained, "ledger", "recover", "--reason", "disk restored", "--json").json["restored"] >= 5
    (charge,) = charges(chained)
    assert charge == published.charge
    refusal = qlog(chained, "release", "safelog", "--month", MARCH).refusal
    assert f"the draw of {charge.release_id} was stored and is gone, and noise is never drawn twice" in refusal
    assert stored_draws(chained) == [] and charges(chained) == [charge]


def test_a_restored_ledger_serves_the_release_again_once_it_is_recovered(chained: Path) -> None:
    witness = name_witness(chained)
    build_chain(chained, APRIL)
    release(chained, APRIL)
    shutil.copy(chained / "ledger.db", chained.parent / "backup.db")
    march, seen = release(chained), public_files(chained)
    shutil.copy(chained.parent / "backup.db", chained / "ledger.db")
    assert "does not know it" in str(in_child(released_id, chained).answer)
    assert qlog(chained, "ledger", "recover", "--reason", "backup restored").code == 0
    again = release(chained)
    assert (again.charged, again.charge) == (False, march.charge)
    assert public_files(chained) == seen and len(charges(chained)) == 2
    assert witness.read() == Ledger.read(warehouse_at(chained).ledger_url).events()
    answer = qlog(chained, "audit", "--witness", "--json").json
    assert answer["ok"] and any(re.fullmatch(r"witness: \d+ events compared, all the same", n) for n in answer["notes"])


def test_a_witness_that_is_not_reachable_stops_the_draw(chained: Path) -> None:
    name_witness(chained)
    (chained.parent / "outside").rmdir()
    ended = in_child(released_id, chained)
    assert ended.code == REFUSED and "outside/witness.jsonl cannot be reached" in ended.answer
    assert charges(chained) == [] and stored_draws(chained) == []
