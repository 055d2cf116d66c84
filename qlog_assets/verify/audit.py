"""Audits releases without trusting whoever made them: files, manifest, ledger, guarantee, limits, lineage, run history.

It reads everything and changes nothing. A finding is something that is wrong; a note is something that can no longer
be looked at, such as data that retention deleted; a failure is something that should have been looked at and could not
be, such as a file that this user may not read. For each release it says what was recomputed and what was believed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from qlog_assets.door.draws import Draw, DrawError, load_draw
from qlog_assets.door.preconditions import pinned_dataset
from qlog_assets.door.publication import differences_from_draw
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Charge, DamagedLedgerError, Ledger, LedgerError, MissingLedgerError, SaltedHead
from qlog_assets.mechanisms.register import mechanism, releasable_mechanism
from qlog_assets.pipeline.public_material import PublicLists
from qlog_assets.report.manifest import MANIFEST_NAME, load_manifest, verify_files, words_of
from qlog_assets.report.public_zone import (
    list_entries,
    release_path,
    tombstone_path,
    tombstone_texts,
    unknown_entries,
)
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.stored import drop_copies
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.verify.accounts import over_budget_findings, recovery_notes, window_notes
from qlog_assets.verify.lineage import Lineage, batch_notes
from qlog_assets.verify.recompute import Recomputation, Tell
from qlog_assets.verify.retention import returned_notes
from qlog_assets.verify.run_history import door_runs
from qlog_assets.verify.steering import names_other_pin
from qlog_assets.verify.surroundings import audit_catalogue, find_around
from qlog_assets.verify.workplace import History, open_workplace

if TYPE_CHECKING:
    import dagster as dg

READ = os.R_OK | os.X_OK
ALWAYS_BELIEVED = (
    "that its noise came from the operating system's random bits, and that the code which drew it was this software",
    "what Dagster's history says of runs and checks",
    "the clock of the machine",
)
"""What no file can prove."""


@dataclass
class ReleaseVerdict:
    """What was found about one release."""

    release_id: str
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    recomputed: list[str] = field(default_factory=list)
    believed: list[str] = field(default_factory=list)


@dataclass
class AuditReport:
    """What was found about all of them, and about ledger and public zone as a whole."""

    releases: list[ReleaseVerdict]
    findings: list[str]
    failures: list[str] = field(default_factory=list)
    """What the audit could not look at: it is not finished then, whatever it found."""
    deep: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.failures and not self.all_findings

    @property
    def all_findings(self) -> list[str]:
        """Every finding in one list, each with the release it is about."""
        about = [f"{verdict.release_id}: {finding}" for verdict in self.releases for finding in verdict.findings]
        return self.findings + about

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "deep": self.deep,
            "findings": self.findings,
            "notes": self.notes,
            "failures": self.failures,
            "releases": [
                {
                    "release_id": verdict.release_id,
                    "ok": not verdict.findings,
                    "findings": verdict.findings,
                    "notes": verdict.notes,
                    "recomputed": verdict.recomputed,
                    "believed": verdict.believed,
                }
                for verdict in self.releases
            ],
        }


def audit_warehouse(
    warehouse: Warehouse,
    dataset: str | None = None,
    release_ids: Sequence[str] = (),
    instance: dg.DagsterInstance | None = None,
    *,
    deep: PublicLists | None = None,
    tell: Tell = lambda step: None,
    bar: Callable[[int, int, str], None] = lambda done, of, step: None,
) -> AuditReport:
    """Verify the named releases, or all of them; the ledger's history and the public zone are verified in any case.

    A ledger may serve several warehouses: with a data set's name, other data sets' releases are looked at only where
    they lie here. A lost or damaged ledger is a finding and no error: what it charged for is still there. One that
    cannot be reached is a failure. Without an `instance`, Dagster's history is the one in the warehouse. With the
    policy's public lists as `deep`, every private table is computed again as far as what it was made from is there.
    """
    try:
        # Never made here: an audit that found no ledger and made a new one would find nothing wrong with it.
        ledger = Ledger.read(warehouse.ledger_url)
        charges = ledger.charges()
    except (MissingLedgerError, DamagedLedgerError) as error:
        return without_ledger(warehouse, error)
    except (LedgerError, OSError) as error:
        return AuditReport([], [], [str(error)], deep is not None)
    known = {charge.release_id: charge for charge in charges}
    for release_id in release_ids:
        if release_id not in known:
            raise QlogError(f"the ledger knows no release {release_id}")
    chosen = [known[release_id] for release_id in release_ids]
    if not release_ids:
        chosen = [charge for charge in charges if dataset in (None, charge.dataset) or lies_here(warehouse, charge)]
    report = AuditReport([], [], unreadable_zones(warehouse), deep is not None)
    with (
        finishing(report, "no room to work in"),
        open_workplace(warehouse) as workplace,
        History(warehouse, instance, workplace) as history,
    ):
        with finishing(report, "the warehouse"):
            report.findings += [f"ledger: {finding}" for finding in ledger.verify_chain()]
            report.findings += unknown_entries(warehouse, ledger)
            report.findings += over_budget_findings(ledger, dataset)
            report.notes += window_notes(ledger, dataset) + recovery_notes(ledger) + batch_notes(ledger, dataset)
            own = [charge for charge in charges if dataset in (None, charge.dataset)]
            report.findings += find_around(warehouse, ledger, own)
            report.notes += returned_notes(warehouse, ledger, dataset)
            listed, unlisted = audit_catalogue(warehouse, ledger, dataset)
            report.findings += listed
            report.notes += unlisted
        again = None if deep is None else Recomputation(warehouse, workplace, deep, tell)
        audit = ReleaseAudit(warehouse, ledger, history, Lineage(warehouse, ledger, workplace.engine, again))
        for number, charge in enumerate(chosen):
            bar(number, len(chosen), f"auditing {charge.release_id}")
            with finishing(report, charge.release_id):
                report.releases.append(audit.verdict(charge))
            # All months together may be larger than the disk.
            drop_copies()
        report.failures += [history.trouble] if history.trouble else []
    return report


@contextmanager
def finishing(report: AuditReport, what: str) -> Iterator[None]:
    """Turn what the machine refuses, a file, a disk, a connection, into a failure of the audit: it is no finding.

    These texts name files, never values. A loop of links is a RuntimeError of pathlib's.
    """
    try:
        yield
    except (OSError, RuntimeError, LedgerError, duckdb.IOException, duckdb.OutOfMemoryException) as error:
        words = str(error).strip().splitlines()
        report.failures.append(f"{what}: {words[0] if words else type(error).__name__}")


def unreadable_zones(warehouse: Warehouse) -> list[str]:
    """The zones that this user may not look into: whatever lies there would seem to be gone."""
    zones = (warehouse.released, warehouse.private, warehouse.landing, warehouse.dagster)
    return [f"{zone}: this user may not read it" for zone in zones if zone.exists() and not os.access(zone, READ)]


def without_ledger(warehouse: Warehouse, error: LedgerError) -> AuditReport:
    """What can be said of a warehouse whose ledger is gone or cannot be read."""
    entries = [path.relative_to(warehouse.released) for path in list_entries(warehouse.released)]
    if isinstance(error, MissingLedgerError) and not entries and not pinned_dataset(warehouse).exists():
        return AuditReport([], [])  # nothing was ever charged here
    return AuditReport([], [f"ledger: {error}", *(f"released/{name}: no ledger accounts for it" for name in entries)])


def lies_here(warehouse: Warehouse, charge: Charge) -> bool:
    return release_path(warehouse, charge).exists() or tombstone_path(warehouse, charge).exists()


class ReleaseAudit:
    """Everything that can be verified about charges and the releases they paid for."""

    def __init__(self, warehouse: Warehouse, ledger: Ledger, history: History, lineage: Lineage) -> None:
        self.warehouse = warehouse
        self.ledger = ledger
        self.history = history
        self.lineage = lineage

    def verdict(self, charge: Charge) -> ReleaseVerdict:
        verdict = ReleaseVerdict(charge.release_id)
        if charge.state == "abandoned":
            verdict.notes.append("abandoned before anything was drawn")
        elif charge.state == "withdrawn":
            self._withdrawn(charge, verdict)
        elif charge.state != "published":
            self._unpublished(charge, verdict)
        else:
            self._published(charge, verdict)
        return verdict

    def _unpublished(self, charge: Charge, verdict: ReleaseVerdict) -> None:
        """Charged without a release: to be mended, unless a later draw of the month is what is published instead."""
        current = self.ledger.live(charge.dataset, charge.month, charge.mechanism)[-1]
        superseded = current.release_id != charge.release_id
        draw = self._draw(charge, verdict, needed=not superseded)
        if draw is not None and draw.release.failure is not None:
            verdict.findings = ["its draw failed after noise was drawn, and its charge stays: withdraw it"]
        elif superseded and charge.state == "drawn":
            verdict.notes.append(f"drawn and never published, and its charge stays: {current.release_id} came after it")
        elif superseded:
            verdict.findings.append(f"charged, and {current.release_id} came after it: qlog ledger abandon")
        else:
            remedy = ", or qlog ledger abandon" if charge.state == "reserved" else ""
            unpublished = f"charged and {charge.state}, but not published: run the release again{remedy}"
            verdict.findings.insert(0, unpublished)

    def _published(self, charge: Charge, verdict: ReleaseVerdict) -> None:
        path = release_path(self.warehouse, charge)
        manifest = audit_files(path, charge, verdict)
        if manifest is not None:
            audit_manifest(manifest, charge, self.ledger, verdict)
            verdict.recomputed.append("its public files: their checksums, against manifest and ledger")
        audit_guarantee(charge, manifest, verdict)
        verdict.recomputed.append("its ε and δ, from the parameters that the ledger recorded")
        draw = self._draw(charge, verdict, needed=False)
        if draw is not None and not verdict.findings:
            verdict.findings += differences_from_draw(path, draw, releasable_mechanism(charge.mechanism))
            verdict.recomputed.append("its public tables, from the stored draw")
        elif draw is None:
            verdict.believed.append(
                "that its public tables are what was drawn: there is no stored draw to compare with"
            )
        followed = self.lineage.follow(charge, draw)
        verdict.findings += followed.findings
        verdict.notes += followed.notes
        verdict.recomputed += followed.recomputed
        verdict.believed += followed.believed
        found, notes = self.history.findings(door_runs(self.ledger, charge), followed.run_ids)
        verdict.findings += found
        verdict.notes += notes
        verdict.believed += ALWAYS_BELIEVED

    def _draw(self, charge: Charge, verdict: ReleaseVerdict, *, needed: bool) -> Draw | None:
        """The stored draw, if it is there and is the one the ledger recorded."""
        if charge.draw_digest is None:
            return None
        if not (self.warehouse.draws / charge.fingerprint).exists():
            if needed:
                verdict.findings.append("draw: it was stored and is gone: restore private/draws from a backup")
            else:
                verdict.notes.append("its stored draw is no longer there")
            return None
        try:
            draw = load_draw(self.warehouse, charge.fingerprint)
        except DrawError as error:
            verdict.findings.append(f"draw: {error}")
            return None
        if draw.digest != charge.draw_digest:
            verdict.findings.append("draw: it is not the one the ledger recorded: it was changed on disk")
            return None
        return draw

    def _withdrawn(self, charge: Charge, verdict: ReleaseVerdict) -> None:
        if charge.lost:
            self._lost(charge, verdict)
            return
        if release_path(self.warehouse, charge).exists():
            verdict.findings.append("withdrawn, but its files are still public: run qlog withdraw again")
        stone = tombstone_path(self.warehouse, charge)
        if not stone.exists():
            verdict.findings.append("withdrawn, but its tombstone is missing: run qlog withdraw again")
        elif stone.read_text(encoding="utf-8", errors="replace") not in tombstone_texts(charge):
            verdict.findings.append("its tombstone was changed: run qlog withdraw again")
        verdict.notes.append("withdrawn; its charge stays")

    def _lost(self, charge: Charge, verdict: ReleaseVerdict) -> None:
        if release_path(self.warehouse, charge).exists():
            verdict.findings.append("charged as lost, but its files are public: run qlog withdraw")
        verdict.notes.append("the ledger lost it and its witness knew it; its charge stays")


def audit_files(path: Path, charge: Charge, verdict: ReleaseVerdict) -> dict[str, Any] | None:
    """The manifest is the one the ledger recorded, and every file is the one the manifest lists."""
    if path.is_symlink() or not path.is_dir():
        verdict.findings.append("published, but its files are gone: run the release again, or restore them")
        return None
    manifest_file = path / MANIFEST_NAME
    if manifest_file.is_symlink() or not manifest_file.is_file():
        verdict.findings.append("manifest.json is gone")
        return None
    if file_checksum(manifest_file) != charge.manifest_digest:
        verdict.findings.append("manifest.json is not the one the ledger recorded")
    try:
        manifest = load_manifest(manifest_file)
    except QlogError as error:
        verdict.findings.append(str(error))
        return None
    verdict.findings += verify_files(manifest, path)
    return manifest


def audit_manifest(manifest: dict[str, Any], charge: Charge, ledger: Ledger, verdict: ReleaseVerdict) -> None:
    """What the manifest says of the release is what the ledger charged for."""
    expected = {
        "release_id": charge.release_id,
        "dataset": charge.dataset,
        "month": charge.month,
        "mechanism": charge.mechanism,
        "mechanism_version": charge.mechanism_version,
        "variant": charge.variant,
        "draw_number": charge.draw_number,
        "drawn_on": (charge.drawn_at or "")[:10],
        "parameters": printed_parameters(charge, words_of(manifest)),
    }
    for key, value in expected.items():
        if manifest[key] != value:
            verdict.findings.append(f"manifest: {key} is not what the ledger says")
    if names_other_pin(manifest, charge):
        verdict.findings.append("manifest: it names another release that steered it than the ledger does")
    if charge.drawn_seq is None or manifest.get("budget") not in ledger.terms_between(
        charge.dataset, charge.seq, charge.drawn_seq
    ):
        verdict.findings.append("manifest: budget is not what the ledger says")
    if manifest["ledger"].get("witnessed") and not ledger.witnessed_at(charge.drawn_seq or 0):
        verdict.findings.append("manifest: it says that a witness had its charge, and the ledger had none then")
    head = manifest["ledger"]
    if ledger.heads_missing([SaltedHead(head["seq"], head["salt"], head["salted_head"])]):
        verdict.findings.append("ledger: its history is not the one this release committed to: it was cut or rewritten")


def printed_parameters(charge: Charge, words: int) -> dict[str, Any] | None:
    """What a manifest prints of the parameters that were charged for; None where they are no parameters."""
    try:
        return mechanism(charge.mechanism).printed_parameters(charge.variant, charge.parameters, words)
    except (QlogError, ValueError):
        return None


def audit_guarantee(charge: Charge, manifest: dict[str, Any] | None, verdict: ReleaseVerdict) -> None:
    """The guarantee, computed again from the recorded parameters, is what was charged and what the public was told."""
    try:
        known = mechanism(charge.mechanism)
        guarantee = known.guarantee(charge.variant, known.parameters(**charge.parameters))
    except QlogError as error:
        verdict.findings.append(f"guarantee: the recorded parameters give none: {error}")
        return
    if guarantee.proven is None:
        verdict.findings.append("guarantee: none holds for this variant")
        return
    if guarantee.proven.epsilon > charge.epsilon or guarantee.proven.delta > charge.delta:
        verdict.findings.append("guarantee: the charge is less than the recorded parameters cost")
    if manifest is not None:
        told, proven = manifest["guarantee"], guarantee.proven.as_json()
        if told["epsilon"] < proven["epsilon"] or told["delta"] < proven["delta"]:
            verdict.findings.append("guarantee: the manifest promises more than the recorded parameters keep")
