"""The one door: the only code that draws publishable noise and the only code that writes under `released/`.

Two steps. `draw` validates its inputs, computes the guarantee from their provenance, reserves the charge, draws every
table of the release and stores the draw. `publish` turns a stored draw into public files. Both can be killed at any
point and run again: a charge is made once, noise is drawn once, and a reader sees a whole release or none.

What one user can change here is decided upstream (`sql/capped_*.sql`), checked by `door_inputs`, and priced by
`privacy/guarantees`. How a release looks is `report/`.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qlog_assets.door_inputs import DoorError, collect_inputs, refuse_broken_limits
from qlog_assets.drawing import MechanismEntry, mechanism
from qlog_assets.draws import Draw, DrawnRelease, discard_draw, load_draw, store_draw
from qlog_assets.engine import Engine
from qlog_assets.ledger import Budget, Charge, DrawConflictError, Ledger
from qlog_assets.months import Month
from qlog_assets.privacy.guarantees import Guarantee, guarantee
from qlog_assets.privacy.guarantees.statement import ADD_REMOVE, USER
from qlog_assets.privacy.randomness import RandomSource, SecureRandom
from qlog_assets.public_material import public_facts
from qlog_assets.publication import Publication, stage, write_tombstone
from qlog_assets.report.manifest import software_versions
from qlog_assets.settings import Policy
from qlog_assets.warehouse import Partition, Warehouse, WarehouseError, file_checksum, temporary_directory

DRAW_POINTS = (
    "asked",
    "inputs_validated",
    "limits_checked",
    "guarantee_computed",
    "charge_reserved",
    "tables_drawn",
    "draw_stored",
    "draw_recorded",
)
PUBLISH_POINTS = (
    "draw_loaded",
    "personal_data_suppressed",
    "outputs_checked",
    "release_staged",
    "publication_recorded",
    "release_renamed",
    "latest_pointed",
)


def _pass(point: str) -> None:
    """What happens at a named point of the door: nothing. Fault tests put a kill here."""


on_point: Callable[[str], None] = _pass


@dataclass(frozen=True)
class Receipt:
    """What the door answers: the charge as the ledger has it, and whether this very request made it."""

    charge: Charge
    charged: bool
    guarantee: Guarantee
    path: Path | None = None
    rows: Mapping[str, int] | None = None
    thresholds: Mapping[str, int] | None = None


class Door:
    """The way out of one warehouse."""

    def __init__(self, warehouse: Warehouse, policy: Policy, ledger: Ledger) -> None:
        self.warehouse = warehouse
        self.policy = policy
        self.ledger = ledger

    # Drawing --------------------------------------------------------------------------------------------------------

    def draw(
        self,
        name: str,
        month: Month,
        *,
        variant: str = "sound",
        again: str | None = None,
        source: RandomSource | None = None,
    ) -> Receipt:
        """Draw a release of a month, once: a request the ledger knows gets the draw it already has."""
        source = SecureRandom() if source is None else source
        if not source.secure:
            raise DoorError("the door refuses a draw from a seeded source: its noise could be computed again")
        entry, chosen = mechanism(name), mechanism(name).parameters(self.policy)
        on_point("asked")
        self.refuse_foreign_releases()
        with Engine.open(self.warehouse) as engine:
            inputs = collect_inputs(self.warehouse, entry, month, chosen.as_public())
            on_point("inputs_validated")
            refuse_broken_limits(engine, name, month, inputs[entry.inputs[0]])
            on_point("limits_checked")
            promise = guarantee(name, variant, chosen)
            if not promise.publishable or promise.proven is None:
                raise DoorError(
                    f"the door refuses {name} {variant}: it is for studies alone; use qlog simulate"
                )
            on_point("guarantee_computed")
            charge, charged = self._reserve(entry, month, variant, chosen.as_released(), inputs, promise, again)
            on_point("charge_reserved")
            if charge.state == "reserved":
                self._draw_and_store(engine, entry, charge, chosen, inputs, promise, source)
                charge = self._record_draw(charge)
                on_point("draw_recorded")
        return Receipt(charge, charged, promise)

    def _reserve(
        self,
        entry: MechanismEntry,
        month: Month,
        variant: str,
        parameters: Mapping[str, Any],
        inputs: Mapping[str, Partition],
        promise: Guarantee,
        again: str | None,
    ) -> tuple[Charge, bool]:
        self.ensure_dataset(promise.unit, promise.relation)
        assert promise.proven is not None
        # What the mechanism reads is decided by the capped log and public material alone: counts follow from them.
        digested = [entry.inputs[0], *(name for name in entry.public_inputs if name in inputs)]
        return self.ledger.reserve(
            dataset=self.policy.dataset,
            month=month,
            mechanism=entry.name,
            variant=variant,
            mechanism_version=entry.version,
            parameters=parameters,
            inputs={name: inputs[name].provenance.content_digest for name in digested},
            epsilon=promise.proven.epsilon,
            delta=promise.proven.delta,
            rho=promise.proven.rho,
            again=again,
        )

    def ensure_dataset(self, unit: str = USER, relation: str = ADD_REMOVE) -> None:
        """Open the data set's account with the policy's budget, if the ledger does not have it yet."""
        budget = self.policy.budget
        self.ledger.ensure_dataset(
            self.policy.dataset,
            Budget(budget.epsilon, budget.delta, budget.accountant, budget.conversion_delta),
            unit=unit,
            relation=relation,
        )

    def _draw_and_store(
        self,
        engine: Engine,
        entry: MechanismEntry,
        charge: Charge,
        chosen: Any,
        inputs: Mapping[str, Partition],
        promise: Guarantee,
        source: RandomSource,
    ) -> None:
        """Draw all tables and store them, unless a process before or beside this one did."""
        if self._stored(charge):
            return
        tables = entry.draw(engine, inputs, chosen, source)
        on_point("tables_drawn")
        drawn = DrawnRelease(
            fingerprint=charge.fingerprint,
            dataset=charge.dataset,
            month=charge.month,
            mechanism=charge.mechanism,
            variant=charge.variant,
            mechanism_version=charge.mechanism_version,
            draw_number=charge.draw_number,
            parameters=dict(charge.parameters),
            inputs={name: partition.provenance.shape for name, partition in inputs.items()},
            salt=secrets.token_hex(16),
            software=software_versions(),
            about=self.policy.about.as_public(),
            public_material=tuple(public_facts(inputs[name]) for name in entry.public_inputs if name in inputs),
        )
        store_draw(self.warehouse, drawn, tables)
        on_point("draw_stored")

    def _record_draw(self, charge: Charge) -> Charge:
        draw = load_draw(self.warehouse, charge.fingerprint)
        try:
            return self.ledger.record_draw(charge.release_id, draw.digest)
        except DrawConflictError:
            # The ledger knows another draw of this release, so the one on disk is nobody's: it must never be used.
            discard_draw(self.warehouse, charge.fingerprint)
            raise DoorError(
                f"the draw of {charge.release_id} was replaced on disk: the door uses only the one the ledger recorded"
            ) from None

    def _stored(self, charge: Charge) -> bool:
        return (self.warehouse.draws / charge.fingerprint).exists()

    # Publishing -----------------------------------------------------------------------------------------------------

    def publish(self, name: str, month: Month) -> Receipt:
        """Publish the month's stored draw. Takes no parameters: everything was decided when it was drawn."""
        entry = mechanism(name)
        self.refuse_foreign_releases()
        charge = self._drawn_charge(entry, month)
        promise = guarantee(name, charge.variant, type(entry.parameters(self.policy))(**charge.parameters))
        target = self.release_path(charge)
        if charge.state != "published" or not target.exists():
            draw = self._load_recorded_draw(charge)
            on_point("draw_loaded")
            self._refuse_changed_inputs(entry, month, draw)
            self._stage_and_commit(entry, charge, draw, promise, target)
        elif self._stored(charge):
            self._refuse_changed_inputs(entry, month, load_draw(self.warehouse, charge.fingerprint))
        charge = self.ledger.charge(charge.release_id)
        point_latest(target)
        on_point("latest_pointed")
        published = Publication.read(target)
        return Receipt(charge, False, promise, target, published.rows, published.thresholds)

    def _drawn_charge(self, entry: MechanismEntry, month: Month) -> Charge:
        """The month's current charge, once something was drawn for it; otherwise the reason why nothing was."""
        live = self.ledger.live(self.policy.dataset, month, entry.name) if self._has_dataset() else []
        if live and live[-1].state != "reserved":
            return live[-1]
        chosen = entry.parameters(self.policy)
        with Engine.open(self.warehouse) as engine:
            inputs = collect_inputs(self.warehouse, entry, month, chosen.as_public())
            refuse_broken_limits(engine, entry.name, month, inputs[entry.inputs[0]])
        raise DoorError(
            f"the door refuses {entry.name} {month}: nothing was drawn for it yet: materialize selected first"
        )

    def _has_dataset(self) -> bool:
        return any(dataset.name == self.policy.dataset for dataset in self.ledger.datasets())

    def _load_recorded_draw(self, charge: Charge) -> Draw:
        if not self._stored(charge):
            raise DoorError(
                f"the draw of {charge.release_id} was stored and is gone, and noise is never drawn twice: "
                "restore private/draws from a backup, or say --again REASON for a new draw at a new charge"
            )
        draw = load_draw(self.warehouse, charge.fingerprint)
        if draw.digest != charge.draw_digest:
            raise DoorError(
                f"the stored draw of {charge.release_id} is not the one the ledger recorded: it was changed on disk"
            )
        return draw

    def _refuse_changed_inputs(self, entry: MechanismEntry, month: Month, draw: Draw) -> None:
        """Refuse while what the draw was made from lies there changed; what retention deleted cannot be looked at."""
        limited = entry.inputs[0]
        shape = draw.release.inputs[limited]
        if not (self.warehouse.private / limited / month / shape).exists():
            return
        try:
            partition = self.warehouse.partition(limited, month, shape)
            partition.verify()
        except WarehouseError as error:
            raise DoorError(f"the door refuses {entry.name} {month}: {error}") from None
        with Engine.open(self.warehouse) as engine:
            refuse_broken_limits(engine, entry.name, month, partition)

    def _stage_and_commit(
        self, entry: MechanismEntry, charge: Charge, draw: Draw, promise: Guarantee, target: Path
    ) -> None:
        assert charge.drawn_seq is not None
        head = self.ledger.salted_head(bytes.fromhex(draw.release.salt), seq=charge.drawn_seq)
        try:
            with temporary_directory(self.warehouse.staging) as scratch:
                manifest = stage(scratch, entry, charge, draw, promise, head, on_point)
                on_point("release_staged")
                self.ledger.record_publication(charge.release_id, file_checksum(manifest))
                on_point("publication_recorded")
                target.parent.mkdir(parents=True, exist_ok=True)
                move_into_place(scratch, target)
                on_point("release_renamed")
        except DrawConflictError:
            raise DoorError(
                f"{charge.release_id} was published with another manifest: its files cannot be made again by this "
                "version of the software; restore released/ from a backup"
            ) from None
        except OSError as error:
            raise DoorError(
                f"the door could not write {charge.release_id} ({error.strerror or error}): nothing half-written is "
                "public; make room and run again, at no new charge"
            ) from error

    # Taking back ----------------------------------------------------------------------------------------------------

    def abandon(self, release_id: str, reason: str) -> Charge:
        """Give a reservation back: only if no draw was ever stored, on disk or in the ledger."""
        charge = self.ledger.charge(release_id)
        if self._stored(charge):
            raise DoorError(f"{charge.release_id} has a stored draw, so its charge stays: publish it or withdraw it")
        return self.ledger.abandon(charge.release_id, reason)

    def withdraw(self, release_id: str, reason: str) -> Charge:
        """Take a release back: its files go, its charge stays, a tombstone says so."""
        charge = self.ledger.withdraw(release_id, reason)
        target = self.release_path(charge)
        if target.exists():
            with temporary_directory(self.warehouse.staging) as scratch:
                os.rename(target, scratch / "withdrawn")
        target.parent.mkdir(parents=True, exist_ok=True)
        write_tombstone(target.parent / f"{charge.release_id}.withdrawn.json", charge)
        discard_draw(self.warehouse, charge.fingerprint)
        live = [c for c in self.ledger.live(charge.dataset, charge.month, charge.mechanism) if c.state == "published"]
        if live:
            point_latest(self.release_path(live[-1]))
        else:
            (target.parent / "latest").unlink(missing_ok=True)
        return charge

    # The public zone ------------------------------------------------------------------------------------------------

    def release_path(self, charge: Charge) -> Path:
        return self.warehouse.released / charge.mechanism / charge.month / charge.release_id

    def refuse_foreign_releases(self) -> None:
        """Refuse to work while `released/` holds what the ledger does not know: it was lost, cut or swapped."""
        foreign = foreign_releases(self.warehouse, self.ledger)
        if foreign:
            raise DoorError(
                f"the door refuses to work: released/ holds {foreign[0]}"
                + (f" and {len(foreign) - 1} more" if len(foreign) > 1 else "")
                + f", which the ledger at {self.ledger.where} does not know: restore the ledger that charged for it"
            )


def foreign_releases(warehouse: Warehouse, ledger: Ledger) -> list[str]:
    """What lies under `released/` that no published or withdrawn charge of the ledger accounts for."""
    known: dict[Path, str | None] = {}
    for charge in ledger.charges():
        base = warehouse.released / charge.mechanism / charge.month
        if charge.manifest_digest is not None and charge.state == "published":
            known[base / charge.release_id] = charge.manifest_digest
        if charge.state == "withdrawn":
            known[base / f"{charge.release_id}.withdrawn.json"] = None
            # The files of a withdrawal that was interrupted: the next `qlog withdraw` removes them.
            known[base / charge.release_id] = charge.manifest_digest
    foreign = []
    for path in sorted(warehouse.released.glob("*/*/*")):
        if path.name == "latest" and path.is_symlink():
            continue
        if path not in known:
            foreign.append(str(path.relative_to(warehouse.released)))
    return foreign


def point_latest(target: Path) -> None:
    """Make `latest` beside a release point at it, in one step."""
    pointer = target.parent / f".latest-{os.getpid()}"
    pointer.unlink(missing_ok=True)
    pointer.symlink_to(target.name)
    os.replace(pointer, target.parent / "latest")


def move_into_place(scratch: Path, target: Path) -> None:
    """Show a staged release under its name. If it is there already, the ledger made sure that it is the same one."""
    os.chmod(scratch, 0o755)
    try:
        os.rename(scratch, target)
    except OSError:
        if not (target / "manifest.json").exists():
            raise
        shutil.rmtree(scratch, ignore_errors=True)
