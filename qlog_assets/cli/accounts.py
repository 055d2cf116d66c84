"""The commands of auditors and data keepers: audit, withdraw, skip, forget. Parsing and printing only."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qlog_assets.cli.arguments import name_argument, open_account, open_ledger, opened, parse_month
from qlog_assets.cli.output import Json, console, progress_bar, show, show_table, stderr_line

UNFINISHED = 3
"""The exit code of an audit that could not look at everything and found nothing in the rest."""

PUBLIC_TEXT = "What everybody may read of it, in tombstone and index; without one, a neutral sentence"


def register(app: typer.Typer) -> None:
    """Add the commands that stand at the top level."""

    @app.command()
    def audit(
        releases: Annotated[list[str] | None, typer.Argument(help="Release ids; all if none is given")] = None,
        deep: Annotated[
            bool, typer.Option("--deep", help="Compute every private table again, from its landing file on")
        ] = False,
        witness: Annotated[
            bool, typer.Option("--witness", help="Compare the ledger with its witness, event by event")
        ] = False,
        as_json: Json = False,
    ) -> None:
        """Verify releases against ledger, files, inputs and Dagster's history. Exit code 1 on any finding, 3 where the
        audit could not be finished."""
        from qlog_assets.verify.audit import audit_warehouse
        from qlog_assets.verify.witness import audit_witness

        warehouse, policy = opened()
        with progress_bar(as_json) as (tell, bar):
            lists = policy.lists if deep else None
            report = audit_warehouse(warehouse, policy.dataset, releases or [], deep=lists, tell=tell, bar=bar)
            audit_witness(warehouse, policy, report, asked=witness)
        show(report.as_json(), as_json, audit_lines)
        if report.failures:
            more = f" (and {len(report.failures) - 1} more)" if len(report.failures) > 1 else ""
            stderr_line(f"qlog: the audit could not be finished: {report.failures[0]}{more}")
        if report.all_findings:
            raise typer.Exit(1)
        if report.failures:
            raise typer.Exit(UNFINISHED)

    @app.command()
    def withdraw(
        release_id: Annotated[str, typer.Argument(help="The release to take back")],
        reason: Annotated[str, typer.Option(help="Why; it is recorded for auditors and not published")],
        public_text: Annotated[str | None, typer.Option(help=PUBLIC_TEXT)] = None,
        as_json: Json = False,
    ) -> None:
        """Remove a release's files. Its charge stays, and a tombstone says what was there."""
        from qlog_assets.door.door import Door

        warehouse, policy, ledger = open_ledger()
        charge = Door(warehouse, policy, ledger).withdraw(release_id, reason, public_text)
        facts = {"release_id": charge.release_id, "state": charge.state}
        show(facts, as_json, lambda _: console.print(f"{charge.release_id} is withdrawn; its charge stays"))

    @app.command()
    def skip(
        month: Annotated[list[str], typer.Option("--month", help="YYYY-MM; repeat for several months")],
        reason: Annotated[str, typer.Option(help="Why the month is left out; it is recorded for auditors")],
        public_text: Annotated[str | None, typer.Option(help=PUBLIC_TEXT)] = None,
        mechanism: Annotated[
            str, name_argument("stages.py", more="; without a name, every one that has not released the month")
        ] = "",
        as_json: Json = False,
    ) -> None:
        """Record that a month has no release on purpose. Schedules leave it alone; it can be released by hand later."""
        from datetime import UTC, datetime

        from qlog_assets.door.door import Door
        from qlog_assets.door.undecided import skip_months

        months, now = [parse_month(each) for each in month], datetime.now(UTC)
        found = skip_months(Door(*open_ledger()), mechanism or None, months, reason, now, public_text)
        facts = {
            "skips": [
                {"month": skip.month, "mechanism": skip.mechanism, "reason": skip.reason, "who": skip.who}
                | {"at": skip.at, "already": each.already}
                for each in found
                for skip in [each.skip]
            ]
        }
        show(facts, as_json, skip_lines)

    @app.command()
    def forget(
        before: Annotated[str, typer.Option(help="Delete what is older than this month, YYYY-MM")],
        landing: Annotated[bool, typer.Option("--landing", help="Delete the landing files, too")] = False,
        as_json: Json = False,
    ) -> None:
        """Delete raw, cleaned, capped and drawn data of published months. Releases and audits stay."""
        from qlog_assets.verify.retention import forget_before

        warehouse, policy, ledger = open_account()
        with progress_bar(as_json) as (_, bar):
            facts = forget_before(warehouse, policy, ledger, parse_month(before), landing, bar)
        show(facts, as_json, forget_lines)


def audit_lines(facts: dict[str, Any]) -> None:
    rows = [
        [entry["release_id"], "ok" if entry["ok"] else "FINDING", "; ".join(entry["findings"] or entry["notes"])]
        for entry in facts["releases"]
    ]
    show_table(["release", "verdict", "what was found"], rows)
    for entry in facts["releases"]:
        for word in ("recomputed", "believed"):
            if entry[word]:
                console.print(f"{entry['release_id']}  {word}: {'; '.join(entry[word])}")
    for finding in facts["findings"]:
        console.print(f"FINDING  {finding}")
    for note in facts["notes"]:
        console.print(f"note: {note}")
    if facts["ok"]:
        console.print(f"{len(rows)} release(s) verified; nothing was found")


def skip_lines(facts: dict[str, Any]) -> None:
    shown = ("month", "mechanism", "reason", "who")
    show_table(["month", "skipped by", "reason", "who"], [[each[key] for key in shown] for each in facts["skips"]])
    for each in facts["skips"]:
        if each["already"]:
            console.print(f"{each['month']} by {each['mechanism']}: recorded already, at {each['at']}")


def forget_lines(facts: dict[str, Any]) -> None:
    console.print(f"deleted: {', '.join(facts['months']) or 'nothing; no published month is that old'}")
    for month, reason in facts["kept"].items():
        console.print(f"{month}: kept, because {reason}")
    for place in facts["stores"]:
        console.print(f"{place}: deleted there, too; a store that keeps versions or snapshots still has them")
    for name in facts["landing"]:
        state = "deleted" if name in facts["landing_deleted"] else "still holds forgotten months (--landing deletes it)"
        console.print(f"{name}: {state}")
    for name in facts["unread"]:
        state = "deleted" if name in facts["landing_deleted"] else "still there (--landing deletes it)"
        why = "its ingest failed or would be refused, so its months are unknown"
        console.print(f"{name}: {why}; last written before that month: {state}")
