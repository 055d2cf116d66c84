"""What Dagster's own history says of a release: the runs that drew and published it, and the checks they evaluated."""

from __future__ import annotations

from qlog_assets.ledger import Charge, Ledger
from qlog_assets.runs import dagster_instance
from qlog_assets.warehouse import Warehouse

Found = tuple[list[str], list[str]]


def run_findings(warehouse: Warehouse, ledger: Ledger, charge: Charge) -> Found:
    """Findings and notes about the runs that the ledger names for a release."""
    import dagster as dg

    events = {event.seq: event for event in ledger.events()}
    seqs = (charge.seq, charge.drawn_seq, charge.published_seq)
    run_ids = {events[seq].run_id for seq in seqs if seq in events}
    named = sorted(run_id for run_id in run_ids if run_id is not None)
    if not named:
        return [], ["it was not made in a Dagster run"]
    findings: list[str] = []
    notes: list[str] = []
    checked = 0
    with dagster_instance(warehouse) as instance:
        for run_id in named:
            run = instance.get_run_by_id(run_id)
            if run is None:
                notes.append(f"Dagster's history has no run {run_id[:8]} any more")
                continue
            records = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
            evaluations = [record.get_dagster_event().asset_check_evaluation_data for record in records]
            checked += len(evaluations)
            failed = sorted({item.check_name for item in evaluations if not item.passed and item.blocking})
            findings += [f"run {run_id[:8]}: the check {name} failed, and the run went on" for name in failed]
    if not checked and not notes:
        notes.append("the runs that made it evaluated no check of their own; the door did")
    return findings, notes
