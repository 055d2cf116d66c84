"""Bringing back what the ledger of a warehouse lost, and listing it: how is `ledger/recovery.py`.

Apart from `ledgers.py`, because whoever only opens a ledger does not wait for what writes pages.
"""

from __future__ import annotations

from qlog_assets.door.catalogue import write_catalogue
from qlog_assets.door.inputs import DoorError
from qlog_assets.door.ledgers import named_witness
from qlog_assets.ledger import Ledger
from qlog_assets.ledger.recovery import Recovery, recover
from qlog_assets.policy import Policy
from qlog_assets.storage.warehouse import Warehouse

LIST_WAIT_SECONDS = 30
"""How long a recovery waits for another process that writes the list of what is public: that takes a moment."""


def recover_ledger(warehouse: Warehouse, policy: Policy, reason: str) -> Recovery:
    """Bring back from the witness what the ledger of a warehouse lost, and have the list of what is public say so."""
    witness = named_witness(warehouse, policy)
    if witness is None:
        raise DoorError("the policy names no witness under [ledger] witness: there is nothing to recover from")
    recovery = recover(warehouse.make().ledger_url, witness, reason)
    ledger, dataset = Ledger.read(warehouse.ledger_url), policy.dataset
    # Before the first publication there is no list, and none is made.
    if ledger.skips(dataset) or any(charge.manifest_digest for charge in ledger.charges(dataset)):
        write_catalogue(warehouse, ledger, dataset, LIST_WAIT_SECONDS)
    return recovery
