"""Preconditions of all work at the door: one process per month, one data set, nothing that no charge accounts for.

These look and refuse; what is drawn and published is `door.py`, and what is asked of its inputs is `inputs.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from qlog_assets.door.draws import DrawError, load_draw
from qlog_assets.door.inputs import DoorError, RefusedByDoorError
from qlog_assets.ledger import Charge, DamagedLedgerError, Ledger, LedgerError
from qlog_assets.mechanisms.register import releasable
from qlog_assets.report.public_zone import replaced_manifests, unknown_entries
from qlog_assets.storage.private_files import write_private
from qlog_assets.storage.scratch import PREFIX, hold_lock
from qlog_assets.storage.warehouse import Warehouse

LONGEST_WAIT_SECONDS = 3600
"""How long a process waits for another one at the door of the same month: a full month draws in minutes."""


@contextmanager
def lock_month(
    warehouse: Warehouse,
    mechanism: str,
    month: str,
    wait_seconds: float = LONGEST_WAIT_SECONDS,
    undone: str = "nothing was published",
) -> Iterator[None]:
    """One process at a time for a month and mechanism, after removing what killed ones left.

    A ledger that cannot be asked ends the work before it has an effect: the error begins with `undone`.
    """
    with _lock_doors(warehouse, [(mechanism, month)], wait_seconds, undone):
        yield


@contextmanager
def lock_months(warehouse: Warehouse, months: Iterable[str], undone: str) -> Iterator[None]:
    """The same for every mechanism: whoever changes what months are made of must meet nobody who draws from them."""
    doors = [(mechanism.name, month) for month in sorted(months) for mechanism in releasable()]
    with _lock_doors(warehouse, doors, LONGEST_WAIT_SECONDS, undone):
        yield


@contextmanager
def _lock_doors(
    warehouse: Warehouse, doors: Iterable[tuple[str, str]], wait_seconds: float, undone: str
) -> Iterator[None]:
    with ExitStack() as held:
        for mechanism, month in doors:
            busy = f"{undone}: another process is at the door for {mechanism} {month}"
            held.enter_context(hold_lock(warehouse.locks / f"{mechanism}-{month}.lock", wait_seconds, busy))
        # Once for all of them: a store that does not answer is waited for each time.
        warehouse.remove_leftovers()
        try:
            yield
        except LedgerError as error:
            if type(error) not in (LedgerError, DamagedLedgerError):
                raise  # a refusal of this very request: over budget, another live release, withdrawn
            raise DoorError(f"{undone}: {error}") from None


def refuse_unknown_releases(warehouse: Warehouse, ledger: Ledger, dataset: str) -> None:
    """Refuse to work while `released/` holds what the ledger does not know: it was lost, cut or swapped."""
    found = unknown_entries(warehouse, ledger, dataset) or replaced_manifests(warehouse, ledger)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise DoorError(
            f"the door refuses to work: {found[0]}{more}: restore the ledger that charged for it (qlog ledger recover, "
            "where a witness has it), or what was there"
        )


def orphan_draws(warehouse: Warehouse, ledger: Ledger) -> list[str]:
    """A sentence for each stored draw that no charge of the ledger accounts for: its noise was drawn and not paid.

    Says mechanism and month where the draw can be read, and never its fingerprint, which is made from input digests.
    """
    # In this order: a draw is stored after it was reserved, so the ledger read afterwards knows what is seen here.
    stored = sorted(path for path in warehouse.draws.glob("*") if not path.name.startswith(PREFIX))
    counted = {charge.fingerprint for charge in ledger.charges() if charge.counted}
    sentences = []
    for path in stored:
        if path.name in counted:
            continue
        try:
            drawn = load_draw(warehouse, path.name).release
            what = f"the draw of {drawn.mechanism} {drawn.month}, number {drawn.draw_number}"
        except DrawError:
            what = "something that cannot be read as a draw"
        sentences.append(f"private/draws holds {what}, which no charge of the ledger at {ledger.where} accounts for")
    return sentences


def refuse_orphan_draws(warehouse: Warehouse, ledger: Ledger) -> None:
    """Refuse to work beside a draw that nobody was charged for: the ledger that charged was lost or set back."""
    found = orphan_draws(warehouse, ledger)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise DoorError(
            f"the door refuses to work: {found[0]}{more}: restore the ledger that charged for it (qlog ledger recover, "
            "where a witness has it)"
        )


def refuse_superseded(ledger: Ledger, charge: Charge) -> None:
    """Refuse to go back to a draw of a month that another one came after."""
    current = ledger.live(charge.dataset, charge.month, charge.mechanism)[-1]
    if current.release_id != charge.release_id:
        raise RefusedByDoorError(
            f"this request is {charge.release_id}, which is {charge.state} already, and {current.release_id} came "
            f"after it: that one is what {charge.month} publishes; nothing was drawn or charged"
        )


def refuse_other_dataset(charge: Charge, dataset: str, undone: str) -> None:
    """Refuse to take back what another warehouse published: one ledger may serve several."""
    if charge.dataset != dataset:
        raise DoorError(
            f"{undone}: {charge.release_id} is of the data set {charge.dataset}, and this warehouse's policy says "
            f"{dataset}"
        )


def refuse_second_dataset(warehouse: Warehouse, dataset: str) -> None:
    """Refuse another name for the same log: it would open another budget for the same people."""
    pin = pinned_dataset(warehouse)
    known = pin.read_text(encoding="utf-8").strip() if pin.exists() else dataset
    if known != dataset:
        raise DoorError(
            f"the door refuses to work: this warehouse holds the data set {known} and the policy says {dataset}: "
            "a second name would be a second budget for the same people"
        )


def refuse_lost_account(warehouse: Warehouse, ledger: Ledger, dataset: str) -> None:
    """Refuse to open an account that was opened before: whatever its ledger charged would be forgotten with it.

    The pin is looked at first: an account that another process opens meanwhile is in the ledger before it is pinned.
    """
    if pinned_dataset(warehouse).exists() and dataset not in {known.name for known in ledger.datasets()}:
        raise DoorError(
            f"the door refuses to work: charges were made for {dataset} and the ledger at {ledger.where} knows none: "
            "restore the ledger that made them"
        )


def pin_dataset(warehouse: Warehouse, dataset: str) -> None:
    """Remember that an account was opened. After it was, so that a crash in between locks nobody out."""
    pin = pinned_dataset(warehouse)
    if not pin.exists():
        write_private(pin, f"{dataset}\n")


def pinned_dataset(warehouse: Warehouse) -> Path:
    """Where a warehouse keeps the name of its data set, from its first charge on."""
    return warehouse.private / "dataset"
