"""The asset of the group `audit`: every release verified again, in the same catalogue as the releases themselves."""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from typing import Any

import dagster as dg

from qlog_assets.mechanisms.register import releasable
from qlog_assets.orchestration import words
from qlog_assets.orchestration.metadata import OWNERS, seconds_since
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource
from qlog_assets.storage.digests import digest_of

FINDINGS_SHOWN = 20


def audit_assets() -> list[dg.AssetsDefinition]:
    """The group's assets. They belong to no month: a ledger and a public zone are verified whole."""

    @dg.asset(
        group_name="audit",
        deps=[asset for each in releasable() for asset in each.released_assets.values()],
        kinds={"python"},
        owners=OWNERS,
        code_version="1",
        description=words.AUDIT,
    )
    def release_audit(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> dg.MaterializeResult[Any]:
        from qlog_assets.verify.audit import audit_warehouse
        from qlog_assets.verify.witness import audit_witness

        started, chosen = time.monotonic(), policy.chosen()
        report = audit_warehouse(warehouse.open(), chosen.dataset, instance=context.instance)
        audit_witness(warehouse.open(), chosen, report, asked=chosen.ledger.witness is not None)
        findings = report.all_findings
        facts: dict[str, Any] = {
            "releases verified": len(report.releases),
            "findings": len(findings),
            "failures": len(report.failures),
            "believed": dg.MetadataValue.json({verdict.release_id: verdict.believed for verdict in report.releases}),
            "notes": dg.MetadataValue.json(
                {"ledger": report.notes} | {verdict.release_id: verdict.notes for verdict in report.releases}
            ),
            "seconds": seconds_since(started),
        }
        if report.failures:
            shown = "; ".join(report.failures[:FINDINGS_SHOWN])
            raise dg.Failure(
                description=f"the audit could not be finished: {shown}; {len(findings)} finding(s) so far",
                metadata=facts,
            )
        if findings:
            shown = "; ".join(findings[:FINDINGS_SHOWN])
            raise dg.Failure(description=f"{len(findings)} finding(s): {shown}", metadata=facts)
        verified = [verdict.release_id for verdict in report.releases]
        return dg.MaterializeResult(metadata=facts, data_version=dg.DataVersion(digest_of(verified)[:20]))

    return [release_audit]
