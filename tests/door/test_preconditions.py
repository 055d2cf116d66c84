"""The door stays shut: a ledger that is lost, swapped, cut, rewritten, locked or unreachable; unknown public files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.cli import qlog
from support.door import APRIL, MARCH, charges, door_at, public_files, release, warehouse_at
from support.ledgers import hand_in, held_lock
from support.tampering import edit_json
from support.warehouses import build_chain

from qlog_assets.door.inputs import DoorError
from qlog_assets.ledger import Charge, Ledger
from qlog_assets.ledger.chain import FIRST_PREVIOUS
from qlog_assets.ledger.store import EVENTS
from qlog_assets.storage.scratch import BusyError, hold_lock, temporary_directory

pytest_plugins = ("support.warehouse_fixtures",)


def assert_shut(home: Path, reason: str) -> None:
    """Neither drawn nor published, whichever way it is asked."""
    before = public_files(home)
    for ask in (lambda: door_at(home).draw("safelog", MARCH), lambda: door_at(home).publish("safelog", MARCH)):
        with pytest.raises(DoorError, match=f"the door refuses to work: .*{reason}"):
            ask()
    assert public_files(home) == before


# The ledger -----------------------------------------------------------------------------------------------------------


def test_a_deleted_ledger_shuts_the_door_and_no_new_budget_is_shown(released: Path) -> None:
    (released / "ledger.db").unlink()
    assert_shut(released, "the ledger at .*ledger.db does not know it")
    assert charges(released) == []
    assert "does not know it" in qlog(released, "release", "safelog", "--month", APRIL).refusal
    assert "does not know it" in qlog(released, "ledger").refusal


@pytest.mark.slow
def test_another_warehouses_ledger_shuts_the_door(released: Path, another: Callable[[str], Path]) -> None:
    elsewhere = another("chained")
    release(elsewhere)
    shutil.copy(elsewhere / "ledger.db", released / "ledger.db")
    assert_shut(released, "does not know it .*: restore the ledger that charged for it")


def test_a_ledger_set_back_to_before_a_release_shuts_the_door(released: Path) -> None:
    build_chain(released, APRIL)
    shutil.copy(released / "ledger.db", released / "backup.db")
    april = release(released, APRIL).charge
    shutil.move(released / "backup.db", released / "ledger.db")
    assert_shut(released, f"released/safelog/2006-04/{april.release_id}: the ledger .* does not know it")


def test_a_ledger_whose_history_was_rewritten_with_fitting_hashes_shuts_the_door(released: Path) -> None:
    """Somebody halves what March cost and computes every hash again: only the manifest remembers."""
    ledger = Ledger.open(released / "ledger.db")
    rewritten, previous = [], FIRST_PREVIOUS
    for event in ledger.events():
        payload = event.payload.replace('"epsilon":"20"', '"epsilon":"10"')
        changed = type(event)(**{**asdict(event), "payload": payload, "previous_hash": previous}).sealed()
        rewritten.append(changed)
        previous = changed.hash
    assert rewritten != ledger.events()
    with hand_in(str(released / "ledger.db")) as connection:
        connection.execute(sa.delete(EVENTS))
        connection.execute(sa.insert(EVENTS), [asdict(event) for event in rewritten])
    assert Ledger.open(released / "ledger.db").verify_chain() == []
    assert_shut(released, "commits to a history that the ledger at .* does not have: it was cut or rewritten")


def test_a_ledger_with_an_edited_row_shuts_the_door(released: Path) -> None:
    with hand_in(str(released / "ledger.db")) as connection:
        connection.execute(sa.update(EVENTS).where(EVENTS.c.kind == "budget").values(who="nobody"))
        connection.execute(sa.update(EVENTS).where(EVENTS.c.kind == "reserved").values(who="nobody"))
    with pytest.raises(DoorError, match=r"nothing was published: the history of the ledger .* does not verify"):
        door_at(released).draw("safelog", MARCH)


def test_a_locked_ledger_publishes_nothing_and_the_error_says_so(drawn: Path) -> None:
    door = door_at(drawn, wait_seconds=0.2)
    expected = "nothing was published: the ledger at .* is locked by another process"
    with held_lock(str(drawn / "ledger.db")):
        with pytest.raises(DoorError, match=expected):
            door.draw("safelog", MARCH, again="another draw")
        with pytest.raises(DoorError, match=expected):
            door.publish("safelog", MARCH)
        with pytest.raises(DoorError, match=r"nothing was withdrawn: .* is locked by another process"):
            door.withdraw(charges(drawn)[0].release_id, "in vain")
        assert public_files(drawn) == {}
    assert release(drawn).charged is False


@pytest.mark.parametrize(
    "url", ["postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2", "sqlite:////proc/no/such/ledger.db"]
)
def test_an_unreachable_ledger_publishes_nothing_and_the_error_says_so(drawn: Path, url: str) -> None:
    refusal = qlog(drawn, "release", "safelog", "--month", MARCH, environment={"QLOG_LEDGER_URL": url}).refusal
    assert "the ledger at " in refusal and "cannot be" in refusal
    assert public_files(drawn) == {} and [charge.state for charge in charges(drawn)] == ["drawn"]


# Unknown files --------------------------------------------------------------------------------------------------------

UNKNOWN = {
    "a file at the top": "released/rows.csv",
    "a file beside months": "released/safelog/rows.csv",
    "a file beside releases": f"released/safelog/{MARCH}/rows.csv",
    "a hidden file": f"released/safelog/{MARCH}/.rows.csv",
    "a month of another mechanism": f"released/zealous/{MARCH}/zealous-{MARCH}-0123456789ab",
    "a forged tombstone": f"released/safelog/{MARCH}/safelog-{MARCH}-0123456789ab.withdrawn.json",
}


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_a_public_file_that_the_ledger_does_not_know_shuts_the_door(released: Path, unknown: str) -> None:
    path = released / UNKNOWN[unknown]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("query,users\n", encoding="utf-8")
    with pytest.raises(DoorError, match=f"{path.relative_to(released)}: the ledger at .* does not know it"):
        door_at(released).publish("safelog", MARCH)


def test_a_release_behind_a_link_shuts_the_door(released: Path, tmp_path: Path) -> None:
    (charge,) = charges(released)
    path = released / "released" / "safelog" / MARCH / charge.release_id
    shutil.move(path, tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert_shut(released, "is not the directory it was")


def test_a_month_behind_a_link_shuts_the_door(released: Path, tmp_path: Path) -> None:
    shutil.move(released / "released" / "safelog" / MARCH, tmp_path / "elsewhere")
    (released / "released" / "safelog" / MARCH).symlink_to(tmp_path / "elsewhere")
    assert_shut(released, "does not know it")


@pytest.mark.parametrize("target", ["safelog-2006-03-0123456789ab", "../../../private", "/etc"])
def test_a_pointer_to_something_unpublished_shuts_the_door(released: Path, target: str) -> None:
    latest = released / "released" / "safelog" / MARCH / "latest"
    latest.unlink()
    latest.symlink_to(target)
    assert_shut(released, "latest points at nothing that the ledger at .* published")
    latest.unlink()
    latest.write_text(target, encoding="utf-8")
    assert_shut(released, "latest points at nothing that the ledger at .* published")


def test_a_changed_manifest_shuts_the_door(released: Path) -> None:
    (path,) = (released / "released" / "safelog" / MARCH).glob("safelog-*/manifest.json")
    edit_json(path, "guarantee", "epsilon", value=0.1)
    assert_shut(released, "manifest.json is not the one the ledger recorded")


def test_an_empty_month_directory_shuts_nothing(drawn: Path) -> None:
    (drawn / "released" / "safelog" / APRIL).mkdir(parents=True)
    assert release(drawn).charge.state == "published"


class BesideAnother(Ledger):
    """A ledger that is asked while another process publishes April: right after it answered."""

    home: Path

    def charges(self, dataset: str | None = None) -> list[Charge]:
        answer = super().charges(dataset)
        if not (self.home / "released" / "safelog" / APRIL).exists():
            release(self.home, APRIL)
        return answer


def test_a_release_that_appears_while_the_door_looks_is_known(released: Path) -> None:
    build_chain(released, APRIL)
    door = door_at(released)
    ledger = BesideAnother(door.ledger._store, door.ledger._author)
    ledger.home = released
    door.ledger = ledger
    assert door.publish("safelog", MARCH).charge.state == "published"
    assert (released / "released" / "safelog" / APRIL / "latest").exists()


# One at a time --------------------------------------------------------------------------------------------------------


def test_a_door_that_another_process_holds_too_long_is_an_error_that_says_so(drawn: Path) -> None:
    door = door_at(drawn)
    door.wait_seconds = 0.2
    lock = warehouse_at(drawn).locks / f"safelog-{MARCH}.lock"
    expected = "nothing was published: another process is at the door for safelog 2006-03"
    with hold_lock(lock, 0, "the test itself"), pytest.raises(BusyError, match=expected):
        door.publish("safelog", MARCH)
    assert public_files(drawn) == {}
    assert door.publish("safelog", MARCH).charge.state == "published"


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_holds_is_not(drawn: Path) -> None:
    left = [
        drawn / "private" / place / ".qlog-tmp-left"
        for place in ("staging", "draws", "spill", f"raw_log/{MARCH}", f"capped_log/{MARCH}")
    ]
    for path in left:
        path.mkdir(parents=True)
        (path / "rows.parquet").write_bytes(b"private rows")
    with temporary_directory(drawn / "private" / "staging") as living:
        release(drawn)
        assert not [path for path in left if path.exists()]
        assert living.exists()
