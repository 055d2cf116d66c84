"""How the ledger of a warehouse is opened for writing: with the witness that the policy names, and in no other way.

What a witness is for is `ledger/witness.py`.
"""

from __future__ import annotations

from pathlib import Path

from qlog_assets.door.inputs import DoorError
from qlog_assets.ledger import Budget, Ledger, Witness
from qlog_assets.ledger.recovery import reset_witness
from qlog_assets.ledger.store import url_of
from qlog_assets.ledger.witness import DatabaseWitness
from qlog_assets.ledger.witness_file import FileWitness
from qlog_assets.policy import Policy
from qlog_assets.storage.warehouse import Warehouse


def open_ledger(
    warehouse: Warehouse,
    policy: Policy,
    *,
    who: str | None = None,
    run_id: str | None = None,
    code_version: str | None = None,
) -> Ledger:
    """The ledger of a warehouse, open for charges. Nothing is written to it that the policy's witness does not get."""
    return Ledger.open(
        warehouse.make().ledger_url,
        who=who,
        run_id=run_id,
        code_version=code_version,
        witness=named_witness(warehouse, policy),
    )


def opening_budget(policy: Policy) -> Budget:
    """The budget that an account is opened with; from then on the ledger's own counts."""
    stated = policy.budget
    return Budget(stated.epsilon, stated.delta, stated.accountant, stated.conversion_delta)


def named_witness(warehouse: Warehouse, policy: Policy) -> Witness | None:
    """The witness that the policy names, if it names one."""
    named = policy.ledger.witness
    if named is None:
        return None
    if "://" not in named:
        _refuse_inside(warehouse, Path(named))
        return FileWitness(Path(named))
    url = url_of(named, "witness")
    if url.get_backend_name() == "sqlite":
        _refuse_inside(warehouse, Path(str(url.database)))
    return DatabaseWitness(url)


def _refuse_inside(warehouse: Warehouse, path: Path) -> None:
    if path.resolve().is_relative_to(warehouse.home.resolve()):
        raise DoorError(
            f"ledger.witness: {path} lies in the warehouse at {warehouse.home}, and a snapshot of the one would set "
            "back the other: name a place outside, best on another machine"
        )


def reset_ledger_witness(warehouse: Warehouse, policy: Policy, reason: str) -> None:
    """Record that the ledger's old witness is gone for good."""
    reset_witness(warehouse.ledger_url, named_witness(warehouse, policy), reason)
