"""The door with its ledger in PostgreSQL: the same refusals, the same single charge."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.door import MARCH, public_files
from support.ledgers import held_lock
from support.warehouses import build_chain

from qlog_assets.door.door import Door
from qlog_assets.door.inputs import DoorError
from qlog_assets.ledger import Ledger
from qlog_assets.policy import Policy
from qlog_assets.settings import Settings
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.ledger_fixtures", "support.warehouse_fixtures")
pytestmark = [
    pytest.mark.postgresql,
    pytest.mark.parametrize("ledger_place", ["postgresql"], indirect=True),
]


@pytest.fixture
def door(chained: Path, ledger_place: str) -> Door:
    warehouse = Warehouse(Settings(home=chained, ledger_url=ledger_place)).make()
    ledger = Ledger.open(ledger_place, wait_seconds=1)
    build_chain(chained, ledger=ledger)
    return Door(warehouse, Policy.load(chained / "policy.toml"), ledger)


def test_a_release_is_charged_once_audited_and_taken_back(door: Door) -> None:
    assert [door.draw("safelog", MARCH).charged for _ in range(2)] == [True, False]
    charge = door.publish("safelog", MARCH).charge
    assert (charge.state, len(door.ledger.charges())) == ("published", 1)
    assert audit_warehouse(door.warehouse, "small").ok
    assert door.withdraw(charge.release_id, "tried out").state == "withdrawn"
    assert audit_warehouse(door.warehouse, "small").ok


def test_a_locked_ledger_publishes_nothing_and_another_ledger_shuts_the_door(door: Door, tmp_path: Path) -> None:
    door.draw("safelog", MARCH)
    with held_lock(str(door.warehouse.ledger_url)), pytest.raises(DoorError, match="nothing was published: the ledger"):
        door.publish("safelog", MARCH)
    assert public_files(door.warehouse.home) == {}
    door.publish("safelog", MARCH)
    elsewhere = Path(shutil.copytree(door.warehouse.home, tmp_path / "copy", symlinks=True))
    lost = Door(Warehouse(Settings(home=elsewhere)), door.policy, Ledger.open(tmp_path / "other.db"))
    with pytest.raises(DoorError, match="the door refuses to work"):
        lost.publish("safelog", MARCH)
