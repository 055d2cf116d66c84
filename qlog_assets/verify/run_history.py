"""What Dagster's own history says of a release: the runs that made it, and the checks they evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from qlog_assets.ledger import Charge, Ledger

if TYPE_CHECKING:
    import dagster as dg

Found = tuple[list[str], list[str]]


def door_runs(ledger: Ledger, charge: Charge) -> set[str]:
    """The runs in whose name the ledger was written for a release."""
    events = {event.seq: event for event in ledger.events()}
    seqs = (charge.seq, charge.drawn_seq, charge.published_seq)
    return {str(events[seq].run_id) for seq in seqs if seq in events and events[seq].run_id is not None}


def run_findings(instance: dg.DagsterInstance | None, at_the_door: Iterable[str], before_it: Iterable[str]) -> Found:
    """Findings and notes about the runs that drew and published a release, and those that wrote what it was made from.

    A check counts as it was evaluated last: a run that failed it may be followed by one that mended the cause.
    """
    import dagster as dg

    named = sorted(at_the_door)
    if not named:
        return [], ["it was not made in a Dagster run"]
    if instance is None:
        return [], ["Dagster's history is not there: its runs and checks cannot be looked at"]
    notes: list[str] = []
    evaluations = []
    for run_id in [*named, *sorted(set(before_it) - set(named))]:
        run = instance.get_run_by_id(run_id)
        if run is None:
            notes.append(f"Dagster's history has no run {run_id[:8]} any more")
            continue
        if run_id in named and run.status is not dg.DagsterRunStatus.SUCCESS:
            # Killed or failed after the door did its work: what the door did counts, and the next run went on.
            notes.append(f"run {run_id[:8]} did not finish ({run.status.value.lower()})")
        for record in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION):
            facts = record.get_dagster_event().asset_check_evaluation_data
            evaluations.append((record.timestamp, run_id, facts))
    last = {(facts.asset_key, facts.check_name): (run_id, facts) for _, run_id, facts in sorted(evaluations, key=_when)}
    findings = [
        f"run {run_id[:8]}: the check {facts.check_name} failed, and the release was made all the same"
        for run_id, facts in last.values()
        if facts.blocking and not facts.passed
    ]
    if not evaluations and not notes:
        notes.append("the runs that made it evaluated no check of their own; the door did")
    return sorted(findings), notes


def _when(evaluation: tuple[float, str, object]) -> float:
    return evaluation[0]
