"""Audits releases without trusting whoever made them: files, manifest, ledger, guarantee, limits, lineage, run history.

It reads everything and writes nothing. A finding is something that is wrong; a note is something that can no longer be
looked at, such as data that retention deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qlog_assets.audit_history import run_findings
from qlog_assets.audit_lineage import lineage_findings
from qlog_assets.ledger import Charge, Ledger, SaltedHead
from qlog_assets.privacy.errors import QlogError
from qlog_assets.privacy.guarantees import guarantee, parameter_model
from qlog_assets.release import foreign_releases
from qlog_assets.report.manifest import load_manifest, verify_files
from qlog_assets.warehouse import Warehouse, file_checksum


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


def audit_releases(warehouse: Warehouse, ledger: Ledger, release_ids: Sequence[str] = ()) -> AuditReport:
    """Verify the named releases, or all of them; the ledger's history and the public zone are verified in any case."""
    charges = ledger.charges()
    known = {charge.release_id: charge for charge in charges}
    for release_id in release_ids:
        if release_id not in known:
            raise QlogError(f"the ledger knows no release {release_id}")
    chosen = [known[release_id] for release_id in release_ids] or charges
    findings = [f"ledger: {finding}" for finding in ledger.verify_chain()]
    findings += [f"released/{name}: the ledger does not know it" for name in foreign_releases(warehouse, ledger)]
    return AuditReport([audit_release(warehouse, ledger, charge) for charge in chosen], findings)


def audit_release(warehouse: Warehouse, ledger: Ledger, charge: Charge) -> ReleaseVerdict:
    """Everything that can be verified about one charge and the release it paid for."""
    verdict = ReleaseVerdict(charge.release_id)
    path = warehouse.released / charge.mechanism / charge.month / charge.release_id
    if charge.state == "abandoned":
        verdict.notes.append("abandoned before anything was drawn")
        return verdict
    if charge.state == "withdrawn":
        audit_withdrawal(path, verdict)
        return verdict
    if charge.state != "published":
        verdict.findings.append(
            f"charged and {charge.state}, but not published: run the release again"
            + (", or qlog ledger abandon" if charge.state == "reserved" else "")
        )
        return verdict
    manifest = audit_files(path, charge, verdict)
    if manifest is not None:
        audit_manifest(manifest, charge, ledger, verdict)
    audit_guarantee(charge, manifest, verdict)
    for look in (lineage_findings, run_findings):
        found, notes = look(warehouse, ledger, charge)
        verdict.findings += found
        verdict.notes += notes
    return verdict


def audit_withdrawal(path: Path, verdict: ReleaseVerdict) -> None:
    if path.exists():
        verdict.findings.append("withdrawn, but its files are still public: run qlog withdraw again")
    if not path.with_name(f"{path.name}.withdrawn.json").exists():
        verdict.findings.append("withdrawn, but its tombstone is missing: run qlog withdraw again")
    verdict.notes.append("withdrawn; its charge stays")


def audit_files(path: Path, charge: Charge, verdict: ReleaseVerdict) -> dict[str, Any] | None:
    """The manifest is the one the ledger recorded, and every file is the one the manifest lists."""
    if not path.is_dir():
        verdict.findings.append("published, but its files are gone")
        return None
    manifest_file = path / "manifest.json"
    if not manifest_file.exists():
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
        "variant": charge.variant,
        "draw_number": charge.draw_number,
        "parameters": dict(charge.parameters),
    }
    for key, value in expected.items():
        if manifest[key] != value:
            verdict.findings.append(f"manifest: {key} is not what the ledger says")
    head = manifest["ledger"]
    if ledger.heads_missing([SaltedHead(head["seq"], head["salt"], head["salted_head"])]):
        verdict.findings.append("ledger: its history is not the one this release committed to: it was cut or rewritten")


def audit_guarantee(charge: Charge, manifest: dict[str, Any] | None, verdict: ReleaseVerdict) -> None:
    """The guarantee, computed again from the recorded parameters, is what was charged and what the public was told."""
    try:
        promise = guarantee(charge.mechanism, charge.variant, parameter_model(charge.mechanism)(**charge.parameters))
    except QlogError as error:
        verdict.findings.append(f"guarantee: the recorded parameters give none: {error}")
        return
    if promise.proven is None:
        verdict.findings.append("guarantee: none holds for this variant")
        return
    if not (charge.epsilon >= promise.proven.epsilon and charge.delta >= promise.proven.delta):
        verdict.findings.append("guarantee: the charge is less than the recorded parameters cost")
    if manifest is not None:
        told = manifest["guarantee"]
        proven = promise.proven.as_json()
        if told["epsilon"] < proven["epsilon"] or told["delta"] < proven["delta"]:
            verdict.findings.append("guarantee: the manifest promises more than the recorded parameters keep")
