"""The one door: the only code that draws publishable noise and the only code that has files put under `released/`.

Two steps. `draw` validates its inputs, refuses parameters other than those that shaped them, computes the guarantee,
refuses what costs more than the policy file allows, reserves the charge, draws every table of the release and stores
the draw. `publish` turns a stored draw into public files. Both can be killed at any point and run again: a charge is
made once, noise is drawn once, and a reader sees a whole release or none.

What one user can change here is decided by a mechanism's stages, checked by `inputs.py`, and priced by the mechanism's
guarantee. How a release looks is `publication.py` and `report/`; how its files get into public is `public_files.py`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from qlog_assets.door.asking import steered_request
from qlog_assets.door.catalogue import write_catalogue
from qlog_assets.door.choices import offering_choices, warn_of_skip
from qlog_assets.door.drawing import describe_draw, draw_tables, list_rows
from qlog_assets.door.draws import Draw, discard_draw, load_draw, store_draw
from qlog_assets.door.inputs import (
    DoorError,
    collect_inputs,
    read_digests,
    refuse_broken_limits,
    refuse_lost_steering,
    refuse_other_domain,
    refuse_other_unit,
)
from qlog_assets.door.ledgers import opening_budget
from qlog_assets.door.outputs import recorded_draw, refuse_changed_inputs, refuse_damaged, refuse_failed
from qlog_assets.door.preconditions import (
    LONGEST_WAIT_SECONDS,
    lock_month,
    pin_dataset,
    refuse_lost_account,
    refuse_orphan_draws,
    refuse_other_dataset,
    refuse_second_dataset,
    refuse_superseded,
    refuse_unknown_releases,
)
from qlog_assets.door.public_files import move_into_place, point_latest, take_away, write_tombstone
from qlog_assets.door.publication import Publication, stage
from qlog_assets.door.receipt import Receipt
from qlog_assets.door.release_limits import refuse_beyond_limits, refuse_beyond_promise, refuse_changed_policy
from qlog_assets.ledger import Book, Charge, DrawConflictError, Ledger
from qlog_assets.ledger.records import Request
from qlog_assets.ledger.rules import withdrawn
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import releasable_mechanism
from qlog_assets.months import Month
from qlog_assets.pipeline.steering import Steering
from qlog_assets.policy import Policy
from qlog_assets.privacy.guarantee import ADD_REMOVE, USER, WORDS, Guarantee
from qlog_assets.privacy.randomness import RandomSource, SecureRandom
from qlog_assets.report.public_zone import find_damage, release_path
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.engine import Engine, OpenEngine
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.private_files import remove_whole
from qlog_assets.storage.scratch import temporary_directory
from qlog_assets.storage.warehouse import Warehouse


def _pass(point: str) -> None:
    """What happens at a named point of the door: nothing. Fault tests put a kill here."""


on_point: Callable[[str], None] = _pass


class Door:
    """The way out of one warehouse."""

    def __init__(
        self,
        warehouse: Warehouse,
        policy: Policy,
        ledger: Ledger,
        wait_seconds: float = LONGEST_WAIT_SECONDS,
        open_engine: OpenEngine | None = None,
    ) -> None:
        self.warehouse = warehouse
        self.policy = policy
        self.ledger = ledger
        self.book = Book(ledger, policy.dataset)
        self.wait_seconds = wait_seconds
        self.open_engine = open_engine or partial(Engine.open, warehouse, policy.engine)

    # Drawing --------------------------------------------------------------------------------------------------------

    def draw(
        self,
        name: str,
        month: Month,
        *,
        variant: str | None = None,
        again: str | None = None,
        source: RandomSource | None = None,
    ) -> Receipt:
        """Draw a release of a month, once: a request the ledger knows gets the draw it already has.

        The variant is the policy's unless the caller names one.
        """
        source = SecureRandom() if source is None else source
        if not source.secure:
            raise DoorError("the door refuses a draw from a seeded source: its noise could be computed again")
        mechanism = releasable_mechanism(name)
        refuse_changed_policy(self.policy)
        chosen = self.policy.parameters(mechanism)
        variant = variant or self.policy.variant(mechanism)
        on_point("asked")
        with lock_month(self.warehouse, name, month, self.wait_seconds), self.open_engine() as engine:
            refuse_unknown_releases(self.warehouse, self.ledger, self.policy.dataset)
            refuse_orphan_draws(self.warehouse, self.ledger)
            self._refuse_another_account()
            inputs = collect_inputs(self.warehouse, mechanism, month, chosen.as_public(), self.book)
            on_point("inputs_validated")
            refuse_broken_limits(engine, mechanism, month, inputs[mechanism.limited_stage.name])
            on_point("limits_checked")
            guarantee = mechanism.guarantee(variant, chosen)
            if not guarantee.publishable or guarantee.proven is None:
                raise DoorError(f"the door refuses {name} {variant}: it is for studies alone; use qlog simulate")
            # What the month has already is served or refused by the ledger, whatever a new draw would be asked.
            if again is not None or not self.ledger.live(self.policy.dataset, month, name):
                refuse_beyond_limits(self.policy, mechanism, guarantee)
                refuse_other_unit(self.warehouse, month, self.policy.unit.one_user)
                refuse_other_domain(self.warehouse, self.policy.dataset, inputs[mechanism.limited_stage.name])
                public = {name: inputs[name] for name in mechanism.public_inputs if name in inputs}
                mechanism.refuse_unusable(variant, chosen, {name: list_rows(public[name]) for name in public})
            on_point("guarantee_computed")
            digests = read_digests(mechanism, inputs)
            request, steering = steered_request(
                self.warehouse, self.ledger, self.policy, mechanism, variant, month, digests, again
            )
            refuse_beyond_promise(self.warehouse, self.ledger, mechanism, request, guarantee.proven, again)
            charge, charged = self._reserve(mechanism, request, guarantee, again)
            on_point("charge_reserved")
            if charge.state == "reserved":
                self._draw_and_store(engine, mechanism, charge, chosen, inputs, steering, source)
                charge = self._record_draw(charge)
                on_point("draw_recorded")
            if charge.state == "drawn":
                refuse_failed(charge, recorded_draw(self.warehouse, charge, needed=False))
        return Receipt(charge, charged, guarantee)

    def _reserve(
        self, mechanism: Mechanism, request: Request, guarantee: Guarantee, again: str | None
    ) -> tuple[Charge, bool]:
        self.open_account(guarantee.unit, guarantee.relation)
        pin_dataset(self.warehouse, self.policy.dataset)
        assert guarantee.proven is not None
        skips = self.ledger.skips(self.policy.dataset)
        with offering_choices(self.ledger, self.policy, mechanism, Month(request.month)):
            charge, charged = self.ledger.reserve(
                dataset=request.dataset,
                month=request.month,
                mechanism=request.mechanism,
                variant=request.variant,
                mechanism_version=request.mechanism_version,
                parameters=request.parameters,
                inputs=request.inputs,
                epsilon=guarantee.proven.epsilon,
                delta=guarantee.proven.delta,
                rho=guarantee.proven.rho,
                again=again,
                steerable=mechanism.is_steered(request.variant, mechanism.parameters(**request.parameters)),
            )
        if charged:
            warn_of_skip(skips, charge)
        refuse_superseded(self.ledger, charge)
        return charge, charged

    def open_account(self, unit: str = USER, relation: str = ADD_REMOVE) -> None:
        """Open the data set's account with the policy's budget, if the ledger does not have it yet."""
        self.has_account()
        self.ledger.ensure_dataset(
            self.policy.dataset,
            opening_budget(self.policy),
            unit=unit,
            relation=relation,
            window_months=self.policy.unit.window_months,
        )

    def has_account(self) -> bool:
        """Whether the data set has an account; an error where it has none and had one. Looking opens none."""
        if self._has_dataset():
            return True
        # A new account beside old releases: the ledger that charged for them was lost or swapped.
        refuse_unknown_releases(self.warehouse, self.ledger, self.policy.dataset)
        refuse_orphan_draws(self.warehouse, self.ledger)
        refuse_lost_account(self.warehouse, self.ledger, self.policy.dataset)
        return False

    def _refuse_another_account(self) -> None:
        """Refuse before inputs are compared with a ledger that is not theirs: the reason would be the wrong one."""
        refuse_second_dataset(self.warehouse, self.policy.dataset)
        if not self._has_dataset():
            refuse_lost_account(self.warehouse, self.ledger, self.policy.dataset)

    def _has_dataset(self) -> bool:
        return any(dataset.name == self.policy.dataset for dataset in self.ledger.datasets())

    def _draw_and_store(
        self,
        engine: Engine,
        mechanism: Mechanism,
        charge: Charge,
        chosen: Any,
        inputs: Mapping[str, Partition],
        steering: Steering | None,
        source: RandomSource,
    ) -> None:
        """Draw all tables and store them, unless a process before or beside this one did."""
        if self._stored(charge):
            return
        refuse_lost_steering(charge, steering)
        tables, failure = draw_tables(engine, mechanism, charge, chosen, inputs, steering, source)
        on_point("tables_drawn")
        drawn = describe_draw(self.warehouse, mechanism, charge, inputs, steering, self.policy, self.ledger, failure)
        try:
            store_draw(self.warehouse, drawn, tables)
        except OSError as error:
            raise DoorError(
                f"the door could not store the draw of {charge.release_id} ({error.strerror or error}): nothing was "
                "published and nothing half-written is left; make room and run again, at no new charge"
            ) from error
        on_point("draw_stored")

    def _record_draw(self, charge: Charge) -> Charge:
        draw = load_draw(self.warehouse, charge.fingerprint)
        if draw.release.fingerprint != charge.fingerprint:
            raise DoorError(f"the stored draw of {charge.release_id} is another release's: it was changed on disk")
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
        mechanism = releasable_mechanism(name)
        with lock_month(self.warehouse, name, month, self.wait_seconds):
            refuse_unknown_releases(self.warehouse, self.ledger, self.policy.dataset)
            charge = self._drawn_charge(mechanism, month)
            guarantee = self._priced(mechanism, charge)
            target = release_path(self.warehouse, charge)
            served = charge.state == "published" and target.exists()
            draw = recorded_draw(self.warehouse, charge, needed=not served)
            refuse_failed(charge, draw)
            if draw is not None:
                is_public = charge.state == "published"
                refuse_changed_inputs(self.warehouse, self.book, self.open_engine, mechanism, draw, is_public=is_public)
            if not served:
                charge = self._make_public(mechanism, charge, draw, target)
            refuse_damaged(mechanism, charge, target, draw)
            point_latest(self.warehouse, target)
            on_point("latest_pointed")
            self.write_catalogue()
            on_point("catalogue_written")
            published = Publication.read(target)
        return Receipt(charge, False, guarantee, target, published.rows, published.thresholds)

    def write_catalogue(self) -> None:
        """Have the list of what is public say what the ledger says now."""
        write_catalogue(self.warehouse, self.ledger, self.policy.dataset, self.wait_seconds)

    def _drawn_charge(self, mechanism: Mechanism, month: Month) -> Charge:
        """The month's current charge, once something was drawn for it; otherwise the reason why nothing was."""
        live = self.ledger.live(self.policy.dataset, month, mechanism.name)
        if live and live[-1].state != "reserved":
            return live[-1]
        own = [c for c in self.ledger.charges(self.policy.dataset) if (c.month, c.mechanism) == (month, mechanism.name)]
        if own and own[-1].state == "withdrawn":
            raise withdrawn(own[-1])
        chosen = self.policy.parameters(mechanism)
        with self.open_engine() as engine:
            inputs = collect_inputs(self.warehouse, mechanism, month, chosen.as_public(), self.book)
            refuse_broken_limits(engine, mechanism, month, inputs[mechanism.limited_stage.name])
        raise DoorError(
            f"the door refuses {mechanism.name} {month}: nothing was drawn for it yet: "
            f"materialize {mechanism.draw_asset} first"
        )

    def _priced(self, mechanism: Mechanism, charge: Charge, words: int = WORDS) -> Guarantee:
        """What the release promises, computed again; refused where that is more than was charged for it."""
        parameters = mechanism.parameters(**charge.parameters)
        guarantee = mechanism.guarantee(charge.variant, parameters, words)
        if (
            guarantee.proven is None
            or guarantee.proven.epsilon > charge.epsilon
            or guarantee.proven.delta > charge.delta
        ):
            raise DoorError(
                f"the door refuses to publish {charge.release_id}: by this version of the software it costs more than "
                "was charged for it"
            )
        return guarantee

    def _make_public(self, mechanism: Mechanism, charge: Charge, draw: Draw | None, target: Path) -> Charge:
        """Stage, commit, rename. What was staged and recorded before a crash is what is renamed after it."""
        staged = self.warehouse.staging / charge.release_id
        try:
            if charge.state != "published" or find_damage(staged, charge.manifest_digest):
                if draw is None:
                    raise DoorError(
                        f"the draw of {charge.release_id} was stored and is gone, and noise is never drawn twice: "
                        "restore private/draws from a backup, or say --again REASON for a new draw at a new charge"
                    )
                on_point("draw_loaded")
                self._stage(mechanism, charge, draw, staged)
            charge = self.ledger.record_publication(charge.release_id, file_checksum(staged / "manifest.json"))
            on_point("publication_recorded")
            move_into_place(staged, target)
            on_point("release_renamed")
        except DrawConflictError:
            raise DoorError(
                f"{charge.release_id} was published with another manifest: its files cannot be made again by this "
                "version of the software; restore released/ from a backup"
            ) from None
        except OSError as error:
            remedy = "make room"
            if error.errno == errno.EXDEV:
                remedy = "keep released/ on the same file system as private/"
            raise DoorError(
                f"the door could not write {charge.release_id} ({error.strerror or error}): nothing half-written is "
                f"public; {remedy} and run again, at no new charge"
            ) from error
        return charge

    def _stage(self, mechanism: Mechanism, charge: Charge, draw: Draw, staged: Path) -> None:
        """Fill the private directory that will be renamed. It has the release's name, so that a later run finds it."""
        assert charge.drawn_seq is not None
        guarantee = self._priced(mechanism, charge, draw.release.words)
        head = self.ledger.salted_head(bytes.fromhex(draw.release.salt), seq=charge.drawn_seq)
        with temporary_directory(self.warehouse.staging) as scratch:
            stage(scratch, mechanism, charge, draw, guarantee, head, on_point)
            remove_whole(staged)
            scratch.rename(staged)
        on_point("release_staged")

    # Taking back ----------------------------------------------------------------------------------------------------

    def abandon(self, release_id: str, reason: str) -> Charge:
        """Give a reservation back: only if no draw was ever stored, on disk or in the ledger."""
        charge = self.ledger.charge(release_id)
        with self._lock(charge, "nothing was given back"):
            if self._stored(charge):
                raise DoorError(
                    f"{charge.release_id} has a stored draw, so its charge stays: publish it or withdraw it"
                )
            return self.ledger.abandon(charge.release_id, reason)

    def withdraw(self, release_id: str, reason: str, public_text: str | None = None) -> Charge:
        """Take a release back: its files go, its charge stays, a tombstone says so. Interrupted, it is run again.

        The reason stays in the ledger; the tombstone says the public text.
        """
        charge = self.ledger.charge(release_id)
        with self._lock(charge, "nothing was withdrawn"):
            charge = self.ledger.withdraw(release_id, reason, public_text)
            on_point("withdrawal_recorded")
            live = self.ledger.live(charge.dataset, charge.month, charge.mechanism)
            take_away(self.warehouse, charge, [c for c in live if release_path(self.warehouse, c).is_dir()])
            on_point("files_removed")
            write_tombstone(self.warehouse, charge)
            on_point("tombstone_written")
            self.write_catalogue()
            on_point("withdrawal_listed")
            discard_draw(self.warehouse, charge.fingerprint)
            on_point("withdrawn_draw_removed")
        return charge

    def _lock(self, charge: Charge, undone: str) -> AbstractContextManager[None]:
        refuse_other_dataset(charge, self.policy.dataset, undone)
        return lock_month(self.warehouse, charge.mechanism, charge.month, self.wait_seconds, undone)
