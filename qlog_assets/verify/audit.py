"""Audits releases without trusting whoever made them: files, manifest, ledger, guarantee, limits, lineage, run history.

It reads everything and changes nothing. A finding is something that is wrong; a note is something that can no longer
be looked at, such as data that retention deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qlog_assets.door.draws import Draw, DrawError, load_draw
from qlog_assets.door.preconditions import pinned_dataset
from qlog_assets.door.publication import differences_from_draw
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Charge, Ledger, LedgerError, MissingLedgerError, SaltedHead
from qlog_assets.mechanisms.register import mechanism, releasable_mechanism
from qlog_assets.report.manifest import MANIFEST_NAME, load_manifest, verify_files, words_of
from qlog_assets.report.public_zone import (
    LATEST,
    list_entries,
    release_path,
    tombstone_path,
    tombstone_text,
    unknown_entries,
)
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.verify.lineage import Lineage
from qlog_assets.verify.run_history import door_runs, run_findings

if TYPE_CHECKING:
    import dagster as dg


@dataclass
class ReleaseVerdict:
    """What was found about one release."""

    release_id: str
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class AuditReport:
    """What was found about all of them, and about ledger and public zone as a whole."""

    releases: list[ReleaseVerdict]
    findings: list[str]

    @property
    def ok(self) -> bool:
        return not self.findings and not any(verdict.findings for verdict in self.releases)

    @property
    def all_findings(self) -> list[str]:
        """Every finding in one list, each with the release it is about."""
        about = [f"{verdict.release_id}: {finding}" for verdict in self.releases for finding in verdict.findings]
        return self.findings + about

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "findings": self.findings,
            "releases": [
                {
                    "release_id": verdict.release_id,
                    "ok": not verdict.findings,
                    "findings": verdict.findings,
                    "notes": verdict.notes,
                }
                for verdict in self.releases
            ],
        }


def audit_warehouse(
    warehouse: Warehouse,
    dataset: str | None = None,
    release_ids: Sequence[str] = (),
    instance: dg.DagsterInstance | None = None,
) -> AuditReport:
    """Verify the named releases, or all of them; the ledger's history and the public zone are verified in any case.

    A ledger may serve several warehouses: with a data set's name, other data sets' releases are looked at only where
    they lie here. A lost ledger is a finding and no error: what it charged for is still there. Without an `instance`,
    Dagster's history is the one in the warehouse.
    """
    try:
        # Never made here: an audit that found no ledger and made a new one would find nothing wrong with it.
        ledger = Ledger.open(warehouse.ledger_url, create=False)
        charges = ledger.charges()
    except LedgerError as error:
        return without_ledger(warehouse, error)
    known = {charge.release_id: charge for charge in charges}
    for release_id in release_ids:
        if release_id not in known:
            raise QlogError(f"the ledger knows no release {release_id}")
    chosen = [known[release_id] for release_id in release_ids]
    if not release_ids:
        chosen = [charge for charge in charges if dataset in (None, charge.dataset) or lies_here(warehouse, charge)]
    findings = [f"ledger: {finding}" for finding in ledger.verify_chain()] + unknown_entries(warehouse, ledger)
    with history(warehouse, instance) as runs:
        audit = ReleaseAudit(warehouse, ledger, runs)
        return AuditReport([audit.verdict(charge) for charge in chosen], findings)


def without_ledger(warehouse: Warehouse, error: LedgerError) -> AuditReport:
    """What can be said of a warehouse whose ledger is gone or cannot be read."""
    entries = [path.relative_to(warehouse.released) for path in list_entries(warehouse.released) if path.name != LATEST]
    if isinstance(error, MissingLedgerError) and not entries and not pinned_dataset(warehouse).exists():
        return AuditReport([], [])  # nothing was ever charged here
    return AuditReport([], [f"ledger: {error}", *(f"released/{name}: no ledger accounts for it" for name in entries)])


def lies_here(warehouse: Warehouse, charge: Charge) -> bool:
    return release_path(warehouse, charge).exists() or tombstone_path(warehouse, charge).exists()


@contextmanager
def history(warehouse: Warehouse, instance: dg.DagsterInstance | None) -> Iterator[dg.DagsterInstance | None]:
    """Dagster's history: the one given, the warehouse's own, or none. It is never made by looking at it."""
    if instance is not None or not (warehouse.dagster / "dagster.yaml").exists():
        yield instance
        return
    from qlog_assets.storage.dagster_home import open_existing

    with open_existing(warehouse.dagster) as own:
        yield own


class ReleaseAudit:
    """Everything that can be verified about charges and the releases they paid for."""

    def __init__(self, warehouse: Warehouse, ledger: Ledger, runs: dg.DagsterInstance | None) -> None:
        self.warehouse = warehouse
        self.ledger = ledger
        self.runs = runs
        self.lineage = Lineage(warehouse, ledger)

    def verdict(self, charge: Charge) -> ReleaseVerdict:
        verdict = ReleaseVerdict(charge.release_id)
        if charge.state == "abandoned":
            verdict.notes.append("abandoned before anything was drawn")
        elif charge.state == "withdrawn":
            self._withdrawn(charge, verdict)
        elif charge.state != "published":
            verdict.findings.append(
                f"charged and {charge.state}, but not published: run the release again"
                + (", or qlog ledger abandon" if charge.state == "reserved" else "")
            )
            draw = self._draw(charge, verdict)
            if draw is not None and draw.release.failure is not None:
                verdict.findings = ["its draw failed after noise was drawn, and its charge stays: withdraw it"]
        else:
            self._published(charge, verdict)
        return verdict

    def _published(self, charge: Charge, verdict: ReleaseVerdict) -> None:
        path = release_path(self.warehouse, charge)
        manifest = audit_files(path, charge, verdict)
        if manifest is not None:
            audit_manifest(manifest, charge, self.ledger, verdict)
        audit_guarantee(charge, manifest, verdict)
        draw = self._draw(charge, verdict)
        if draw is not None and not verdict.findings:
            verdict.findings += differences_from_draw(path, draw, releasable_mechanism(charge.mechanism))
        followed = self.lineage.follow(charge, draw)
        verdict.findings += followed.findings
        verdict.notes += followed.notes
        found, notes = run_findings(self.runs, door_runs(self.ledger, charge), followed.run_ids)
        verdict.findings += found
        verdict.notes += notes

    def _draw(self, charge: Charge, verdict: ReleaseVerdict) -> Draw | None:
        """The stored draw, if it is there and is the one the ledger recorded."""
        if charge.draw_digest is None:
            return None
        if not (self.warehouse.draws / charge.fingerprint).exists():
            if charge.state == "published":
                verdict.notes.append("its stored draw is no longer there")
            else:
                verdict.findings.append("draw: it was stored and is gone: restore private/draws from a backup")
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
        if release_path(self.warehouse, charge).exists():
            verdict.findings.append("withdrawn, but its files are still public: run qlog withdraw again")
        stone = tombstone_path(self.warehouse, charge)
        if not stone.exists():
            verdict.findings.append("withdrawn, but its tombstone is missing: run qlog withdraw again")
        elif stone.read_text(encoding="utf-8", errors="replace") != tombstone_text(charge):
            verdict.findings.append("its tombstone was changed: run qlog withdraw again")
        verdict.notes.append("withdrawn; its charge stays")


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
